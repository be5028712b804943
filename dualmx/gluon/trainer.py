"""`Trainer`: applies an optimizer to a set of parameters after each backward pass."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from .. import autograd, kvstore
from .. import optimizer as opt
from ..compile.mesh import Mesh
from ..core.checks import number
from ..core.context import Context
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..core.knobs import UPDATE_ON_KVSTORE
from ..kvstore import is_asynchronous, is_distributed, known, pull_all
from ..kvstore.replicas import step_together
from ..ndarray import NDArray, flush
from .bridge import OptaxOptimizer
from .parameter import Parameter, ParameterDict


class StaleGradientError(MXNetError, UserWarning):
    """A gradient was not computed since the last step; also a `UserWarning`, as in MXNet."""


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
        self._contexts = self._common_contexts()
        self._optimizer = self._make_optimizer(optimizer, optimizer_params)
        self._scale = self._optimizer.rescale_grad
        # Set by `contrib.amp.init_trainer`: skips steps with gradients that overflow.
        self._amp_loss_scaler: Any = None
        self._amp_original_scale = self._scale
        self._updaters = [opt.get_updater(self._optimizer) for _ in self._contexts]
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
        self._wanted_store = kvstore
        self._compression_params = compression_params
        self._wanted_update_on_kvstore = update_on_kvstore
        self._kvstore: Any = None
        self._update_on_kvstore: bool | None = None
        self._connected = False
        self._stored: set[int] = set()
        for param in self._params:
            if param._stype != "default" and param._trainer not in (None, self):
                raise MXNetError(
                    f"Trainer: parameter {param.name!r} is {param._stype} and has a Trainer already; it can have one"
                )
            param._trainer = self
        self._connect_early()

    def _common_contexts(self) -> list[Context]:
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
        """Cut the states along an axis of the mesh that the parameters are on."""
        if not all(isinstance(c, Mesh) for c in self._contexts):
            raise ArgumentError(
                f"Trainer: shard_states={axis!r}: the parameters are on {self._contexts}; initialize them on a "
                "parallel.Mesh"
            )
        for ctx, updater in zip(self._contexts, self._updaters, strict=True):
            if axis not in ctx.axes:  # type: ignore[attr-defined]
                raise ArgumentError(f"Trainer: shard_states={axis!r}: {ctx} has no such axis")
            updater.state_axis = axis

    def _make_optimizer(self, optimizer: Any, settings: Mapping[str, Any] | None) -> Any:
        by_index = dict(enumerate(self._params))
        if isinstance(optimizer, str):
            return opt.create(optimizer, param_dict=by_index, **(settings or {}))
        if settings:
            raise ArgumentError("Trainer: optimizer_params go with an optimizer's name; pass None with an object")
        if not isinstance(optimizer, opt.Optimizer):
            optimizer = OptaxOptimizer(optimizer)
        optimizer.param_dict = by_index
        return optimizer

    @property
    def optimizer(self) -> Any:
        """The optimizer."""
        return self._optimizer

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
            ignore_stale_grad: leave parameters alone whose gradient was not computed since the last step.

        Raises:
            StaleGradientError: there is such a parameter.
        """
        self._optimizer.rescale_grad = self._scale / self._rows("step", batch_size)
        if not self._connected:
            self._connect()
        fresh = self._fresh(ignore_stale_grad)
        if self._amp_loss_scaler is not None and not self._update_on_kvstore:
            # All workers look at the same sums, so that all of them take the step or none does.
            self._exchange(fresh)
            if not self._overflows(fresh):
                self._apply(fresh)
        elif not self._overflows(fresh) and not self._update_together(fresh):
            self._exchange(fresh)
            self._apply(fresh)
        self._used(fresh)
        flush()

    def _overflows(self, chosen: list[tuple[int, Parameter]]) -> bool:
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

    def _update_together(self, chosen: list[tuple[int, Parameter]]) -> bool:
        """Sum and update on all contexts, and in all processes that XLA has joined, as one program, if possible."""
        store = self._kvstore
        everywhere = getattr(store, "everywhere", None)
        alone = type(store) is kvstore.KVStore
        if not (alone or everywhere is not None) or not chosen or store._compression is not None:
            return False
        keys = [i for i, _ in chosen]
        grads, weights = [p.list_grad() for _, p in chosen], [p.list_data() for _, p in chosen]
        if self._update_on_kvstore:
            return store.update_together(keys, grads, weights)
        return step_together(self._updaters, keys, grads, weights, True, everywhere)

    def allreduce_grads(self) -> None:
        """Sum the gradients over contexts and workers, to be followed by `update`.

        Raises:
            MXNetError: updates happen in the store.
        """
        self._connect()
        self._refuse_in_store("allreduce_grads")
        self._exchange([(i, p) for i, p in enumerate(self._params) if p.grad_req != "null"])

    def update(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """Update from gradients that `allreduce_grads` summed (and you changed in between, perhaps).

        Raises:
            MXNetError: updates happen in the store. StaleGradientError: see `step`.
        """
        self._connect()
        self._refuse_in_store("update")
        self._optimizer.rescale_grad = self._scale / self._rows("update", batch_size)
        fresh = self._fresh(ignore_stale_grad)
        if not self._overflows(fresh):
            self._apply(fresh)
        self._used(fresh)
        flush()

    @staticmethod
    def _rows(what: str, batch_size: Any) -> Any:
        if number(f"Trainer.{what}", "batch_size", batch_size) <= 0:
            raise ArgumentError(f"Trainer.{what}: batch_size={batch_size}: expected a number above 0")
        return batch_size

    def _refuse_in_store(self, what: str) -> None:
        if self._update_on_kvstore:
            raise MXNetError(
                f"Trainer.{what}: not possible while the store updates; make the Trainer with update_on_kvstore=False"
            )

    def _fresh(self, ignore_stale_grad: bool) -> list[tuple[int, Parameter]]:
        """Index and parameter of those with a new gradient."""
        found = []
        for i, param in enumerate(self._params):
            if param._grad_req == "null":
                continue
            arrays = param._arrays()
            stale = [a for a in arrays if not a._fresh_grad]
            if not stale:
                found.append((i, param))
            elif not ignore_stale_grad:
                self._check_ready()
                raise StaleGradientError(
                    f"the gradient of parameter {param.name!r} on {stale[0].context} was not computed by a backward "
                    "pass since the last step; does the loss depend on it? If only a part of the network is used on "
                    "purpose, call step(..., ignore_stale_grad=True)"
                )
        return found

    def _check_ready(self) -> None:
        """Raise if a parameter has no values yet."""
        for param in self._params:
            param._arrays()

    def _exchange(self, chosen: list[tuple[int, Parameter]]) -> None:
        store = self._kvstore
        if store is None or not chosen:
            return
        keys = [i for i, _ in chosen]
        grads = [p.list_grad() for _, p in chosen]
        if not hasattr(store, "push"):
            for key, arrays in zip(keys, grads, strict=True):
                store.pushpull(key, arrays, out=arrays)
            return
        store.push(keys, grads)
        if self._update_on_kvstore:
            # Rows of tables are fetched when they are needed, where that is possible.
            pulled = [(i, p) for i, p in chosen if p._stype == "default" or not hasattr(store, "refresh")]
            pull_all(store, [i for i, _ in pulled], [p._arrays() for _, p in pulled])
        else:
            pull_all(store, keys, grads)

    def _apply(self, chosen: list[tuple[int, Parameter]]) -> None:
        if not self._update_on_kvstore and chosen:
            indices = [i for i, _ in chosen]
            for k, updater in enumerate(self._updaters):
                arrays = [p._arrays()[k] for _, p in chosen]
                updater(indices, [a.grad for a in arrays], arrays)

    @staticmethod
    def _used(chosen: list[tuple[int, Parameter]]) -> None:
        """Mark the gradients as used."""
        for _, param in chosen:
            for array in param._arrays():
                array._fresh_grad = False

    def _connect_early(self) -> None:
        """Let all workers of a distributed job start from one set of weights, before anything is computed from them."""
        wanted = self._wanted_store
        kind = wanted.lower() if isinstance(wanted, str) else str(getattr(wanted, "type", ""))
        if is_distributed(kind) and self._params and all(p._data is not None for p in self._params):
            self._connect()

    def _connect(self) -> None:
        """Make the store, if one is needed, and hand it the initial values."""
        if self._connected:
            return
        self._check_sparse()
        store = self._make_store()
        if store is not None:
            in_store = self._wanted_update_on_kvstore
            if in_store is None:
                capable = store.is_capable("optimizer") and not getattr(store, "obstacle", _none)(self._optimizer)
                in_store = is_asynchronous(store.type) or (UPDATE_ON_KVSTORE.read() == "1" and capable)
            if is_asynchronous(store.type) and not in_store:
                raise ArgumentError(f"Trainer: kvstore={store.type!r} needs update_on_kvstore=True")
            if self._compression_params:
                store.set_gradient_compression(self._compression_params)
            self._update_on_kvstore = bool(in_store)
            alone = getattr(store, "num_workers", 1) == 1
            keys = [i for i, p in enumerate(self._params) if p.grad_req != "null" or not alone]
            self._stored = set(keys)
            if not hasattr(store, "init"):
                for i in keys:
                    store.broadcast(i, self._params[i]._arrays()[0], out=self._params[i]._arrays())
            else:
                # A store of this process looks at the parameters when it must; the first step is like all others then.
                give = store.adopt if type(store) is kvstore.KVStore else store.init
                give(keys, [self._params[i]._arrays()[0] for i in keys])
            if hasattr(store, "init") and not alone:
                self._adopt(store, keys)
            if in_store:
                store.set_optimizer(self._optimizer)
        self._kvstore = store
        self._connected = True

    def _check_sparse(self) -> None:
        """Raise if row_sparse parameters cannot be kept as asked for."""
        if any(p._stype != "default" for p in self._params):
            if self._wanted_store is None:
                raise ArgumentTypeError("Trainer: kvstore=None: row_sparse parameters need a store, or the name of one")
            if self._wanted_update_on_kvstore is False:
                raise ArgumentError("Trainer: update_on_kvstore=False is not possible with row_sparse parameters")

    def _adopt(self, store: Any, keys: list[int]) -> None:
        """Take over the weights of the first worker."""
        late = any(a._fresh_grad for i in keys for a in self._params[i]._arrays())
        before = [self._params[i]._arrays()[0].asnumpy() for i in keys] if late else []
        pull_all(store, keys, [self._params[i]._arrays() for i in keys])
        if any((self._params[i]._arrays()[0].asnumpy() != b).any() for i, b in zip(keys, before, strict=False)):
            warnings.warn(
                "Trainer: the gradients of the first step were computed from other initial weights than those of the "
                "first worker; seed all workers alike, or let shapes be known when the Trainer is made",
                stacklevel=4,
            )

    def _make_store(self) -> Any:
        wanted = self._wanted_store
        if wanted is None or not isinstance(wanted, str):
            return wanted
        own = wanted.lower() in kvstore.KVStoreBase.kv_registry
        if not is_distributed(wanted) and not own and len(self._contexts) < 2:
            return None
        return kvstore.create(wanted)

    def _fetch_rows(self, param: Parameter, row_ids: NDArray | None) -> None:
        """Fetch rows of a row_sparse parameter, or all of them, from the servers that update it."""
        index = self._index[id(param)]
        if self._update_on_kvstore and hasattr(self._kvstore, "refresh") and index in self._stored:
            with autograd.pause():
                self._kvstore.refresh(index, param._arrays(), row_ids)

    def _parameter_was_set(self, param: Parameter) -> None:
        """Keep the store's copy of a parameter that the user overwrote equal to it."""
        if self._update_on_kvstore and hasattr(self._kvstore, "reset") and self._index[id(param)] in self._stored:
            self._kvstore.reset(self._index[id(param)], param._arrays()[0])

    def save_states(self, fname: str) -> None:
        """Write the optimizer and its states (such as momenta) to a file in MXNet's format."""
        self._check_ready()
        self._connect()
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
        self._connect()
        if self._update_on_kvstore:
            self._kvstore.load_optimizer_states(fname)
            store = self._kvstore
            self._optimizer = getattr(store, "optimizer", None) or store._updater.optimizer
        else:
            try:
                with open(fname, "rb") as f:
                    states = f.read()
            except OSError as e:
                raise MXNetError(f"Trainer.load_states: cannot read {fname!r}: {e.strerror}") from e
            for updater in self._updaters:
                updater.set_states(states)
                updater.optimizer = self._updaters[0].optimizer
            loaded = self._updaters[0].optimizer
            if isinstance(loaded, OptaxOptimizer):
                loaded.adopt(self._optimizer)
            self._optimizer = loaded
        self._optimizer.param_dict = dict(enumerate(self._params))


def _none(optimizer: Any) -> str:
    """No obstacle: stores of this process apply any optimizer."""
    return ""


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
