"""Every reader takes 2,000 damaged inputs; with a fault put back, the same inputs show it."""

from __future__ import annotations

import pytest

from .readers import READERS
from .run import run

INPUTS = 2000


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_damaged_inputs_are_refused(name: str) -> None:
    found = run(name, 0, INPUTS)
    assert not found.faults, found.faults[:5]
    assert found.inputs == INPUTS
    assert found.counts["accepted"] and (found.counts["refused"] or name in ("running_jobs", "server_requests"))


FAULTS = {
    # a length is believed before it is known that so many bytes are there
    "recordio": ("import dualmx.io.recordio as r; r._MIN_CHECKED_BYTES = 1 << 62", "memory"),
    # an image is decoded whatever its header says
    "image": ("import dualmx.io.image_codec as c; c.memory_of = lambda *_: 0", "memory"),
    # errors of the library below pass
    "safetensors_file": ("import dualmx.core.reader as r; r._Parsing.__exit__ = lambda *_: None", "foreign"),
    # a count is counted up to, however large it is
    "batches_of_a_job": ("import dualmx.ps.elastic_worker as b; b.MOST_BATCHES = 1 << 70", "hang or memory"),
    # an error does not say which file it is
    "symbol": ("import dualmx.symbol.symbol as s; f = s.from_json; s.from_json = lambda text, _: f(text)", "unnamed"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_is_put_back_is_found(name: str) -> None:
    setup, kind = FAULTS[name]
    limits = "import tests.fuzz.limits as limits; limits.SECONDS = 2"  # a control need not wait as long
    found = run(name, 0, INPUTS, setup=f"{limits}; {setup}")
    assert {fault for _, fault, _ in found.faults} & set(kind.split(" or ")), found.row()


def test_the_same_seed_damages_in_the_same_way() -> None:
    from random import Random

    from . import mutate

    text, others = b'{"a": [1, 2, {"b": null}], "c": "d"}', [b"[]", b"[1, 2]"]
    for damage in (mutate.damaged, mutate.reworded, mutate.rejsoned):
        once, twice = ([damage(Random(i), text, others) for i in range(300)] for _ in range(2))
        assert once == twice
        assert len(set(once)) > 200
