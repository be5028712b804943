"""Bytes that arrays take on each device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.errors import ArgumentTypeError
from ..ndarray import NDArray
from ..ndarray.handle import to_jax_array


def device_bytes(*arrays: Any) -> dict[str, int]:
    """Return how many bytes arrays take on each device of this process, computing what is pending.

    Args:
        arrays: NDArrays and Parameters; lists, tuples and dicts of them, in any nesting; `None` counts nothing. What
            occurs more than once counts once.

    Returns:
        Bytes by device, such as `{"cpu:0": 16}`, in the order of the devices.

    Raises:
        ArgumentTypeError: something else.

    Example:
        >>> import dualmx as mx
        >>> w = mx.parallel.shard(mx.nd.ones((4, 2)), ("model", None), mx.parallel.Mesh({"model": 1}))
        >>> mx.parallel.device_bytes(w, [w])
        {'cpu:0': 32}
    """
    found: dict[int, tuple[str, int]] = {}
    for data in {id(d): d for d in _datas(arrays)}.values():
        for part in data.addressable_shards:
            name, before = found.get(part.device.id, (f"{part.device.platform}:{part.device.id}", 0))
            found[part.device.id] = (name, before + part.data.nbytes)
    return dict(found[k] for k in sorted(found))


def _datas(value: Any) -> Iterable[Any]:
    if isinstance(value, NDArray):
        yield to_jax_array(value)
    elif hasattr(value, "list_data"):
        yield from _datas(value.list_data())
    elif isinstance(value, (list, tuple)) or hasattr(value, "values"):
        for v in value if isinstance(value, (list, tuple)) else value.values():
            yield from _datas(v)
    elif value is not None:
        raise ArgumentTypeError(f"parallel.device_bytes: a {type(value).__name__}: expected NDArrays or Parameters")
