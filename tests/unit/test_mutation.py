"""The mutants that `tests.mutation` makes; Cosmic Ray is the extra `mutation`."""

from __future__ import annotations

from pathlib import Path

import pytest

cosmic_ray = pytest.importorskip("cosmic_ray")

from cosmic_ray import plugins  # noqa: E402
from cosmic_ray.mutating import mutate_code  # noqa: E402

from tests.mutation import KINDS, mutants, sample  # noqa: E402

TEXT = """\
for x in zip(a, b, strict=True):
    if x < 2 and kind == "max":
        raise ValueError
    if not x:
        continue
"""
EXPECTED = {
    "threshold": ['    if x <= 2 and kind == "max":'],
    "number": ['    if x < 3 and kind == "max":', '    if x < 1 and kind == "max":'],
    "precedence": ['    if x < 2 or kind == "max":'],
    "flag": ["    if  x:"],
    "loop": ["        break"],
    "check": ["    if False:"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_edges_are_mutated_and_nothing_else(kind: str) -> None:
    found = []
    for m in mutants(TEXT, "a.py", kind):
        changed = mutate_code(TEXT, plugins.get_operator(m.operator_name)(), m.occurrence)
        found += [new for old, new in zip(TEXT.splitlines(), changed.splitlines(), strict=True) if old != new]
    assert [" ".join(f.split()) for f in found] == [" ".join(e.split()) for e in EXPECTED[kind]]


def test_a_sample_follows_from_its_seed_and_ends_with_the_mutants(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    first = sample(tmp_path, 3, 1)
    assert first == sample(tmp_path, 3, 1) and len(set(map(str, first))) == 3
    assert len(sample(tmp_path, 100, 1)) == sum(map(len, EXPECTED.values()))
