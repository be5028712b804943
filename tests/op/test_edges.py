"""Operators at the edges, as MXNet answered: thresholds hit exactly, ties, sizes of one, lengths of zero."""

from __future__ import annotations

import pytest

from tests.goldens.edge_cases import GROUPS
from tests.goldens.nn_cases import Case
from tests.op.nn_replay import replay

CASES = [case for cases in GROUPS.values() for case in cases]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_matches_record(case: Case) -> None:
    replay(case)
