"""Parameter servers: the van moves frames, the postoffice knows the members, the customer tracks requests, kv stores.

Knows NumPy only; optimizers are injected by `kvstore.server`.
"""

from __future__ import annotations

from .job import Job
from .node import Server, Worker, run_scheduler

__all__ = ["Job", "Server", "Worker", "run_scheduler"]
