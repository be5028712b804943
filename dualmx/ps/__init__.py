"""Parameter servers: the van moves frames, the postoffice knows the members, the customer tracks requests, kv stores.

Knows NumPy only; optimizers are injected by `kvstore.server`.
"""

from __future__ import annotations

from .job import Job
from .peers import Lost, Peers
from .scheduler_node import run_scheduler, start_scheduler
from .seat import leave, seat
from .server_node import Server
from .worker_node import Worker

__all__ = ["Job", "Lost", "Peers", "Server", "Worker", "leave", "run_scheduler", "seat", "start_scheduler"]
