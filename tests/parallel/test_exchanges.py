"""Exchanges of arrays between real processes, which meet in all ways."""

from __future__ import annotations

import importlib.util
import os
import signal
from pathlib import Path

import numpy as np
import pytest

import dualmx as mx
from dualmx.parallel.reduce_ops import reduce_values
from dualmx.parallel.rendezvous import rendezvous
from tests import jobs

JOBS = Path(__file__).parent / "jobs"
SCRIPT = [jobs.PYTHON, JOBS / "exchanges.py"]


def test_alone_every_exchange_is_with_itself() -> None:
    p = mx.parallel
    p.init()
    x = mx.nd.array([[1.0, 2.0], [3.0, 4.0]])
    assert (p.rank(), p.size(), p.local_rank(), p.local_size(), p.cross_rank(), p.cross_size()) == (0, 1, 0, 1, 0, 1)
    assert not p.is_initialized()
    for same in (
        p.all_reduce(x), p.all_reduce(x, "max"), p.broadcast(x), p.reduce(x), p.scatter(x), p.reduce_scatter(x),
        p.all_gather(x, join=True), p.all_gather(x)[0], p.gather(x)[0], p.all_to_all(x), p.all_to_all([x])[0],
    ):  # fmt: skip
        assert same is not None and same.asnumpy().tolist() == x.asnumpy().tolist()
    assert p.all_reduce(x, prescale=0.5, postscale=3).asnumpy()[0, 0] == 1.5
    x.attach_grad()
    with mx.autograd.record():
        loss = (p.all_reduce(x, "average") * 2 + p.all_gather(x)[0] + p.broadcast(x) + p.reduce_scatter(x)).sum()
    loss.backward()
    assert (x.grad.asnumpy() == 5).all()
    assert p.join() == 0 and p.broadcast_object((1, None)) == (1, None) and p.all_gather_object(b"x") == [b"x"]
    p.barrier()


def test_results_follow_the_rules_of_what_was_given() -> None:
    p, x = mx.parallel, mx.np.ones((2,))
    for found in (
        p.all_reduce(x), p.broadcast(x), p.reduce(x), p.reduce_scatter(x), p.all_gather(x), p.gather(x)[0],
        p.all_to_all(x), p.all_to_all([x])[0], p.broadcast_object(x), p.all_gather_object([x])[0][0],
    ):  # fmt: skip
        assert type(found) is mx.np.ndarray
    assert type(p.broadcast_object(mx.nd.ones((2,)))) is mx.nd.NDArray is type(p.scatter(x))
    with mx.util.np_array(True):
        assert type(p.scatter(x)) is mx.np.ndarray


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda p, x: p.all_reduce(x, "mean"), "op='mean': expected one of sum, average"),
        (lambda p, x: p.all_reduce(x.astype("int32"), "average"), "int32 values are neither averaged nor scaled"),
        (lambda p, x: p.all_reduce(x.astype("bool")), "of bool values"),
        (lambda p, x: p.broadcast(x, root=1), "root=1: expected a number below 1"),
        (lambda p, x: p.scatter([x, x]), "2 arrays for 1 processes"),
        (lambda p, x: p.all_to_all(x, splits=[1]), "expected 1 numbers that make 2"),
        (lambda p, x: p.send(x, to=0), "is this process itself"),
        (lambda p, x: p.recv(), "this process is alone"),
        (lambda p, x: p.new_group([1]), "expected numbers below 1"),
        (lambda p, x: p.all_reduce(3), "a int; expected NDArrays"),
        (lambda p, x: p.broadcast_object(p), "a module cannot be sent"),
        (lambda p, x: p.init(backend="smoke"), "expected one of auto, host, gloo"),
        (lambda p, x: p.init("tcp://nowhere", 2, 0), r"expected tcp://HOST:PORT"),
        (lambda p, x: p.init("tcp://127.0.0.1:1", 2, 2), "how many processes there are"),
        (lambda p, x: p.init("file://relative", 2, 0), "a whole path"),
    ],
)
def test_wrong_arguments_are_named(call: object, told: str) -> None:
    with pytest.raises(mx.base.MXNetError, match=told):
        call(mx.parallel, mx.nd.ones((2,)))  # type: ignore[operator]


def test_16_bit_floats_are_added_in_32_bits() -> None:
    parts = [np.full(4, v, np.float16) for v in (2048, 1, 1)]
    out = np.empty(4, np.float16)
    reduce_values(parts, "sum", 1.0, out)
    assert out[0] == 2050 and parts[0][0] + parts[1][0] + parts[2][0] == 2048


@pytest.mark.parametrize(
    ("told", "size", "rank"),
    [
        ({"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "1",
          "OMPI_MCA_orte_hnp_uri": "12.0;tcp://127.0.0.1:4444"}, 3, 2),
        ({"PMI_SIZE": "4", "PMI_RANK": "1", "MPI_LOCALNRANKS": "2", "PMI_PORT": "127.0.0.1:5555"}, 4, 1),
        ({"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1", "SLURM_STEP_NUM_NODES": "2", "SLURM_JOB_ID": "7",
          "SLURM_STEP_NODELIST": "localhost,other[1-4]"}, 2, 1),
        ({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "6666", "WORLD_SIZE": "2", "RANK": "1"}, 2, 1),
        ({"JAX_COORDINATOR_ADDRESS": "127.0.0.1:7777", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}, 2, 1),
    ],
)  # fmt: skip
def test_the_environment_tells_who_meets_where(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, str], size: int, rank: int
) -> None:
    for name in list(os.environ):
        if name.startswith(jobs.OUTER_JOB):
            monkeypatch.delenv(name)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    found = rendezvous(None, None, None, lambda *_: "")
    assert found is not None and found.serve is None
    assert (found.job.workers, found.job.servers, found.job.task) == (size, 0, rank)
    assert found.job.uri in ("127.0.0.1", "localhost") and found.job.port > 1024


@pytest.mark.slow
def test_two_processes_of_the_launcher() -> None:
    assert jobs.run(*jobs.launcher(2), *SCRIPT).stdout.count("finished") == 2


@pytest.mark.slow
def test_three_processes_over_tcp() -> None:
    where = f"tcp://{jobs.free_address()}"
    said = jobs.run_together([[*SCRIPT, where, 3, k] for k in range(3)], [{"DUALMX_TCP": "1"}] * 3)
    assert all("finished" in s for s in said)


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["host", "xla"])
def test_statistics_of_two_processes_with_two_devices_are_those_of_one_batch(tmp_path: Path, transport: str) -> None:
    script = JOBS / "synchronized.py"
    done = jobs.run(*jobs.launcher(2), jobs.PYTHON, script, tmp_path, env={"DUALMX_COLLECTIVES": transport})
    assert "finished" in done.stdout
    spec = importlib.util.spec_from_file_location("synchronized", script)
    assert spec is not None and spec.loader is not None
    job = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(job)
    whole = job.train([mx.cpu(0)], [slice(0, sum(job.SIZES))], False)
    for hybridize in (False, True):
        with np.load(tmp_path / f"{hybridize}-0.npz") as one, np.load(tmp_path / f"{hybridize}-1.npz") as two:
            for key, want in zip(one.files, whole, strict=True):
                np.testing.assert_allclose(one[key], want, rtol=1e-10, atol=1e-12)
                assert one[key].tobytes() == two[key].tobytes()


@pytest.mark.slow
def test_two_processes_meet_by_a_file(tmp_path: Path) -> None:
    said = jobs.run_together([[*SCRIPT, f"file://{tmp_path}/job", 2, k] for k in range(2)])
    assert all("finished" in s for s in said)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_two_processes_by_xla() -> None:
    done = jobs.run(*jobs.launcher(2, 0, "--env", "DUALMX_COLLECTIVES:xla"), *SCRIPT)
    assert done.stdout.count("finished") == 2


@pytest.mark.slow
def test_processes_of_mpiexec() -> None:
    program = next((p for p in ("/usr/bin/mpiexec",) if os.path.exists(p)), None)
    if program is None:
        pytest.skip("there is no mpiexec here")
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    assert jobs.run(program, "-n", 2, "--oversubscribe", *SCRIPT, env=env).stdout.count("finished") == 2


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["host", "xla"])
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@pytest.mark.parametrize("who", [0, 2])
def test_the_end_of_a_process_is_an_error_of_all_others(transport: str, end: int, who: int) -> None:
    command = [jobs.PYTHON, JOBS / "lost.py", jobs.free_address(), 3]
    env = {"DUALMX_COLLECTIVES": transport}
    started = [jobs.start(*command, k, who, env=env) for k in range(3)]
    try:
        victim = started[who]
        assert victim.stdout is not None
        while "step 20" not in victim.stdout.readline():
            assert victim.poll() is None
        victim.send_signal(end)
        for k in {0, 1, 2} - {who}:
            said, _ = jobs.finish(started[k], 40)
            assert started[k].returncode == 7
            told = next(line for line in said.splitlines() if line.startswith("told "))
            assert f"process {who} " in told or f"worker {who} " in told, told
            assert "DUALMX_DIST_TIMEOUT" not in told, told  # that is much longer
    finally:
        jobs.end(*started)


@pytest.mark.parametrize("scale", [{"prescale": 0.5}, {"postscale": 2.0}])
def test_whole_numbers_are_not_scaled(scale: dict[str, float]) -> None:
    for dtype in ("int32", "uint8"):
        with pytest.raises(mx.MXNetError, match=f"{dtype} values are neither averaged nor scaled"):
            mx.parallel.all_reduce(mx.nd.ones((2,), dtype=dtype), **scale)
    assert mx.parallel.all_reduce(mx.nd.ones((2,), dtype="int32")).asnumpy().tolist() == [1, 1]
    assert mx.parallel.all_reduce(mx.nd.ones((2,)), **scale).asnumpy().tolist() == [*scale.values()] * 2
