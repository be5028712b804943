"""`dualmx speedup`: its formulas against numbers computed by hand, and a measurement with real processes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import ArgumentError
from dualmx.tools.scaling_advisor import Network, main, numbers, page, shape_of
from dualmx.tools.scaling_model import all_reduce_seconds, break_even, fastest, scaling_table, servers_seconds, speedup
from tests import jobs

FIELDS = {
    "batch", "workers", "compression", "tcomp", "tsync", "break_even", "worth_it", "speedup", "efficiency",
    "samples_per_s",
}  # fmt: skip


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """What the command tells, called in this process."""
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def row(found: dict[str, Any], batch: int, workers: int, compression: str = "none") -> dict[str, Any]:
    wanted = (batch, workers, compression)
    (one,) = [r for r in found["rows"] if (r["batch"], r["workers"], r["compression"]) == wanted]
    return one


def test_formulas_give_what_was_computed_by_hand() -> None:
    assert speedup(4, 0.3, 0.1) == pytest.approx(4 * 0.3 / 0.4)
    assert speedup(8, 1.0, 0.0) == 8.0 and break_even(8, 1.5) == 10.5
    # A ring of 4 sends 3 parts of a quarter twice: 1.5 times 100 MB at 1 GB/s.
    assert all_reduce_seconds(100e6, 4, 1e9) == pytest.approx(0.15)
    assert all_reduce_seconds(100e6, 2, 1e9, 0.002) == pytest.approx(0.102)
    # 8 workers send 100 MB each to 4 servers, so that 200 MB go through each of them, and the same back.
    assert servers_seconds(100e6, 8, 4, 1e9) == pytest.approx(0.4)
    assert servers_seconds(100e6, 8, 4, 1e9, 0.01, 1 / 16) == pytest.approx(0.01 + 0.2 * 17 / 16)
    # More servers than workers do not help: a worker's own link is what all has to go through.
    assert servers_seconds(100e6, 2, 8, 1e9) == servers_seconds(100e6, 2, 2, 1e9) == pytest.approx(0.2)


@pytest.mark.parametrize("tsync", [0.29, 0.31])
def test_more_workers_are_worth_it_up_to_break_even(tsync: float) -> None:
    (found,) = scaling_table([(32, 0.3)], [2], lambda workers, kind: tsync)
    assert found["worth_it"] == (tsync < 0.3) == (found["speedup"] > 1)
    assert found["samples_per_s"] == pytest.approx(64 / (0.3 + tsync))
    assert fastest([found])["workers"] == (2 if tsync < 0.3 else 1)


def test_the_best_is_the_fastest_and_one_worker_where_no_exchange_is_quick_enough() -> None:
    def tsync(workers: int, kind: str) -> float:
        return workers * (0.05 if kind == "none" else 0.02)

    rows = scaling_table([(10, 0.1), (40, 0.2)], [2, 8], tsync, "2bit", samples=1000)
    assert len(rows) == 8
    top = fastest(rows)
    assert (top["batch"], top["workers"], top["compression"]) == (40, 8, "2bit")
    assert top["samples_per_s"] == pytest.approx(8 * 40 / 0.36) and top["epoch"] == pytest.approx(1000 * 0.36 / 320)
    slow = scaling_table([(10, 0.1), (40, 0.2)], [2], lambda workers, kind: 9.0, samples=1000)
    alone = fastest(slow)
    assert (alone["batch"], alone["workers"], alone["speedup"], alone["worth_it"]) == (40, 1, 1.0, False)
    assert alone["samples_per_s"] == 200.0 and alone["epoch"] == pytest.approx(5.0)


def test_a_cluster_that_is_not_here(capsys: pytest.CaptureFixture[str]) -> None:
    """Everything is told: nothing is measured, and no network is made."""
    told = ["--tcomp", "0.1,0.15", "--batch-sizes", "32,64", "--bytes", "100000000", "--bandwidth", "1.25"]
    told += ["--latency", "0.001", "--workers", "2,8", "--samples", "60000"]
    found = said(capsys, *told, "-s", "4")
    assert found["measured"] == [] and (found["bytes"], found["arrays"], found["net"]) == (100_000_000, 1, "")
    assert len(found["rows"]) == 8 and all(r.keys() == FIELDS | {"epoch"} for r in found["rows"])
    one = row(found, 64, 8)
    assert one["tsync"] == pytest.approx(2 * 2 * 0.08 + 0.001) and one["break_even"] == pytest.approx(1.05)
    assert one["speedup"] == pytest.approx(8 * 0.15 / 0.471) and one["epoch"] == pytest.approx(60000 / 512 * 0.471)
    packed = row(found, 64, 8, "2bit")
    assert packed["tsync"] == pytest.approx((1 + 2 / 32) * 2 * 0.08 + 0.001)
    assert found["compression_pays"] and found["best"] == packed
    assert not row(found, 32, 2)["worth_it"] and row(found, 32, 2, "2bit")["worth_it"]

    direct = said(capsys, *told, "--kv-store", "collective")
    assert direct["compression"] == "none" and not direct["compression_pays"] and len(direct["rows"]) == 4
    assert row(direct, 32, 8)["tsync"] == pytest.approx(2 * 7 / 8 * 0.08 + 0.001)
    assert main([*told, "--kv-store", "collective"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "gradients: 100.0 MB in 1 array(s), collective; Tcomp told, Tsync told"
    assert lines[-1] == "best: 8 workers with batches of 64: 4.12 times one worker"
    assert len(lines) == 7


def test_gradients_of_networks() -> None:
    lenet = Network("lenet")
    assert sum(lenet.sizes) == 4 * 431_080 and len(lenet.sizes) == 8
    assert sum(Network("mlp").sizes) == 4 * (784 * 512 + 512 + 512 * 512 + 512 + 5120 + 10)
    zoo = Network("mobilenet0.25", (3, 32, 32))  # whose moving means and variances have no gradients
    names = mx.gluon.model_zoo.vision.get_model("mobilenet0.25").collect_params()
    assert len(zoo.sizes) == sum("running" not in name for name in names) < len(names)
    before = [p.data().asnumpy() for p in lenet._net.collect_params().values()]
    assert lenet.step_seconds(4, 1) > 0
    after = [p.data().asnumpy() for p in lenet._net.collect_params().values()]
    assert all(np.isfinite(a).all() and np.allclose(a, b, atol=1e-3) for a, b in zip(after, before, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("store", ["dist_sync", "collective"])
def test_a_measurement_here(store: str) -> None:
    """A step in one process, and exchanges of the network's gradients in jobs of two workers."""
    command = [jobs.PYTHON, "-m", "dualmx.cli", "speedup", "--net", "lenet", "--batch-sizes", "4,8"]
    command += ["--workers", "2", "--rounds", "2", "--kv-store", store, "--json"]
    done = jobs.run(*command)
    found = json.loads(done.stdout)
    kinds = ["none", "2bit"] if store == "dist_sync" else ["none"]
    assert found["measured"] == ["tcomp", "tsync"] and (found["bytes"], found["arrays"]) == (4 * 431_080, 8)
    assert [(r["batch"], r["compression"]) for r in found["rows"]] == [(b, k) for b in (4, 8) for k in kinds]
    for one in found["rows"]:
        assert one.keys() == FIELDS and one["tcomp"] > 0 and one["tsync"] > 0 and one["break_even"] == one["tcomp"]
        assert one["speedup"] == pytest.approx(2 * one["tcomp"] / (one["tcomp"] + one["tsync"]))
        assert one["samples_per_s"] == pytest.approx(one["speedup"] * one["batch"] / one["tcomp"])
        assert one["worth_it"] == (one["speedup"] > 1) and one["efficiency"] == pytest.approx(one["speedup"] / 2)
    # An exchange does not depend on the batch, and is measured once.
    assert len({(r["compression"], r["tsync"]) for r in found["rows"]}) == len(kinds)
    assert found["best"]["samples_per_s"] >= max(r["samples_per_s"] for r in found["rows"])
    assert page(found).startswith("lenet: 1.7 MB in 8 array(s), " + store)


@pytest.mark.slow
def test_a_job_that_fails_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_KVSTORE_BIGARRAY_BOUND", "many")
    told = ["--tcomp", "0.1", "--batch-sizes", "32", "--bytes", "4096", "--workers", "2", "--gc-type", "none"]
    assert main(told) == 2
    error = capsys.readouterr().err
    assert "an exchange of 2 workers by 'dist_sync' could not be measured" in error
    assert "MXNET_KVSTORE_BIGARRAY_BOUND" in error


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("--workers 1", "--workers '1': expected up to 64 different numbers of 2 or more"),
        ("--workers 2,two", "--workers '2,two': expected"),
        ("--batch-sizes 0", "--batch-sizes '0': expected"),
        ("--batch-sizes 8,8", "--batch-sizes '8,8': expected up to 64 different"),
        ("--tcomp 0.1", "--tcomp '0.1': expected seconds above 0 for each of the 3 --batch-sizes"),
        ("--tcomp 0.1,-1,2", "--tcomp '0.1,-1,2': expected seconds above 0"),
        ("--tcomp 1,nan,2", "--tcomp '1,nan,2': expected seconds above 0"),
        ("--net lenett", "--net 'lenett': did you mean 'lenet'?"),
        ("--shape 3,x", "--shape '3,x': expected lengths of axes, as 3,224,224"),
        ("--kv-store device", "--kv-store 'device': expected one among processes"),
        ("--kv-store dist_sink", "did you mean 'dist_sync'"),
        ("--kv-store collective -s 2", "--num-servers 2: expected no such option, as 'collective' has none"),
        ("--num-servers=-1", "--num-servers -1: expected 0 or more"),
        ("--rounds 0", "--rounds 0: expected 1 or more"),
        ("--bandwidth 0", "--bandwidth 0: expected GB/s above 0"),
        ("--bandwidth inf", "--bandwidth inf: expected GB/s above 0"),
        ("--latency 0.1", "--latency 0.1: expected seconds of 0 or more, beside --bandwidth"),
        ("--bandwidth 1 --latency -1", "--latency -1: expected seconds of 0 or more"),
    ],
)
def test_wrong_options_are_named(arguments: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments.split(" ")) == 2
    assert text in capsys.readouterr().err


def test_lists() -> None:
    assert numbers(" 2, 16", "--workers", 2) == [2, 16] and shape_of("1, 28,28") == (1, 28, 28) and shape_of("") == ()
    with pytest.raises(ArgumentError, match="--workers '2,3,.*: expected up to 64 different n"):
        numbers(",".join(map(str, range(2, 67))), "--workers", 2)
