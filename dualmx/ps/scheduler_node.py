"""The scheduler's place in a job: it listens where all others know it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from .drops import with_message_drops
from .job import Job
from .journal import Journal
from .postoffice import MIN_RECONNECT_SECONDS, Scheduler
from .sockets import SocketVan
from .talking import enable_logging
from .van import AddressInUse

BUSY = 10.0  # seconds that the port of a scheduler that comes back may be in use
_log = logging.getLogger("dualmx.dist")


def start_scheduler(job: Job, coordinator: Callable[[int], str] | None = None) -> Callable[[], None]:
    """Begin to be the scheduler of a job; returns what serves until the job is over.

    Args:
        job: the job.
        coordinator: see `Scheduler`.

    Raises:
        MXNetError: the port is taken.
    """
    enable_logging()
    returns = job.journal and job.on_server_death == "wait"
    van = job.van()
    journal = (
        Journal(job.journal, 0, job.durable, "scheduler", job.restart_timeout, van.send_heartbeats) if returns else None
    )
    scheduler = Scheduler(
        van, job.workers, job.servers, job.policy, job.restart_timeout, coordinator, journal, job.group
    )
    back = scheduler.restore(max(job.heartbeat_timeout, MIN_RECONNECT_SECONDS))
    if back:
        _log.warning("scheduler: took over from the journal in %s", job.journal)
    van.on_message, van.on_down = (
        with_message_drops(scheduler.on_message, job.drop_percent, "scheduler"),
        scheduler.on_down,
    )
    van.start()
    try:
        _listen(van, job, BUSY if back else 0.0)
    except BaseException:
        van.close()
        raise

    def serve() -> None:
        try:
            scheduler.run(job.start)
        finally:
            van.close()
        scheduler.close()

    return serve


def _listen(van: SocketVan, job: Job, patience: float) -> None:
    """Listen where all others know this process, once that is free: the system may have used the port meanwhile."""
    until = time.monotonic() + patience
    while True:
        try:
            van.listen(job.bind_host(job.uri), job.port)
            return
        except AddressInUse:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def run_scheduler(job: Job, coordinator: Callable[[int], str] | None = None) -> None:
    """Be the scheduler of a job until it is over.

    Raises:
        MXNetError: the port is taken, or the job does not come together in time.
    """
    start_scheduler(job, coordinator)()


__all__ = ["run_scheduler", "start_scheduler"]
