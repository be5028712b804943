"""Compiler options that this XLA does not know are left out; what JAX logs meanwhile."""

from __future__ import annotations

import logging

import pytest

import dualmx as mx
from dualmx.compile import executable


@pytest.mark.usefixtures("xla_tier")
@pytest.mark.parametrize("option, n", [("xla_cpu_no_such_option", 7), ("xla_cpu_experimental_ynn_fusion_type", 8)])
def test_refused_options_are_dropped(monkeypatch, option, n):
    monkeypatch.setitem(executable._OPTIONS, "cpu", {option: "NO_SUCH_VALUE"})
    x = mx.nd.arange(n) * 3 + 1
    assert x.sum().asscalar() == sum(3 * i + 1 for i in range(n))
    assert executable.compiler_options("cpu") is None


@pytest.mark.usefixtures("xla_tier")
def test_scripts_that_log_everything_are_not_told_of_each_trace(caplog):
    caplog.set_level(logging.DEBUG)
    (mx.nd.ones((3, 17)) * 2 + mx.nd.arange(17)).asnumpy()
    assert not [r for r in caplog.records if r.name.startswith("jax")]
