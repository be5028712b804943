"""Jobs whose processes are started by hand in a shell, and what strangers do to their ports."""

from __future__ import annotations

import random
import re
import socket
from pathlib import Path

import pytest

from dualmx.core.net import free_port
from dualmx.ps.van import handshake
from tests import jobs
from tests.ps.test_jobs import JOBS, Hand

pytestmark = pytest.mark.slow

FIVE_LINES = """
DMLC_ROLE=server DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT={port} DMLC_NUM_SERVER=2 DMLC_NUM_WORKER=2 {command} &
DMLC_ROLE=server DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT={port} DMLC_NUM_SERVER=2 DMLC_NUM_WORKER=2 {command} &
DMLC_ROLE=scheduler DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT={port} DMLC_NUM_SERVER=2 DMLC_NUM_WORKER=2 {command} &
DMLC_ROLE=worker DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT={port} DMLC_NUM_SERVER=2 DMLC_NUM_WORKER=2 {command} &
DMLC_ROLE=worker DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT={port} DMLC_NUM_SERVER=2 DMLC_NUM_WORKER=2 {command}
"""
SCRIPT = """
import sys
import dualmx as mx
kv = mx.kv.create("dist_sync")
weights, out = mx.nd.arange(6), mx.nd.zeros(6)
kv.init(3, weights)
kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
for _ in range(3):
    kv.push(3, mx.nd.ones(6) * (kv.rank + 1))
    kv.pull(3, out=out)
sys.stdout.write(f"worker {kv.rank} of {kv.num_workers} {out.asnumpy().tolist()}\\n")
"""


def test_the_five_lines_of_the_shell(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    lines = FIVE_LINES.format(port=free_port(jobs.HOST), command=f"{jobs.PYTHON} train.py")
    env = {"XDG_CONFIG_HOME": str(tmp_path), "PS_VERBOSE": "2", "DUALMX_SECRET": None}
    done = jobs.run("bash", "-c", lines + "wait", env=env, cwd=tmp_path)
    weights = [i - 0.5 * 3 * 3 for i in range(6)]
    assert sorted(done.stdout.splitlines()) == [f"worker {rank} of 2 {weights}" for rank in range(2)]
    table = done.stderr[done.stderr.index("scheduler: all are here:") :].splitlines()[1:6]
    ports = [re.fullmatch(r"  server +([01])  127.0.0.1  (\d+)", line) for line in table[1:3]]
    assert table[0].split() == ["role", "rank", "host", "port"] and all(ports), table
    assert [line.split() for line in table[3:]] == [["worker", str(rank), "127.0.0.1"] for rank in range(2)]
    where = ", ".join(f"server {p[1]} at 127.0.0.1:{p[2]}" for p in ports if p)
    for name in ("server 0", "server 1", "worker 0", "worker 1"):
        assert f"{name}: joined the job of the scheduler at 127.0.0.1:" in done.stderr and where in done.stderr
    assert (
        re.search(r"worker sends to link \d+ request \d+: op='", done.stderr) and "server gets from link" in done.stderr
    )


def say(port: int, data: bytes, wait: bool = True) -> bytes:
    """Send bytes to a port; returns what comes back until the other end closes."""
    with socket.create_connection(("127.0.0.1", port), 5) as s:
        s.sendall(data)
        if not wait:
            return b""
        answer = b""
        try:
            s.shutdown(socket.SHUT_WR)
            while more := s.recv(4096):
                answer += more
        except OSError:  # it has refused what was said, and closed the connection already
            pass
        return answer


OTHER_VERSION = "from dualmx.ps.van import handshake; handshake.VERSION = 99; exec(open({script!r}).read())"


def test_strangers_do_no_harm_and_are_told_why(tmp_path: Path) -> None:
    """Random bytes, broken handshakes, other secrets, versions and counts: the job goes on and ends well."""
    job = Hand("dist_sync", tmp_path, PS_VERBOSE="1")
    try:
        job.wait_for_rounds(3)
        port = int(job.env["DMLC_PS_ROOT_PORT"] or 0)
        rng = random.Random(3)
        hello = handshake.HELLO.pack(handshake.MAGIC, handshake.VERSION, 0, bytes(32))
        for data in (
            b"",
            b"GET / HTTP/1.1\r\n\r\n",
            rng.randbytes(100_000),
            hello[:10],
            hello,
            hello + rng.randbytes(500),
        ):
            answer = say(port, data)
            assert answer == b"" or answer.startswith(handshake.MAGIC)
            say(port, data, wait=False)
        newer = handshake.HELLO.pack(handshake.MAGIC, 99, 0, bytes(32))
        assert handshake.HELLO.unpack(say(port, newer))[:2] == (handshake.MAGIC, handshake.VERSION)

        script = str(JOBS / "rounds.py")
        plain = [script, "dist_sync", str(tmp_path)]
        newer_one = ["-c", OTHER_VERSION.format(script=script), *plain[1:]]
        for code, changed, said in (
            (plain, {"DUALMX_SECRET": "x" * 32}, "the other end has another secret (DUALMX_SECRET)"),
            (newer_one, {}, f"speaks protocol version {handshake.VERSION}, this process 99"),
            (plain, {"DMLC_NUM_WORKER": "3"}, "has 2 workers and 1 servers, this worker's has 3 and 1"),
            (plain, {}, "the job has its 2 workers already"),
            (plain, {"DMLC_PS_ROOT_URI": "192.0.2.1"}, "the job has no secret. Make one"),
        ):
            env = {**job.env, "DMLC_ROLE": "worker", "DUALMX_START_TIMEOUT": "10", **changed}
            done = jobs.run(jobs.PYTHON, *code, env=env, status=1)
            assert said in done.stderr.splitlines()[-1] + done.stderr
        job.wait_for_rounds(3)
        (tmp_path / "stop").touch()
        for name in job.processes:
            job.output(name)
            assert job.processes[name].returncode == 0, name
    finally:
        job.end()


def test_a_scheduler_whose_port_is_taken_says_so(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        env = {"XDG_CONFIG_HOME": str(tmp_path), "DMLC_ROLE": "scheduler", "DMLC_PS_ROOT_URI": jobs.HOST}
        env |= {"DMLC_PS_ROOT_PORT": str(port), "DMLC_NUM_WORKER": "1", "DMLC_NUM_SERVER": "1"}
        done = jobs.run(jobs.PYTHON, "-c", "import dualmx", env=env, status=1)
        assert f"dualmx scheduler: cannot listen on 127.0.0.1:{port}: Address already in use" in done.stderr
        env |= {"DMLC_ROLE": "worker", "DUALMX_START_TIMEOUT": "5"}  # what listens there is no scheduler
        done = jobs.run(jobs.PYTHON, "-c", "import dualmx; dualmx.kv.create('dist_sync')", env=env, status=1)
        assert re.search(f"cannot (join|connect to) 127.0.0.1:{port}", done.stderr)
