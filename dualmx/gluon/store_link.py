"""How a `Trainer` exchanges gradients and weights with a key-value store."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from .. import autograd, kvstore
from ..core.context import Context
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, OrderError
from ..core.knobs import UPDATE_ON_KVSTORE
from ..kvstore import has_values, is_asynchronous, is_distributed, pull_all, pull_copies, pushpull_each
from ..ndarray import NDArray
from ..optimizer import get_updater
from .parameter import Parameter


class StoreLink:
    """The part of a `Trainer` that looks after its store: made before the first step, given all initial values."""

    _params: list[Parameter]
    _index: dict[int, int]
    _contexts: list[Context]
    _moved = False
    _optimizer: Any
    _updaters: list[Any]
    _kvstore_params: dict[str, Any]
    _compression_params: Mapping[str, Any] | None
    _contains_sparse_weight: bool

    def _check_contexts(self) -> list[Context]:
        raise NotImplementedError

    def _reset_kvstore(self) -> None:
        """Let the next step make the store anew; raises if other processes share it."""
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
            pushpull_each(store, keys, grads, [p._arrays() for _, p in chosen] if self._update_on_kvstore else grads)
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
            outs = [p.list_data() if p._lists_itself else p._arrays() for _, p in pulled]
            pull_copies(store, [i for i, _ in pulled], outs)

    def _init_store_early(self) -> None:
        """Let all workers of a distributed job start from one set of weights, before anything is computed from them."""
        wanted = self._kvstore_params["kvstore"]
        kind = wanted.lower() if isinstance(wanted, str) else str(getattr(wanted, "type", ""))
        if is_distributed(kind) and self._params and all(p._data is not None for p in self._params):
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
        """Make the store, if one is needed, and decide who updates."""
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
        waiting = [p for p in self._params_to_init if p._deferred_init]
        store = self._kvstore
        if store is not None:
            alone = getattr(store, "num_workers", 1) == 1
            ready = [p for p in self._params_to_init if not p._deferred_init]
            keys = [self._index[id(p)] for p in ready if p.grad_req != "null" or not alone]
            self._stored |= set(keys)
            if hasattr(store, "expect_rows"):
                store.expect_rows([i for i in keys if self._has_row_grad(self._params[i])])
            if not has_values(store):
                for i in keys:
                    store.broadcast(i, self._params[i]._arrays()[0], out=self._params[i]._arrays())
            else:
                # A store of this process looks at the parameters when it must; the first step is like all others then.
                give = store.init_lazily if type(store) is kvstore.KVStore else store.init
                give(keys, [self._params[i]._arrays()[0] for i in keys])
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
        """Raise if row_sparse parameters cannot be kept as asked for."""
        if self._contains_sparse_weight:
            if self._kvstore_params["kvstore"] is None:
                raise ArgumentTypeError("Trainer: kvstore=None: row_sparse parameters need a store, or the name of one")
            if self._kvstore_params["update_on_kvstore"] is False:
                raise ArgumentError("Trainer: update_on_kvstore=False is not possible with row_sparse parameters")

    def _take_rank0_weights(self, store: Any, keys: list[int]) -> None:
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
        counts = self._optimizer._all_index_update_counts
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
            store.move_to_contexts(keys, [self._params[i]._arrays()[0] for i in keys])
        elif self._kv_initialized and store is None:
            # Several contexts need a store, where one did not.
            self._reset_kvstore()
            self._init_kvstore()
            self._init_params()
            if self._update_on_kvstore and content is not None:
                self._kvstore._updater.set_states(content)

    def _parameter_moved(self) -> None:
        """Look at the contexts again before the next step."""
        self._moved = True

    def _fetch_rows(self, param: Parameter, row_ids: NDArray | None) -> None:
        """Fetch rows of a row_sparse parameter, or all of them, from the servers that update it."""
        index = self._index[id(param)]
        if self._update_on_kvstore and hasattr(self._kvstore, "refresh") and index in self._stored:
            with autograd.pause():
                self._kvstore.refresh(index, param._arrays(), row_ids)

    def _parameter_was_set(self, param: Parameter) -> None:
        """Keep the store's copy of a parameter that the user overwrote equal to it."""
        store, key, array = self._kvstore, self._index[id(param)], param._arrays()[0]
        if self._update_on_kvstore and hasattr(store, "reset") and key in self._stored:
            if type(store) is kvstore.KVStore and store._stored[key].dtype != array.dtype:
                self._reset_kvstore()  # the parameter was cast
            else:
                store.reset(key, array)


def _none(optimizer: Any) -> str:
    """No obstacle: stores of this process apply any optimizer."""
    return ""
