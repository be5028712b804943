"""Hooks of subclasses of modules, iterators and metrics are called as in MXNet."""

from __future__ import annotations

import pytest

import dualmx as mx
from tests.goldens.hooks_module_cases import cases
from tests.goldens.hooks_spy import unpack
from tests.goldens.store import load

GOLDEN = unpack(load("hooks")["module"])
CASES = dict(cases())


@pytest.mark.parametrize("case", CASES)
def test_each_hook_is_called_as_in_mxnet(case: str) -> None:
    assert CASES[case](mx).calls == GOLDEN[case]
