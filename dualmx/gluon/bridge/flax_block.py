"""`FlaxBlock`: a Flax module as a Gluon block."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import numpy as np

from ... import autograd, initializer
from ...core.context import Context
from ...core.errors import ArgumentError, ArgumentTypeError
from ...ndarray import NDArray, invoke
from ...op.registry import Call
from ..base_block import Block
from ..parameter import Parameter, context_list
from .functional import pure_call

# Keyword of a module's __call__ -> what it gets in training.
_MODE_KEYWORDS = {"train": True, "training": True, "is_training": True, "deterministic": False,
                  "use_running_average": False}  # fmt: skip


class FlaxBlock(Block):
    """Run a `flax.linen` module as a block: its variables become Gluon parameters, gradients flow through autograd.

    Variables of the collection `params` are trained; those of other collections (such as BatchNorm's `batch_stats`)
    have no gradient and are written back while training. If the module's `__call__` has an argument named `train`,
    `training`, `is_training`, `deterministic` or `use_running_average`, it follows autograd's training flag. Random
    numbers for `dropout` come from dualmx's generator.

    Args:
        module: the Flax module.
        example: inputs (arrays, or anything with shape and dtype) that tell the parameters' shapes. Without them the
            parameters are made, and initialized by the module, at the first call.
        prefix: of parameter names.

    Raises:
        ArgumentTypeError: `module` is no Flax module.

    Example:
        >>> import dualmx as mx, flax.linen as linen
        >>> net = mx.gluon.bridge.FlaxBlock(linen.Dense(3), mx.nd.ones((1, 4)), prefix="flax_")
        >>> net.initialize()
        >>> net(mx.nd.ones((2, 4))).shape
        (2, 3)
        >>> sorted(net.collect_params())
        ['flax_params_bias', 'flax_params_kernel']
    """

    def __init__(self, module: Any, *example: Any, prefix: str | None = None):
        super().__init__(prefix=prefix)
        if not (hasattr(module, "init") and hasattr(module, "apply")):
            raise ArgumentTypeError(f"FlaxBlock: expected a flax.linen module, got {type(module).__name__}")
        self._module = module
        arguments = inspect.signature(type(module).__call__).parameters
        self._mode = next((k for k in _MODE_KEYWORDS if k in arguments), None)
        self._variables: list[Parameter] | None = None
        self._treedef: Any = None
        self._trained: list[bool] = []
        self._calls: dict[bool, tuple[Call, Any]] = {}
        if example:
            self._declare([jax.ShapeDtypeStruct(tuple(e.shape), np.dtype(e.dtype)) for e in example])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._module})"

    def _keywords(self, train: bool) -> dict[str, bool]:
        return {} if self._mode is None else {self._mode: _MODE_KEYWORDS[self._mode] == train}

    def _start(self, key: Any, inputs: Any) -> Any:
        """The module's initial variables."""
        keys = dict(zip(("params", "dropout"), jax.random.split(key), strict=True))
        return self._module.init(keys, *inputs, **self._keywords(False))

    def _declare(self, structs: list[jax.ShapeDtypeStruct]) -> None:
        """Make a parameter for every variable of the module."""
        key = jax.eval_shape(lambda: jax.random.key(0))
        shapes = jax.eval_shape(self._start, key, structs)
        paths, self._treedef = jax.tree_util.tree_flatten_with_path(shapes)
        start = _InitialVariables(self, structs)
        self._variables, self._trained = [], []
        for at, (path, leaf) in enumerate(paths):
            names = [str(getattr(p, "key", getattr(p, "name", p))) for p in path]
            trained = names[0] == "params"
            param = self.params.get(
                "_".join(names),
                shape=leaf.shape,
                dtype=leaf.dtype,
                init=_FlaxInitializer(start, at),
                grad_req="write" if trained else "null",
                differentiable=trained,
            )
            self._reg_params[".".join(names)] = param
            self._variables.append(param)
            self._trained.append(trained)

    def forward(self, *args: Any) -> Any:
        """Apply the module; returns arrays nested as the module's result."""
        for a in args:
            if not isinstance(a, NDArray):
                raise ArgumentTypeError(f"{self.name}: expected NDArrays, got {type(a).__name__}")
        if not args:
            raise ArgumentError(f"{self.name}: expected at least one input")
        ctx = args[0].context
        if self._variables is None:
            self._declare([jax.ShapeDtypeStruct(a.shape, np.dtype(a.dtype)) for a in args])
            self.initialize(ctx=context_list(ctx))
        assert self._variables is not None
        values = [p.data(ctx) for p in self._variables]
        train = autograd.is_training()
        if train not in self._calls:
            self._calls[train] = self._lower(train, args)
        call, form = self._calls[train]
        return jax.tree_util.tree_unflatten(form, invoke(call, [*values, *args]))

    def _lower(self, train: bool, args: tuple[Any, ...]) -> tuple[Call, Any]:
        """The call of the module in one mode, and the form of its result."""
        assert self._variables is not None
        n = len(self._variables)
        written = [i for i, trained in enumerate(self._trained) if train and not trained]
        collections = sorted(self._collections())

        def run(*data: Any, key: Any = None) -> tuple[Any, Any]:
            variables = jax.tree_util.tree_unflatten(self._treedef, data[:n])
            extra: dict[str, Any] = self._keywords(train)
            if train:
                extra["rngs"] = {"dropout": key}
            if not written:
                return self._module.apply(variables, *data[n:], **extra), []
            result, changed = self._module.apply(variables, *data[n:], mutable=collections, **extra)
            after = jax.tree_util.tree_leaves({**variables, **changed})
            return result, [after[i] for i in written]

        def body(*data: Any, key: Any = None) -> tuple[Any, ...]:
            # Flax computes in the types of its inputs; under 64-bit rules its own constants would widen them.
            with jax.enable_x64(False):
                result, after = run(*data, key=key)
            return (*jax.tree_util.tree_leaves(result), *after)

        structs = [jax.ShapeDtypeStruct(tuple(p.shape or ()), np.dtype(p.dtype)) for p in self._variables]
        structs += [jax.ShapeDtypeStruct(a.shape, np.dtype(a.dtype)) for a in args]
        key = jax.eval_shape(lambda: jax.random.key(0))
        shapes, _ = jax.eval_shape(lambda data, key: run(*data, key=key), structs, key)
        leaves, form = jax.tree_util.tree_flatten(shapes)
        return pure_call(f"flax {type(self._module).__name__}", body, len(leaves), written, random=train), form

    def _collections(self) -> set[str]:
        assert self._treedef is not None
        tree = jax.tree_util.tree_unflatten(self._treedef, range(self._treedef.num_leaves))
        return {name for name in tree if name != "params"}


class _InitialVariables:
    """The module's initial variables, computed once for all parameters of an `initialize()`."""

    def __init__(self, block: FlaxBlock, structs: list[jax.ShapeDtypeStruct]):
        self._block, self._structs = block, structs
        self._values: list[NDArray] = []
        self._given: set[int] = set()

    def take(self, at: int, ctx: Context) -> NDArray:
        """Return variable number `at`; a repeated request draws all values again."""
        if not self._values or at in self._given:
            self._values = self._draw(ctx)
            self._given = set()
        self._given.add(at)
        return self._values[at]

    def _draw(self, ctx: Context) -> list[NDArray]:
        def body(*, key: Any) -> tuple[Any, ...]:
            with jax.enable_x64(False):
                zeros = [jax.numpy.zeros(s.shape, s.dtype) for s in self._structs]
                return tuple(jax.tree_util.tree_leaves(self._block._start(key, zeros)))

        call = pure_call("flax init", body, self._block._treedef.num_leaves, random=True)
        with ctx:
            return invoke(call, [])


class _FlaxInitializer(initializer.Initializer):
    """Initializer of a variable: what the Flax module itself starts from."""

    def __init__(self, start: _InitialVariables, at: int):
        super().__init__()
        self._start, self._at = start, at

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = self._start.take(self._at, arr.context)
