"""The job's description in the environment: `DMLC_*` and `PS_*` variables."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

from ..core import knobs
from ..core.encryption import check_encryption
from ..core.errors import ArgumentError, MXNetError
from ..core.net import address_of
from ..core.open_files import raise_limit, remedy
from .van.debug_van import LoggingVan
from .van.handshake import load_secret
from .van.socket_van import SocketVan

SPARE = 32  # files that a process opens beside its connections
_REQUIRED = (knobs.ROOT_URI, knobs.ROOT_PORT, knobs.NUM_WORKER, knobs.NUM_SERVER)


@dataclass(frozen=True)
class Job:
    """A job, as the environment describes it.

    Attributes:
        role: `"worker"`, `"server"` or `"scheduler"`.
        uri, port: where the scheduler is.
        workers, servers: how many there are.
        task: wished rank, -1 for any.
        interval, heartbeat_timeout: seconds between signs of life, and of silence until a peer is dead.
        timeout: most seconds of one wait. start: most seconds of the start.
        secret: known to all members.
        on_worker_death, on_server_death: `fail`, `wait`, and for workers `continue` and `elastic`.
        restart_timeout: seconds that the job waits for the return of one that died.
        group: least and greatest number of workers that exchange arrays in an elastic job; 0 for any number.
        journal: folder in which servers and the scheduler write down what they know, "" for none; `durable`: flushed
            to the disk.
        memory: most MiB of memory that a process shares with others of its host. tcp: no unix sockets.
        encrypt: what travels over TCP is encrypted: `auto` if it leaves the host, `1` all of it, `0` nothing.
        drop_percent: percent of messages that are lost, for tests; resend: seconds until what was not answered is
        repeated.
    """

    role: str
    uri: str
    port: int
    workers: int
    servers: int
    secret: bytes
    task: int = -1
    interval: float = 1.0
    heartbeat_timeout: float = 4.0
    timeout: float = 1800.0
    start: float = 120.0
    on_worker_death: str = "fail"
    on_server_death: str = "fail"
    restart_timeout: float = 120.0
    group: tuple[int, int] = (1, 0)
    journal: str = ""
    durable: bool = False
    memory: int = 4096
    tcp: bool = False
    encrypt: str = "auto"
    drop_percent: int = 0
    resend: float = 1.0

    @staticmethod
    def in_environment() -> bool:
        """Whether the environment describes a job."""
        return bool(knobs.ROOT_URI.read())

    @staticmethod
    def from_env() -> Job:
        """Read the environment.

        Raises:
            ArgumentError: variables are missing or wrong. MXNetError: the job needs a secret.
        """
        missing = [k.name for k in _REQUIRED if not k.read()]
        if missing:
            raise ArgumentError(
                f"a distributed job needs the environment variables {', '.join(missing)}; start the script by "
                "dualmx-launch, which sets them: dualmx-launch -n 2 -s 2 --launcher local python script.py"
            )
        task = knobs.TASK_ID.integer() if knobs.TASK_ID.read() else -1
        counts = knobs.NUM_WORKER.integer(1), knobs.NUM_SERVER.integer()
        return Job.with_scheduler(knobs.ROOT_URI.read(), knobs.ROOT_PORT.port(1), *counts, task, knobs.ROLE.read())

    @staticmethod
    def with_scheduler(
        uri: str, port: int, workers: int, servers: int = 0, task: int = -1, role: str = "worker"
    ) -> Job:
        """Return the job with its scheduler at `uri` and `port`; the rest comes from the environment.

        Raises:
            ArgumentError: variables are wrong. MXNetError: the job needs a secret.
        """
        if knobs.ON_SERVER_DEATH.read() == "wait" and not knobs.JOURNAL.read():
            raise ArgumentError(
                "DUALMX_ON_SERVER_DEATH=wait needs DUALMX_JOURNAL, a folder in which a server finds what the one "
                "before it knew; dualmx-launch --on-server-death wait makes one"
            )
        return Job(
            role=role,
            uri=uri,
            port=port,
            workers=workers,
            servers=servers,
            secret=load_secret(uri),
            task=task,
            interval=max(knobs.HEARTBEAT_INTERVAL.integer(), 1),
            heartbeat_timeout=knobs.HEARTBEAT_TIMEOUT.integer(),
            timeout=knobs.DIST_TIMEOUT.integer(),
            start=knobs.START_TIMEOUT.integer(1),
            on_worker_death=knobs.ON_WORKER_DEATH.read(),
            on_server_death=knobs.ON_SERVER_DEATH.read(),
            restart_timeout=knobs.RESTART_TIMEOUT.integer(1),
            group=(knobs.MIN_WORKERS.integer(1), knobs.MAX_WORKERS.integer()),
            journal=knobs.JOURNAL.read(),
            durable=knobs.JOURNAL_SYNC.read() == "1",
            memory=knobs.SHARED_MEMORY.integer(),
            tcp=knobs.TCP.read() == "1",
            encrypt=_encrypts(uri),
            drop_percent=knobs.DROP_MSG.integer(0, 99),
            resend=knobs.RESEND_TIMEOUT.integer(1) / 1000,
        )

    @property
    def policy(self) -> dict[str, str]:
        """What happens when a member of a role dies."""
        return {"worker": self.on_worker_death, "server": self.on_server_death}

    @property
    def elastic(self) -> bool:
        """Whether workers may join and leave."""
        return self.on_worker_death == "elastic"

    def van(self) -> SocketVan:
        """Return a van for this job.

        Raises:
            MXNetError: this process may not have enough files open for a connection to each member.
        """
        may, members = raise_limit(), self.workers + self.servers
        if self.role != "worker" and members + SPARE > may:
            raise MXNetError(
                f"the {self.role} of a job of {members} members would have about {members + SPARE} files open, and a "
                f"process may have {may}. {remedy()}"
            )
        kind = LoggingVan if knobs.VERBOSE.read() == "2" else SocketVan
        return kind(self.secret, self.interval, self.heartbeat_timeout, self.memory << 20, self.tcp, self.encrypt)

    def own_host(self) -> str:
        """Return the address of this host as the others reach it.

        Raises:
            ArgumentError: there is no such interface.
            MXNetError: within `start` seconds there was no way to the scheduler's host.
        """
        given, interface = knobs.NODE_HOST.read(), knobs.INTERFACE.read()
        if given:
            return given
        if interface:
            return address_of(interface)
        until = time.monotonic() + self.start
        while True:
            try:
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                    s.connect((self.uri, self.port))  # sends nothing: asks the system for the route
                    return s.getsockname()[0]
            except OSError as e:
                if time.monotonic() > until:  # the name may be made together with the scheduler
                    raise MXNetError(f"DMLC_PS_ROOT_URI={self.uri!r}: no way there: {e.strerror or e}") from None
                time.sleep(0.2)

    def bind_host(self, own: str) -> str:
        """Address to listen on."""
        return "0.0.0.0" if knobs.KUBERNETES.read() == "1" else own


def _encrypts(uri: str) -> str:
    """What `DUALMX_ENCRYPT` says, if this process can do it for a job whose scheduler is at `uri`."""
    mode = knobs.ENCRYPT.read()
    insecure = knobs.INSECURE.read() == "1" and not knobs.SECRET.read()
    if mode == "1" and insecure:
        raise ArgumentError("DUALMX_ENCRYPT=1 needs a secret (DUALMX_SECRET), which DUALMX_INSECURE=1 does without")
    check_encryption(uri, "0" if insecure else mode)
    return mode


__all__ = ["Job"]
