"""Parameter servers: the van moves frames, the postoffice knows the members, the customer tracks requests, kv stores.

Knows NumPy only; `kvstore.server_updates` injects the optimizers.
"""

from __future__ import annotations

from ..core.deprecated import former_names
from .current_worker import current_worker, leave_job
from .job import Job
from .peer_links import PeerLinks, PeerLost
from .scheduler import run_scheduler, start_scheduler
from .server_node import ServerNode
from .worker_node import WorkerNode

__all__ = [
    "Job", "PeerLinks", "PeerLost", "ServerNode", "WorkerNode", "current_worker", "leave_job", "run_scheduler",
    "start_scheduler",
]  # fmt: skip

__getattr__ = former_names(
    __name__,
    {
        "Lost": "PeerLost",
        "Peers": "PeerLinks",
        "Server": "ServerNode",
        "Worker": "WorkerNode",
        "leave": "leave_job",
        "seat": "current_worker",
    },
)
