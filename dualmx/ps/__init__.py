"""Parameter servers: the van moves frames, the postoffice knows the members, the customer tracks requests, kv stores.

Knows NumPy only; optimizers are injected by `kvstore.server`.
"""

from __future__ import annotations

from .job import Job
from .peers import PeerLinks, PeerLost
from .scheduler_node import run_scheduler, start_scheduler
from .seat import current_worker, leave_job
from .server_node import ServerNode
from .worker_node import WorkerNode

__all__ = [
    "Job", "PeerLinks", "PeerLost", "ServerNode", "WorkerNode", "current_worker", "leave_job", "run_scheduler",
    "start_scheduler",
]  # fmt: skip
