"""Script: XLA's coordination service in a process of its own, which outlives those that use it.

coordination_service.py HOST PORT COUNT SECONDS

It prints a port, to which each of COUNT processes keeps a connection. The service ends when stdin has ended and the
last connection is closed; not before, because XLA aborts processes that lose it.
"""

import os
import selectors
import socket
import sys
import threading
import time

FIRST_CONNECTION_SECONDS = 60.0  # seconds for somebody to come after stdin has ended


def serve(host: str, port: int, count: int, seconds: int) -> None:
    """Start the service; its own client looks for it in the wrong place, and never finds it."""
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_recoverability", True)
    jax.distributed.initialize(
        "127.0.0.1:9", count, 0, coordinator_bind_address=f"{host}:{port}", initialization_timeout=10**7,
        heartbeat_timeout_seconds=seconds, cluster_detection_method="deactivate",
    )  # fmt: skip


def main(host: str, port: int, count: int, seconds: int) -> None:
    """Serve until all processes have left."""
    control = socket.create_server((host, 0))
    print(control.getsockname()[1], flush=True)
    threading.Thread(target=serve, args=(host, port, count, seconds), daemon=True).start()
    watch = selectors.DefaultSelector()
    watch.register(control, selectors.EVENT_READ)
    watch.register(sys.stdin, selectors.EVENT_READ)
    here: set[socket.socket] = set()
    came = 0
    ended: float | None = None
    while ended is None or here or (came < count and time.monotonic() - ended < FIRST_CONNECTION_SECONDS):
        for key, _ in watch.select(1.0):
            if key.fileobj is control:
                one, _ = control.accept()
                here.add(one)
                came += 1
                watch.register(one, selectors.EVENT_READ)
            elif isinstance(key.fileobj, socket.socket):
                try:
                    data = key.fileobj.recv(64)
                except OSError:
                    data = b""
                if not data:
                    watch.unregister(key.fileobj)
                    here.discard(key.fileobj)
                    key.fileobj.close()
            elif not os.read(0, 64):
                watch.unregister(sys.stdin)
                ended = time.monotonic()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
