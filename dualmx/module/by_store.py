"""Steps of a training loop of one's own over several contexts, by the inner names that `mxnet.model` had for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.errors import ArgumentTypeError
from ..core.knobs import UPDATE_ON_KVSTORE
from ..kvstore import KVStoreBase
from ..kvstore import create as create_store
from ..ndarray import NDArray

_LARGE = 16 << 20  # elements of a parameter from which "local" stores only sum
Copies = Sequence[NDArray]  # one array per context
Gradients = Sequence["Copies | Sequence[None]"]


def _create_kvstore(kvstore: Any, num_device: int, arg_params: Mapping[str, Any]) -> tuple[Any, bool]:
    """Return the store for `num_device` contexts, None where none is needed, and whether it updates parameters.

    Raises:
        ArgumentTypeError: neither a store nor a name nor None.
    """
    in_store = UPDATE_ON_KVSTORE.read() == "1"
    if kvstore is None or (isinstance(kvstore, str) and num_device == 1 and "dist" not in kvstore):
        return None, False
    if isinstance(kvstore, KVStoreBase):
        return kvstore, in_store
    if not isinstance(kvstore, str):
        raise ArgumentTypeError(f"kvstore of type {type(kvstore).__name__}: expected a KVStore, its name, or None")
    if kvstore == "local":
        in_store &= max((math.prod(p.shape) for p in arg_params.values()), default=0) <= _LARGE
    return create_store(kvstore), in_store


def _create_sparse_kvstore(kvstore: Any) -> tuple[Any, bool]:
    """Return the store for parameters with row_sparse ones, which always updates them.

    Raises:
        ArgumentTypeError: neither a store nor a name.
    """
    if isinstance(kvstore, KVStoreBase):
        return kvstore, True
    if not isinstance(kvstore, str):
        what = f"kvstore={kvstore!r}: row_sparse parameters need a store: expected a KVStore or its name"
        raise ArgumentTypeError(what)
    return create_store(kvstore), True


def _initialize_kvstore(
    kvstore: Any,
    param_arrays: Sequence[Copies],
    arg_params: Mapping[str, NDArray],
    param_names: Sequence[str],
    update_on_kvstore: bool,
) -> None:
    """Give the store its first values; the copies get them too where the store updates dense parameters."""
    for name, copies in zip(param_names, param_arrays, strict=False):
        value = arg_params[name]
        if update_on_kvstore and value.stype == "default":
            kvstore.broadcast(name, value, out=copies)
        else:
            kvstore.init(name, value)


def _update_params_on_kvstore(
    param_arrays: Sequence[Copies], grad_arrays: Gradients, kvstore: Any, param_names: Sequence[str]
) -> None:
    """Push gradients to a store that updates, and pull the parameters."""
    for index, (copies, grads) in enumerate(zip(param_arrays, grad_arrays, strict=False)):
        if grads[0] is None:
            continue
        name = param_names[index]
        if grads[0].stype == "default" and copies[0].stype == "default":
            kvstore.pushpull(name, grads, out=copies, priority=-index)
        else:
            kvstore.push(name, grads, priority=-index)
            kvstore.pull(name, out=copies, priority=-index)


def _update_params(
    param_arrays: Sequence[Copies],
    grad_arrays: Gradients,
    updater: Callable[..., Any],
    num_device: int,
    kvstore: Any = None,
    param_names: Sequence[str] | None = None,
) -> None:
    """Update the copies of each context by `updater`, after summing gradients in the store, if there is one.

    The copy of parameter i in context k has the index `i * num_device + k`.
    """
    updates: list[list[tuple[int, Any, NDArray]]] = [[] for _ in range(num_device)]
    for i, (copies, grads) in enumerate(zip(param_arrays, grad_arrays, strict=False)):
        if grads[0] is None:
            continue
        if kvstore is not None and param_names is not None:
            kvstore.pushpull(param_names[i], grads, priority=-i)
        for k, (weight, grad) in enumerate(zip(copies, grads, strict=False)):
            updates[k].append((i * num_device + k, grad, weight))
    for of_device in updates:
        if of_device:
            updater(*zip(*of_device, strict=True))


__all__ = [
    "_create_kvstore", "_create_sparse_kvstore", "_initialize_kvstore", "_update_params", "_update_params_on_kvstore",
]  # fmt: skip
