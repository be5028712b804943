"""Connections between hosts: what is seen on the wire, and who gets in."""

from __future__ import annotations

import contextlib
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualmx.core.errors import MXNetError
from dualmx.launch.cli import main
from dualmx.ps import Job, WorkerNode
from dualmx.ps.status import query_status
from dualmx.ps.van import certificate, handshake
from dualmx.ps.van.encryption import Encryption
from dualmx.ps.van.frame import NOTICE, Message, encode
from dualmx.ps.van.socket_van import SocketVan
from tests.ps.outside import ADDRESS, Wire, outside, records
from tests.ps.test_members import SECRET, Running, _rounds
from tests.ps.test_signs import trickle

OTHER = b"the secret of another job, long enough"
KNOWN = b"a payload that is known" * 1000


def _wait(condition: Callable[[], object], seconds: float = 10.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "in vain"
        time.sleep(0.01)


@contextlib.contextmanager
def _van(secret: bytes = SECRET, **more: Any) -> Iterator[tuple[SocketVan, list[bytes], list[str]]]:
    """A van, the payloads that it gets, and the reasons for which its links end."""
    van = SocketVan(secret, memory=0, tcp=True, **more)
    heard: list[bytes] = []
    down: list[str] = []
    van.on_message = lambda link, message: heard.append(bytes(message.data()))
    van.on_down = lambda link, reason: down.append(reason)
    van.start()
    try:
        yield van, heard, down
    finally:
        van.close()


def _known() -> Message:
    return Message(NOTICE, 0, {"op": "said in the clear"}, [np.frombuffer(KNOWN, np.uint8)])


@pytest.mark.parametrize("encrypt", ["auto", "0"])
@outside
def test_between_hosts_nothing_can_be_read_unless_it_is_switched_off(encrypt: str) -> None:
    with _van(encrypt=encrypt) as (there, heard, _), _van(encrypt=encrypt) as (here, answers, _):
        wire = Wire(there.listen(ADDRESS, 0)["port"])
        link = here.connect({"host": ADDRESS, "port": wire.port}, 5.0)
        here.send(link, _known())
        _wait(lambda: heard)
        there.send(next(iter(there._links)), _known())
        _wait(lambda: answers)
        wire.close()
    assert heard == answers == [KNOWN]
    for way in ("there", "back"):
        clear = b"said in the clear" in wire.seen[way] and KNOWN in wire.seen[way]
        assert clear == (encrypt == "0")
        if not clear:
            assert 23 in records(wire.seen[way])
        assert SECRET not in wire.seen[way]


@outside
def test_on_the_loopback_address_nothing_is_encrypted_unless_it_is_asked_for() -> None:
    for encrypt, host in (("auto", "127.0.0.1"), ("1", "127.0.0.1"), ("auto", ADDRESS), ("0", ADDRESS)):
        with _van(encrypt=encrypt) as (there, _, _), _van(encrypt=encrypt) as (here, _, _):
            link = here.connect(there.listen(host, 0), 5.0)
            _wait(lambda there=there: there._links)
            ends = [here._links[link].tls, next(iter(there._links.values())).tls]
            assert [end is not None for end in ends] == [encrypt == "1" or (encrypt, host) == ("auto", ADDRESS)] * 2


@pytest.mark.slow
@outside
def test_a_job_between_hosts() -> None:
    running = Running(2, 2)
    running.job = replace(running.job, uri=ADDRESS, tcp=True)
    running.whole()
    assert not running.errors
    for worker in running.workers.values():
        links = list(worker._van._links.values())
        assert len(links) == 3 and all(link.tls is not None for link in links)
    _rounds(running)
    assert query_status(ADDRESS, running.job.port, SECRET, 0.05)["complete"]
    with pytest.raises(MXNetError, match="demands encryption, this one has none"):
        query_status(ADDRESS, running.job.port, SECRET, 0.05, encrypt="0")
    running.end()
    assert not running.errors


def _plain(version: int) -> Callable[[socket.socket], None]:
    """A process that does not encrypt, of some version."""
    hello = handshake.HELLO.pack(handshake.MAGIC, version, 0, bytes(32))
    return lambda sock: sock.sendall(hello)


def _tls(secret: bytes | None, most: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> Callable[[socket.socket], None]:
    """A process with the certificate of some job, or with none."""

    def say(sock: socket.socket) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if secret is not None:
            context = certificate.contexts(secret)[0]
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1_2, most
        with context.wrap_socket(sock) as s:
            s.sendall(handshake.HELLO.pack(handshake.MAGIC, handshake.VERSION, handshake.ENCRYPTS, bytes(32)))
            s.sendall(b"".join(encode(_known())))
            s.recv(100)

    return say


STRANGERS = {
    "no certificate": (_tls(None), "no certificate of this job"),
    "another job's certificate": (_tls(OTHER), "another secret"),
    "TLS 1.2": (_tls(SECRET, ssl.TLSVersion.TLSv1_2), "does not speak TLS 1.3"),
    "no encryption": (_plain(handshake.VERSION), "has no encryption, this one demands it"),
    "the first version": (_plain(1), "speaks protocol version 1, this process 2"),
    "something else": (lambda sock: sock.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(100)), "no process of dualmx"),
    "too much": (lambda sock: sock.sendall(b"\x16\x03\x01\x40\x00" + bytes(70_000)), ""),
}


@pytest.mark.parametrize("name", STRANGERS)
@outside
def test_others_do_not_get_in(name: str, caplog: pytest.LogCaptureFixture) -> None:
    act, reason = STRANGERS[name]
    with _van() as (there, heard, _), _van() as (here, _, _):
        address = there.listen(ADDRESS, 0)
        with socket.create_connection((ADDRESS, address["port"])) as sock:
            origin = "{}:{}".format(*sock.getsockname())
            sock.settimeout(5)
            with contextlib.suppress(OSError):
                act(sock)
            _wait(lambda: there._admission.refused)
        (said,) = there._admission.refused
        assert said.startswith(f"{origin}: ") and reason in said, said
        assert origin in caplog.text and SECRET.decode() not in caplog.text
        assert not there._links and not heard
        here.send(here.connect(address, 5.0), _known())
        _wait(lambda: heard)


@outside
def test_a_member_refuses_a_server_that_is_none_of_its_job() -> None:
    cases: list[tuple[ssl.SSLContext | None, str]] = [(certificate.contexts(OTHER)[1], "another secret"), (None, "")]
    for context, reason in cases:
        listener = socket.create_server((ADDRESS, 0))

        def serve(listener: socket.socket = listener, context: ssl.SSLContext | None = context) -> None:
            while listener.fileno() >= 0:
                with contextlib.suppress(OSError), listener.accept()[0] as sock:
                    if context is None:
                        sock.recv(1 << 16)
                        sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    else:
                        context.wrap_socket(sock, server_side=True)

        threading.Thread(target=serve, daemon=True).start()
        where = f"{ADDRESS}:{listener.getsockname()[1]}"
        with _van() as (here, _, _), listener:
            with pytest.raises(MXNetError, match=f"cannot join {where}: the other end .*{reason}") as e:
                here.connect({"host": ADDRESS, "port": listener.getsockname()[1]}, 2.0)
            assert SECRET.decode() not in str(e.value)


@outside
def test_what_a_member_has_said_does_not_let_others_in() -> None:
    """All bytes of a good connection, sent to the same process a second time, in one piece and record by record."""
    with _van() as (there, heard, _), _van() as (here, _, _):
        address = there.listen(ADDRESS, 0)
        wire = Wire(address["port"])
        here.send(here.connect({"host": ADDRESS, "port": wire.port}, 5.0), _known())
        _wait(lambda: heard)
        said = wire.seen["there"]
        assert len(said) > len(KNOWN)
        for size in (len(said), 600):
            before = len(there._admission.refused)
            with socket.create_connection((ADDRESS, address["port"])) as sock, contextlib.suppress(OSError):
                for at in range(0, len(said), size):
                    sock.sendall(said[at : at + size])
                    time.sleep(0.002)
            _wait(lambda before=before: len(there._admission.refused) > before)
        assert len(heard) == 1 and len(there._links) == 1
        wire.close()


@outside
def test_a_changed_byte_ends_the_connection_and_is_not_heard() -> None:
    changes: list[int] = []

    def change(way: str, data: bytes) -> bytes:
        if way == "back" or len(data) < 2000 or changes:
            return data
        changes.append(1)
        return data[:1000] + bytes([data[1000] ^ 1]) + data[1001:]

    with _van() as (there, heard, down), _van() as (here, _, lost):
        wire = Wire(there.listen(ADDRESS, 0)["port"], change)
        link = here.connect({"host": ADDRESS, "port": wire.port}, 5.0)
        here.send(link, _known())
        _wait(lambda: down and lost)
        wire.close()
    assert changes and not heard and "do not open" in down[0]


@pytest.mark.slow
def test_a_record_that_takes_long_to_arrive_is_a_sign_of_life() -> None:
    more = {"encrypt": "1", "interval": 0.1, "timeout": 0.5}
    with _van(**more) as (there, heard, down), _van(**more) as (here, _, _):
        port = trickle(there.listen("127.0.0.1", 0)["port"], 500, 0.05)  # 1.6 seconds for a record
        here.send(here.connect({"host": "127.0.0.1", "port": port}, 5.0), _known())
        _wait(lambda: heard or down)
        assert heard == [KNOWN] and not down


@pytest.mark.parametrize(
    ("here", "there", "said"),
    [
        ("1", "0", "has no encryption, this one demands it"),
        ("0", "1", "demands encryption, this one has none"),
    ],
)
def test_both_ends_must_agree(here: str, there: str, said: str) -> None:
    running = Running(1, 1)
    running.job = replace(running.job, tcp=True, encrypt=there)
    running.whole()
    with pytest.raises(MXNetError, match=rf"the other end {said} \(DUALMX_ENCRYPT\)"):
        WorkerNode(replace(running.job, encrypt=here))
    running.end()


def test_members_whose_clocks_are_wrong_trust_each_other() -> None:
    """Certificates are valid from the first second to the last one that X.509 knows."""
    from cryptography import x509

    key = certificate._authority_key(SECRET)
    made = certificate._certificate("any", key, key, False)
    assert made.not_valid_before_utc.timestamp() == 0 and made.not_valid_after_utc.isoformat()[:10] == "9999-12-31"
    assert isinstance(made, x509.Certificate)
    numbers = [certificate._authority_key(s).private_numbers() for s in (SECRET, SECRET, OTHER)]
    assert numbers[0] == numbers[1] != numbers[2]


def test_many_messages_both_ways_at_once_arrive_whole() -> None:
    """Small ones behind the handshake, large ones in pieces, two threads on each connection."""
    rng = np.random.default_rng(5)
    sizes = [0, 1, 100, 16 << 10, (16 << 10) + 1, 70_000, 600_000, 3_000_001]
    payloads = [rng.integers(0, 256, int(n), np.uint8) for n in rng.choice(sizes, 60)]
    with _van(encrypt="1") as (there, heard, down), _van(encrypt="1") as (here, answers, lost):
        link = here.connect(there.listen("127.0.0.1", 0), 5.0)
        _wait(lambda: there._links)
        back = next(iter(there._links))

        def speak(van: SocketVan, by: int) -> None:
            for number, payload in enumerate(payloads):
                van.send(by, Message(NOTICE, number, {"n": number}, [payload]))

        threads = [threading.Thread(target=speak, args=ends) for ends in ((here, link), (there, back))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        _wait(lambda: len(heard) == len(answers) == len(payloads), 30)
        assert not down and not lost
    expected = sorted(p.tobytes() for p in payloads)
    assert sorted(heard) == expected and sorted(answers) == expected


@pytest.fixture
def without_cryptography(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.x509", None)
    monkeypatch.setenv("DUALMX_SECRET", SECRET.decode())


@pytest.mark.parametrize(
    ("uri", "encrypt", "said"),
    [(ADDRESS, "auto", True), ("127.0.0.1", "1", True), (ADDRESS, "0", False), ("127.0.0.1", "auto", False)],
)
def test_without_the_package_a_job_of_several_hosts_says_what_to_do(
    uri: str, encrypt: str, said: bool, without_cryptography: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUALMX_ENCRYPT", encrypt)
    if said:
        with pytest.raises(MXNetError, match="pip install cryptography on every host.*DUALMX_ENCRYPT=0"):
            Job.with_scheduler(uri, 9000, 1)
    else:
        assert Job.with_scheduler(uri, 9000, 1).encrypt == encrypt


def test_the_launcher_says_so_before_it_starts_anything(
    without_cryptography: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["-n", "1", "-s", "0", "--launcher", "local", "--host-ip", "0.0.0.0", "touch", str(tmp_path / "started")]
    assert main(command) == 2
    assert "pip install cryptography" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_job_without_a_secret_encrypts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUALMX_INSECURE", "1")
    monkeypatch.delenv("DUALMX_SECRET", raising=False)
    assert not Encryption(Job.with_scheduler(ADDRESS, 9000, 1).secret).possible
    monkeypatch.setenv("DUALMX_ENCRYPT", "1")
    with pytest.raises(MXNetError, match="DUALMX_ENCRYPT=1 needs a secret"):
        Job.with_scheduler(ADDRESS, 9000, 1)
