"""The server of a distributed store as an object."""

from __future__ import annotations

from typing import Any

from ..core import knobs
from ..core.errors import MXNetError


class KVStoreServer:
    """What `mx.kvstore.KVStoreServer(kv).run()` starts in a process whose role is "server" or "scheduler".

    Importing dualmx in such a process does the same by itself, so scripts need it only to say so.

    Args:
        kvstore: the store; its own connection is not used.
    """

    def __init__(self, kvstore: Any):
        self.kvstore = kvstore
        self.handle = getattr(kvstore, "handle", None)
        self.init_logging = False

    def run(self) -> None:
        """Serve until the job is over.

        Raises:
            MXNetError: the process is a worker.
        """
        from .server import serve

        role = knobs.ROLE.read()
        if role not in ("server", "scheduler"):
            raise MXNetError(
                f"KVStoreServer.run: the role of this process is {role!r}: expected 'server' or 'scheduler'"
            )
        serve(role)


__all__ = ["KVStoreServer"]
