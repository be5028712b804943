"""The sparse storage types as the dense rooms see them; the room `sparse` implements and registers them."""

from __future__ import annotations

from typing import Any, Protocol

from ..core.errors import MXNetError


class SparseStorage(Protocol):
    """What makes arrays of the sparse storage types."""

    def zeros(self, stype: str, shape: Any, ctx: Any = None, dtype: Any = None) -> Any:
        """Return an array that stores nothing."""
        ...

    def of_array(self, source: Any, stype: str) -> Any:
        """Return a dense array in a sparse storage type, linked to the tape if it is."""
        ...

    def of_source(self, source: Any, ctx: Any, dtype: Any) -> Any:
        """Return what `nd.array` makes of a sparse source, None for a dense one."""
        ...

    def of_body(self, body: Any) -> Any:
        """Return the sparse array that a file holds."""
        ...


_implementations: list[SparseStorage] = []


def register_storage(implementation: SparseStorage) -> None:
    """Let the dense rooms make sparse arrays by an implementation; the last one counts."""
    _implementations.append(implementation)


def sparse_storage() -> SparseStorage:
    """Return the implementation of the sparse storage types.

    Raises:
        MXNetError: none is registered, so that there are dense arrays only.

    Example:
        >>> import dualmx as mx
        >>> sparse_storage().zeros("csr", (2, 3)).stype
        'csr'
    """
    if not _implementations:
        raise MXNetError("sparse arrays: their room, dualmx.sparse, is not imported")
    return _implementations[-1]


__all__ = ["SparseStorage", "register_storage", "sparse_storage"]
