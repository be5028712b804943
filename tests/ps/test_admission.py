"""Who is let in: many at once, among thousands who say nothing or stop in the middle, at the limit of open files."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from dualmx.core.errors import MXNetError
from dualmx.ps.van import admission, handshake
from dualmx.ps.van.encryption import Encryption
from dualmx.ps.van.socket_van import SocketVan
from tests import jobs

SECRET = b"a secret of the tests, long enough"
HELLO = handshake.HELLO.pack(handshake.MAGIC, handshake.VERSION, 0, bytes(32))


def _van() -> SocketVan:
    van = SocketVan(SECRET, memory=0, tcp=True)
    van.on_message = lambda link, message: None
    van.on_down = lambda link, reason: None
    return van


@pytest.fixture
def ends() -> Iterator[tuple[SocketVan, dict[str, Any], SocketVan]]:
    """A van that listens and does not accept before it is started, its address, and one that connects."""
    vans = [_van(), _van()]
    address = vans[0].listen("127.0.0.1", 0)
    vans[1].start()
    yield vans[0], address, vans[1]
    for van in vans:
        van.close()


def _connect(address: dict[str, Any], said: bytes, number: int) -> list[socket.socket]:
    socks = []
    for _ in range(number):
        sock = socket.create_connection((address["host"], address["port"]), 10)
        if said:
            sock.sendall(said)
        socks.append(sock)
    return socks


class Slow(socket.socket):
    """Belongs to a process of a busy host, which reads what it is sent a little later."""

    def recv_into(self, *args: Any) -> int:
        time.sleep(0.1)
        return super().recv_into(*args)


def test_three_hundred_that_connect_at_once_all_get_in(ends: tuple[SocketVan, dict[str, Any], SocketVan]) -> None:
    listening, address, _ = ends
    listening.start()
    socks = [Slow() for _ in range(300)]
    errors: list[Exception] = []

    def connect(sock: socket.socket) -> None:
        sock.connect((address["host"], address["port"]))
        try:
            handshake.complete(sock, handshake.client_handshake(sock, SECRET, Encryption(SECRET)), time.monotonic() + 5)
        except (MXNetError, OSError) as e:
            errors.append(e)

    threads = [threading.Thread(target=connect, args=(sock,)) for sock in socks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until = time.monotonic() + 10
    while len(listening._links) < 300 and time.monotonic() < until:
        time.sleep(0.01)
    assert not errors and len(listening._links) == 300
    for sock in socks:
        sock.close()


@pytest.mark.parametrize(
    ("said", "number"),
    [
        pytest.param(b"", 2500, id="silent"),
        pytest.param(HELLO[:10], 1500, id="stopped"),
        pytest.param(HELLO, 1500, id="unproved"),
    ],
)
def test_connections_that_never_finish_their_handshake_keep_nobody_out(
    ends: tuple[SocketVan, dict[str, Any], SocketVan], said: bytes, number: int
) -> None:
    listening, address, van = ends
    listening.start()
    others = _connect(address, said, number)
    try:
        assert van.connect(address, 30.0)
    finally:
        for sock in others:
            sock.close()


@pytest.mark.parametrize("said", [b"", HELLO[:10], b"\x16\x03\x01"], ids=["silent", "stopped", "TLS"])
@pytest.mark.parametrize("evicts", [True, False])
def test_the_oldest_that_does_not_finish_makes_room(evicts: bool, said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it did not, a member would not get in: the control of this test and of its like."""
    monkeypatch.setattr(admission, "MOST", 16)
    monkeypatch.setattr(admission, "SECONDS", 100.0)
    if not evicts:
        monkeypatch.setattr(admission.Admission, "_evict", lambda self: False)
    vans = [_van(), _van()]
    for van in vans:
        van.start()
    address = vans[0].listen("127.0.0.1", 0)
    others = _connect(address, said, 40)
    try:
        if evicts:
            assert vans[1].connect(address, 10.0)
        else:
            monkeypatch.setattr("dualmx.ps.van.socket_van.SECONDS", 0.2)
            with pytest.raises(MXNetError, match="cannot connect to .* within 0.3 s: the other end does not finish"):
                vans[1].connect(address, 0.3)
    finally:
        for closed in (*others, *vans):
            closed.close()


def test_the_end_of_a_connection_before_any_hello_is_no_other_secret() -> None:
    """One that has too many to answer is tried again until the time is over, which is what is said then."""
    closed = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def close() -> None:
            while True:
                try:
                    closed.append(server.accept()[0].close())
                except OSError:
                    return

        threading.Thread(target=close, daemon=True).start()
        van = _van()
        van.start()
        with pytest.raises(MXNetError, match="within 1 s: .*(closed the connection during the handshake|reset)") as e:
            van.connect({"host": "127.0.0.1", "port": server.getsockname()[1]}, 1.0)
        assert "secret" not in str(e.value) and len(closed) > 1
        van.close()
        server.shutdown(socket.SHUT_RDWR)


LISTENER = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from dualmx.ps.van.socket_van import SocketVan
from dualmx.ps.van.encryption import Encryption
van = SocketVan(sys.argv[1].encode(), memory=0, tcp=True)
van.on_message = lambda link, message: None
van.on_down = lambda link, reason: None
van.start()
print(van.listen("127.0.0.1", 0)["port"], flush=True)
for line in sys.stdin:
    begun = time.process_time()
    time.sleep(0.5)
    print(time.process_time() - begun, len(van._links), flush=True)
van.close()
"""


@pytest.mark.slow
def test_a_listener_without_a_descriptor_left_waits_and_says_why() -> None:
    """The connections over the limit are let in when others are closed; meanwhile the listener does not spin."""
    pipe = subprocess.PIPE
    child = jobs.start(jobs.PYTHON, "-W", "ignore", "-c", LISTENER, SECRET.decode(), stdin=pipe, stderr=pipe)
    assert child.stdin and child.stdout and child.stderr
    van = _van()
    van.start()
    try:
        address = {"host": "127.0.0.1", "port": int(child.stdout.readline())}
        links: list[int] = []

        def connect() -> None:
            links.append(van.connect(address, 60.0))

        def state() -> tuple[float, int]:
            child.stdin.write("\n")
            child.stdin.flush()
            used, count = child.stdout.readline().split()
            return float(used), int(count)

        threads = [threading.Thread(target=connect, daemon=True) for _ in range(80)]
        for thread in threads:
            thread.start()
        used, count = state()
        for _ in range(30):
            if count < 40:
                used, count = state()
        used, count = state()
        assert count < 64 and used < 0.25, "the listener spins"
        for _ in range(30):
            for link in [k for k in links if k in van._links][:20]:
                van.drop(link)
            state()
            if len(links) == 80:
                break
        assert len(links) == 80
        child.stdin.close()
        said = child.stderr.read()
        assert said.count("cannot accept connections") == 1
        assert "at most 64 files can be open in this process" in said and "ulimit -Hn" in said
    finally:
        jobs.end(child)
        van.close()


@pytest.mark.slow
def test_a_server_that_may_not_open_enough_files_says_so_at_its_start() -> None:
    code = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (90, 90))\n"
    code += "from dualmx.ps import Job, ServerNode\n"
    code += f"ServerNode(Job('server', '127.0.0.1', 1, 80, 2, {SECRET!r}))"
    done = jobs.run(jobs.PYTHON, "-W", "ignore", "-c", code, status=1)
    assert "the server of a job of 82 members would have about 114 files open, and a process may have 90" in done.stderr
