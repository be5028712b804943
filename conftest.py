"""Names that the examples in docstrings take for granted, and an empty folder for what they write."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _example_names(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        import dualmx as mx

        names: dict[str, Any] = {"mx": mx, "nd": mx.nd, "sym": mx.sym, "gluon": mx.gluon}
        request.getfixturevalue("doctest_namespace").update(names)
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
