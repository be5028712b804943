"""A store as a member of its job: which worker this is, who else is there, and what all servers are told."""

from __future__ import annotations

from typing import Any

from ..ndarray import waitall
from ..ps import WorkerNode
from ..ps.batches import ElasticWorker
from ..ps.worker import KVWorker
from .local import KVStore


class MemberStore(KVStore):
    """What distributed stores know of their job.

    Attributes:
        _worker: this process's place in the job, and `_kv` its requests to servers.
        _number: of this store.
        _completed: rounds of this worker before it died, and `_restored` those of a snapshot.
    """

    _worker: WorkerNode
    _kv: KVWorker
    _number: int
    _completed = 0
    _restored = 0
    _contributes_zero = False  # what is pushed does not count: this worker has no samples in this batch

    def _meta(self, op: str, **more: Any) -> dict[str, Any]:
        return {"op": op, "store": self._number, **more}

    def send_command_to_servers(self, head: int, body: str) -> None:
        """Send a command to all servers, which log those that they do not know.

        Args:
            head: number of the command: 5 has the profiler do what `body` says, see `profile_servers`.
            body: text.

        Raises:
            ArgumentError: a server cannot do it. MXNetError: a server is gone.
        """
        message = self._meta("command", head=int(head), body=str(body))
        self._kv.wait(self._kv.ask_all("kvstore.send_command_to_servers", message))

    _send_command_to_servers = send_command_to_servers

    @property
    def rank(self) -> int:
        """Number of this worker, from 0; in an elastic job among those who take part in the batch under way."""
        return self._worker.rank if self._elastic is None else self._elastic.position

    @property
    def num_workers(self) -> int:
        """Workers of the job; in an elastic job those who take part in the batch under way."""
        return self._worker.job.workers if self._elastic is None else len(self._elastic.members)

    @property
    def _elastic(self) -> ElasticWorker | None:
        return self._kv.elastic

    def _sync_before_pull(self) -> None:
        """In an elastic job: end the batch under way if anything was pushed for it."""
        if self._elastic is not None:
            self._elastic.sync_before_pull()

    @property
    def is_recovery(self) -> bool:
        """Whether this process takes the place of a worker that died, or joins others that began before it.

        `init` and `set_optimizer` keep what the servers have then; the script goes on at round `completed_rounds`.
        """
        return self._worker.is_restarted

    @property
    def completed_rounds(self) -> int:
        """Rounds of pushes that this worker had completed when it died; in an elastic job batches that are over."""
        if self._elastic is not None:
            return max(self._elastic.number - 1, 0)
        return self._restored + self._completed

    def barrier(self) -> None:
        """Wait until all workers have called it.

        Raises:
            MXNetError: a worker or the scheduler is gone.
        """
        waitall()
        self._worker.barrier()

    _barrier = barrier

    def num_dead_node(self, timeout: int = 60, node_id: int = 0) -> int:
        """Return how many processes of the job have died.

        Args:
            timeout: accepted; `PS_HEARTBEAT_TIMEOUT` decides when a silent process is dead.
            node_id: a sum of groups: 1 the scheduler, 2 the servers, 4 the workers; 0 for all; or the number of one
                process: 8 + 2 * rank of a server, 9 + 2 * rank of a worker.
        """
        if node_id >= 8:
            return int((("worker" if node_id % 2 else "server"), (node_id - 8) // 2) in self._worker.dead)
        groups = {"scheduler": 1, "server": 2, "worker": 4}
        return sum(bool(groups[role] & (node_id or 7)) for role, _ in self._worker.dead)


__all__ = ["MemberStore"]
