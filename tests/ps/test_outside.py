"""Whole jobs between addresses that other hosts reach: what is sent, and what thousands of others do to them."""

from __future__ import annotations

import resource
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests import jobs
from tests.ps.outside import ADDRESS, outside
from tests.ps.test_jobs import JOBS

pytestmark = pytest.mark.slow

SCRIPT = """
import os, sys, time
while os.environ["DMLC_ROLE"] != "scheduler" and not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
import dualmx as mx
kv = mx.kv.create("dist_sync")
out = mx.nd.zeros((300, 300))
kv.init("an array of the job", out)
for turn in range(5):
    kv.push("an array of the job", mx.nd.full((300, 300), 1234.5))
    kv.pull("an array of the job", out=out)
sys.stdout.write(f"worker {kv.rank} has {out.asnumpy().min()} {out.asnumpy().max()}\\n")
"""
PAYLOAD = struct.pack("<f", 1234.5) * 16
PORT = 9871


class Sniffer:
    """All that passes the network of this thread."""

    def __init__(self) -> None:
        self.seen = bytearray()
        self._sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        self._sock.bind(("lo", 0))
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._ends = False
        self._thread.start()

    def _read(self) -> None:
        self._sock.settimeout(0.1)
        while not self._ends:
            try:
                self.seen += self._sock.recv(1 << 17)
            except TimeoutError:
                pass

    def close(self) -> None:
        self._ends = True
        self._thread.join()
        self._sock.close()


def launch(folder: Path, **env: str) -> jobs.Done:
    (folder / "job.py").write_text(SCRIPT)
    job = jobs.launcher(2, 2, "--host-ip", ADDRESS, "-p", str(PORT))
    return jobs.run(*job, jobs.PYTHON, folder / "job.py", folder / "there", env={"DUALMX_TCP": "1", **env})


@pytest.mark.parametrize("encrypt", [None, "0"])
@outside
def test_what_a_job_sends_between_hosts_cannot_be_read(encrypt: str | None, tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    sniffer = Sniffer()
    done = launch(tmp_path, **({"DUALMX_ENCRYPT": encrypt} if encrypt else {}))
    sniffer.close()
    assert all(f"worker {rank} has 2469.0 2469.0" in done.stdout for rank in (0, 1))
    clear = {text: text in sniffer.seen for text in (PAYLOAD, b"an array of the job", b'{"op":"')}
    assert set(clear.values()) == {encrypt == "0"}, clear
    assert (sniffer.seen.count(b"\x17\x03\x03") > 50) == (encrypt is None)


@outside
def test_ten_thousand_that_never_finish_their_handshake_do_not_keep_a_job_from_running(tmp_path: Path) -> None:
    """They connect to the scheduler before the servers and workers do, and come back whenever they are closed."""
    number = min(10_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 200)
    command = [jobs.PYTHON, "-W", "ignore", JOBS / "crowd.py", ADDRESS, PORT, number, tmp_path / "there"]
    with jobs.running(*command, stdin=subprocess.PIPE, stderr=None) as crowd:
        begun = time.monotonic()
        done = launch(tmp_path)
        print(f"{number} clients: the job took {time.monotonic() - begun:.1f} s")
        said, _ = jobs.finish(crowd, 30)
    most, total = map(int, said.split())
    print(f"{most} at once, {total} in all")
    assert all(f"worker {rank} has 2469.0 2469.0" in done.stdout for rank in (0, 1))
    assert most > number * 0.9 and total > number
