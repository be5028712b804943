"""Decide whether the processes of a job encrypt their connections."""

from __future__ import annotations

import importlib

from .errors import MXNetError
from .net import is_loopback

REMEDY = (
    "pip install cryptography on every host; on a network that nobody else can read or write, DUALMX_ENCRYPT=0 for all "
    "processes of the job does without"
)


def require_cryptography() -> None:
    """Raise unless certificates can be made here.

    Raises:
        MXNetError: the cryptography package is missing.
    """
    try:
        importlib.import_module("cryptography.x509")
    except ImportError as e:
        raise MXNetError(f"encrypted connections need the cryptography package ({e}): {REMEDY}") from None


def check_encryption(uri: str, mode: str) -> None:
    """Check that this process can encrypt what a job needs encrypted.

    Args:
        uri: address of the scheduler.
        mode: what `DUALMX_ENCRYPT` says.

    Raises:
        MXNetError: it has to, and the cryptography package is missing.
    """
    if mode == "1" or (mode == "auto" and not is_loopback(uri)):
        require_cryptography()


__all__ = ["REMEDY", "check_encryption", "require_cryptography"]
