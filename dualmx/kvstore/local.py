"""`KVStore` of one process: sums over devices, and optional updates."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError, OrderError
from ..core.reader import Content, read_file
from ..ndarray import NDArray, waitall
from ..ndarray.interop import array_from_numpy
from ..ndarray.serialize import write_file
from ..optimizer import Optimizer, Updater, get_updater
from ..sparse import store, with_storage
from .base import KVStoreBase, check_capability
from .compression import Compression, make
from .replicated_update import ReplicatedUpdater
from .row_sparse import parse_row_ids

_log = logging.getLogger(__name__)


class KVStore(KVStoreBase):
    """Key-value store on the devices of this process.

    `init` stores a value under a key (an int or a string, not both in one store). `push` sums the arrays given for a
    key; without an updater the sum replaces the stored value, with one `updater(key, sum, stored)` changes it. `pull`
    copies the stored value out. Nothing waits: the sums and updates join the pending program.

    Args:
        name: `"local"` (sums on the first device's context) or `"device"`, `"nccl"` (the same under XLA).

    Example:
        >>> import dualmx as mx
        >>> kv = mx.kv.create("local")
        >>> kv.init(3, mx.nd.ones((2,)))
        >>> kv.push(3, [mx.nd.ones((2,)), mx.nd.ones((2,))])
        >>> out = mx.nd.zeros((2,))
        >>> kv.pull(3, out=out)
        >>> out.asnumpy().tolist()
        [2.0, 2.0]
    """

    def __init__(self, name: str = "local"):
        self._name = name
        self._stored: dict[Any, NDArray] = {}
        self._updater: Callable[[Any, Any, Any], None] | None = None
        self._compression: Compression | None = None
        self._key_type: type | None = None
        self._replicas: ReplicatedUpdater | None = None
        # Stored values that were updated on all contexts at once: the first context has the present ones.
        self._aliased_values: dict[Any, NDArray] = {}

    @property
    def has_compression(self) -> bool:
        """Whether gradients are compressed."""
        return self._compression is not None

    @property
    def type(self) -> str:
        """The name it was created by."""
        return self._name

    # -- arguments

    def _keys(self, what: str, key: Any) -> tuple[list[Any], bool]:
        """Return the keys of a call and whether there was one, not a list."""
        single = not isinstance(key, (list, tuple))
        keys = [key] if single else list(key)
        for k in keys:
            if not isinstance(k, (int, str)) or isinstance(k, bool):
                raise ArgumentTypeError(f"kvstore.{what}: key={k!r}: expected an int or a str")
            kind = str if isinstance(k, str) else int
            known = self._key_type or (str if isinstance(keys[0], str) else int)
            if kind is not known:
                raise ArgumentError(f"kvstore.{what}: key={k!r}: this store has {known.__name__} keys; "
                                    f"int and str keys cannot be mixed")  # fmt: skip
        return keys, single

    def _grouped(self, what: str, key: Any, values: Any) -> list[tuple[Any, list[NDArray]]]:
        """Pair each key with its arrays (one per device)."""
        keys, single = self._keys(what, key)
        if single and isinstance(values, NDArray):
            return [(key, [values])]
        if single:
            groups = [list(values) if isinstance(values, (list, tuple)) else [values]]
        else:
            if not isinstance(values, (list, tuple)):
                raise ArgumentTypeError(f"kvstore.{what}: a list of {len(keys)} keys needs a list of values")
            if len(values) != len(keys):
                raise ArgumentError(f"kvstore.{what}: {len(values)} values for {len(keys)} keys")
            groups = [list(v) if isinstance(v, (list, tuple)) else [v] for v in values]
        for k, group in zip(keys, groups, strict=True):
            if not group:
                raise ArgumentError(f"kvstore.{what}: key {k!r}: an empty list; expected an NDArray for each device")
            for a in group:
                if not isinstance(a, NDArray):
                    raise ArgumentTypeError(f"kvstore.{what}: key {k!r}: a {type(a).__name__}; expected NDArrays")
        if len(set(keys)) == len(keys):
            return list(zip(keys, groups, strict=True))
        if what == "init":
            twice = next(k for i, k in enumerate(keys) if k in keys[:i])
            raise ArgumentError(f"kvstore.init: key {twice!r} is there twice")
        if what == "row_sparse_pull":
            return list(zip(keys, groups, strict=True))
        merged: dict[Any, list[NDArray]] = {}
        for k, group in zip(keys, groups, strict=True):  # arrays of one key belong together, wherever they are
            merged.setdefault(k, []).extend(group)
        return list(merged.items())

    def _stored_value(self, what: str, key: Any) -> NDArray:
        try:
            if key in self._aliased_values:
                self._stored[key] = self._aliased_values.pop(key).copy()
            return self._stored[key]
        except KeyError:
            raise ArgumentError(f"kvstore.{what}: key {key!r} has not been initialized; call init first") from None

    def _check_array(self, what: str, key: Any, a: NDArray) -> None:
        stored = self._stored_value(what, key)
        if a.stype == "csr" and what != "pull":
            raise ArgumentTypeError(f"kvstore.{what}: key {key!r}: a csr array; expected a dense or row_sparse one")
        if a.shape != stored.shape or (what == "push" and a.dtype != stored.dtype):
            raise ArgumentError(
                f"kvstore.{what}: key {key!r}: {np.dtype(a.dtype).name}{list(a.shape)}, expected "
                f"{np.dtype(stored.dtype).name}{list(stored.shape)} as initialized"
            )

    # -- values

    def init(self, key: Any, value: Any) -> None:
        """Store initial values.

        Args:
            key: an int or str, or a list of them.
            value: an NDArray, or a list of as many.

        Raises:
            ArgumentError: a key is there already, or of the other type, or has several values.
        """
        pairs = self._initial(key, value, self._stored)
        for k, group in pairs:
            self._key_type = str if isinstance(k, str) else int
            self._stored[k] = group[0].copy()

    def _initial(self, key: Any, value: Any, held: Collection[Any]) -> list[tuple[Any, list[NDArray]]]:
        """Pair each key with its initial value."""
        pairs = self._grouped("init", key, value)
        for k, group in pairs:
            if k in held:
                raise ArgumentError(f"kvstore.init: key {k!r} was initialized before")
            if len(group) > 1:
                raise ArgumentError(f"kvstore.init: key {k!r}: {len(group)} arrays; expected one initial value")
        return pairs

    def init_lazily(self, keys: Sequence[Any], arrays: Sequence[NDArray]) -> None:
        """`init` with arrays that are copied when the stored values are first read."""
        for k in keys:
            if k in self._stored:
                raise ArgumentError(f"kvstore.init: key {k!r} was initialized before")
        for k, a in zip(keys, arrays, strict=True):
            self._key_type = str if isinstance(k, str) else int
            self._stored[k] = self._aliased_values[k] = a

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Sum the arrays of each key, and store the sums or update by them.

        Updates are made in the order of int keys, or in that in which str keys were initialized.

        Args:
            key: a key or a list of keys.
            value: an array or a list (one per device); for several keys a list of those.
            priority: accepted; XLA orders the work by what depends on it.

        Raises:
            ArgumentError: an unknown key, or an array of another shape or dtype; nothing is changed then.
        """
        pairs = self._grouped("push", key, value)
        for k, group in pairs:
            for a in group:
                self._check_array("push", k, a)
        if self._updater is not None and len(pairs) > 1:
            numbers = range(0) if self._key_type is int else {k: n for n, k in enumerate(self._stored)}
            pairs.sort(key=lambda pair: numbers[pair[0]] if numbers else pair[0])
        keys = [k for k, _ in pairs]
        sums = self._sums(pairs)
        if self._replicas is not None:
            self._replicas.stale = True
        if self._updater is None:
            for k, total in zip(keys, sums, strict=True):
                self._stored[k] = total
        elif isinstance(self._updater, Updater) and self._updater.in_one_call:
            self._updater(keys, sums, [self._stored[k] for k in keys])
        else:
            for k, total in zip(keys, sums, strict=True):
                self._updater(k, total, self._stored[k])

    def _sums(self, pairs: Sequence[tuple[Any, list[NDArray]]]) -> list[NDArray]:
        """Return the sum of each key's arrays."""
        return [self._sum(k, group) for k, group in pairs]

    def _sum(self, key: Any, group: Sequence[NDArray]) -> NDArray:
        if self._compression is not None:
            group = [a if a.stype == "row_sparse" else self._compression((key, i), a) for i, a in enumerate(group)]
        ctx = self._stored[key].context
        total = group[0].as_in_context(ctx)
        if len(group) == 1 and self._compression is None:
            return total.copy() if total is group[0] else total
        for a in group[1:]:
            total = total + a.as_in_context(ctx)
        return total

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Copy the stored values into `out` (an array or a list per key), cast to their dtype.

        Raises:
            ArgumentError: an unknown key, no `out`, or an array of another shape.
        """
        if out is None:
            raise ArgumentError("kvstore.pull: out=None: expected the arrays to write to")
        pairs = self._grouped("pull", key, out)
        for k, group in pairs:
            for a in group:
                self._check_array("pull", k, a)
        for k, group in pairs:
            for a in group:
                if a.is_sparse and ignore_sparse:
                    _log.warning(
                        "kvstore.pull: key %r: a %s array is left alone; use row_sparse_pull or ignore_sparse=False",
                        k,
                        a.stype,
                    )
                elif a.is_sparse and a.stype != self._stored[k].stype:
                    a[:] = self._stored[k].tostype("default")
                else:
                    self._stored[k].copyto(a)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """`push` and then `pull` into `out`, or back into `value` without one.

        Example:
            >>> import dualmx as mx
            >>> kv = mx.kv.create("device")
            >>> kv.init("w", mx.nd.zeros((2,)))
            >>> gradients = [mx.nd.ones((2,), mx.cpu(0)), mx.nd.ones((2,), mx.cpu(1))]
            >>> kv.pushpull("w", gradients)
            >>> gradients[1].asnumpy().tolist()
            [2.0, 2.0]
        """
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority, ignore_sparse=False)

    def update_together(self, keys: Sequence[Any], grads: Any, weights: Any) -> bool:
        """Like `push` of gradients and `pull` of the updated weights, as one program on all devices, if possible.

        Args:
            keys: initialized keys.
            grads, weights: for each key a list with one array per context.

        Returns:
            Whether it was done; nothing has changed otherwise.
        """
        if self._replicas is None or self._compression is not None or type(self) is not KVStore:
            return False
        if any(k not in self._stored for k in keys) or not self._replicas.step(keys, grads, weights):
            return False
        self._aliased_values.update((k, arrays[0]) for k, arrays in zip(keys, weights, strict=True))
        return True

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """`init` and then `pull`."""
        self.init(key, value)
        self.pull(key, out, priority)

    def row_sparse_pull(self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None) -> None:
        """Copy the rows `row_ids` of stored values into `out`: row_sparse arrays, which then store only these rows, or
        dense ones, whose other rows become zero.

        Args:
            key: a key or a list of keys.
            out: an array or a list of arrays per key.
            row_ids: one array of row numbers for all of `out`, or one for each; any order, repetitions allowed.

        Raises:
            ArgumentError: no `out` or `row_ids`, another number of them, or rows that are not there.

        Example:
            >>> import dualmx as mx
            >>> kv = mx.kv.create("local")
            >>> kv.init("w", mx.nd.ones((5, 2)).tostype("row_sparse"))
            >>> out = mx.nd.sparse.zeros("row_sparse", (5, 2))
            >>> kv.row_sparse_pull("w", out=out, row_ids=mx.nd.array([3, 1, 3]))
            >>> out.indices.asnumpy().tolist()
            [1, 3]
        """
        what = "row_sparse_pull"
        if out is None or row_ids is None:
            raise ArgumentError(f"kvstore.{what}: expected out and row_ids")
        pairs = self._grouped(what, key, out)
        ids = _flat(row_ids)
        count = sum(len(group) for _, group in pairs)
        if len(ids) not in (1, count):
            raise ArgumentError(f"kvstore.{what}: {len(ids)} arrays of row_ids for {count} arrays in out")
        remaining = iter(ids * count if len(ids) == 1 else ids)
        for k, group in pairs:
            stored = self._stored_value(what, k)
            for a in group:
                self._check_array(what, k, a)
                rows: Any = stored if stored.stype == "row_sparse" else with_storage(stored, "row_sparse")
                ids = array_from_numpy(parse_row_ids(next(remaining), a.shape[0], f"kvstore.{what}"))
                store(a, rows.retain(ids.as_in_context(stored.context)), f"kvstore.{what}")

    # -- updates

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Update the stored values by `optimizer` at each push.

        Raises:
            ArgumentTypeError: not an optimizer.

        Example:
            >>> import dualmx as mx
            >>> kv = mx.kv.create()
            >>> kv.init(0, mx.nd.ones((1,)))
            >>> kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
            >>> kv.push(0, mx.nd.ones((1,)))
            >>> out = mx.nd.zeros((1,))
            >>> kv.pull(0, out)
            >>> out.asscalar().item()
            0.5
        """
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(f"kvstore.set_optimizer: {type(optimizer).__name__}: expected an Optimizer")
        self._set_updater(get_updater(optimizer))

    def _set_updater(self, updater: Callable[[Any, Any, Any], None]) -> None:
        """Call `updater(key, sum, stored)` at each push, which changes `stored` in place.

        Raises:
            ArgumentTypeError: it cannot be called.
        """
        if not callable(updater):
            raise ArgumentTypeError(f"kvstore._set_updater: updater={updater!r}: expected a function")
        self._updater = updater
        self._replicas = ReplicatedUpdater(updater) if isinstance(updater, Updater) else None

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Compress what is pushed: `{"type": "2bit", "threshold": 0.5}`; also `"1bit"` and `"fp16"`.

        Gradients by rows (row_sparse) are summed as they are.

        Raises:
            ArgumentError: an unknown type, or a store that sums on the host, where values never leave it.
        """
        if "device" not in self._name and self._name.startswith("local"):
            raise ArgumentError(f"kvstore {self._name!r}: gradient compression is for 'device' and distributed stores")
        self._compression = make(compression_params)

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Return whether the store has a capability; it has `"optimizer"`.

        Raises:
            ArgumentError: an unknown capability.
        """
        check_capability(capability)
        return True

    def reset(self, key: Any, value: NDArray) -> None:
        """Replace a stored value, updating nothing."""
        self._check_array("push", key, value)
        self._stored[key] = value.as_in_context(self._stored[key].context).copy()

    def move_to_contexts(self, keys: Sequence[Any], arrays: Sequence[NDArray]) -> None:
        """Replace stored values by equal ones on other contexts, where they are updated from now on."""
        for k, a in zip(keys, arrays, strict=True):
            self._stored[k] = self._aliased_values[k] = a
        if isinstance(self._updater, Updater):
            self._updater.states_synced = dict.fromkeys(self._updater.states, False)
        if self._replicas is not None:
            self._replicas.stale = True

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Write the optimizer's states to a file, atomically.

        Raises:
            MXNetError: no optimizer is set, or the file cannot be written.
        """
        write_file(fname, self._optimizer_updater().get_states(dump_optimizer))

    def load_optimizer_states(self, fname: str) -> None:
        """Read the optimizer's states from a file of dualmx or MXNet.

        Raises:
            FormatError: a damaged file. MXNetError: no optimizer is set, or the file cannot be read.
        """
        updater = self._optimizer_updater()
        states = read_file(fname, "kvstore.load_optimizer_states: cannot read")
        with Content(states, repr(fname), "optimizer states").parsing(RecursionError):
            updater.set_states(states)

    def _optimizer_updater(self) -> Updater:
        if not isinstance(self._updater, Updater):
            raise OrderError("kvstore: there are no optimizer states; call set_optimizer first")
        return self._updater

    # -- workers

    def barrier(self) -> None:
        """Wait for all workers; here only for this process's pending work."""
        waitall()

    _barrier = barrier

    def send_command_to_servers(self, head: int, body: str) -> None:
        """Send a command to all servers; there are none here."""

    _send_command_to_servers = send_command_to_servers

    def num_dead_node(self, timeout: int = 60, node_id: int = 0) -> int:
        """Return how many other processes of the job have died: none, there are none."""
        return 0

    def get_num_dead_node(self, node_id: int = 0, timeout: int = 60) -> int:
        """`num_dead_node` by the name that MXNet's C functions have for it."""
        return self.num_dead_node(timeout, node_id)


def _flat(values: Any) -> list[Any]:
    """The arrays of nested lists, in order."""
    return [a for v in values for a in _flat(v)] if isinstance(values, (list, tuple)) else [values]


__all__ = ["KVStore"]
