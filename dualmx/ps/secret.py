"""Who may join a job: both ends of a connection prove that they know the job's secret before anything else is read."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import socket
import struct
import time
from pathlib import Path
from typing import NamedTuple

from ..core import knobs
from ..core.errors import MXNetError
from ..core.network import is_loopback
from .frame import VERSION, xxhash
from .sealed import Sealed

HELLO = struct.Struct("<4sHH32s")  # magic, version, abilities, nonce
MAGIC = b"DMXH"
MAC = 32
CAN_XXH3 = 1
SEALS = 2  # wants what follows the handshake encrypted
SHORTEST = 16


class HandshakeError(MXNetError):
    """The other end of a connection is no member of this job."""


class Unanswered(ConnectionError):
    """The other end closed a connection before it said anything, as one does that has too many: worth another try."""


def new_secret() -> str:
    """Return a fresh secret of 256 bits, as the launcher makes one per job."""
    return secrets.token_hex(32)


def user_file() -> Path:
    """File of the secret that processes started by hand on one host share."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(base) / "dualmx" / "secret"


def find_secret(root: str) -> bytes:
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
    return _from_file(user_file())


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


class Met(NamedTuple):
    """What both ends of a connection have agreed on.

    Attributes:
        fast: both know xxh3.
        sealed: encrypts what follows, if it is to be.
    """

    fast: bool
    sealed: Sealed | None


def _abilities(seal: bool) -> int:
    return (CAN_XXH3 if xxhash is not None else 0) | (SEALS if seal else 0)


def _receive(sock: socket.socket, size: int, until: float, first: bool = False) -> bytes:
    data = b""
    while len(data) < size:
        sock.settimeout(max(until - time.monotonic(), 0.001))
        more = sock.recv(size - len(data))
        if not more and first and not data:
            raise Unanswered("closed the connection before it said anything: it has too many, or is none of dualmx")
        if not more:
            raise HandshakeError("the connection was closed during the handshake; do the secrets differ?")
        data += more
    return data


def _check(hello: bytes, seal: bool) -> int:
    magic, version, abilities, _ = HELLO.unpack(hello)
    if magic != MAGIC:
        raise HandshakeError("the other end is no process of dualmx")
    if version != VERSION:
        raise HandshakeError(f"the other end speaks protocol version {version}, this process {VERSION}")
    if bool(abilities & SEALS) != seal:
        raise HandshakeError(
            f"the other end {'demands' if abilities & SEALS else 'has no'} encryption, this one "
            f"{'demands it' if seal else 'has none'} (DUALMX_ENCRYPT)"
        )
    return abilities


def greet(sock: socket.socket, secret: bytes, until: float, seal: bool = False) -> Met:
    """Handshake of the end that connects. It fails at the monotonic time `until`.

    Args:
        sock: the connection.
        secret: of the job.
        until: monotonic time at which it fails.
        seal: encrypt what follows; the other end must want that as well.

    Raises:
        HandshakeError: wrong secret, version or program at the other end. OSError: the connection broke.
    """
    mine = HELLO.pack(MAGIC, VERSION, _abilities(seal), os.urandom(32))
    sock.sendall(mine)
    theirs = _receive(sock, HELLO.size, until, first=True)
    abilities = _check(theirs, seal)
    if not hmac.compare_digest(_receive(sock, MAC, until), _mac(secret, b"accept", mine, theirs)):
        raise HandshakeError("the other end has another secret (DUALMX_SECRET)")
    sock.sendall(_mac(secret, b"connect", mine, theirs))
    fast = bool(abilities & _abilities(seal) & CAN_XXH3)
    return Met(fast, Sealed(secret, mine + theirs, True) if seal else None)


def welcome(sock: socket.socket, secret: bytes, until: float, seal: bool = False) -> Met:
    """Handshake of the end that accepts; the same arguments, returns and errors as `greet`."""
    theirs = _receive(sock, HELLO.size, until)
    mine = HELLO.pack(MAGIC, VERSION, _abilities(seal), os.urandom(32))
    try:
        abilities = _check(theirs, seal)
    except HandshakeError:
        if theirs.startswith(MAGIC):
            sock.sendall(mine)  # so that the other end can tell why as well
        raise
    sock.sendall(mine + _mac(secret, b"accept", theirs, mine))
    if not hmac.compare_digest(_receive(sock, MAC, until), _mac(secret, b"connect", theirs, mine)):
        raise HandshakeError("the other end has another secret (DUALMX_SECRET)")
    fast = bool(abilities & _abilities(seal) & CAN_XXH3)
    return Met(fast, Sealed(secret, theirs + mine, False) if seal else None)


__all__ = ["HandshakeError", "Met", "Unanswered", "find_secret", "greet", "new_secret", "user_file", "welcome"]
