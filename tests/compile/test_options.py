"""Compiler options that this XLA does not know are left out."""

from __future__ import annotations

import pytest

import dualmx as mx
from dualmx.compile import executable


@pytest.mark.parametrize("option", ["xla_cpu_no_such_option", "xla_cpu_experimental_ynn_fusion_type"])
def test_refused_options_are_dropped(monkeypatch, option):
    monkeypatch.setitem(executable._OPTIONS, "cpu", {option: "NO_SUCH_VALUE"})
    x = mx.nd.arange(7) * 3 + 1
    assert x.sum().asscalar() == 70
    assert executable.options_for("cpu") is None
