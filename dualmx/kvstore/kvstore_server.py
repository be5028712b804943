"""`KVStoreServer`, and its start in processes whose role is server."""

from __future__ import annotations

from typing import Any

from ..core import knobs
from ..core.errors import MXNetError


class KVStoreServer:
    """What `mx.kvstore.KVStoreServer(kv).run()` starts in a process whose role is "server" or "scheduler".

    Importing dualmx in such a process does the same by itself, so scripts need it only to say so.

    Args:
        kvstore: the store; its own connection is not used.

    Example:
        >>> import dualmx as mx
        >>> server = mx.kvstore.KVStoreServer(mx.kv.create("local"))
        >>> server.kvstore.type
        'local'
    """

    def __init__(self, kvstore: Any):
        self.kvstore = kvstore
        self.handle = getattr(kvstore, "handle", None)
        self.init_logging = False

    def run(self) -> None:
        """Serve until the job is over.

        Raises:
            MXNetError: the process is a worker, or the job does not come together.
        """
        from .server_updates import serve

        role = knobs.ROLE.read()
        if role not in ("server", "scheduler"):
            raise MXNetError(
                f"KVStoreServer.run: the role of this process is {role!r}: expected 'server' or 'scheduler'"
            )
        serve(role)


def init_kvstore_server_module() -> None:
    """Serve and end the process if its role (`DMLC_ROLE`) is "server" or "scheduler"; importing dualmx calls this."""
    role = knobs.ROLE.read()
    if role != "worker":
        from .server_updates import serve_and_exit

        serve_and_exit(role)


_init_kvstore_server_module = init_kvstore_server_module  # MXNet's name

__all__ = ["KVStoreServer"]
