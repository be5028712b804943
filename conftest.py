"""Names that the examples in docstrings take for granted, an empty folder for what they write, and what is left out."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

# Its classes derive from those of pyspark.
collect_ignore = [] if importlib.util.find_spec("pyspark") else ["dualmx/spark/ml"]


@pytest.fixture(autouse=True)
def _example_names(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        import dualmx as mx

        names: dict[str, Any] = {"mx": mx, "nd": mx.nd, "sym": mx.sym, "gluon": mx.gluon}
        request.getfixturevalue("doctest_namespace").update(names)
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
