"""Hooks of subclasses of modules, iterators and metrics are called as in MXNet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dualmx as mx
from tests.goldens.hooks_module_cases import cases
from tests.goldens.hooks_spy import unpack

GOLDEN = unpack(json.loads((Path(__file__).parents[1] / "goldens" / "hooks.json").read_text())["module"])
CASES = dict(cases())


@pytest.mark.parametrize("case", CASES)
def test_each_hook_is_called_as_in_mxnet(case: str) -> None:
    assert CASES[case](mx).calls == GOLDEN[case]
