"""What happens in a run: which kind of job it is, and which faults hit it when. All of it follows from the seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

WORKERS, SERVERS, ROUNDS = 3, 2, 24
LEAVING = "leaving"  # the stage of a worker after its last barrier
STAGES = ("trained", "final", LEAVING)
SILENCE = 2.0  # seconds of PS_HEARTBEAT_TIMEOUT
INTERVAL = 1.0  # seconds of PS_HEARTBEAT_INTERVAL
RETURN = 30.0  # seconds of DUALMX_RETURN_TIMEOUT
LAUNCHED = 27  # one seed of so many is run by the launcher

MEMBERS = (
    "scheduler 0",
    *(f"server {rank}" for rank in range(SERVERS)),
    *(f"worker {rank}" for rank in range(WORKERS)),
)


@dataclass(frozen=True)
class Mode:
    """A kind of job.

    Attributes:
        kind: the type of the store. optimizer: its registry name. compression: type of the gradients' compression.
        on_worker_death, on_server_death: the policies.
    """

    kind: str = "dist_sync"
    optimizer: str = "sgd"
    compression: str = ""
    on_worker_death: str = "wait"
    on_server_death: str = "wait"

    @property
    def returns(self) -> bool:
        """Whether processes that died come back."""
        return self.on_worker_death != "fail"


MODES = {
    "sgd": Mode(),
    "adam": Mode(optimizer="adam"),
    "2bit": Mode(compression="2bit"),
    "1bit": Mode(compression="1bit"),
    "fp16": Mode(compression="fp16"),
    "rows": Mode(kind="dist_sync rows", optimizer="adagrad"),
    "async": Mode(kind="dist_async", optimizer="test"),
    "async-rows": Mode(kind="dist_async rows", optimizer="test"),
    "elastic": Mode(kind="dist_sync elastic", optimizer="test", on_worker_death="elastic"),
    "fail": Mode(on_worker_death="fail", on_server_death="fail"),
}


@dataclass(frozen=True)
class When:
    """The moment of a fault.

    Attributes:
        what: "time" since the start, "round" that a worker has reached, "stage" that a worker has reached, "fault" for
            that many seconds after the fault before, "back" for so long after the start of a process in its place.
        value: seconds, a round, or the number of a stage. after: seconds after that.
    """

    what: str
    value: float = 0.0
    after: float = 0.0

    def __str__(self) -> str:
        at = STAGES[int(self.value)] if self.what == "stage" else f"{self.value:g}" if self.value else ""
        return f"{self.what} {at}".rstrip() + (f"+{self.after:.3f}" if self.after else "")


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        kind: "kill", "stop", "full" (no room for the journal), and of a connection "sever", "reset", "delay",
            "corrupt".
        target: the process, or for connections the one that listens.
        when: the moment. seconds: how long it lasts.
        pick: which of the connections.
    """

    kind: str
    target: str
    when: When
    seconds: float = 0.0
    pick: int = 0

    def __str__(self) -> str:
        lasts = f" {self.seconds:.2f} s" if self.seconds else ""
        return f"{self.kind} {self.target}{lasts} at {self.when}"

    def cost(self, mode: Mode) -> float:
        """Seconds that it may cost a job: those that it lasts, and the time-outs until all have noticed.

        An elastic job goes on without a worker that is silent for too long. Where the job has ended before that worker
        wakes, nobody is left to tell it so, and it waits for the others to come back.
        """
        notice = {"kill": 6.0, "stop": 2 * SILENCE, "delay": 2 * SILENCE, "full": 1.0}.get(self.kind, 1.0)
        notice += 10.0 if self.target.startswith("scheduler") else 0.0
        left = self.kind == "stop" and self.target.startswith("worker") and self.seconds > SILENCE - INTERVAL
        return self.seconds + notice + (RETURN if left and mode.on_worker_death == "elastic" else 0.0)


@dataclass(frozen=True)
class Plan:
    """A run.

    Attributes:
        seed: what the rest follows from. mode: name of the job's mode.
        proxied: connections are TCP and go through the proxy; else unix sockets and shared memory.
        launched: by the launcher.
        small: journals are small, so that snapshots take their places.
        sealed: what goes through the proxy is encrypted.
        faults: what happens.
    """

    seed: int
    mode: str
    proxied: bool = True
    launched: bool = False
    small: bool = False
    sealed: bool = False
    faults: tuple[Fault, ...] = field(default=())

    @property
    def job(self) -> Mode:
        """The kind of job."""
        return MODES[self.mode]

    def __str__(self) -> str:
        how = ("proxy" if self.proxied else "unix") + (" launcher" if self.launched else "")
        how += " TLS" if self.sealed else ""
        return f"{how}: " + "; ".join(map(str, self.faults))


def _moment(draw: random.Random) -> When:
    what = draw.choices(["time", "round", "stage"], [3, 5, 2])[0]
    if what == "time":
        return When(what, round(draw.random() * 0.8, 3))
    if what == "round":
        return When(what, draw.randrange(ROUNDS), round(draw.random() * 0.03, 3))
    return When(what, draw.randrange(len(STAGES)), round(draw.choice([0.0, 0.002, 0.01, 0.05, 0.3]) * draw.random(), 4))


def _fault(draw: random.Random, proxied: bool, journal: bool, before: Fault | None) -> Fault:
    kinds = {"kill": 6, "stop": 2}
    if proxied:
        kinds |= {"sever": 1, "reset": 1, "delay": 1, "corrupt": 1}
    if journal:
        kinds |= {"full": 1}
    kind = draw.choices(list(kinds), list(kinds.values()))[0]
    listens = [m for m in MEMBERS if not m.startswith("worker")]
    target = draw.choice(MEMBERS if kind in ("kill", "stop") else listens)
    when = _moment(draw)
    if before is not None:
        turn = draw.random()
        if turn < 0.3:  # several at once, or nearly so
            when = When("fault", 0.0, round(draw.choice([0.0, 0.01, 0.1]) * draw.random(), 4))
        elif turn < 0.5 and before.kind == "kill":  # the same one again, while it is coming back
            kind, target, when = "kill", before.target, When("back", 0.0, round(draw.random() * 0.6, 3))
    longest = {"stop": 3.5, "delay": 3.5, "full": 1.5}.get(kind, 0.0)
    short = draw.random() < 0.6
    return Fault(kind, target, when, round(draw.random() * (0.5 if short else 1.0) * longest, 3), draw.randrange(64))


def plan_of(seed: int, mode: str) -> Plan:
    """The run of a seed in a mode."""
    draw = random.Random(f"{mode} {seed}")
    job = MODES[mode]
    launched = seed % LAUNCHED == LAUNCHED - 1
    proxied = not launched and draw.random() < 0.6
    faults: list[Fault] = []
    for _ in range(draw.choices([1, 2, 3, 4, 6], [3, 4, 4, 2, 1])[0]):
        faults.append(_fault(draw, proxied, job.on_server_death == "wait", faults[-1] if faults else None))
    small = draw.random() < 0.3
    return Plan(seed, mode, proxied, launched, small, proxied and draw.random() < 0.25, tuple(faults))
