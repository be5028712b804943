"""Exceptions; `except MXNetError` catches every error that dualmx raises on purpose."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from urllib.parse import urlsplit, urlunsplit


class MXNetError(RuntimeError):
    """Base of all errors raised by dualmx; a `RuntimeError`, as in MXNet."""


class ArgumentError(MXNetError, ValueError, AssertionError):
    """An argument has a value that the operation cannot accept; MXNet's Python layers assert where others raise."""


class DtypeError(ArgumentError):
    """An array has an element type that the operator does not take."""


class ArgumentTypeError(MXNetError, TypeError, AssertionError):
    """An argument has a type that the operation cannot accept; MXNet asserts many of these."""


class InputKindError(ArgumentTypeError, ValueError):
    """A block was called with neither an array nor a symbol; MXNet raises `ValueError` there."""


class ForkError(MXNetError):
    """Arrays were to be computed in a process that cannot: a fork of one that runs XLA."""


class UnsupportedError(ArgumentError, TypeError, NotImplementedError):
    """An argument selects an option that NumPy has, and neither MXNet nor dualmx."""


class ArgumentKeyError(ArgumentError, KeyError):
    """An argument is none of the known words; MXNet looks these up in a table, which raises `KeyError`."""

    __str__ = Exception.__str__


class OrderError(MXNetError, AssertionError):
    """A call came before one that it requires; MXNet asserts the order."""


class RangeError(MXNetError, IndexError):
    """An index lies outside an axis."""


class FormatError(MXNetError, ValueError):
    """A file, message or string does not follow its format (truncated, corrupt, unknown version).

    Attributes:
        source: the file, in quotes, or what sent the message; None where the text alone says it.
        offset: the byte at which the fault was seen, None where the format has no such place.
        expected: what the reader takes.
        remedy: what to do.
    """

    def __init__(
        self,
        text: str = "",
        *,
        source: str | None = None,
        offset: int | None = None,
        expected: str | None = None,
        remedy: str | None = None,
    ):
        super().__init__(text)
        self.source, self.offset, self.expected, self.remedy = source, offset, expected, remedy

    def within(self, where: str, source: str) -> FormatError:
        """Return this error of a part of `source`, whose text begins with `where`."""
        return FormatError(
            f"{where}: {self}", source=source, offset=self.offset, expected=self.expected, remedy=self.remedy
        )


class MissingFileError(MXNetError, FileNotFoundError):
    """A file does not exist; MXNet's Python layers open many themselves, which raises `FileNotFoundError`."""

    __str__ = Exception.__str__


class DownloadError(MXNetError, OSError, AssertionError):
    """A file cannot be fetched; `requests` raises an `OSError` under MXNet's functions, and one of these asserts."""

    __str__ = Exception.__str__


def unreadable(what: str, cause: OSError) -> MXNetError:
    """Return the error to raise where reading `what` (a name, in quotes) failed because of `cause`."""
    kind = MissingFileError if isinstance(cause, FileNotFoundError) else MXNetError
    return kind(f"{what}: {cause.strerror or cause}")


def suggest(word: str, known: Iterable[str]) -> str:
    """Return a "did you mean" clause for `word`, or the list of known words when none is close."""
    known = sorted(known)
    near = difflib.get_close_matches(str(word)[:100], known, 1)  # takes 40 times the memory of the word
    if near:
        return f"did you mean {near[0]!r}?"
    shown = ", ".join(known[:40]) + (", …" if len(known) > 40 else "")
    return f"known: {shown}" if known else "none is known"


def without_password(url: str) -> str:
    """Return `url` without user and password, for texts that may be shown."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
