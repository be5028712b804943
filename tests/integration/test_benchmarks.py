"""The benchmark harness counts, compares and prints what it should."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from benchmarks.bucketing import WORDS, sentences
from benchmarks.first_steps import FIRST_STEPS, build, has_hand_written
from benchmarks.harness import HEADER, Contestant, Row, table
from benchmarks.measures import ratio
from benchmarks.networks import NETWORKS, batches, parameters
from benchmarks.run import BETWEEN


def contestant(*chunks: tuple[float, float]) -> Contestant:
    return Contestant("c", "jax", "mlp", 8, "plain", chunks=list(chunks))


def test_disturbed_chunks_do_not_count() -> None:
    assert contestant((1.0, 0.0), (1.2, 0.1), (1.1, 0.0), (9.0, 1.5)).ms == 1.1


def test_least_disturbed_chunks_count_where_none_is_quiet() -> None:
    assert contestant((5.0, 0.9), (2.0, 0.3), (1.0, 0.2), (3.0, 0.4)).ms == 2.0


def test_ratio_is_a_speed() -> None:
    reference, twice_as_fast = contestant(*[(2.0, 0.0)] * 3), contestant(*[(1.0, 0.0)] * 3)
    assert ratio(reference, twice_as_fast) == 2.0
    assert ratio(reference, contestant()) is None


@pytest.mark.parametrize(
    ("value", "at_least", "word"),
    [(1.2, True, "aim"), (0.9, True, "gate"), (0.5, True, "missed"), (0.5, False, "aim"), (1.2, False, "missed")],
)
def test_verdict(value: float, at_least: bool, word: str) -> None:
    gate, aim = (0.8, 1.1) if at_least else (1.0, 0.7)
    assert Row("m", value, gate, aim, at_least=at_least).verdict() == word


def test_table_has_a_line_for_each_row() -> None:
    lines = table([Row("speed", 1.5, 1.0, 2.0, note="3 ms"), Row("size", None)]).splitlines()
    assert lines[:2] == HEADER.splitlines()
    assert lines[2] == "| speed | **1.5** | ≥ 1 | ≥ 2 | gate | 3 ms |"
    assert lines[3] == "| size | - | - | - | not run |  |"


def test_only_the_marked_part_of_a_page_is_replaced() -> None:
    page = "before\n<!-- measured:begin -->\nold\n<!-- measured:end -->\nafter\n"
    assert BETWEEN.sub(lambda m: m.group(1) + "new\n" + m.group(2), page) == page.replace("old", "new")


@pytest.mark.parametrize(("network", "count"), [("mlp", 669706), ("lenet", 431080), ("resnet18", 11173962)])
def test_networks_have_the_published_sizes(network: str, count: int) -> None:
    trained = [v for n, v in parameters(network).items() if not n.endswith(("mean", "var"))]
    assert sum(v.size for v in trained) == count
    assert set(NETWORKS) == {"mlp", "lenet", "resnet18"}


def test_batches_repeat() -> None:
    first, second = batches("lenet", 2), batches("lenet", 2)
    assert (first[0][0] == second[0][0]).all() and first[0][0].shape == (2, 1, 28, 28)


def test_first_steps_are_of_networks_that_can_be_built():
    for name in set(FIRST_STEPS) - {"resnet18", "resnet50", "transformer", "widedeep"}:
        assert callable(build("dualmx", name))
    assert [name for name in FIRST_STEPS if has_hand_written(name)] == ["lenet", "dense10", "dense100", "dense500"]


def test_sentences_mostly_follow_one_rule():
    pairs = [(a, b) for words in sentences(np.random.RandomState(0), 200) for a, b in pairwise(words)]
    assert 0.88 < np.mean([b == (3 * a + 1) % (WORDS - 1) + 1 for a, b in pairs]) < 0.94
