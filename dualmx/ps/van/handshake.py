"""Handshake: both ends of a connection prove that they know the job's secret before any message is parsed.

Between hosts the proof is TLS 1.3 with certificates derived from the secret; within a host it is HMAC-SHA-256 over
random numbers of both ends. Handshakes are generators, resumed when the socket is readable: one thread runs many, and a
peer that stops in the middle of one blocks no thread.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import selectors
import socket
import ssl
import struct
import time
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple, TypeVar

from ...core import knobs
from ...core.errors import MXNetError
from ...core.net import is_loopback
from .encryption import RECORD, Encryption, Tls
from .frame import xxhash

HELLO = struct.Struct("<4sHH32s")  # magic, version, abilities, nonce
MAGIC = b"DMXH"
VERSION = 2  # of the handshake; in the first one encrypted connections were not under TLS
MAC = 32
CAN_XXH3 = 1
ENCRYPTS = 2  # demands an encrypted connection
TLS_HANDSHAKE = b"\x16"  # first byte of a connection under TLS (RFC 8446, 5.1)
MOST = 64 << 10  # bytes that the other end may send until it has proven itself
SHORTEST = 16
T = TypeVar("T")
Steps = Generator[None, None, T]  # goes on when the socket, which does not block, can be read


class HandshakeError(MXNetError):
    """The other end of a connection is no member of this job."""


class Unanswered(ConnectionError):
    """The other end closed a connection during the handshake, as one does that has too many: worth another try."""


def new_secret() -> str:
    """Return a fresh secret of 256 bits, as the launcher makes one per job."""
    return secrets.token_hex(32)


def user_secret_path() -> Path:
    """File of the secret that processes started by hand on one host share."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(base) / "dualmx" / "secret"


def load_secret(root: str) -> bytes:
    """Return the secret of the job whose scheduler runs on host `root`.

    `DUALMX_SECRET` if it is set; on the loopback address the user's own file (mode 0600, made at first use);
    with `DUALMX_INSECURE=1` an empty one, which authenticates nobody.

    Raises:
        MXNetError: several hosts and no secret, a short secret, or a file that others can read.
    """
    given = knobs.SECRET.read()
    if given:
        if len(given) < SHORTEST:
            raise MXNetError(f"DUALMX_SECRET: {len(given)} characters: expected {SHORTEST} or more")
        return given.encode()
    if knobs.INSECURE.read() == "1":
        return b""
    if not is_loopback(root):
        raise MXNetError(
            f"DMLC_PS_ROOT_URI={root!r} is reachable from other hosts, but the job has no secret. Make one and give "
            "it to every process of the job:\n  export DUALMX_SECRET=$(python -c 'import secrets; "
            "print(secrets.token_hex(32))')\nor start the job by dualmx-launch, which does so. DUALMX_INSECURE=1 "
            "lets anybody who reaches the port join."
        )
    return _from_file(user_secret_path())


def _from_file(path: Path) -> bytes:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        if not path.exists():
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(fd, "w") as f:
                f.write(new_secret())
            try:
                os.link(draft, path)
            except FileExistsError:
                pass
        state = path.stat()
        if state.st_uid != os.getuid() or state.st_mode & 0o077:
            raise MXNetError(f"{path}: must be yours alone (chmod 600 {path}), or set DUALMX_SECRET")
        text = path.read_text().strip()
    finally:
        draft.unlink(missing_ok=True)
    if len(text) < SHORTEST:
        raise MXNetError(f"{path}: holds no secret of {SHORTEST} or more characters; remove it to get a new one")
    return text.encode()


def _mac(secret: bytes, who: bytes, first: bytes, second: bytes) -> bytes:
    return hmac.new(secret, b"dualmx " + who + first + second, hashlib.sha256).digest()


class HandshakeResult(NamedTuple):
    """What both ends of a connection have agreed on.

    Attributes:
        fast: both know xxh3.
        tls: by which bytes pass that are encrypted.
    """

    fast: bool
    tls: Tls | None


def _hello(encrypts: bool) -> bytes:
    abilities = (CAN_XXH3 if xxhash is not None else 0) | (ENCRYPTS if encrypts else 0)
    return HELLO.pack(MAGIC, VERSION, abilities, os.urandom(32))


def _check(hello: bytes, encrypts: bool) -> bool:
    """Check a hello; returns whether both ends know xxh3."""
    magic, version, abilities, _ = HELLO.unpack(hello)
    if magic != MAGIC:
        raise HandshakeError("the other end is no process of dualmx")
    if version != VERSION:
        raise HandshakeError(f"the other end speaks protocol version {version}, this process {VERSION}")
    if bool(abilities & ENCRYPTS) != encrypts:
        raise HandshakeError(
            f"the other end {'demands' if abilities & ENCRYPTS else 'has no'} encryption, this one "
            f"{'demands it' if encrypts else 'has none'} (DUALMX_ENCRYPT)"
        )
    return xxhash is not None and bool(abilities & CAN_XXH3)


def _say(end: socket.socket | Tls, data: bytes) -> None:
    """Send a few bytes, for which a new connection has room."""
    if end.sendmsg([memoryview(data)]) < len(data):
        raise HandshakeError("the other end does not read what it is told")


def _receive(end: socket.socket | Tls, size: int) -> Steps[bytes]:
    data, scratch = b"", memoryview(bytearray(RECORD))
    while len(data) < size:
        room = memoryview(bytearray(size - len(data)))
        try:
            n = end.recv_into(room, scratch) if isinstance(end, Tls) else end.recv_into(room)
        except (BlockingIOError, InterruptedError):
            yield
            continue
        except ssl.SSLError as e:
            raise HandshakeError(_explained(e)) from None
        if not n:
            _ended(data)
        data += room[:n]
    return data


def _ended(data: bytes) -> None:
    """Raise what a connection's end means after so much of what the other end has said first."""
    if data[: len(MAGIC)] != MAGIC[: len(data)]:
        raise HandshakeError("the other end is no process of dualmx")
    raise Unanswered("closed the connection during the handshake: it has too many, or is none of dualmx")


def _secured(sock: socket.socket, context: ssl.SSLContext, accepts: bool) -> Steps[Tls]:
    """The handshake of TLS."""
    tls, left = Tls(sock, context, accepts), MOST
    while True:
        try:
            if tls.shake():
                return tls
        except ssl.SSLError as e:
            raise HandshakeError(_explained(e)) from None
        yield
        try:
            data = sock.recv(RECORD)
        except (BlockingIOError, InterruptedError):
            continue
        if not data:
            _ended(b"")
        if left == MOST and data.startswith(MAGIC) and len(data) >= HELLO.size:
            _check(data[: HELLO.size], True)
        left -= len(data)
        if left < 0:
            raise HandshakeError(f"the other end has sent more than {MOST} bytes without proving itself")
        tls.feed(data)


def _explained(e: ssl.SSLError) -> str:
    """Why TLS failed."""
    reason = (e.reason or "").upper()
    if isinstance(e, ssl.SSLCertVerificationError):
        return f"the other end has another secret (DUALMX_SECRET): its certificate is refused ({e.verify_message})"
    if "DID_NOT_RETURN_A_CERTIFICATE" in reason:
        return "the other end has no certificate of this job"
    if any(sign in reason for sign in ("UNKNOWN_CA", "BAD_CERTIFICATE", "CERTIFICATE_REQUIRED", "DECRYPT_ERROR")):
        return f"the other end has another secret (DUALMX_SECRET): it refuses this one's certificate ({e.reason})"
    if "WRONG_VERSION_NUMBER" in reason or "HTTP_REQUEST" in reason:
        return f"the other end does not speak TLS: no process of dualmx, or one with DUALMX_ENCRYPT=0 ({e.reason})"
    if "PROTOCOL" in reason:
        return f"the other end does not speak TLS 1.3 ({e.reason})"
    return f"the TLS handshake failed: {e.reason or e}"


def client_handshake(sock: socket.socket, secret: bytes, encryption: Encryption) -> Steps[HandshakeResult]:
    """Handshake of the end that connects.

    Args:
        sock: the connection, which does not block.
        secret: of the job.
        encryption: whether this connection is encrypted.

    Raises:
        HandshakeError: wrong secret, version or program at the other end. OSError: the connection broke.
    """
    if encryption.required(sock):
        tls = yield from _secured(sock, encryption.contexts[0], False)
        _say(tls, _hello(True))
        return HandshakeResult(_check((yield from _receive(tls, HELLO.size)), True), tls)
    mine = _hello(False)
    _say(sock, mine)
    theirs = yield from _receive(sock, HELLO.size)
    fast = _check(theirs, False)
    if not hmac.compare_digest((yield from _receive(sock, MAC)), _mac(secret, b"accept", mine, theirs)):
        raise HandshakeError("the other end has another secret (DUALMX_SECRET)")
    _say(sock, _mac(secret, b"connect", mine, theirs))
    return HandshakeResult(fast, None)


def server_handshake(sock: socket.socket, secret: bytes, encryption: Encryption) -> Steps[HandshakeResult]:
    """Handshake of the end that accepts; the same arguments, returns and errors as `client_handshake`."""
    first = b""
    while not first:
        yield
        try:
            first = sock.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            continue
        if not first:
            _ended(b"")
    if first == TLS_HANDSHAKE:
        if not encryption.possible:
            _say(sock, _hello(False))  # so that the other end can tell why as well
            raise HandshakeError("the other end demands encryption, this one has none (DUALMX_ENCRYPT)")
        tls = yield from _secured(sock, encryption.contexts[1], True)
        theirs = yield from _receive(tls, HELLO.size)
        _say(tls, _hello(True))
        return HandshakeResult(_check(theirs, True), tls)
    theirs = yield from _receive(sock, HELLO.size)
    encrypts = encryption.required(sock)
    mine = _hello(encrypts)
    try:
        fast = _check(theirs, False)
        if encrypts:
            raise HandshakeError("the other end has no encryption, this one demands it (DUALMX_ENCRYPT)")
    except HandshakeError:
        if theirs.startswith(MAGIC):
            _say(sock, mine)
        raise
    _say(sock, mine + _mac(secret, b"accept", theirs, mine))
    if not hmac.compare_digest((yield from _receive(sock, MAC)), _mac(secret, b"connect", theirs, mine)):
        raise HandshakeError("the other end has another secret (DUALMX_SECRET)")
    return HandshakeResult(fast, None)


def complete(sock: socket.socket, steps: Steps[T], until: float) -> T:
    """Wait for the end of a handshake, and return what it returns.

    Raises:
        TimeoutError: it is not over at the monotonic time `until`. Others: see `client_handshake`.
    """
    sock.setblocking(False)
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        while True:
            try:
                next(steps)
            except StopIteration as e:
                return e.value
            left = until - time.monotonic()
            if left <= 0 or not selector.select(left):
                raise TimeoutError("the other end does not finish the handshake")


__all__ = [
    "HandshakeError", "HandshakeResult", "Steps", "Unanswered", "client_handshake", "complete", "load_secret",
    "new_secret", "server_handshake", "user_secret_path",
]  # fmt: skip
