"""Former names of public objects."""

from __future__ import annotations

import importlib

import pytest

FORMER = {
    "dualmx.gluon.parallel": {"DivergenceSentinel": "DivergenceCheck", "PeriodicTrainer": "AccumulatingTrainer"},
    "dualmx.kvstore": {"keeps_values": "has_values"},
    "dualmx.numpy.fallback": {"NAMES": "HOST_FUNCTIONS"},
    "dualmx.parallel.rpc": {"begin": "call_async", "keep": "call_remote"},
    "dualmx.parallel": {"Group": "ProcessGroup", "Receipt": "RecvHandle", "match_rules": "match_partition_rules"},
}


@pytest.mark.parametrize("module, old, new", [(m, *names) for m, table in FORMER.items() for names in table.items()])
def test_former_names_are_those_of_today_with_a_warning(module: str, old: str, new: str) -> None:
    room = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=f"{module}.{old} is called {module}.{new} now"):
        found = getattr(room, old)
    assert found is getattr(room, new) and new in room.__all__ and old not in room.__all__


def test_other_names_are_errors() -> None:
    with pytest.raises(AttributeError, match="module 'dualmx.parallel' has no attribute 'absent'"):
        importlib.import_module("dualmx.parallel").absent  # noqa: B018
