"""Runs a plan: starts the members of the job, does the harm, starts members again that died, and judges the outcome."""

from __future__ import annotations

import contextlib
import os
import random
import re
import resource
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests import jobs

from . import job
from .plan import INTERVAL, MEMBERS, RETURN, ROUNDS, SERVERS, SILENCE, STAGES, WORKERS, Fault, Plan
from .proxy import Proxy
from .zygote import ROOT, Zygote

JOB = Path(job.__file__)
SLOWER = 6.0  # times as long it takes until processes of the launcher, which import everything, are there
GRACE = 2.0  # seconds that those have to end by themselves who were started again and find nobody
OWN = 8.0  # seconds that a run may take without faults, on a busy machine
RESTARTS = 60  # most processes that are started in the place of others
LONGEST = 90.0
START = 15  # seconds of DUALMX_START_TIMEOUT
REMEDY = re.compile(r"DUALMX_ON_|--on-\w+-death|did not come together .* missing: ")


class Result(NamedTuple):
    """The outcome of a run.

    Attributes:
        verdict: "equal", or what is wrong: "unequal", "hung", "late", "failed", "unnamed"; and "named" where all ended
            by an error as they should.
        seconds: that it took. text: what is to be said about it. happened: the faults that hit.
    """

    verdict: str
    seconds: float
    text: str
    happened: list[str]

    @property
    def hits(self) -> int:
        """How many faults have hit anything."""
        return sum("missed" not in one for one in self.happened)

    @property
    def good(self) -> bool:
        """Whether the promise was kept."""
        return self.verdict in ("equal", "named")


@dataclass
class Process:
    """A member that runs or has run.

    Attributes:
        began: when it was started last; times: how often that was.
        status: exit status of the last one.
        hit: signals that a fault sent to one of them.
        late: it failed after the job was over, as one that is started again too late to find the others.
    """

    name: str
    pid: int = 0
    began: float = 0.0
    times: int = 0
    status: int | None = None
    hit: bool = False
    late: bool = False


def limits(plan: Plan) -> float:
    """Seconds that a run may take: its own time, and the time-outs that its faults cost."""
    own = OWN * (3 if plan.launched else 1) + (0 if plan.job.returns else START)
    return own + sum(f.cost(plan.job) for f in plan.faults)


class Cluster:
    """A job whose members are forked by the zygote, or started by the launcher.

    Args:
        plan: what happens. folder: for its files.
        zygote: forks the members. patches: changes of the code in them.
        longest: seconds after which a run is said to hang.
    """

    def __init__(
        self, plan: Plan, folder: Path, zygote: Zygote, patches: tuple[str, ...] = (), longest: float = LONGEST
    ):
        self._longest = longest
        self.plan, self.folder, self._zygote = plan, folder, zygote
        self._patches = ["", *patches, *(["small"] if plan.small else [])]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        draw = random.Random(f"{os.getpid()} {time.time_ns()}")
        net = f"127.{draw.randrange(1, 255)}.{draw.randrange(1, 255)}"
        self._host = f"{net}.2"
        ports = draw.sample(range(20000, 32000), 2 * (SERVERS + 1))
        names = [m for m in MEMBERS if not m.startswith("worker")]
        self._listens = dict(zip(names, ports, strict=False))
        self._advertised = dict(zip(names, ports[len(names) :] if plan.proxied else ports, strict=False))
        self._proxy = Proxy(self._host, f"{net}.3") if plan.proxied else None
        for name in names if self._proxy is not None else ():
            self._proxy.listen(name, self._advertised[name], self._listens[name])
        self.processes = {name: Process(name) for name in MEMBERS}
        self._launcher: jobs.Process | None = None
        self._due: list[tuple[float, str, Fault]] = []  # what ends a fault
        self.happened: list[str] = []
        self._hit: dict[int, float] = {}  # when faults have hit, by their place in the plan
        self.began = time.monotonic()
        self._ended = 0.0  # when the job was over

    # -- processes

    def _argv(self, task: str) -> list[str]:
        mode = self.plan.job
        words = (str(self.folder), task, mode.kind, str(ROUNDS), str(WORKERS), mode.optimizer, mode.compression)
        return [str(JOB), *words]

    def _common(self) -> dict[str, str]:
        mode = self.plan.job
        env = {k: v for k, v in os.environ.items() if not k.startswith(("DMLC_", "PS_", "DUALMX_", "MXNET_"))}
        env |= {
            "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "OPENBLAS_NUM_THREADS": "1",
            "MXNET_KVSTORE_BIGARRAY_BOUND": "100", "PS_HEARTBEAT_INTERVAL": f"{INTERVAL:g}",
            "PS_HEARTBEAT_TIMEOUT": f"{SILENCE:g}", "DUALMX_RETURN_TIMEOUT": f"{RETURN:g}", "DUALMX_DIST_TIMEOUT": "60",
            "DUALMX_START_TIMEOUT": f"{START:g}", "DUALMX_TCP": str(int(self.plan.proxied)), "DUALMX_SHARED_MB": "64",
            "DUALMX_ENCRYPT": str(int(self.plan.sealed)),
        }  # fmt: skip
        if mode.on_server_death == "wait":
            env["DUALMX_JOURNAL"] = str(self.folder / "journal")
        return env

    def env(self, name: str) -> dict[str, str]:
        """The environment of a member."""
        role, rank = name.split()
        mode, own = self.plan.job, role == "scheduler"
        env = self._common() | {
            "DMLC_ROLE": role, "DMLC_TASK_ID": rank, "DMLC_PS_ROOT_URI": self._host,
            "DMLC_PS_ROOT_PORT": str((self._listens if own else self._advertised)["scheduler 0"]),
            "DMLC_NUM_WORKER": str(WORKERS), "DMLC_NUM_SERVER": str(SERVERS), "DUALMX_SECRET": "0123456789" * 3,
            "DUALMX_ON_WORKER_DEATH": mode.on_worker_death, "DUALMX_ON_SERVER_DEATH": mode.on_server_death,
        }  # fmt: skip
        if role == "server":
            env |= {"PORT": str(self._listens[name]), "DMLC_NODE_HOST": self._host}
            env["DUALMX_ADVERTISED_PORT"] = str(self._advertised[name])
        return env

    def _start(self, name: str) -> None:
        one = self.processes[name]
        out = self.folder / f"{name}.out".replace(" ", "-")
        one.pid = self._zygote.start(self.env(name), out, self._argv(name.split()[1]), self._patches)
        one.status, one.began, one.times = None, time.monotonic(), one.times + 1

    def _launch(self) -> None:
        mode, common = self.plan.job, self._common()
        policies = ["--on-worker-death", mode.on_worker_death, "--on-server-death", mode.on_server_death]
        command = jobs.launcher(WORKERS, SERVERS, *policies, "--restarts", str(RESTARTS))
        with open(self.folder / "launcher.out", "wb") as out:
            self._launcher = jobs.start(
                *command, jobs.PYTHON, "-c", _LAUNCHED, *self._argv("-"), env=common, stdout=out
            )

    def _look(self) -> None:
        """Learn which processes there are, and start those again that died."""
        if self._launcher is not None:
            for name, pid in jobs.members(self._launcher.pid).items():
                one = self.processes[name]
                if one.pid != pid:
                    one.pid, one.began, one.times = pid, time.monotonic(), one.times + 1
            return
        self._zygote.poll()
        for name, one in self.processes.items():
            if one.status is None and one.pid in self._zygote.ended:
                one.status = self._zygote.ended.pop(one.pid)
                one.late = one.status != 0 and self._job_ended()
                if one.status and self._returns():
                    self._start(name)
        if self.plan.job.returns and not self._ended and self._job_ended():
            self._ended = time.monotonic()
        if self._ended and time.monotonic() - self._ended > GRACE:
            running = [p for p in self.processes.values() if p.status is None]
            for one in running if all(p.times > 1 for p in running) else ():
                self._signal(one.name, signal.SIGKILL)

    def _job_ended(self) -> bool:
        """Whether the launcher would take the job for over, so that it starts nobody again."""
        over = all(self.processes[f"worker {rank}"].status == 0 for rank in range(WORKERS))
        return over or self.processes["scheduler 0"].status == 0

    def _returns(self) -> bool:
        """Whether another process takes the place of a member that failed, as the launcher decides that."""
        times = sum(p.times - 1 for p in self.processes.values())
        return self.plan.job.returns and not self._job_ended() and times < RESTARTS

    # -- faults

    def _stage(self) -> list[tuple[int, str]]:
        stages = []
        for rank in range(64) if "elastic" in self.plan.mode else range(WORKERS):
            try:
                turn, stage = (self.folder / f"{rank}.progress").read_text().split()
            except (OSError, ValueError):
                break
            stages.append((int(turn), stage))
        return stages

    def _since(self, at: int, met: dict[str, float]) -> float | None:
        """Since when what a fault waits for, by its place in the plan, is there; None while it is not."""
        fault = self.plan.faults[at]
        when, before = fault.when, self._hit.get(at - 1)
        if when.what == "time":
            return self.began + when.value * (SLOWER if self.plan.launched else 1.0)
        if when.what == "fault":
            return before
        if when.what == "back":
            one = self.processes[fault.target]
            return one.began if before is not None and one.began > before else None
        label = f"{when.what} {when.value}"
        if label not in met:
            for turn, stage in self._stage():
                late = stage in STAGES and STAGES.index(stage) >= when.value
                if (turn >= when.value) if when.what == "round" else late:
                    met[label] = time.monotonic()
        return met.get(label)

    def _harm(self, at: int) -> None:
        fault, hit = self.plan.faults[at], False
        if fault.kind in ("kill", "stop"):
            hit = self._signal(fault.target, signal.SIGKILL if fault.kind == "kill" else signal.SIGSTOP)
            self.processes[fault.target].hit |= hit
        elif fault.kind == "full":
            hit = self._limit(fault.target, 1)
        elif self._proxy is not None:
            hit = self._proxy.harm(fault.kind, fault.target, fault.pick, fault.seconds)
        self._hit[at] = now = time.monotonic()
        self.happened.append(f"{now - self.began:.2f} {fault.kind} {fault.target}" + ("" if hit else " (missed)"))
        if fault.kind in ("stop", "full"):
            self._due.append((now + fault.seconds, fault.kind, fault))

    def _signal(self, name: str, number: int) -> bool:
        one = self.processes[name]
        if not one.pid or one.status is not None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.pid, number)
            return True
        return False

    def _limit(self, name: str, most: int) -> bool:
        """Let a process write no file beyond some bytes, as if its disk were full."""
        one = self.processes[name]
        if not one.pid or one.status is not None:
            return False
        with contextlib.suppress(OSError):
            resource.prlimit(one.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
            return True
        return False

    def _mend(self, everything: bool = False) -> None:
        """End the faults whose time is over."""
        now = time.monotonic()
        for one in [d for d in self._due if everything or d[0] <= now]:
            self._due.remove(one)
            if one[1] == "stop":
                self._signal(one[2].target, signal.SIGCONT)
            else:
                self._limit(one[2].target, resource.RLIM_INFINITY)

    # -- the run

    def run(self) -> Result:
        """Run the job to its end."""
        limit = limits(self.plan)
        met: dict[str, float] = {}
        try:
            if self.plan.launched:
                self._launch()
            else:
                for name in MEMBERS:
                    self._start(name)
            while not self._over() and time.monotonic() - self.began < self._longest:
                self._look()
                self._mend()
                for at, fault in enumerate(self.plan.faults):
                    since = None if at in self._hit else self._since(at, met)
                    if since is not None and time.monotonic() >= since + fault.when.after:
                        self._harm(at)
                time.sleep(0.002)
            seconds = time.monotonic() - self.began
            return self._judge(seconds, limit)
        finally:
            self.close()

    def _over(self) -> bool:
        if self._launcher is not None:
            return self._launcher.poll() is not None
        return all(p.status is not None for p in self.processes.values())

    def _judge(self, seconds: float, limit: float) -> Result:
        verdict, text = self._outcome()
        if verdict in ("equal", "named") and seconds > limit:
            verdict, text = "late", f"{seconds:.1f} s, expected {limit:.1f} s at most"
        return Result(verdict, seconds, text, self.happened)

    def _outcome(self) -> tuple[str, str]:
        if not self._over():
            alive = [p.name for p in self.processes.values() if p.status is None]
            self._mend(everything=True)
            for name in alive:
                self._signal(name, signal.SIGUSR1)
            time.sleep(0.3)
            return "hung", ", ".join(alive)
        if self._launcher is not None:
            failed = ["launcher"] if self._launcher.returncode else []
        else:
            workers = [p for p in self.processes.values() if p.name.startswith("worker")]
            failed = [
                p.name
                for p in (workers if self.plan.job.returns else self.processes.values())
                if p.status and not p.late
            ]
        if failed and not self.plan.job.returns:
            return self._named(failed)
        if failed:
            return "failed", ", ".join(f"{n}: {self.said(n)[-300:]!r}" for n in failed)
        return self._compared()

    def said(self, name: str) -> str:
        """What a member has written."""
        with contextlib.suppress(OSError):
            return (self.folder / f"{name}.out".replace(" ", "-")).read_text(errors="replace")
        return ""

    def _named(self, failed: list[str]) -> tuple[str, str]:
        """Whether all that were not hit tell who was lost, and what to do."""
        if self._launcher is not None:
            said = self.said("launcher")
            return (
                ("named", "") if "was killed by signal 9" in said or REMEDY.search(said) else ("unnamed", said[-500:])
            )
        victims = [p.name for p in self.processes.values() if p.hit]
        for name in failed:
            said = self.said(name)
            lost = [v.removesuffix(" 0") if v.startswith("scheduler") else v for v in victims]
            if self.processes[name].hit and self.processes[name].status == -signal.SIGKILL:
                continue
            if not any(v in said for v in lost) or not REMEDY.search(said):
                return "unnamed", f"{name}: {said[-400:]!r}"
        return "named", ""

    def _compared(self) -> tuple[str, str]:
        names = sorted(self.folder.glob("[0-9]*.npz"))
        if len(names) < (1 if "elastic" in self.plan.mode else WORKERS):
            return "failed", f"{len(names)} workers have saved something"
        expected = self.expected()
        for path in names:
            with np.load(path) as arrays:
                values = [arrays[k] for k in arrays.files]
            for i, (value, right) in enumerate(zip(values, expected, strict=True)):
                if value.tobytes() != right.tobytes():
                    n = int((value != right).sum())
                    return "unequal", f"array {i} of {path.stem}: {n} of {value.size} numbers differ"
        return "equal", ""

    def expected(self) -> list[np.ndarray]:
        """The arrays at the end of a run in which every push counts once."""
        mode = self.plan.job
        if mode.kind.endswith("elastic"):
            return [np.full(job.SAMPLES, job.EPOCHS, np.float32)]
        if "async" in mode.kind:
            return [np.ones((WORKERS * ROUNDS, 3), np.float32), np.full(120, WORKERS * ROUNDS, np.float32)]
        return quiet(self.plan.mode, self.folder.parent, self._zygote)

    def close(self) -> None:
        """End all processes."""
        if self._launcher is not None:
            jobs.end(self._launcher)
        for one in self.processes.values():
            if one.pid and one.status is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one.pid, signal.SIGKILL)
        until = time.monotonic() + 10
        while self._launcher is None and time.monotonic() < until:
            self._zygote.poll()
            if all(p.status is not None or not p.pid or p.pid in self._zygote.ended for p in self.processes.values()):
                break
            time.sleep(0.002)
        if self._proxy is not None:
            self._proxy.close()


# A process that the launcher starts: it may serve, and then ends while it imports dualmx.
_LAUNCHED = (
    "import os, sys; del sys.argv[0]; sys.argv[2] = os.environ['DMLC_TASK_ID']; "
    "sys.path.insert(0, os.environ['PYTHONPATH']); "
    "from tests.ps.chaos import job; job.run()"
)


_quiet: dict[str, list[np.ndarray]] = {}


def quiet(mode: str, folder: Path, zygote: Zygote) -> list[np.ndarray]:
    """The weights at the end of a run of a synchronous mode without faults."""
    if mode not in _quiet:
        cluster = Cluster(Plan(-1, mode, proxied=False), folder / f"quiet-{mode}", zygote)
        cluster.expected = list  # type: ignore[method-assign]
        result = None
        with contextlib.suppress(ValueError):  # nothing to compare with
            result = cluster.run()
        path = cluster.folder / "0.npz"
        if not path.exists():
            raise RuntimeError(f"the run of mode {mode!r} without faults failed: {result}")
        with np.load(path) as arrays:
            _quiet[mode] = [arrays[k] for k in arrays.files]
    return _quiet[mode]
