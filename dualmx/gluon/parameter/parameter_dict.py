"""`ParameterDict`: parameters by name, with sharing, saving and loading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ... import initializer
from ...core.context import Context
from ...core.dtypes import as_dtype
from ...core.errors import ArgumentError, ArgumentKeyError, ArgumentTypeError, suggest
from ...namespace import nd
from ...ndarray import NDArray
from .constant import Constant
from .parameter import Parameter


class ParameterDict:
    """Parameters by full name, in order of creation, under a common prefix.

    Args:
        prefix: put before every name given to `get`.
        shared: another dictionary whose parameters `get` reuses when the name exists there.

    Example:
        >>> import dualmx as mx
        >>> params = mx.gluon.ParameterDict("net_")
        >>> params.get("weight", shape=(2, 3)).name
        'net_weight'
    """

    def __init__(self, prefix: str = "", shared: ParameterDict | None = None):
        self._prefix = prefix
        self._params: dict[str, Parameter] = {}
        self._shared = shared

    def __repr__(self) -> str:
        head = self._prefix + " " if self._prefix else ""
        return head + "(\n" + "\n".join(f"  {p}" for p in self._params.values()) + "\n)"

    def __getitem__(self, key: str) -> Parameter:
        try:
            return self._params[key]
        except KeyError:
            raise ArgumentKeyError(f"ParameterDict: no parameter {key!r}; {suggest(key, self._params)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __len__(self) -> int:
        return len(self._params)

    def __contains__(self, key: str) -> bool:
        return key in self._params

    def items(self) -> Any:
        """Pairs of name and parameter."""
        return self._params.items()

    def keys(self) -> Any:
        """Full names."""
        return self._params.keys()

    def values(self) -> Any:
        """Parameters."""
        return self._params.values()

    @property
    def prefix(self) -> str:
        """Prefix of every name passed to `get`."""
        return self._prefix

    def _find(self, name: str) -> Parameter | None:
        found = self._params.get(name)
        if found is None and self._shared is not None:
            found = self._shared._find(name)
            if found is not None:
                self._params[name] = found
        return found

    def get(self, name: str, **kwargs: Any) -> Parameter:
        """Return the parameter `prefix + name`, creating it from `kwargs` if there is none yet.

        Raises:
            ArgumentError: it exists with other attributes than those in `kwargs`.
        """
        full = self._prefix + name
        found = self._find(full)
        if found is None:
            found = self._params[full] = Parameter(full, **kwargs)
            return found
        for key, wanted in kwargs.items():
            held = getattr(found, key, None)
            if held is None:
                setattr(found, key, wanted)
            elif key == "shape" and wanted is not None:
                found._shape = _merge_shapes(found, (wanted,) if isinstance(wanted, int) else tuple(wanted))
            elif key == "allow_deferred_init":
                continue  # what an initialize() to come may do, no property of the array
            elif key == "dtype" and as_dtype(wanted) == as_dtype(held):
                continue
            elif wanted is not None and wanted != held:
                raise ArgumentError(
                    f"Parameter {full!r} exists with {key}={held!r}, which differs from the requested {wanted!r}"
                )
        return found

    def get_constant(self, name: str, value: Any = None) -> Constant:
        """Return the constant `prefix + name`, creating it from `value` if there is none yet.

        Raises:
            KeyError: it does not exist and no value is given.
            ArgumentError: it exists with another value, or is no constant.
        """
        full = self._prefix + name
        found = self._find(full)
        if found is None:
            if value is None:
                raise KeyError(f"no constant named {full!r}; give a value to create it")
            found = self._params[full] = Constant(full, value)
        elif not isinstance(found, Constant):
            raise ArgumentError(f"Parameter {full!r} exists, but is not a constant")
        elif value is not None:
            given = value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)
            if not np.array_equal(given, found.value.asnumpy()):
                raise ArgumentError(f"Constant {full!r} exists with another value")
        return found

    def update(self, other: ParameterDict) -> None:
        """Add the parameters of `other`; raises `ArgumentError` if a name is a different parameter here."""
        for name, param in other.items():
            if self._params.get(name, param) is not param:
                raise ArgumentError(f"cannot merge: both dictionaries have a parameter {name!r}, and they differ")
        self._params.update(other.items())

    def initialize(
        self,
        init: Any = None,
        ctx: Context | list[Context] | None = None,
        verbose: bool = False,
        force_reinit: bool = False,
    ) -> None:
        """Initialize all parameters; `init` (default `Uniform(0.07)`) serves those without an own initializer."""
        default = initializer.create(init if init is not None else initializer.Uniform())
        if verbose and hasattr(default, "set_verbosity"):
            default.set_verbosity(verbose=verbose)
        for param in self.values():
            param.initialize(None, ctx, default, force_reinit=force_reinit)

    def zero_grad(self) -> None:
        """Set all gradients to zero."""
        for param in self.values():
            if param.is_initialized and param.grad_req != "null":
                for grad in param.list_grad():
                    grad[:] = 0

    def reset_ctx(self, ctx: Context | list[Context]) -> None:
        """Move all parameters to other contexts."""
        for param in self.values():
            param.reset_ctx(ctx)

    def list_ctx(self) -> list[Context]:
        """Return the contexts of all parameters, each once."""
        return list(dict.fromkeys(c for p in self.values() for c in p.list_ctx()))

    def setattr(self, name: str, value: Any) -> None:
        """Set attribute `name` of all parameters, for example `grad_req`."""
        for param in self.values():
            setattr(param, name, value)

    def save(self, filename: str, strip_prefix: str = "") -> None:
        """Write all values to a `.params` file under their full names without `strip_prefix`.

        Raises:
            ArgumentError: a name does not start with `strip_prefix`.
        """
        values = {}
        for name, param in self.items():
            if not name.startswith(strip_prefix):
                raise ArgumentError(
                    f"strip_prefix={strip_prefix!r}: parameter {name!r} does not start with it; it may be shared "
                    "from another block, or a child was made outside `with self.name_scope():`"
                )
            values[name[len(strip_prefix) :]] = param._reduce()
        nd.save(filename, values)

    def load(
        self,
        filename: str,
        ctx: Context | list[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        restore_prefix: str = "",
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Read values from a `.params` file; see `load_dict`."""
        self.load_dict(
            nd.load(filename), ctx, allow_missing, ignore_extra, restore_prefix, filename, cast_dtype, dtype_source
        )

    def load_dict(
        self,
        param_dict: Any,
        ctx: Context | list[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        restore_prefix: str = "",
        filename: str | None = None,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Take values from a dictionary of arrays; `arg:` and `aux:` before names are dropped.

        Args:
            ctx: where to put parameters that are not initialized yet.
            allow_missing: accept that values of some parameters are missing.
            ignore_extra: accept values that belong to no parameter.
            restore_prefix: put before every key.
            cast_dtype: convert values of another dtype; `dtype_source` says whether to `"current"` or `"saved"`.

        Raises:
            ArgumentError: missing or extra values, or a shape or dtype that does not fit.
        """
        where = f" in file {filename!r}" if filename else ""
        if not hasattr(param_dict, "items"):
            raise ArgumentTypeError(f"load: expected named arrays{where}, got a list")
        values = {restore_prefix + k.removeprefix("arg:").removeprefix("aux:"): v for k, v in param_dict.items()}
        for name in self.keys():
            if not name.startswith(restore_prefix):
                raise ArgumentError(f"restore_prefix={restore_prefix!r}: parameter {name!r} does not start with it")
            if not allow_missing and name not in values:
                raise ArgumentError(
                    f"Parameter {name!r} is missing{where}, which has {brief(values)}; do both networks have the "
                    "same prefix? Set allow_missing=True to keep what is missing as it is"
                )
        for name, value in values.items():
            if name in self._params:
                self._params[name]._load_init(value, ctx, cast_dtype=cast_dtype, dtype_source=dtype_source)
            elif not ignore_extra:
                raise ArgumentError(
                    f"Parameter {name!r}{where} belongs to nothing here; known are {brief(self._params)}. "
                    "Set ignore_extra=True to skip it"
                )


def brief(names: Iterable[str], most: int = 8) -> str:
    """The first and last few of `names`, quoted, for an error message."""
    quoted = [repr(n) for n in names]
    if len(quoted) > most:
        quoted = [*quoted[: most // 2], "...", *quoted[-most // 2 :]]
    return ", ".join(quoted) or "nothing"


def _merge_shapes(param: Parameter, wanted: tuple[int, ...]) -> tuple[int, ...]:
    held = param._shape
    if held is None:
        return wanted
    if len(held) != len(wanted) or any(a > 0 and b > 0 and a != b for a, b in zip(held, wanted, strict=True)):
        raise ArgumentError(f"Parameter {param.name!r} exists with shape={held}, requested is {wanted}")
    return tuple(max(a, b) for a, b in zip(held, wanted, strict=True))
