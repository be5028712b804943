"""Clients that never finish their handshake: `number` connections to `host`:`port`, made again when they are closed.

Makes the file `there` when all of them have begun, and ends when its stdin does; prints how many connections it had at
once, at most, and how many in all.
"""

from __future__ import annotations

import os
import resource
import selectors
import socket
import ssl
import sys
import time
from pathlib import Path

from dualmx.ps.van import handshake

host, port, number, there = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def client_hello() -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    out = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), out).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


hello = handshake.HELLO.pack(handshake.MAGIC, handshake.VERSION, 0, bytes(32))
SAYS = (b"", client_hello()[:100], client_hello(), hello[:20], hello)
selector = selectors.DefaultSelector()
selector.register(0, selectors.EVENT_READ)
kinds: dict[socket.socket, int] = {}
most = total = 0


def connect(kind: int) -> None:
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex((host, port))
    kinds[sock] = kind
    selector.register(sock, selectors.EVENT_WRITE)


gone: list[int] = [i % len(SAYS) for i in range(number)]
while True:
    for kind in gone[:500]:
        connect(kind)
    del gone[:500]
    for key, events in selector.select(0.02):
        if key.fileobj == 0:
            if os.read(0, 1):
                continue
            print(most, total, flush=True)
            os._exit(0)
        sock: socket.socket = key.fileobj  # type: ignore[assignment]
        try:
            if events & selectors.EVENT_WRITE:
                if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    raise OSError
                total += 1
                sock.send(SAYS[kinds[sock]])
                selector.modify(sock, selectors.EVENT_READ)
            elif not sock.recv(4096):
                raise OSError
        except BlockingIOError:
            continue
        except OSError:
            selector.unregister(sock)
            sock.close()
            gone.append(kinds.pop(sock))
    most = max(most, len(kinds))
    if total and not gone and not there.exists():
        there.touch()
    time.sleep(0.005)
