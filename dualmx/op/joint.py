"""Exchange between the devices that run one program together; bodies of operators use it, users never see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp

UNSAVED = "unsaved"  # name of values that backward passes make again
_LARGE = 1 << 20  # bytes from which a value is worth a message of its own

_axis: ContextVar[tuple[str, int, bool] | None] = ContextVar("dualmx_joint_axis", default=None)


@contextmanager
def joint_over(name: str, size: int, fuse: bool) -> Iterator[None]:
    """Inside the `with` block, `summed` sums over the `size` devices of the mapped axis `name`.

    With `fuse`, small values of one element type are exchanged as one: fewer messages between processes, for two
    copies.
    """
    token = _axis.set((name, size, fuse))
    try:
        yield
    finally:
        _axis.reset(token)


_mesh: ContextVar[Any] = ContextVar("dualmx_mesh", default=None)


@contextmanager
def lowering_on(mesh: Any) -> Iterator[None]:
    """Inside the `with` block, `mesh()` returns `mesh`."""
    token = _mesh.set(mesh)
    try:
        yield
    finally:
        _mesh.reset(token)


def mesh() -> Any:
    """Return the mesh context that the current lowering targets, `None` if it is for one device."""
    return _mesh.get()


def members() -> int:
    """Return how many devices run the program that is being lowered together; 1 while shapes are inferred."""
    found = _axis.get()
    return found[1] if found else 1


def summed(values: Sequence[Any]) -> list[Any]:
    """Sum each value over the devices that run the program together.

    Example:
        >>> summed([jnp.ones(2), jnp.ones(3)])[1].shape
        (3,)
    """
    found = _axis.get()
    if found is None:
        return list(values)
    name, _, fuse = found
    if not fuse:
        return [jax.lax.psum(v, name) for v in values]
    out: list[Any] = [None if v.size * v.dtype.itemsize < _LARGE else jax.lax.psum(v, name) for v in values]
    for dtype in dict.fromkeys(v.dtype for v in values):
        at = [i for i, v in enumerate(values) if v.dtype == dtype and out[i] is None]
        if not at:
            continue
        flat = [values[i].reshape(-1) for i in at]
        total = jax.lax.psum(jnp.concatenate(flat) if len(at) > 1 else flat[0], name)
        begin = 0
        for i in at:
            out[i] = total[begin : begin + values[i].size].reshape(values[i].shape)
            begin += values[i].size
    return out
