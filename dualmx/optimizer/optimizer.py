"""`Optimizer`: learning rates, multipliers, update counts, master copies; and the registry."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from ..core.argcheck import number
from ..core.context import Context
from ..core.dtypes import bfloat16
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.module_alias import lazy_reexport
from ..core.registry import Registry
from ..lr_scheduler import LRScheduler
from ..ndarray import NDArray, zeros
from ..ndarray.handle import realize
from ..ndarray.ndarray import contexts_of
from ..op.registry import Call, get_op
from ..sparse import invoke_out
from .hooks import own_hooks

OPTIMIZERS = Registry("optimizer")
Kind = TypeVar("Kind", bound=type)
HALF = (np.float16, bfloat16)
_log = logging.getLogger(__name__)


@lru_cache(maxsize=8192)
def update_call(name: str, count: int = 1, **static: Any) -> Call:
    """The `Call` of update op `name`; its runtime parameters are given at `invoke_out`, in the op's order.

    `count` is the number of values of runtime tuples.
    """
    op = get_op(name)
    blank = {f.name: (1.0,) * count if f.vector else 1 for f in op.params.values() if f.runtime and f.required}
    return op.call(**blank, **static)


def fusible_indices(
    names: Sequence[str], weights: Sequence[NDArray], grads: Sequence[NDArray]
) -> dict[tuple[str, bool, Context], list[int]]:
    """Positions of parameters that one call can update: of one op name, gradient storage and context."""
    kinds: dict[tuple[str, bool, Context], list[int]] = {}
    if len(set(names)) == 1 and not any(kind.is_sparse for kind in set(map(type, grads))):
        contexts = contexts_of(weights)
        if len(contexts) == 1:
            return {(names[0], True, contexts.pop()): list(range(len(names)))}
    for i, (name, weight, grad) in enumerate(zip(names, weights, grads, strict=True)):
        kinds.setdefault((name, grad.stype == "default", weight.context), []).append(i)
    return kinds


def as_lists(*args: Any) -> tuple[list[Any], ...]:
    """The arguments of an update as lists, whether given for one parameter or for many."""
    return tuple(map(list, args)) if isinstance(args[0], (list, tuple)) else tuple([a] for a in args)


class Factor:
    """An attribute of parameters by which optimizers multiply a setting.

    Attributes:
        version: how often a factor of any parameter was set. While it stands still they need not be read again.

    Example:
        >>> class Part:
        ...     rate = Factor()
        >>> part, before = Part(), Factor.version
        >>> part.rate = 2.0
        >>> part.rate, Factor.version - before
        (2.0, 1)
    """

    version = 0

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, param: Any, owner: type | None = None) -> Any:
        if param is None:
            return self
        try:
            return param.__dict__[self._name]
        except KeyError:
            raise AttributeError(f"{type(param).__name__!r} object has no attribute {self._name!r}") from None

    def __set__(self, param: Any, value: Any) -> None:
        param.__dict__[self._name] = value
        Factor.version += 1

    def __delete__(self, param: Any) -> None:
        self.__get__(param)
        del param.__dict__[self._name]
        Factor.version += 1


def counts_factors(kind: type) -> bool:
    """Whether a class of parameters counts how often a factor is set."""
    return all(isinstance(getattr(kind, name, None), Factor) for name in ("lr_mult", "wd_mult"))


class Optimizer:
    """Base of optimizers: turns gradients into weight changes, keeping a state per parameter.

    Subclasses define `create_state` and `update` (one parameter, or `aggregate_num` of them at once if the subclass
    sets that above 0). The optimizers of this package name a formula instead, see `RuleOptimizer`: the inherited
    `update` serves one parameter or lists of them, so that a trainer hands over all its parameters at once. A subclass
    of theirs that defines a method such as `_get_lr` has all of them called as often, with what, and in the order of
    MXNet.

    Args:
        rescale_grad: factor applied to every gradient (often 1 / batch size).
        param_idx2name: names of parameter indices; with it, names not ending in `_weight` or `_gamma` do not decay.
        wd: weight decay.
        clip_gradient: bound of every gradient element after rescaling; None or 0 for none.
        learning_rate: the rate; 0.01 when neither it nor a scheduler is given.
        lr_scheduler: schedule of the rate; its `base_lr` becomes `learning_rate` when both are given.
        sym: Symbol whose variables' `__lr_mult__` and `__wd_mult__` attributes are respected.
        begin_num_update: update count to start from.
        multi_precision: keep a float32 copy of float16 (and bfloat16) weights and update that.
        param_dict: Gluon parameters by index, whose `lr_mult` and `wd_mult` are respected.

    Raises:
        ArgumentTypeError: `param_idx2name` is not a dict.

    Example:
        >>> @register
        ... class Plain(Optimizer):
        ...     def create_state(self, index, weight):
        ...         return None
        ...     def update(self, index, weight, grad, state):
        ...         self._update_count(index)
        ...         weight -= self._get_lr(index) * grad
        >>> create("plain", learning_rate=0.5).learning_rate
        0.5
    """

    opt_registry = OPTIMIZERS
    lr: float | None
    is_joint = False  # its updates need all parameters of a step in one call

    def __init__(
        self,
        rescale_grad: float = 1.0,
        param_idx2name: Mapping[int, str] | None = None,
        wd: float = 0.0,
        clip_gradient: float | None = None,
        learning_rate: float | None = None,
        lr_scheduler: LRScheduler | None = None,
        sym: Any = None,
        begin_num_update: int = 0,
        multi_precision: bool = False,
        param_dict: Mapping[int, Any] | None = None,
    ):
        what = type(self).__name__
        rescale_grad, wd = number(what, "rescale_grad", rescale_grad), number(what, "wd", wd)
        if clip_gradient is not None:
            clip_gradient = number(what, "clip_gradient", clip_gradient)
        if learning_rate is not None:
            learning_rate = number(what, "learning_rate", learning_rate)
        if lr_scheduler is not None and not callable(lr_scheduler):
            kind = type(lr_scheduler).__name__
            raise ArgumentTypeError(f"{type(self).__name__}: lr_scheduler of type {kind}: expected an LRScheduler")
        self.rescale_grad = rescale_grad
        self.lr_scheduler = lr_scheduler
        if lr_scheduler is None:
            self.lr = 0.01 if learning_rate is None else learning_rate
        else:
            self.lr = learning_rate
            if learning_rate is not None and lr_scheduler.base_lr != learning_rate:
                _log.info("learning_rate=%s replaces the scheduler's base_lr=%s", learning_rate, lr_scheduler.base_lr)
                lr_scheduler.base_lr = learning_rate
        self.wd = wd
        self.lr_mult: dict[Any, float] = {}
        self.wd_mult: dict[Any, float] = {}
        self.begin_num_update = begin_num_update
        self.num_update = begin_num_update
        self._all_index_update_counts: dict[int, dict[Any, int]] = {0: {}}
        self._index_update_count = self._all_index_update_counts[0]
        self.clip_gradient = clip_gradient
        self.multi_precision = multi_precision
        self.aggregate_num = 0
        if param_idx2name is not None and not isinstance(param_idx2name, Mapping):
            raise ArgumentTypeError(f"optimizer: param_idx2name={param_idx2name!r}: expected a dict of index: name")
        self.idx2name = dict(param_idx2name or {})
        self.sym_info = (sym.attr_dict(), sym.list_arguments()) if sym is not None else ()
        self.param_dict = dict(param_dict) if param_dict else {}
        self.allow_np_array = False
        self.set_lr_mult({})
        self.set_wd_mult({})

    @staticmethod
    def register(klass: type) -> type:
        """Register a class under its lower-cased name, as `register` does."""
        return register(klass)

    @staticmethod
    def create_optimizer(name: str, **kwargs: Any) -> Optimizer:
        """Build the optimizer registered as `name`, as `create` does."""
        return create(name, **kwargs)

    @property
    def learning_rate(self) -> float:
        """The current rate: the schedule's at the number of updates done, or the fixed one."""
        return self.lr_scheduler(self.num_update) if self.lr_scheduler is not None else self.lr  # type: ignore

    @learning_rate.setter
    def learning_rate(self, lr: float) -> None:
        self.set_learning_rate(lr)

    def set_learning_rate(self, lr: float) -> None:
        """Change the fixed rate; with a scheduler in charge this raises `UserWarning`."""
        if self.lr_scheduler is not None:
            raise UserWarning("the learning rate follows an lr_scheduler; set lr_scheduler.base_lr instead")
        self.lr = number(type(self).__name__, "learning_rate", lr)

    def set_lr_scale(self, args_lrscale: Mapping[Any, float]) -> None:
        """Removed long ago: raises `DeprecationWarning`; use `set_lr_mult`."""
        raise DeprecationWarning("set_lr_scale: use set_lr_mult instead")

    def set_lr_mult(self, args_lr_mult: Mapping[Any, float]) -> None:
        """Set factors of the rate by parameter index or name, after those that the Symbol's variables carry."""
        self.lr_mult = {**self._symbol_factors("__lr_mult__"), **args_lr_mult}

    _weight_decay_names: tuple[str, ...] = ("_weight", "_gamma")

    def set_wd_mult(self, args_wd_mult: Mapping[Any, float]) -> None:
        """Set factors of the weight decay by index or name; known names that are no weight or gamma default to 0."""
        undecayed = (n for n in self.idx2name.values() if not n.endswith(self._weight_decay_names))
        self.wd_mult = {**dict.fromkeys(undecayed, 0.0), **self._symbol_factors("__wd_mult__"), **args_wd_mult}

    def _symbol_factors(self, attribute: str) -> dict[str, float]:
        if not self.sym_info:
            return {}
        attrs, names = self.sym_info
        return {n: float(attrs[n][attribute]) for n in names if attribute in attrs.get(n, ())}

    def create_state(self, index: Any, weight: NDArray) -> Any:
        """Return the state of parameter `index`: None, an array, or nested tuples of them."""
        return None

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        """Return `(float32 copy, state of the copy)` for a 16-bit weight with `multi_precision`, else the state."""
        if weight.dtype in HALF:
            if self.multi_precision:
                master = weight.astype("float32")
                return master, self.create_state(index, master)
            warnings.warn(
                f"{type(self).__name__}: accumulating in {np.dtype(weight.dtype).name} loses accuracy; "
                "consider multi_precision=True",
                stacklevel=2,
            )
        return self.create_state(index, weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Change `weight` and `state` in place by `grad`; all four may be equally long lists."""
        self._change(index, weight, grad, state)

    def _change(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        indices, weights, grads, states = as_lists(index, weight, grad, state)
        for kind in {*map(type, weights), *map(type, grads)}:
            if not issubclass(kind, NDArray):
                what = f"{type(self).__name__}.update"
                raise ArgumentTypeError(f"{what}: weight or gradient of type {kind.__name__}: expected NDArrays")
        if indices and weights[0].buffer is None and indices[0] in self._index_update_count:
            # A loop that reads nothing would be one ever longer program: each pass over the parameters is one instead.
            realize(weights[0])
        self._steps(indices, weights, grads, states, *self._count_and_ask(index))

    def _count_and_ask(self, index: Any) -> tuple[Sequence[float], Sequence[float]]:
        """Count the update of an index, or of a list of them, and return rates and decays."""
        self._update_count(index)
        return self._rates(index), self._decays(index)

    def _rates(self, index: Any) -> Sequence[float]:
        if not isinstance(index, (list, tuple)):
            return [self._get_lr(index)]
        return [self._get_lr(i) for i in index] if own_hooks(type(self)) else self._get_lrs(index)

    def _decays(self, index: Any) -> Sequence[float]:
        if not isinstance(index, (list, tuple)):
            return [self._get_wd(index)]
        return [self._get_wd(i) for i in index] if own_hooks(type(self)) else self._get_wds(index)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Like `update`, on the float32 copies of 16-bit weights when `multi_precision` is set."""
        if self.multi_precision:
            self._on_copies(self.update, index, weight, grad, state)
        else:
            self.update(index, weight, grad, state)

    def _on_copies(self, update: Callable[..., None], index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Call `update` with the float32 copies that states hold, and write them to their 16-bit weights."""
        _, weights, grads, states = as_lists(index, weight, grad, state)
        masters = [s[0] if w.dtype in HALF else w for w, s in zip(weights, states, strict=True)]
        wide = [
            (g.astype("float32"), s[1]) if w.dtype in HALF else (g, s)
            for w, g, s in zip(weights, grads, states, strict=True)
        ]
        if isinstance(index, (list, tuple)):
            update(index, masters, [g for g, _ in wide], [s for _, s in wide])
        else:
            update(index, masters[0], *wide[0])
        for w, m in zip(weights, masters, strict=True):
            if m is not w:
                invoke_out(update_call("Cast", dtype=np.dtype(w.dtype).name), (m,), (w,))

    def _steps(
        self,
        indices: Sequence[Any],
        weights: Sequence[NDArray],
        grads: Sequence[NDArray],
        states: Sequence[Any],
        lrs: Sequence[float],
        wds: Sequence[float],
    ) -> None:
        for one in zip(indices, weights, grads, states, lrs, wds, strict=True):
            self._step(*one)

    def _step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, lr: float, wd: float) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define update(index, weight, grad, state)")

    @property
    def _clip(self) -> float:
        return self.clip_gradient or -1.0

    def _set_current_context(self, device_id: int) -> None:
        """Count updates from now on in the table of device `device_id`."""
        self._index_update_count = self._all_index_update_counts.setdefault(device_id, {})

    def _update_count(self, index: Any) -> None:
        """Count an update of one index or a list of them."""
        counts, begin, most = self._index_update_count, self.begin_num_update, self.num_update
        if isinstance(index, (list, tuple)) and index:
            before = list(map(counts.get, index))
            n = before[0]
            if n is not None and before.count(n) == len(before):  # all of them were updated as often, as mostly
                counted = dict.fromkeys(index, n + 1)
                if len(counted) == len(before):
                    counts.update(counted)
                    self.num_update = max(most, n + 1)
                    return
        for i in index if isinstance(index, (list, tuple)) else (index,):
            counts[i] = n = counts.get(i, begin) + 1
            if n > most:
                most = n
        self.num_update = most

    def _multipliers(self, indices: Sequence[Any], attribute: str, table: Mapping[Any, float]) -> list[float]:
        if self.param_dict:
            with suppress(KeyError):
                return list(map(attrgetter(attribute), map(self.param_dict.__getitem__, indices)))
        out = []
        for i in indices:
            if i in self.param_dict:
                out.append(getattr(self.param_dict[i], attribute))
            elif i in table:
                out.append(table[i])
            else:
                out.append(table.get(self.idx2name.get(i), 1.0))
        return out

    def multipliers(self, indices: Sequence[Any]) -> list[tuple[Any, float, float, str]]:
        """Return each index with the factors of its rate and of its weight decay, and its name."""
        rates = self._multipliers(indices, "lr_mult", self.lr_mult)
        decays = self._multipliers(indices, "wd_mult", self.wd_mult)
        return [
            (i, float(rate), float(decay), str(self.idx2name.get(i, i)))
            for i, rate, decay in zip(indices, rates, decays, strict=True)
        ]

    def _get_lrs(self, indices: Sequence[Any]) -> list[float]:
        """Rates of the indices at the current update count."""
        return self._rates_from(self.learning_rate, indices)

    def _rates_from(self, lr: float, indices: Sequence[Any]) -> list[float]:
        if not self.param_dict and not self.lr_mult:
            return [lr] * len(indices)
        return products(lr, self._multipliers(indices, "lr_mult", self.lr_mult))

    def _get_wds(self, indices: Sequence[Any]) -> list[float]:
        """Weight decays of the indices."""
        if not self.param_dict and not self.wd_mult:
            return [self.wd] * len(indices)
        return products(self.wd, self._multipliers(indices, "wd_mult", self.wd_mult))

    def _get_lr(self, index: Any) -> float:
        return self._get_lrs([index])[0]

    def _get_wd(self, index: Any) -> float:
        return self._get_wds([index])[0]

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the Gluon parameters, which are attached again after loading."""
        state = self.__dict__.copy()
        state.pop("param_dict", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = {**state, "param_dict": {}}


def products(x: float, factors: list[float]) -> list[float]:
    """Return a number times each of some factors."""
    return [x] * len(factors) if factors.count(1.0) == len(factors) else [x * f for f in factors]


# Functions, for optimizers of users may have attributes of any name.
def update_counts(optimizer: Optimizer) -> dict[Any, int]:
    """Return how often each index was updated on the current device."""
    return optimizer._index_update_count


def update_counts_by_device(optimizer: Optimizer) -> dict[int, dict[Any, int]]:
    """Return the `update_counts` of each device's number."""
    return optimizer._all_index_update_counts


def count_updates(optimizer: Optimizer, indices: Sequence[Any]) -> None:
    """Count an update of some indices, by the method that subclasses replace."""
    optimizer._update_count(indices)


def zeros_like(weight: NDArray, dtype: Any = None) -> NDArray:
    """A state array of the weight's shape and context."""
    return zeros(weight.shape, ctx=weight.context, dtype=weight.dtype if dtype is None else dtype)


def register(klass: Kind) -> Kind:
    """Register an Optimizer class under its lower-cased name, replacing an earlier one; usable as a decorator."""
    given: Any = klass
    if not (isinstance(given, type) and issubclass(given, Optimizer)):
        raise ArgumentError(f"optimizer.register: {klass!r}: expected a subclass of Optimizer")
    OPTIMIZERS.register(klass)
    return klass


def registered_class(kind: type) -> type:
    """The registered class that decides how optimizers of class `kind` update: one that `kind` only adds methods to.

    `kind` itself if it is registered, a user's, or changes how weights are updated.
    """
    package = __name__.partition(".")[0]
    own = {name for name in dir(Optimizer) if not name.startswith("__")}
    for c in kind.__mro__:
        if c.__name__ in OPTIMIZERS and OPTIMIZERS.get(c.__name__) is c:
            return c
        if c.__module__.partition(".")[0] != package or not own.isdisjoint(vars(c)):
            break
    return kind


def create(name: Any, **kwargs: Any) -> Optimizer:
    """Build an optimizer by (case-insensitive) name, class, or return an instance as it is.

    Raises:
        ArgumentError: unknown name, with the nearest known one. ArgumentTypeError: neither of these.

    Example:
        >>> create("sgd", learning_rate=0.1, momentum=0.9).momentum
        0.9
    """
    if not isinstance(name, (str, type, Optimizer)):
        raise ArgumentTypeError(f"optimizer.create: name={name!r}: expected a name, a class or an Optimizer")
    return OPTIMIZERS.create(name, **kwargs)


@register
class Test(Optimizer):
    """`w + rescale_grad * grad`, with the new weight as the state; for tests of stores and trainers."""

    __test__ = False

    def create_state(self, index: Any, weight: NDArray) -> NDArray:
        """Zeros of the weight's shape."""
        return zeros(weight.shape, ctx=weight.context)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Change `weight` and `state` by `grad`, all of them arrays or lists of arrays; updates are not counted."""
        for w, g, s in zip(*as_lists(weight, grad, state), strict=True):
            w += g * self.rescale_grad
            s[:] = w


# MXNet has all optimizers in this module.
__getattr__, __dir__ = lazy_reexport(__name__, "dualmx.optimizer")
