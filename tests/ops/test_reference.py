"""The generated reference of operators."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from dualmx.op.registry import OPS

PAGE = Path(__file__).parents[2] / "docs" / "operators_page.py"
found = importlib.util.spec_from_file_location("operators_page", PAGE)
assert found is not None and found.loader is not None
page = importlib.util.module_from_spec(found)
found.loader.exec_module(page)


def test_every_operator_has_an_entry_with_prose():
    text = page.text(examples=False)
    for op in OPS.values():
        head, _, rest = text.partition(f"### `{op.name}`\n")
        assert rest, f"{op.name} is not in the reference"
        body = rest.split("\n### ", 1)[0]
        assert f"{op.name}(" in body
        assert len(body.splitlines()) > 5, f"{op.name}: no description"
    assert "## Differences from MXNet" in text


@pytest.mark.slow
def test_examples_are_executed():
    shown = page.executed(list({id(op): op for op in OPS.values()}.values()))
    assert len(shown) > 100
    code, result = shown["square"][1:3]
    assert code == ">>> nd.square(nd.array([[2, 1], [1, 3]])).asnumpy().round(4).tolist()"
    assert result == "[[4.0, 1.0], [1.0, 9.0]]"
