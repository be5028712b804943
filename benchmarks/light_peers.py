"""Workers without a process of their own: a thousand of them speak the real protocol to a real scheduler and servers.

Each worker has its own connections, which shake hands and carry frames as those of any worker; one van of this process
moves them all. Nothing is computed, so what is measured or tested is the scheduler and the servers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from dualmx.core.net import free_port
from dualmx.core.open_files import raise_limit
from dualmx.ps.van.frame import ERROR, NOTICE, REPLY, REQUEST, Message
from dualmx.ps.van.socket_van import SocketVan

SECRET = "the secret of light peers, long enough"
AT_ONCE = 256  # connections that one process makes at once
ROOT = Path(__file__).resolve().parents[1]
SERVE = """
from dualmx.ps import Job, ServerNode, run_scheduler
job = Job.from_env()
run_scheduler(job) if job.role == "scheduler" else ServerNode(job).run()
"""


class LightJob:
    """A scheduler and servers in processes of their own, and many light workers in this one.

    Args:
        workers, servers: how many.
        env: added to the environment of the scheduler and the servers.
        seconds: most of each wait.
    """

    def __init__(self, workers: int, servers: int = 1, env: dict[str, str] | None = None, seconds: float = 120.0):
        raise_limit()
        self.workers, self.servers, self.seconds = workers, servers, seconds
        self.port = free_port("127.0.0.1")
        base = {
            **os.environ, "DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": str(self.port),
            "DMLC_NUM_WORKER": str(workers), "DMLC_NUM_SERVER": str(servers), "DMLC_NODE_HOST": "127.0.0.1",
            "DUALMX_SECRET": SECRET, "DUALMX_TCP": "1", "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), **(env or {}),
        }  # fmt: skip
        command = [sys.executable, "-W", "ignore", "-c", SERVE]
        self.processes = {
            name: subprocess.Popen(command, env={**base, "DMLC_ROLE": name.split()[0]}, stderr=subprocess.PIPE)
            for name in ("scheduler", *(f"server {i}" for i in range(servers)))
        }
        self.policy = {"worker": base.get("DUALMX_ON_WORKER_DEATH", "fail"), "server": "fail"}
        self._van = SocketVan(SECRET.encode(), timeout=0, memory=0, tcp=True)
        self._van.on_message, self._van.on_down = self._on_message, self._on_down
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-4)  # else each message that is sent waits 5 ms for the van's thread
        self._van.start()
        self.links: dict[int, list[int]] = {}  # by rank: to the scheduler, and to each server
        self.alive: set[int] = set(range(workers))
        self.notes: list[tuple[int, dict[str, Any]]] = []
        self.down: list[str] = []
        self._answers: dict[tuple[int, int], Message] = {}
        self._requests = iter(range(1, 1 << 60))
        self._changed = threading.Condition()
        self._expected = 0

    # -- messages

    def _on_message(self, link: int, message: Message) -> None:
        if message.kind == NOTICE:
            self.notes.append((link, message.meta))
        elif message.kind in (REPLY, ERROR):
            self._answers[link, message.request] = message
            if len(self._answers) >= self._expected:
                with self._changed:
                    self._changed.notify_all()

    def _on_down(self, link: int, reason: str) -> None:
        self.down.append(reason)

    def ask(self, link: int, meta: dict[str, Any], payload: Sequence[Any] = ()) -> tuple[int, int]:
        """Send a request."""
        number = next(self._requests)
        self._van.send(link, Message(REQUEST, number, meta, payload))
        return link, number

    def answers(self, asked: Iterable[tuple[int, int]], failing: bool = False) -> list[Message]:
        """Wait for the answers.

        Raises:
            RuntimeError: not all came in time; or one is an error, unless they may be (`failing`).
        """
        asked = list(asked)
        until = time.monotonic() + self.seconds
        with self._changed:
            self._expected = len(asked)
            while missing := sum(one not in self._answers for one in asked):
                left = until - time.monotonic()
                if left <= 0:
                    raise RuntimeError(f"{missing} of {len(asked)} were not answered within {self.seconds:g} s")
                self._changed.wait(min(left, 0.5))
                self._expected = len(self._answers) + missing
        found = [self._answers.pop(one) for one in asked]
        if not failing and (errors := [m.meta for m in found if m.kind == ERROR]):
            raise RuntimeError(f"{len(errors)} of {len(found)} requests failed: {errors[0]}")
        return found

    def _each(self, work: Callable[[int], Any]) -> list[Any]:
        with ThreadPoolExecutor(min(AT_ONCE, self.workers)) as threads:
            return list(threads.map(work, range(self.workers)))

    # -- a job's life

    def start(self) -> None:
        """All workers join at once, and meet the servers."""
        scheduler = {"host": "127.0.0.1", "port": self.port}
        first = self._each(lambda i: self._van.connect(scheduler, self.seconds))
        meta = {"op": "register", "role": "worker", "workers": self.workers, "servers": self.servers, "address": {}}
        asked = [
            self.ask(link, {**meta, "wanted_rank": i, "life": i + 1, "policy": self.policy})
            for i, link in enumerate(first)
        ]
        addresses = self.answers(asked)[0].meta["servers"]

        def meet(i: int) -> list[int]:
            order = [(i + k) % self.servers for k in range(self.servers)]
            links = {k: self._van.connect(addresses[k], self.seconds) for k in order}
            return [first[i], *(links[k] for k in range(self.servers))]

        self.links = dict(enumerate(self._each(meet)))
        hello = [self.ask(k, {"op": "hello", "rank": r, "life": r + 1}) for r in self.links for k in self.links[r][1:]]
        self.answers(hello)

    def put(self, keys: int, elements: int) -> None:
        """Make a synchronous store with keys of so many float32 zeros on each server."""
        values = np.zeros(elements, np.float32).tobytes()
        for server in range(self.servers):
            links = [self.links[rank][1 + server] for rank in sorted(self.alive)]
            self.answers([self.ask(k, {"op": "open", "store": 0, "sync": True, "slack": None}) for k in links])
            parts = [[f"{server}.{key}", 0, "float32", elements, [elements]] for key in range(keys)]
            self.answers([self.ask(links[0], {"op": "put", "store": 0, "parts": parts}, [values] * keys)])

    def push(self, rank: int, turn: int, keys: Iterable[int], elements: int) -> list[tuple[int, int]]:
        """Push keys of a worker for a round, and ask for their sums: of rank + turn."""
        numbers = np.full(elements, rank + turn, np.float32).tobytes()
        return [
            self.ask(
                self.links[rank][1 + server],
                {"op": "pushpull", "store": 0, "dtype": "float32", "parts": [[f"{server}.{key}", 0, turn]]}, [numbers],
            )
            for server in range(self.servers) for key in keys
        ]  # fmt: skip

    def check(self, answers: Sequence[Message], turn: int, ranks: Iterable[int]) -> None:
        """See that answers are the sums of a round.

        Raises:
            RuntimeError: they are not.
        """
        total = np.float32(sum(rank + turn for rank in ranks))
        for message in answers:
            if not (np.frombuffer(message.data(), np.float32) == total).all():
                raise RuntimeError(f"round {turn}: another sum than {total}")

    def round(self, turn: int, keys: int, elements: int) -> None:
        """A round of all workers that are alive."""
        asked = [one for rank in sorted(self.alive) for one in self.push(rank, turn, range(keys), elements)]
        self.check(self.answers(asked), turn, self.alive)

    def barrier(self, number: int) -> None:
        """All workers that are alive meet at a barrier."""
        meta = {"op": "barrier", "name": "", "at": 0, "number": number, "idle": False}
        self.answers([self.ask(self.links[rank][0], meta) for rank in sorted(self.alive)])

    def die(self, rank: int) -> None:
        """Break a worker's connections."""
        self.alive.discard(rank)
        for link in self.links[rank]:
            self._van.drop(link)

    def leave(self) -> dict[str, int]:
        """All workers take their leave; returns the exit status of the other processes, which end then."""
        self.answers([self.ask(self.links[rank][0], {"op": "bye"}) for rank in sorted(self.alive)])
        for rank in sorted(self.alive):
            for link in self.links[rank][1:]:
                self._van.send(link, Message(NOTICE, 0, {"op": "bye"}))
        self.alive.clear()
        return {name: p.wait(self.seconds) for name, p in self.processes.items()}

    def processor_seconds(self, name: str) -> float:
        """Processor time that the scheduler or a server has used."""
        fields = Path(f"/proc/{self.processes[name].pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def said(self, name: str) -> str:
        """What the scheduler or a server wrote, after its end."""
        pipe = self.processes[name].stderr
        assert pipe is not None
        return pipe.read().decode()

    def close(self) -> None:
        """End everything."""
        sys.setswitchinterval(self._interval)
        self._van.close()
        for p in self.processes.values():
            p.kill()
            p.wait()
            assert p.stderr is not None
            p.stderr.close()
