"""`Trainer`: an optimizer over a set of parameters, with gradients and weights exchanged through a key-value store."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import autograd, kvstore
from .. import optimizer as opt
from ..compile.devices import Mesh
from ..core.argcheck import number
from ..core.context import Context
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, OrderError
from ..core.knobs import UPDATE_ON_KVSTORE
from ..core.reader import Content, read_file
from ..kvstore import has_values, is_asynchronous, is_distributed, known, pull_all, pull_copies, pushpull_each
from ..kvstore.base import updater_of
from ..kvstore.replicated_update import step_as_spmd
from ..ndarray import NDArray, flush
from ..ndarray.ndarray import grads_of, have_fresh_grads, mark_grads_used
from ..optimizer import get_updater
from ..optimizer.optimizer import update_counts_by_device
from .bridge import OptaxOptimizer
from .parameter import ARRAYS_VERSION, Parameter, ParameterDict


def _none(optimizer: Any) -> str:
    """No obstacle: stores of this process apply any optimizer."""
    return ""


class StaleGradientError(MXNetError, UserWarning):
    """A gradient was not computed since the last step; also a `UserWarning`, as in MXNet."""


class _Trainable(NamedTuple):
    """Parameters with a gradient, listed once while no array of a parameter is replaced.

    Attributes:
        version: count of replaced arrays.
        chosen: index and parameter of each.
        indices: of them.
        arrays: all their arrays.
        lists_itself: whether a subclass of `Parameter` among them lists its arrays.
    """

    version: int
    chosen: list[tuple[int, Parameter]]
    indices: tuple[int, ...]
    arrays: tuple[NDArray, ...]
    lists_itself: bool


class Trainer:
    """Update parameters by an optimizer; all of them in one recorded call where the optimizer allows it.

    On one context the update happens in place. On several, gradients are summed over the contexts first; with
    `update_on_kvstore` (the default then) one update is made and copied to all contexts.

    Args:
        params: the parameters, as from `collect_params()`.
        optimizer: name, `Optimizer`, or an Optax gradient transformation.
        optimizer_params: keyword arguments of the optimizer, if given by name.
        kvstore: name of a store, a store, or `None` to leave the contexts to themselves.
        compression_params: settings of gradient compression, passed to the store.
        update_on_kvstore: apply the optimizer in the store; decided by the store if `None`.
        shard_states: axis of the mesh that the parameters are on, along which the optimizer's states are cut too, so
            that each device holds and updates its part only (ZeRO-1).

    Raises:
        ArgumentTypeError: not a store. ArgumentError: not parameters, an unknown optimizer or contexts that differ.
        MXNetError: a parameter was never initialized.

    Example:
        >>> import dualmx as mx
        >>> net = mx.gluon.nn.Dense(1, in_units=2)
        >>> net.initialize()
        >>> trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        >>> with mx.autograd.record():
        ...     loss = net(mx.nd.ones((4, 2)))
        >>> loss.backward()
        >>> trainer.step(batch_size=4)
    """

    _params: list[Parameter]
    _index: dict[int, int]
    _contexts: list[Context]
    _moved = False
    _listed_arrays: _Trainable | None = None
    _optimizer: Any
    _updaters: list[Any]
    _kvstore_params: dict[str, Any]
    _compression_params: Mapping[str, Any] | None
    _contains_sparse_weight: bool

    def __init__(
        self,
        params: ParameterDict | Mapping[str, Parameter] | Iterable[Parameter],
        optimizer: Any,
        optimizer_params: Mapping[str, Any] | None = None,
        kvstore: Any = "device",
        compression_params: Mapping[str, Any] | None = None,
        update_on_kvstore: bool | None = None,
        shard_states: str | None = None,
    ):
        self._params = _listed(params)
        self._index = {id(p): i for i, p in enumerate(self._params)}
        self._param2idx = {p.name: i for i, p in enumerate(self._params)}
        self._contains_sparse_weight = any(p._stype != "default" for p in self._params)
        self._contains_sparse_grad = any(p._grad_stype != "default" for p in self._params)
        self._contexts = self._check_contexts()
        self._init_optimizer(optimizer, optimizer_params)
        self._scale = self._optimizer.rescale_grad
        # Set by `contrib.amp.init_trainer`: skips steps with gradients that overflow.
        self._amp_loss_scaler: Any = None
        self._amp_original_scale = self._scale
        if shard_states is not None:
            self._shard_states(shard_states)
        if (
            kvstore is not None
            and not isinstance(kvstore, str)
            and not (hasattr(kvstore, "push") or hasattr(kvstore, "pushpull"))
        ):
            raise ArgumentTypeError(f"Trainer: kvstore={kvstore!r}: expected a store, the name of one, or None")
        if isinstance(kvstore, str):
            known(kvstore)
        self._kvstore_params = {"kvstore": kvstore, "update_on_kvstore": update_on_kvstore}
        self._compression_params = compression_params
        self._reset_kvstore()
        for param in self._params:
            param._set_trainer(self)
        self._init_store_early()

    def _check_contexts(self) -> list[Context]:
        contexts: list[Context] | None = None
        for param in self._params:
            held = param.list_ctx()
            if contexts is not None and held != contexts:
                raise ArgumentError(
                    f"Trainer: all parameters must be on the same contexts, but {param.name!r} is on {held} and "
                    f"others are on {contexts}"
                )
            contexts = held
        return contexts or []

    def _shard_states(self, axis: str) -> None:
        """Shard the states along an axis of the parameters' mesh."""
        if not all(isinstance(c, Mesh) for c in self._contexts):
            raise ArgumentError(
                f"Trainer: shard_states={axis!r}: the parameters are on {self._contexts}; initialize them on a "
                "parallel.Mesh"
            )
        for ctx, updater in zip(self._contexts, self._updaters, strict=True):
            if axis not in ctx.axes:  # type: ignore[attr-defined]
                raise ArgumentError(f"Trainer: shard_states={axis!r}: {ctx} has no such axis")
            updater.state_axis = axis

    def _init_optimizer(self, optimizer: Any, optimizer_params: Mapping[str, Any] | None) -> None:
        """Make the optimizer, and an updater with its states for each context."""
        by_index = dict(enumerate(self._params))
        if isinstance(optimizer, str):
            optimizer = opt.create(optimizer, param_dict=by_index, **(optimizer_params or {}))
        elif optimizer_params:
            raise ArgumentError("Trainer: optimizer_params go with an optimizer's name; pass None with an object")
        elif not isinstance(optimizer, opt.Optimizer):
            optimizer = OptaxOptimizer(optimizer)
        optimizer.param_dict = by_index
        self._optimizer = optimizer
        self._updaters = [opt.get_updater(optimizer) for _ in self._contexts]

    @property
    def optimizer(self) -> Any:
        """The optimizer."""
        return self._optimizer

    @property
    def updaters(self) -> list[Any]:
        """The updater of each context, with the states."""
        return self._updaters

    @property
    def update_on_kvstore(self) -> bool | None:
        """Whether the store applies the optimizer; None before the first step."""
        return self._update_on_kvstore

    @property
    def loss_scaler(self) -> Any:
        """What scales the losses of mixed precision, `None` if nothing does; a new one takes over today's scale."""
        return self._amp_loss_scaler

    @loss_scaler.setter
    def loss_scaler(self, scaler: Any) -> None:
        self._amp_loss_scaler, self._amp_original_scale = scaler, self._scale

    def set_loss_scale(self, scale: float) -> None:
        """Let updates divide the gradients by the scale of their loss."""
        self._scale = self._amp_original_scale / scale

    def unscale_grads(self) -> None:
        """Divide the gradients by the scale of their loss now, and no more in the update."""
        for _, param in self._trainable():
            for grad in param.list_grad():
                grad *= self._scale
        if not np.isclose(self._scale * self._amp_loss_scaler.loss_scale, self._amp_original_scale):
            warnings.warn("amp.unscale: the scale has changed since scale_loss", stacklevel=3)
        self._scale = 1.0

    @property
    def learning_rate(self) -> float:
        """The current learning rate."""
        return self._optimizer.learning_rate

    def set_learning_rate(self, lr: float) -> None:
        """Change the learning rate; raises `UserWarning` if a scheduler decides it."""
        self._optimizer.set_learning_rate(lr)

    def step(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """Make one step: sum the gradients over contexts and workers, update, and start the computation.

        Args:
            batch_size: gradients are divided by it.
            ignore_stale_grad: leave parameters alone whose gradient was not computed since the last step; one that
                was computed on some contexts only counts as zero on the others.

        Raises:
            StaleGradientError: there is such a parameter.
        """
        self._check_and_rescale_grad(self._scale / self._rows("step", batch_size))
        self._init_store()
        if not self._default_step():
            self._allreduce_grads()
            self._update(ignore_stale_grad)
            return
        fresh = self._params_with_new_grad(ignore_stale_grad)
        if ignore_stale_grad and self._kvstore is not None:
            self._clear_stale(fresh)
        if self._amp_loss_scaler is not None and not self._update_on_kvstore:
            # All workers look at the same sums, so that all of them take the step or none does.
            self._push_and_pull(fresh)
            if not self._has_overflow(fresh):
                self._apply(fresh)
        elif not self._has_overflow(fresh) and not self._step_as_spmd(fresh):
            self._push_and_pull(fresh)
            self._apply(fresh)
        self._mark_grads_used(fresh)
        flush(after_update=True)

    def _default_step(self) -> bool:
        """True unless a subclass overrides one of the two methods that exchange or apply gradients."""
        return (
            getattr(self._allreduce_grads, "__func__", None) is Trainer._allreduce_grads
            and getattr(self._update, "__func__", None) is Trainer._update
        )

    def _check_and_rescale_grad(self, scale: float) -> None:
        """Multiply gradients by `scale` in the next update."""
        self._optimizer.rescale_grad = scale

    def _has_overflow(self, chosen: list[tuple[int, Parameter]]) -> bool:
        """True if losses are scaled and a gradient is not finite, so that there must be no update."""
        if (
            self._amp_loss_scaler is not None
            and self._update_on_kvstore
            and getattr(self._kvstore, "num_workers", 1) > 1
        ):
            raise MXNetError(
                "Trainer: a worker cannot skip a step that the servers wait for; with scaled losses, "
                "make the Trainer with update_on_kvstore=False"
            )
        return self._amp_loss_scaler is not None and self._amp_loss_scaler.has_overflow([p for _, p in chosen])

    def _step_as_spmd(self, chosen: list[tuple[int, Parameter]]) -> bool:
        """Sum and update on all contexts, and in all processes that XLA has joined, as one program, if possible."""
        store = self._kvstore
        everywhere = getattr(store, "xla_processes", None)
        alone = type(store) is kvstore.KVStore
        if not (alone or everywhere is not None) or not chosen or store.has_compression:
            return False
        if any(p._lists_itself for _, p in chosen):
            return False
        keys = [i for i, _ in chosen]
        grads, weights = [p.list_grad() for _, p in chosen], [p.arrays() for _, p in chosen]
        if self._update_on_kvstore:
            return store.update_together(keys, grads, weights)
        return step_as_spmd(self._updaters, keys, grads, weights, True, everywhere)

    def allreduce_grads(self) -> None:
        """Sum the gradients over contexts and workers, to be followed by `update`.

        Raises:
            OrderError: updates happen in the store.
        """
        self._init_store()
        self._require_local_update("allreduce_grads")
        self._allreduce_grads()

    def _trainable(self) -> list[tuple[int, Parameter]]:
        """Index and parameter of those with a gradient."""
        return [(i, p) for i, p in enumerate(self._params) if p.grad_req != "null"]

    def _trainable_arrays(self) -> _Trainable:
        """The parameters with a gradient, and their arrays."""
        known = self._listed_arrays
        if known is None or known.version != ARRAYS_VERSION.count:
            chosen = self._trainable()
            arrays = tuple([a for _, p in chosen for a in p.arrays()])
            lists_itself = any(p._lists_itself for _, p in chosen)
            known = _Trainable(ARRAYS_VERSION.count, chosen, tuple([i for i, _ in chosen]), arrays, lists_itself)
            self._listed_arrays = known
        return known

    def _allreduce_grads(self) -> None:
        """Sum the gradients over contexts and workers; a store that updates does so now. Subclasses may replace it."""
        if not self._update_on_kvstore:
            self._push_and_pull(self._trainable())
        elif not self._has_overflow(self._trainable()):
            self._push_grads(self._trainable())

    def update(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """Update from gradients that `allreduce_grads` summed (and you changed in between, perhaps).

        Raises:
            OrderError: updates happen in the store. StaleGradientError: see `step`.
        """
        self._init_store()
        self._require_local_update("update")
        self._check_and_rescale_grad(self._scale / self._rows("update", batch_size))
        self._update(ignore_stale_grad)

    def _update(self, ignore_stale_grad: bool = False) -> None:
        """Update from summed gradients, or fetch what the store has updated. Subclasses may replace it."""
        if self._update_on_kvstore:
            fresh = self._trainable()
            self._pull_weights(fresh)
        else:
            fresh = self._params_with_new_grad(ignore_stale_grad)
            if not self._has_overflow(fresh):
                self._apply(fresh)
        self._mark_grads_used(fresh)
        flush(after_update=True)

    @staticmethod
    def _rows(what: str, batch_size: Any) -> Any:
        rows = number(f"Trainer.{what}", "batch_size", batch_size)
        if rows <= 0:
            raise ArgumentError(f"Trainer.{what}: batch_size={rows}: expected a number above 0")
        return rows

    def _require_local_update(self, what: str) -> None:
        if self._update_on_kvstore:
            raise OrderError(
                f"Trainer.{what}: not possible while the store updates; make the Trainer with update_on_kvstore=False"
            )

    def _params_with_new_grad(self, ignore_stale_grad: bool) -> list[tuple[int, Parameter]]:
        """Index and parameter of those with a new gradient, on any context if others may be stale."""
        every = self._trainable_arrays()
        if have_fresh_grads(every.arrays):
            return every.chosen
        found = []
        for i, param in enumerate(self._params):
            if param._grad_req == "null":
                continue
            arrays = param.arrays()
            stale = [a for a in arrays if not a.has_fresh_grad]
            if not stale or (ignore_stale_grad and len(stale) < len(arrays)):
                found.append((i, param))
            elif not ignore_stale_grad:
                self._check_ready()
                raise StaleGradientError(
                    f"the gradient of parameter {param.name!r} on {stale[0].context} was not computed by a backward "
                    "pass since the last step; does the loss depend on it? If only a part of the network is used on "
                    "purpose, call step(..., ignore_stale_grad=True)"
                )
        return found

    @staticmethod
    def _clear_stale(chosen: list[tuple[int, Parameter]]) -> None:
        """Set gradients to zero that an earlier step has used; those that accumulate are the user's to clear."""
        for _, param in chosen:
            for array in param.arrays():
                if not array.has_fresh_grad and param.grad_req == "write":
                    array.grad[:] = 0

    def _check_ready(self) -> None:
        """Raise if a parameter has no values yet."""
        for param in self._params:
            param.arrays()

    def _apply(self, params: list[tuple[int, Parameter]]) -> None:
        every = self._trainable_arrays()
        if params is every.chosen and len(self._updaters) == 1 and not (self._update_on_kvstore or every.lists_itself):
            if params:
                self._updaters[0](every.indices, grads_of(every.arrays), every.arrays)
        elif not self._update_on_kvstore and params:
            own = {i: (p.list_data(), p.list_grad()) for i, p in params if p._lists_itself}
            for k, updater in enumerate(self._updaters):
                # Without a store the contexts have nothing to do with each other.
                held = [(i, p.arrays()[k]) for i, p in params]
                if self._kvstore is None:
                    held = [(i, a) for i, a in held if a.has_fresh_grad]
                weights, grads = [a for _, a in held], [a.grad for _, a in held]
                for at, (i, _) in enumerate(held if own else ()):
                    if i in own:
                        weights[at], grads[at] = (arrays[k] for arrays in own[i])
                updater([i for i, _ in held], grads, weights)

    def _mark_grads_used(self, chosen: list[tuple[int, Parameter]]) -> None:
        """Mark the gradients as used."""
        every = self._trainable_arrays()
        mark_grads_used(every.arrays if chosen is every.chosen else [a for _, p in chosen for a in p.arrays()])

    def save_states(self, fname: str) -> None:
        """Write the optimizer and its states (such as momenta) to a file in MXNet's format."""
        self._check_ready()
        self._init_store()
        if self._update_on_kvstore:
            self._kvstore.save_optimizer_states(fname, dump_optimizer=True)
        else:
            with open(fname, "wb") as f:
                f.write(self._updaters[0].get_states(dump_optimizer=True))

    def load_states(self, fname: str) -> None:
        """Read what `save_states` (of dualmx or MXNet) wrote.

        Raises:
            FormatError: the file is damaged, or holds classes other than optimizers and arrays.
        """
        self._init_store()
        if self._update_on_kvstore:
            self._kvstore.load_optimizer_states(fname)
            store = self._kvstore
            loaded = getattr(store, "optimizer", None) or getattr(updater_of(store), "optimizer", None)
            self._optimizer = loaded or self._optimizer
        else:
            states = read_file(fname, "Trainer.load_states: cannot read")
            with Content(states, repr(fname), "optimizer states").parsing(RecursionError):
                for updater in self._updaters:
                    updater.set_states(states)
            for updater in self._updaters:
                updater.optimizer = self._updaters[0].optimizer
            loaded = self._updaters[0].optimizer
            if isinstance(loaded, OptaxOptimizer):
                loaded.adopt(self._optimizer)
            self._optimizer = loaded
        self._optimizer.param_dict = dict(enumerate(self._params))

    def _reset_kvstore(self) -> None:
        """Make the store again at the next step; raises if other processes share it."""
        if getattr(self, "_distributed", None):
            raise MXNetError("Trainer: a distributed store cannot be made anew")
        self._kvstore: Any = None
        self._kv_initialized = False
        self._distributed: bool | None = None
        self._update_on_kvstore: bool | None = None
        # Parameters whose values the store has not been given yet.
        self._params_to_init = list(self._params)
        self._stored: set[int] = set()
        self._optimizer_sent = False

    def _push_and_pull(self, chosen: list[tuple[int, Parameter]]) -> None:
        self._push_grads(chosen)
        if self._update_on_kvstore:
            self._pull_weights(chosen)

    def _push_grads(self, chosen: list[tuple[int, Parameter]]) -> None:
        """Give the gradients to the store, and take back their sums unless it updates by them.

        Stores that keep no values give the updated weights in the same call.
        """
        store = self._kvstore
        if store is None or not chosen:
            return
        keys = [i for i, _ in chosen]
        grads = [p.list_grad() for _, p in chosen]
        if not has_values(store):
            pushpull_each(store, keys, grads, [p.arrays() for _, p in chosen] if self._update_on_kvstore else grads)
            return
        store.push(keys, grads)
        if not self._update_on_kvstore:
            pull_all(store, keys, grads)

    def _pull_weights(self, chosen: list[tuple[int, Parameter]]) -> None:
        """Take over the weights that the store has updated."""
        store = self._kvstore
        if not has_values(store):
            return
        # Rows of tables are fetched when they are needed, where that is possible.
        pulled = [(i, p) for i, p in chosen if p._stype == "default" or not hasattr(store, "refresh")]
        if pulled:
            outs = [p.list_data() if p._lists_itself else p.arrays() for _, p in pulled]
            pull_copies(store, [i for i, _ in pulled], outs)

    def _init_store_early(self) -> None:
        """Let all workers of a distributed job start from one set of weights, before anything is computed from them."""
        wanted = self._kvstore_params["kvstore"]
        kind = wanted.lower() if isinstance(wanted, str) else str(getattr(wanted, "type", ""))
        if is_distributed(kind) and self._params and all(p.is_initialized for p in self._params):
            self._init_store()

    def _init_store(self) -> None:
        """Make the store, if one is needed, and hand it the initial values."""
        if self._moved:
            self._move_states()
        if not self._kv_initialized:
            self._init_kvstore()
        if self._params_to_init:
            self._init_params()

    def _init_kvstore(self) -> None:
        """Make the store, if one is needed, and decide where updates run."""
        self._check_sparse()
        store = self._make_store()
        if store is not None:
            in_store = self._kvstore_params["update_on_kvstore"]
            if in_store is None:
                capable = store.is_capable("optimizer") and not getattr(store, "unsupported_reason", _none)(
                    self._optimizer
                )
                in_store = is_asynchronous(store.type) or (UPDATE_ON_KVSTORE.read() == "1" and capable)
            if is_asynchronous(store.type) and not in_store:
                raise ArgumentError(f"Trainer: kvstore={store.type!r} needs update_on_kvstore=True")
            if in_store and not store.is_capable("optimizer"):
                raise ArgumentError(
                    f"Trainer: update_on_kvstore={in_store}: the store {store.type!r} has no optimizer; expected False"
                )
            if self._compression_params:
                store.set_gradient_compression(self._compression_params)
            self._update_on_kvstore = bool(in_store)
        self._kvstore = store
        self._distributed = is_distributed(str(getattr(store, "type", "")))
        self._kv_initialized = True

    def _init_params(self) -> None:
        """Hand the store the values of the parameters in `_params_to_init`, but of those that have none yet.

        Raises:
            OrderError: there is no store yet.
        """
        if not self._kv_initialized:
            raise OrderError("Trainer._init_params: call _init_kvstore() first")
        waiting = [p for p in self._params_to_init if p.is_deferred]
        store = self._kvstore
        if store is not None:
            alone = getattr(store, "num_workers", 1) == 1
            ready = [p for p in self._params_to_init if not p.is_deferred]
            keys = [self._index[id(p)] for p in ready if p.grad_req != "null" or not alone]
            self._stored |= set(keys)
            if hasattr(store, "expect_rows"):
                store.expect_rows([i for i in keys if self._has_row_grad(self._params[i])])
            if not has_values(store):
                for i in keys:
                    store.broadcast(i, self._params[i].arrays()[0], out=self._params[i].arrays())
            else:
                # A store of this process looks at the parameters when it must; the first step is like all others then.
                give = store.init_lazily if type(store) is kvstore.KVStore else store.init
                give(keys, [self._params[i].arrays()[0] for i in keys])
                if not alone:
                    self._take_rank0_weights(store, keys)
            if self._update_on_kvstore and not self._optimizer_sent:
                store.set_optimizer(self._optimizer)
                self._optimizer_sent = True
        self._params_to_init = waiting

    @staticmethod
    def _has_row_grad(param: Parameter) -> bool:
        """Whether the gradient of a parameter is row_sparse."""
        return param.grad_req != "null" and param._grad_stype == "row_sparse"

    def _check_sparse(self) -> None:
        """Raise if the store cannot hold row_sparse parameters as requested."""
        if self._contains_sparse_weight:
            if self._kvstore_params["kvstore"] is None:
                raise ArgumentTypeError("Trainer: kvstore=None: row_sparse parameters need a store, or the name of one")
            if self._kvstore_params["update_on_kvstore"] is False:
                raise ArgumentError("Trainer: update_on_kvstore=False is not possible with row_sparse parameters")

    def _take_rank0_weights(self, store: Any, keys: list[int]) -> None:
        """Take over the weights of the first worker."""
        late = any(a.has_fresh_grad for i in keys for a in self._params[i].arrays())
        before = [self._params[i].arrays()[0].asnumpy() for i in keys] if late else []
        pull_all(store, keys, [self._params[i].arrays() for i in keys])
        if any((self._params[i].arrays()[0].asnumpy() != b).any() for i, b in zip(keys, before, strict=False)):
            warnings.warn(
                "Trainer: the gradients of the first step were computed from other initial weights than those of the "
                "first worker; seed all workers alike, or let shapes be known when the Trainer is made",
                stacklevel=4,
            )

    def _make_store(self) -> Any:
        wanted = self._kvstore_params["kvstore"]
        if wanted is None or not isinstance(wanted, str):
            return wanted
        own = wanted.lower() in kvstore.KVStoreBase.kv_registry
        if not is_distributed(wanted) and not own and len(self._contexts) < 2:
            return None
        return kvstore.create(wanted)

    def _move_states(self) -> None:
        """Move the optimizer's states to the contexts that the parameters are on by now."""
        self._moved = False
        before, self._contexts = self._contexts, self._check_contexts()
        if self._contexts == before:
            return
        counts = update_counts_by_device(self._optimizer)
        known = counts.get(before[0].device_id, {})
        counts.update((c.device_id, dict(known)) for c in self._contexts)
        first, store = self._updaters[0], self._kvstore
        content = first.get_states() if first.states else None
        self._updaters = [get_updater(self._optimizer) for _ in self._contexts]
        for updater in self._updaters:
            updater.state_axis = first.state_axis
            if content is not None:
                updater.set_states(content)
        if type(store) is kvstore.KVStore:
            keys = sorted(self._stored)
            store.move_to_contexts(keys, [self._params[i].arrays()[0] for i in keys])
        elif self._kv_initialized and store is None:
            # Several contexts need a store, where one did not.
            self._reset_kvstore()
            self._init_kvstore()
            self._init_params()
            if self._update_on_kvstore and content is not None:
                updater_of(self._kvstore).set_states(content)

    def _parameter_moved(self) -> None:
        """Check the contexts again before the next step."""
        self._moved = True

    def _fetch_rows(self, param: Parameter, row_ids: NDArray | None) -> None:
        """Fetch rows of a row_sparse parameter, or all of them, from the servers that update it."""
        index = self._index[id(param)]
        if self._update_on_kvstore and hasattr(self._kvstore, "refresh") and index in self._stored:
            with autograd.pause():
                self._kvstore.refresh(index, param.arrays(), row_ids)

    def _parameter_was_set(self, param: Parameter) -> None:
        """Keep the store's copy of a parameter that the user overwrote equal to it."""
        store, key, array = self._kvstore, self._index[id(param)], param.arrays()[0]
        if self._update_on_kvstore and hasattr(store, "reset") and key in self._stored:
            if type(store) is kvstore.KVStore and store._stored[key].dtype != array.dtype:
                self._reset_kvstore()  # the parameter was cast
            else:
                store.reset(key, array)


def _listed(params: Any) -> list[Parameter]:
    if isinstance(params, (dict, ParameterDict)):
        params = [params[name] for name in sorted(params.keys())]
    elif not isinstance(params, (list, tuple)):
        raise ArgumentError(f"Trainer: params: expected parameters in a dict or a list, got {type(params).__name__}")
    for param in params:
        if not isinstance(param, Parameter):
            raise ArgumentError(f"Trainer: params: expected Parameters, got a {type(param).__name__}")
    return list(params)


__all__ = ["StaleGradientError", "Trainer"]
