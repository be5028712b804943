"""Encrypted connections: records of AES-256-GCM, with keys made of the secret and of random numbers of both ends.

A record that was changed, left out, repeated or put in another place does not open, and that ends the connection.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib
import struct
from collections.abc import Sequence
from typing import Any

from ..core.errors import FormatError, MXNetError

RECORD = 1 << 20  # most bytes of plain text in a record
TAG = 16
_LENGTH = struct.Struct("<I")


def cipher() -> Any:
    """Return the class of the cipher.

    Raises:
        MXNetError: the cryptography package is missing.
    """
    try:
        return importlib.import_module("cryptography.hazmat.primitives.ciphers.aead").AESGCM
    except ImportError:
        raise MXNetError("DUALMX_ENCRYPT=1 needs the cryptography package: pip install cryptography") from None


class Sealed:
    """One end of an encrypted connection.

    Args:
        secret: of the job.
        hellos: what both ends have said first, the end that connected before the other.
        connected: whether this end connected.
    """

    def __init__(self, secret: bytes, hellos: bytes, connected: bool):
        there, back = (
            cipher()(hmac.new(secret, b"dualmx key " + way + hellos, hashlib.sha256).digest())
            for way in (b"there", b"back")
        )
        self._out, self._in = (there, back) if connected else (back, there)
        self._sent = self._seen = 0
        self._head = bytearray(_LENGTH.size)
        self._target, self._got, self._body = memoryview(self._head), 0, False

    def seal(self, buffers: Sequence[memoryview]) -> list[memoryview]:
        """Return the records of a frame; called in the order in which they are sent."""
        out: list[memoryview] = []
        small: list[memoryview] = []
        size = 0
        for buffer in buffers:
            for at in range(0, buffer.nbytes, RECORD):
                piece = buffer[at : at + RECORD]
                if size + piece.nbytes > RECORD:
                    out.extend(self._record(small))
                    small, size = [], 0
                small.append(piece)
                size += piece.nbytes
        return [*out, *self._record(small)]

    def _record(self, pieces: list[memoryview]) -> list[memoryview]:
        plain = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        head = _LENGTH.pack(len(plain) + TAG)
        data = self._out.encrypt(self._sent.to_bytes(12, "big"), plain, head)
        self._sent += 1
        return [memoryview(head), memoryview(data)]

    def room(self) -> memoryview:
        """Where the next bytes belong."""
        return self._target[self._got :]

    def filled(self, n: int) -> memoryview | None:
        """Account for `n` bytes written into `room()`; returns the plain text of a record when it is complete.

        Raises:
            FormatError: not a record of the other end, or not the next one.
        """
        self._got += n
        if self._got < self._target.nbytes:
            return None
        self._got = 0
        if not self._body:
            size = _LENGTH.unpack(self._head)[0]
            if not TAG < size <= RECORD + TAG:
                raise FormatError(f"encrypted record of {size} bytes: out of bounds")
            self._target, self._body = memoryview(bytearray(size)), True
            return None
        data, self._target, self._body = self._target, memoryview(self._head), False
        try:
            plain = self._in.decrypt(self._seen.to_bytes(12, "big"), data, bytes(self._head))
        except Exception as e:
            raise FormatError(f"encrypted record that does not open ({type(e).__name__})") from None
        self._seen += 1
        return memoryview(plain)


__all__ = ["Sealed", "cipher"]
