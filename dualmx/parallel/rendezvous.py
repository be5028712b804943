"""Rendezvous: find the other processes from the launcher's, MPI's or Slurm's environment, or from arguments."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from ..core.errors import ArgumentError, MXNetError
from ..core.knobs import START_TIMEOUT
from ..core.net import free_port
from ..ps import Job, start_scheduler
from ..ps.van.handshake import user_secret_path

Coordinator = Callable[[str, str, int], str]  # address to listen on, as others see it, number of processes


class Rendezvous(NamedTuple):
    """A job that this process belongs to.

    Attributes:
        job: the job.
        serve: serves as its scheduler, in the process that has this to do; None in the others.
    """

    job: Job
    serve: Callable[[], None] | None = None


class _LauncherRank(NamedTuple):
    size: int
    rank: int
    host: str = ""
    port: int = 0
    key: str = ""  # of a file in which all processes, which are on one host, find the port


def _int(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else None


def _port(key: str) -> int:
    """Return a port that all processes compute equally."""
    return 20000 + int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") % 20000


def _first_node(names: str) -> str:
    """First host of Slurm's list, such as `a[03-07,9],b`.

    Example:
        >>> _first_node("node[03-07,9],other")
        'node03'
    """
    found = re.match(r"([^\[,]+)(?:\[(\d+)[^\]]*\])?", names)
    return f"{found[1]}{found[2] or ''}" if found else ""


def _of_mpi() -> _LauncherRank | None:
    size, rank = _int("OMPI_COMM_WORLD_SIZE"), _int("OMPI_COMM_WORLD_RANK")
    if size is not None and rank is not None:
        uri = os.environ.get("OMPI_MCA_orte_hnp_uri", "") or os.environ.get("PMIX_SERVER_URI41", "")
        key = os.environ.get("PMIX_NAMESPACE") or os.environ.get("OMPI_MCA_ess_base_jobid") or uri
        host = re.search(r"tcp[46]?://([\d.]+)", uri)
        alone = _int("OMPI_COMM_WORLD_LOCAL_SIZE") == size
        return _LauncherRank(size, rank, "" if alone or not host else host[1], _port(key), key)
    size, rank = _int("PMI_SIZE"), _int("PMI_RANK")
    if size is not None and rank is not None:
        key = os.environ.get("PMI_PORT") or str(os.getppid())
        alone = _int("MPI_LOCALNRANKS") == size
        return _LauncherRank(size, rank, "" if alone else key.partition(":")[0], _port(key), key)
    return None


def _of_slurm() -> _LauncherRank | None:
    size, rank = _int("SLURM_STEP_NUM_TASKS"), _int("SLURM_PROCID")
    if size is None or rank is None:
        return None
    key = f"{os.environ.get('SLURM_JOB_ID')}.{os.environ.get('SLURM_STEP_ID')}"
    nodes = os.environ.get("SLURM_STEP_NODELIST", "")
    host = "" if _int("SLURM_STEP_NUM_NODES") == 1 else _first_node(nodes)
    return _LauncherRank(size, rank, host, _port(key), f"slurm {key}")


def _of_caller(where: str, size: int | None, rank: int | None) -> _LauncherRank:
    what = f"parallel.init: where={where!r}"
    url = urlsplit(where if "://" in where else f"tcp://{where}")
    query = {name: value for name, _, value in (part.partition("=") for part in str(url.query).split("&"))}
    environment = _of_mpi() or _of_slurm()
    sizes = (
        size,
        query.get("world_size"),
        _int("WORLD_SIZE"),
        _int("JAX_NUM_PROCESSES"),
        environment and environment.size,
    )
    ranks = (rank, query.get("rank"), _int("RANK"), _int("JAX_PROCESS_ID"), environment.rank if environment else None)
    count, number = (next((int(v) for v in found if v is not None), -1) for found in (sizes, ranks))
    if count < 1 or not 0 <= number < count:
        raise ArgumentError(
            f"{what}: size={size}, rank={rank}: expected how many processes there are, and which one this is (or "
            "WORLD_SIZE and RANK in the environment)"
        )
    if url.scheme == "file":
        if not url.path.startswith("/") or url.netloc:
            raise ArgumentError(f"{what}: expected a whole path, as in file:///shared/folder/job")
        return _LauncherRank(count, number, key=url.path)
    if url.scheme == "env":
        host, port = os.environ.get("MASTER_ADDR", ""), _int("MASTER_PORT")
        if not host or not port:
            raise ArgumentError(f"{what}: expected MASTER_ADDR and MASTER_PORT in the environment")
        return _LauncherRank(count, number, host, port)
    try:
        port = url.port
    except ValueError:
        port = None
    if url.scheme != "tcp" or not url.hostname or not port:
        raise ArgumentError(f"{what}: expected tcp://HOST:PORT, HOST:PORT, file:///PATH or env://")
    return _LauncherRank(count, number, url.hostname, port)


def rendezvous(where: str | None, size: int | None, rank: int | None, coordinator: Coordinator) -> Rendezvous | None:
    """Find the job of this process; None if it is alone. One process of a job without a scheduler becomes that too.

    Raises:
        ArgumentError: `where` cannot be read, or numbers are missing. MXNetError: the address is taken.
    """
    if where is None:
        if Job.in_environment():
            return Rendezvous(Job.from_env())
        if os.environ.get("MASTER_ADDR") and _int("WORLD_SIZE") is not None:
            where = "env://"
        elif os.environ.get("JAX_COORDINATOR_ADDRESS"):
            where = os.environ["JAX_COORDINATOR_ADDRESS"]
    if where is not None:
        place = _of_caller(where, size, rank)
        file = Path(place.key) if place.key else None
    else:
        found = _of_mpi() or _of_slurm()
        if found is None or found.size == 1:
            return None
        place = found
        digest = hashlib.sha256(place.key.encode()).hexdigest()[:24]
        file = None if place.host else user_secret_path().with_name(f"job-{digest}")
    if place.size == 1:
        return None
    if file is not None:
        return _by_file(file, place, coordinator, "" if where is None else _own_host())
    return _at(place.host, place.port, place, coordinator)


def _own_host() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("10.255.255.255", 9))  # sends nothing: asks the system for the route
            return s.getsockname()[0]
        except OSError:
            return "127.0.0.1"


def _at(host: str, port: int, place: _LauncherRank, coordinator: Coordinator) -> Rendezvous:
    job = Job.with_scheduler(host, port, place.size, 0, place.rank)
    if place.rank:
        return Rendezvous(job)
    return Rendezvous(job, start_scheduler(job, lambda count: coordinator(job.bind_host(host), host, count)))


def _by_file(file: Path, place: _LauncherRank, coordinator: Coordinator, host: str) -> Rendezvous:
    """Process 0 writes to a file where it listens, and removes it when all others have read it."""
    # Several processes of one user on one host need no secret of their own on the loopback address.
    host = host if host and (os.environ.get("DUALMX_SECRET") or os.environ.get("DUALMX_INSECURE")) else "127.0.0.1"
    if place.rank == 0:
        port = free_port(host)
        made = _at(host, port, place, coordinator)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        draft.write_text(f"{host} {port}\n", encoding="utf-8")
        draft.replace(file)
        return made
    until = time.monotonic() + START_TIMEOUT.integer(1)
    while time.monotonic() < until:
        try:
            address, port = file.read_text(encoding="utf-8").split()
            with socket.create_connection((address, int(port)), 5.0):
                return _at(address, int(port), place, coordinator)
        except (OSError, ValueError):
            time.sleep(0.05)  # not there yet, or of a job that is over
    raise MXNetError(f"parallel.init: process 0 did not write {file} within {START_TIMEOUT.read()} s")


def remove_file(where: str | None) -> None:
    """Remove the rendezvous file; process 0 calls it when all have joined."""
    found = None if where else (_of_mpi() or _of_slurm())
    if where is not None and where.startswith("file:"):
        Path(urlsplit(where).path).unlink(missing_ok=True)
    elif found is not None and not found.host:
        digest = hashlib.sha256(found.key.encode()).hexdigest()[:24]
        user_secret_path().with_name(f"job-{digest}").unlink(missing_ok=True)


__all__ = ["Rendezvous", "remove_file", "rendezvous"]
