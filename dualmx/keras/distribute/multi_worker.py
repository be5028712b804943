"""Strategies of several processes, by collectives or by parameter servers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from ... import kvstore, parallel
from ...core.errors import ArgumentError, MXNetError
from ...gluon.parameter import Parameter
from ...kvstore.server_updates import serve_and_exit
from ...namespace import nd
from ...ndarray import NDArray
from ...ps import Job
from .cluster_resolver import Cluster
from .strategy import MirroredStrategy


class MultiWorkerMirroredStrategy(MirroredStrategy):
    """Train in several processes at once, each with one device or more; all make the same update.

    Make it at the beginning of the script. The processes are those of `TF_CONFIG`; of the job of `dualmx-launch`, MPI
    or Slurm without it; or this one alone. Each batch of `fit` is the batch of all workers
    together, of which each takes its part, so the result does not depend on their number.

    Args:
        cluster: instead of `TF_CONFIG`.
        devices: of this process, see `MirroredStrategy`; its first device by default.

    Raises:
        ArgumentError: a wrong field in `TF_CONFIG`. MXNetError: not all processes came.
    """

    def __init__(self, cluster: Cluster | None = None, devices: Any = None):
        found = Cluster.from_env() if cluster is None else cluster
        if found is not None:
            if "ps" in found.tasks:
                raise ArgumentError("TF_CONFIG: cluster.ps: MultiWorkerMirroredStrategy has no parameter servers")
            if len(found.workers) > 1:
                parallel.init(found.workers[0], len(found.workers), found.rank)
        else:
            parallel.init()
        self.rank, self.workers = parallel.rank(), parallel.size()
        if self.workers > 1:
            self.store = "collective"
        super().__init__(1 if devices is None else devices)

    def share(self, number: int, rows: int) -> tuple[int, int, int]:
        """Each worker takes its part of every batch."""
        return *self.part(rows), rows

    def part(self, rows: int) -> tuple[int, int]:
        """Return begin and end of the rows of a batch that this worker takes."""
        return rows * self.rank // self.workers, rows * (self.rank + 1) // self.workers

    def added_up(self, values: list[float]) -> list[float]:
        """Return sums of numbers over workers."""
        return parallel.all_reduce(nd.array(values, dtype="float64")).asnumpy().tolist()

    def sum_of_workers(self, value: NDArray) -> NDArray:
        """Return the sum of an array over workers."""
        return parallel.all_reduce(value)

    def average(self, params: Sequence[Parameter]) -> None:
        """Give all replicas of all workers the mean of their values."""
        super().average(params)
        if self.workers > 1:
            means = parallel.all_reduce([p.data() for p in params], op="average")
            for p, mean in zip(params, means, strict=True):
                p.set_data(mean)

    def agreed(self, number: int) -> int:
        """Return the number of the first worker."""
        return int(parallel.broadcast(nd.array([number], dtype="int64")).asscalar())


class ParameterServerStrategy(MirroredStrategy):
    """Train in several processes that do not wait for each other; servers keep and update the weights.

    Make it at the beginning of the script. A process whose task in `TF_CONFIG` is a `ps` serves in here, and ends with
    the job; the first server's address is where all processes meet, so it must be reachable, and servers choose other
    ports for what they send. Without `TF_CONFIG` it is a job of `dualmx-launch -n workers -s servers`. The batches of
    an epoch are dealt out to the workers in turn.

    Args:
        cluster: instead of `TF_CONFIG`.
        devices: of this process, see `MirroredStrategy`; its first device by default.

    Raises:
        ArgumentError: a wrong field in `TF_CONFIG`. MXNetError: there is no job, or its processes did not come.
    """

    store = "dist_async"

    def __init__(self, cluster: Cluster | None = None, devices: Any = None):
        found = Cluster.from_env() if cluster is None else cluster
        if found is not None:
            if "ps" not in found.tasks:
                raise ArgumentError("TF_CONFIG: cluster.ps: ParameterServerStrategy needs one server or more")
            os.environ.update(_environment(found))
            if found.task_type == "ps":
                _serve(found.task_id)
        elif not Job.in_environment():
            raise MXNetError(
                "ParameterServerStrategy: there is no job; set TF_CONFIG, or start it by dualmx-launch -n 2 -s 1"
            )
        self._control = kvstore.create("dist_async")
        self.rank, self.workers = self._control.rank, self._control.num_workers
        self._agreements = 0
        super().__init__(1 if devices is None else devices)

    @property
    def num_replicas_in_sync(self) -> int:
        """How many devices compute each update together: those of this worker."""
        return len(self.contexts)

    def share(self, number: int, rows: int) -> tuple[int, int, int]:
        """The batches are dealt out in turn."""
        return (0, rows, rows) if number % self.workers == self.rank else (0, 0, 0)

    def agreed(self, number: int) -> int:
        """Return the number of the first worker."""
        key = f"agreed{self._agreements}"
        self._agreements += 1
        found = nd.array([number], dtype="int64")
        self._control.init(key, found)
        self._control.pull(key, out=found)
        return int(found.asscalar())


def _environment(cluster: Cluster) -> dict[str, str]:
    """The variables of a job of dualmx that has these processes."""
    host, port = cluster.tasks["ps"][0].rsplit(":", 1)
    return {
        "DMLC_ROLE": "server" if cluster.task_type == "ps" else "worker",
        "DMLC_PS_ROOT_URI": host,
        "DMLC_PS_ROOT_PORT": port,
        "DMLC_NUM_WORKER": str(len(cluster.workers)),
        "DMLC_NUM_SERVER": str(len(cluster.tasks["ps"])),
        "DMLC_TASK_ID": str(cluster.rank),
    }


def _serve(number: int) -> None:
    """Be a server until the job is over, and end; the first one brings the scheduler along."""
    scheduler = None
    if number == 0:
        env = {**os.environ, "DMLC_ROLE": "scheduler"}
        env.pop("DMLC_TASK_ID")
        scheduler = subprocess.Popen([sys.executable, "-c", "import dualmx"], env=env)
    try:
        serve_and_exit("server")
    finally:
        if scheduler is not None:
            try:
                scheduler.wait(10)
            except subprocess.TimeoutExpired:
                scheduler.kill()
