"""Executables of single operators: compiled once for their inputs and device, kept in memory and on disk."""

from __future__ import annotations

import math
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import numpy as np

from ..core.context import Context
from ..op.lowering_context import lowering_on_platform
from .devices import device_of, sharding_of, x64
from .events import counters
from .executable import compile_lowered, persistent_cache, sub_jaxprs
from .first_tier import Unsupported, Work

# Operators, with their parameters, for sets of inputs. What is used least recently leaves first; programs hold theirs.
MAX_EXECUTABLES = 4096


class OperatorExecutable:
    """A function of one operator, compiled for its inputs and device.

    Attributes:
        call: the compiled function; None until it is compiled.
        results: shapes and dtypes of what it returns.
        work: what it does.
        n_bytes: size of its results.
    """

    __slots__ = ("call", "results", "work", "n_bytes", "_platform", "_traced", "_lock")

    def __init__(self, function: Callable[..., Any], args: Any, ctx: Context):
        self.call: Any = None
        self._platform, self._lock = device_of(ctx).platform, threading.Lock()
        place = sharding_of(ctx)
        specs = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), args)
        with x64(), lowering_on_platform(self._platform):
            self._traced: Any = jax.jit(function, keep_unused=True, out_shardings=place).trace(*specs)
            self.results = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), self._traced.out_info)
        self.work = _work_of(self._traced.jaxpr.jaxpr)
        self.n_bytes = sum(math.prod(x.shape) * np.dtype(x.dtype).itemsize for x in jax.tree.leaves(self.results))

    def compile(self) -> bool:
        """Compile it; False if that was done before."""
        with self._lock:
            if self.call is not None:
                return False
            with x64(), lowering_on_platform(self._platform):
                lowered = self._traced.lower()
            self.call = compile_lowered(lowered, self._platform, self._traced.jaxpr.jaxpr)
            self._traced = None
            return True


def _work_of(jaxpr: Any) -> Work:
    """Count what a jaxpr does.

    Raises:
        Unsupported: it calls back. The VJP runs an operator once more, which the called function would notice.
    """
    total = Work(0, 0, 0, 0)
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if "callback" in name:
            raise Unsupported(name)
        inner = [_work_of(body) for body in sub_jaxprs(eqn)]
        is_product, is_convolution = name == "dot_general", name == "conv_general_dilated"
        is_loop = name in ("scan", "while")
        own = Work(not (inner or is_product or is_convolution), is_product, is_convolution, is_loop)
        total = Work(*map(sum, zip(total, own, *inner, strict=True)))
    return total


class _Cache:
    """The executables of this process."""

    def __init__(self) -> None:
        self._found: OrderedDict[Hashable, OperatorExecutable] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, function: Callable[..., Any], static: tuple[Any, ...], args: Any, ctx: Context) -> OperatorExecutable:
        """Return that of a function, whose first arguments are `static`, for arguments like `args`."""
        leaves, structure = jax.tree.flatten(args)
        key = (function, static, structure, tuple([(x.shape, np.dtype(x.dtype)) for x in leaves]), device_of(ctx))
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
                return found
        made = OperatorExecutable(partial(function, *static), args, ctx)
        with self._lock:
            made = self._found.setdefault(key, made)
            while len(self._found) > MAX_EXECUTABLES:
                self._found.popitem(last=False)
        return made

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._found.clear()


cache = _Cache()


def compile_all(executables: Iterable[OperatorExecutable]) -> int:
    """Compile those that are not, several at once; returns how many there were."""
    missing = [exe for exe in dict.fromkeys(executables) if exe.call is None]
    if not missing:
        return 0
    with persistent_cache(), ThreadPoolExecutor(min(len(missing), os.cpu_count() or 1)) as pool:
        n_compiled = sum(pool.map(OperatorExecutable.compile, missing))
    counters.operator_compiles += n_compiled
    return n_compiled
