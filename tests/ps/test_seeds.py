"""Whole jobs with faults that follow from seeds; see `python -m tests.ps.chaos --help` for as many as you like."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ps.chaos.cluster import Cluster, Result
from tests.ps.chaos.plan import MODES, Fault, Plan, When, plan_of
from tests.ps.chaos.zygote import Zygote

SEEDS, GROUPS = 40, 8
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    server = Zygote()
    yield server
    server.close()


@pytest.mark.parametrize("group", range(GROUPS))
def test_runs_with_faults_lose_nothing(group: int, zygote: Zygote, tmp_path: Path) -> None:
    """Weights are those of a run without faults, pushes count once; without recovery all end by an error that helps."""
    for seed in range(group, SEEDS, GROUPS):
        plan = plan_of(seed, list(MODES)[seed % len(MODES)])
        result = Cluster(plan, tmp_path / f"{seed}", zygote).run()
        assert result.good, (seed, plan.mode, str(plan), result)


def run(zygote: Zygote, folder: Path, mode: str, *patches: str, faults: tuple[Fault, ...] = ()) -> Result:
    return Cluster(Plan(0, mode, proxied=False, faults=faults), folder, zygote, patches, longest=25.0).run()


@pytest.mark.parametrize(
    ("mode", "patches"),
    [
        ("sgd", ("dies_before_barrier",)),
        ("adam", ("dies_in_last_barrier",)),
        ("sgd", ("dies_after_leaving",)),
        ("sgd", ("dies_in_round",)),
        ("2bit", ("dies_in_round",)),
        ("async", ("dies_in_round",)),
        ("1bit", ("dies_before_barrier", "dies_in_replacement")),
        ("rows", ("dies_in_round", "dies_in_replacement")),
        ("async", ("dies_in_last_barrier", "dies_in_replacement")),
        ("async", ("dies_before_first_barrier", "last_round_is_late")),
        ("elastic", ("dies_before_init",)),
        ("elastic", ("dies_before_optimizer",)),
        ("sgd", ("whole_arrays", "dies_between_drops", "dies_in_round")),
        ("elastic", ("whole_arrays", "dies_before_put")),
        ("elastic", ("dies_before_init_like_all",)),
        ("elastic", ("dies_before_optimizer_like_all",)),
    ],
    ids=str,
)
def test_deaths_that_made_jobs_hang(mode: str, patches: tuple[str, ...], zygote: Zygote, tmp_path: Path) -> None:
    result = run(zygote, tmp_path / "job", mode, *patches)
    deaths = sum(patch.startswith("dies") for patch in patches)
    assert result.verdict == "equal" and len(list((tmp_path / "job").glob("*.died"))) >= deaths, result


KILLED = (Fault("kill", "worker 1", When("round", 8.0)),)


@pytest.mark.parametrize(
    ("mode", "patches", "faults", "verdicts"),
    [
        ("2bit", ("without_residuals",), KILLED, ("unequal",)),
        ("sgd", ("without_journal",), (Fault("kill", "server 0", When("round", 8.0)),), ("unequal", "failed", "hung")),
        ("sgd", ("without_positions", "dies_before_barrier"), (), ("hung",)),
        ("fail", ("without_remedy",), KILLED, ("unnamed",)),
        ("async", ("without_settled_barriers", "last_pushes_are_late"), (), ("unequal",)),
    ],
    ids=str,
)
def test_control_with_a_fault_put_back(
    mode: str, patches: tuple[str, ...], faults: tuple[Fault, ...], verdicts: tuple[str, ...], zygote: Zygote,
    tmp_path: Path,
) -> None:  # fmt: skip
    """The same runs keep what is promised without the change that puts the fault back."""
    assert run(zygote, tmp_path / "bad", mode, *patches, faults=faults).verdict in verdicts
    assert run(zygote, tmp_path / "good", mode, *patches[1:], faults=faults).good
