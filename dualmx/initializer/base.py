"""Base of initializers: `InitDesc`, the rule by name suffix, JSON, registry."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from ..core.argcheck import require_instance
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.registry import Registry
from ..namespace import nd
from ..ndarray import NDArray

INITIALIZERS = Registry("initializer")
_log = logging.getLogger(__name__)


class InitDesc(str):
    """A variable's name with what its initializer needs to know besides.

    Args:
        name: the variable's name.
        attrs: its attributes; `__init__` holds the JSON of its own initializer, which then wins.
        global_init: the initializer of the whole model, for initializers that delegate to it.
    """

    attrs: Mapping[str, str]
    global_init: Initializer | None

    def __new__(
        cls, name: str, attrs: Mapping[str, str] | None = None, global_init: Initializer | None = None
    ) -> InitDesc:
        made = super().__new__(cls, name)
        made.attrs = attrs or {}
        made.global_init = global_init
        return made


def _describe(arr: NDArray) -> str:
    return str(float(((arr * arr).mean() ** 0.5).asscalar()))


class Initializer:
    """Base of initializers: fills an array in place, by the end of the variable's name.

    Names ending in `weight` get `_init_weight`, which subclasses define; `bias`, `beta`, `min` and moving means get 0,
    `gamma`, `max` and moving variances 1. Other names raise, unless the variable carries an `__init__` attribute.
    Of plain strings, those that begin with `upsampling` get a bilinear kernel and those with `stn_loc` the identity.

    Args:
        **kwargs: parameters, kept for `dumps`.

    Example:
        >>> import dualmx as mx
        >>> @register
        ... class Halves(Initializer):
        ...     def _init_weight(self, name, arr):
        ...         arr[:] = 0.5
        >>> w = mx.nd.zeros((2,))
        >>> Halves()("fc_weight", w)
        >>> w.asnumpy()
        array([0.5, 0.5], dtype=float32)
    """

    def __init__(self, **kwargs: Any):
        self._kwargs = kwargs
        self._verbose = False
        self._print_func: Callable[[NDArray], str] = _describe

    def set_verbosity(self, verbose: bool = False, print_func: Callable[[NDArray], str] | None = None) -> Initializer:
        """Log every initialized variable with `print_func(array)`, the root mean square by default."""
        self._verbose = verbose
        self._print_func = print_func or _describe
        return self

    def dumps(self) -> str:
        """JSON `["name", {parameters}]`, which `create` accepts."""
        return json.dumps([type(self).__name__.lower(), self._kwargs], default=_plain)

    def __call__(self, desc: str, arr: NDArray) -> None:
        """Fill `arr`, the variable described by `desc` (a name or `InitDesc`).

        Raises:
            ArgumentError: the name has no known ending and the variable no initializer of its own.
        """
        if not isinstance(desc, str):
            raise ArgumentTypeError(f"initializer: {desc!r}: expected a name or an InitDesc")
        require_instance(type(self).__name__, "arr", arr, NDArray, "an NDArray")
        if not isinstance(desc, InitDesc):
            self._legacy_init(desc, arr)
            return
        own = desc.attrs.get("__init__")
        if desc.global_init is None:
            desc.global_init = self
        if own:
            create(own)._init_weight(desc, arr)
            self._verbose_print(desc, own, arr)
            return
        for ending, fill in (
            *self._endings(),
            ("weight_quantize", self._init_quantized_weight),
            ("bias_quantize", self._init_quantized_bias),
        ):
            if desc.endswith(ending):
                fill(desc, arr)
                self._verbose_print(desc, ending, arr)
                return
        self._init_default(desc, arr)

    def _endings(self) -> tuple[tuple[str, Callable[[str, NDArray], None]], ...]:
        """End of a name, and what fills it; the first that fits counts."""
        return (
            ("weight", self._init_weight),
            ("bias", self._init_bias),
            ("gamma", self._init_gamma),
            ("beta", self._init_beta),
            ("min", self._init_zero),
            ("max", self._init_one),
        )

    def _legacy_init(self, name: str, arr: NDArray) -> None:
        """Fill `arr`, of which only the name is known."""
        for beginning, ending, fill in (
            ("upsampling", "", self._init_bilinear),
            ("stn_loc", "weight", self._init_zero),
            ("stn_loc", "bias", self._init_loc_bias),
            *(("", ending, fill) for ending, fill in self._endings()),
            *(("", ending, self._init_zero) for ending in ("moving_mean", "moving_inv_var", "moving_avg")),
            ("", "moving_var", self._init_one),
        ):
            if name.startswith(beginning) and name.endswith(ending):
                fill(name, arr)
                return
        self._init_default(name, arr)

    def _verbose_print(self, desc: str, init: str, arr: NDArray) -> None:
        """Log the initialization of a variable if logging is on."""
        if self._verbose:
            _log.info("Initialized %s as %s: %s", desc, init, self._print_func(arr))

    def _init_zero(self, _: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_one(self, _: str, arr: NDArray) -> None:
        arr[:] = 1.0

    def _init_bilinear(self, name: str, arr: NDArray) -> None:
        create("bilinear")._init_weight(name, arr)

    def _init_loc_bias(self, name: str, arr: NDArray) -> None:
        if arr.shape[0] != 6:
            raise ArgumentError(f"initializer: {str(name)!r} has shape {arr.shape}: an affine map has 6 numbers")
        arr[:] = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]

    def _init_bias(self, _: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_quantized_bias(self, _: str, arr: NDArray) -> None:
        arr[:] = 0

    def _init_gamma(self, _: str, arr: NDArray) -> None:
        arr[:] = 1.0

    def _init_beta(self, _: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_weight(self, name: str, arr: NDArray) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define _init_weight(name, arr)")

    def _init_quantized_weight(self, _: str, arr: NDArray) -> None:
        arr[:] = nd.random.randint(-127, 127, shape=arr.shape, dtype="int32", ctx=arr.context).astype(arr.dtype)

    def _init_default(self, name: str, arr: NDArray) -> None:
        raise ArgumentError(
            f"initializer: the name {str(name)!r} does not tell how to fill it: names ending in weight, bias, gamma, "
            "beta, min or max do; give other variables their own, as in sym.var(name, init=mx.init.Zero())"
        )

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.dumps() == other.dumps()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in self._kwargs.items())
        return f"{type(self).__name__}({shown})"


def _plain(value: Any) -> Any:
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    return value.tolist()


def register(klass: type) -> type:
    """Register an Initializer class under its lower-cased name; usable as a decorator."""
    if not (isinstance(klass, type) and issubclass(klass, Initializer)):
        raise ArgumentError(f"initializer.register: {klass!r}: expected a subclass of Initializer")
    return INITIALIZERS.register(klass)


def alias(*names: str) -> Callable[[type], type]:
    """Decorator that registers a class under `names` as well as its own."""
    return INITIALIZERS.alias(*names)


def create(initializer: Any, *args: Any, **kwargs: Any) -> Any:
    """Build an initializer from a name, the JSON of `dumps`, a class, or return an instance as it is.

    Raises:
        ArgumentError: unknown name.

    Example:
        >>> create("xavier").magnitude
        3.0
        >>> create('["normal", {"sigma": 2}]').sigma
        2
    """
    return INITIALIZERS.create(initializer, *args, **kwargs)


__all__ = ["InitDesc", "Initializer", "alias", "create", "register"]
