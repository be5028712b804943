"""Parameter updates of modules, local or through a key-value store; and the helpers that `mxnet.model` has for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import optimizer as opt
from ..core.errors import ArgumentError, ArgumentTypeError, OrderError
from ..core.knobs import UPDATE_ON_KVSTORE
from ..core.reader import Content, read_file
from ..kvstore import KVStoreBase, has_values, is_asynchronous, is_distributed, known, pull_all, pushpull_each
from ..kvstore import create as create_store
from ..kvstore.replicated_update import ReplicatedUpdater
from ..ndarray import NDArray
from ..ndarray.serialize import write_file
from .executor_group import DeviceArrays


class LocalUpdater:
    """Sums gradients over the contexts, updates the first context's parameters, and copies them to the others.

    Args:
        devices: parameters and gradients of each context.
        names: parameters to update.
        index_of: index of each parameter, under which the optimizer knows it.
        by_name: whether a user's optimizer is asked for one parameter after the other, by name, as MXNet's stores do.
    """

    num_workers = 1

    def __init__(
        self, devices: Sequence[DeviceArrays], names: Sequence[str], index_of: Mapping[str, int], by_name: bool = False
    ):
        self._devices = devices
        self._by_name = by_name
        self._names = list(names)
        self._indices = [index_of[n] for n in names]
        self._updater: opt.Updater | None = None
        self._replicas: ReplicatedUpdater | None = None

    def start(self, optimizer: opt.Optimizer) -> None:
        """Update with `optimizer` from now on."""
        self._updater = opt.get_updater(optimizer)
        self._by_name &= not self._updater.in_one_call
        if self._by_name:
            optimizer.idx2name = {**optimizer.idx2name, **{n: n for n in self._names}}
        self._replicas = ReplicatedUpdater(self._updater) if len(self._devices) > 1 else None

    @property
    def _started(self) -> opt.Updater:
        if self._updater is None:
            raise OrderError("Module: no optimizer is set; call init_optimizer() first")
        return self._updater

    def _all(self, table: str) -> list[list[NDArray]]:
        return [[getattr(d, table)[n] for d in self._devices] for n in self._names]

    def _sum_grads(self) -> list[NDArray]:
        main = self._devices[0]
        sums = [main.grads[n] for n in self._names]
        for other in self._devices[1:]:
            sums = [s + other.grads[n].as_in_context(s.context) for s, n in zip(sums, self._names, strict=True)]
        return sums

    def apply(self) -> None:
        """Update all parameters from their gradients."""
        if self._replicas is not None:
            if self._replicas.step(self._indices, self._all("grads"), self._all("args")):
                return
            self._replicas.stale = True
        self._update_first(self._sum_grads())

    def _update_first(self, sums: Sequence[NDArray]) -> None:
        """Update the first context's parameters, and copy them to the others."""
        main = self._devices[0]
        if self._by_name:
            for name, total in zip(self._names, sums, strict=True):
                self._started(name, total, main.args[name])
        else:
            self._update(sums, [main.args[n] for n in self._names])
        for other in self._devices[1:]:
            for n in self._names:
                main.args[n].copyto(other.args[n])

    def _update(self, grads: Sequence[NDArray], weights: Sequence[NDArray]) -> None:
        """Update weights, those of one context at a time; groups of operators may have others than the device."""
        columns = list(zip(self._indices, grads, weights, strict=True))
        for ctx in dict.fromkeys(w.context for w in weights):
            self._started(*(list(c) for c in zip(*(c for c in columns if c[2].context is ctx), strict=True)))

    def fetch_rows(self, row_ids: Mapping[str, Any] | None) -> None:
        """Bring rows of row_sparse parameters up to date, or all that were not (None); here they always are."""

    def save_states(self, fname: str) -> None:
        """Write the optimizer's states to a file."""
        write_file(fname, self._started.get_states())

    def load_states(self, fname: str) -> None:
        """Read the optimizer's states from a file."""
        states = read_file(fname)
        with Content(states, repr(fname), "optimizer states").parsing(RecursionError):
            self._started.set_states(states)


class KVStoreUpdater(LocalUpdater):
    """Exchanges gradients through a key-value store, which updates the parameters if it can.

    Args:
        store: the store; its keys are the names of the parameters.
        devices, names, index_of: see `LocalUpdater`.
    """

    def __init__(self, store: Any, devices: Sequence[DeviceArrays], names: Sequence[str], index_of: Mapping[str, int]):
        super().__init__(devices, names, index_of)
        self._store = store
        self._store_has_values = has_values(store)
        self._tables: set[str] = set()  # whose rows are fetched when they are needed
        self._stale = False
        kind = getattr(store, "type", "")
        self._update_on_store = not hasattr(store, "is_capable") or store.is_capable("optimizer")
        if is_distributed(kind) and not is_asynchronous(kind):
            self.num_workers = store.num_workers
            self._update_on_store &= UPDATE_ON_KVSTORE.read() == "1"

    def start(self, optimizer: opt.Optimizer) -> None:
        main = self._devices[0]
        if self._store_has_values:
            self._store.init(self._names, [main.args[n] for n in self._names])
        else:
            for name, arrays in zip(self._names, self._all("args"), strict=True):
                self._store.broadcast(name, arrays[0], out=arrays)
        if self._update_on_store and not is_asynchronous(getattr(self._store, "type", "")):
            self._update_on_store = not (
                hasattr(self._store, "unsupported_reason") and self._store.unsupported_reason(optimizer)
            )
        if self._update_on_store:
            optimizer.idx2name = {**optimizer.idx2name, **{n: n for n in self._names}}
            self._store.set_optimizer(optimizer)
        else:
            super().start(optimizer)
        # The store's values win: all workers begin with those of the first.
        if self._store_has_values:
            pull_all(self._store, self._names, self._all("args"))

    def apply(self) -> None:
        together = getattr(self._store, "update_together", None)
        if self._update_on_store and together and together(self._names, self._all("grads"), self._all("args")):
            return
        if not self._store_has_values:
            pushpull_each(
                self._store, self._names, self._all("grads"), self._all("args" if self._update_on_store else "grads")
            )
        else:
            self._push_and_pull()
        if not self._update_on_store:
            self._update_first([self._devices[0].grads[n] for n in self._names])

    def _push_and_pull(self) -> None:
        """Give gradients, and take back parameters if the store updates them, else the gradients' sums."""
        self._store.push(self._names, self._all("grads"))
        if self._update_on_store:
            pulled = [i for i, n in enumerate(self._names) if n not in self._tables]
            arrays = self._all("args")
            pull_all(self._store, [self._names[i] for i in pulled], [arrays[i] for i in pulled])
            self._stale = True
            return
        pull_all(self._store, self._names, self._all("grads"))

    def fetch_rows(self, row_ids: Mapping[str, Any] | None) -> None:
        """Bring rows of row_sparse parameters up to date.

        Args:
            row_ids: row numbers by name, an array or a list of them; from now on only such rows are fetched. None for
                all rows of these parameters, if there was a step since.

        Raises:
            ArgumentError: a name that is no row_sparse parameter.
        """
        if not self._update_on_store or not hasattr(self._store, "refresh"):
            return
        if row_ids is None:
            wanted: Mapping[str, Any] = dict.fromkeys(self._tables) if self._stale else {}
            self._stale = False
        else:
            wanted = row_ids
            self._tables.update(wanted)
        for name, ids in wanted.items():
            tables = [d.args[name] for d in self._devices if name in d.args]
            if not tables or tables[0].stype != "row_sparse":
                raise ArgumentError(f"Module.prepare: {name!r} is no row_sparse parameter")
            for one in ids if isinstance(ids, (list, tuple)) else [ids]:
                self._store.refresh(name, tables, one)

    def save_states(self, fname: str) -> None:
        if self._update_on_store:
            self._store.save_optimizer_states(fname)
        else:
            super().save_states(fname)

    def load_states(self, fname: str) -> None:
        if self._update_on_store:
            self._store.load_optimizer_states(fname)
        else:
            super().load_states(fname)


def make_updater(
    kvstore: Any, devices: Sequence[DeviceArrays], names: Sequence[str], index_of: Mapping[str, int], compression: Any
) -> LocalUpdater:
    """Return how to update, for the name of a store, a store, or `None`.

    Raises:
        ArgumentTypeError: something else. MXNetError: a distributed store outside of a distributed job.
    """
    if isinstance(kvstore, str):
        name = known(kvstore)
        if is_distributed(name) or name in KVStoreBase.kv_registry or (compression and len(devices) > 1):
            kvstore = create_store(name)
    if kvstore is None or isinstance(kvstore, str):
        return LocalUpdater(devices, names, index_of, kvstore is not None and len(devices) > 1)
    if not has_values(kvstore) and not hasattr(kvstore, "pushpull"):
        raise ArgumentTypeError(f"Module.init_optimizer: kvstore={kvstore!r}: expected a store, its name, or None")
    if compression:
        kvstore.set_gradient_compression(compression)
    return KVStoreUpdater(kvstore, devices, names, index_of)


_MIN_SUM_ONLY_ELEMENTS = 16 << 20  # elements of a parameter from which "local" stores only sum
Copies = Sequence[NDArray]  # one array per context
Gradients = Sequence["Copies | Sequence[None]"]


def create_kvstore(kvstore: Any, num_device: int, arg_params: Mapping[str, Any]) -> tuple[Any, bool]:
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
        in_store &= max((math.prod(p.shape) for p in arg_params.values()), default=0) <= _MIN_SUM_ONLY_ELEMENTS
    return create_store(kvstore), in_store


def create_sparse_kvstore(kvstore: Any) -> tuple[Any, bool]:
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


def initialize_kvstore(
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


def update_params_on_kvstore(
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


def update_params(
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
    "create_kvstore",
    "create_sparse_kvstore",
    "initialize_kvstore",
    "update_params",
    "update_params_on_kvstore",
]
