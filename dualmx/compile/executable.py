"""Executables: programs compiled ahead of time, and the persistent cache.

Donation pairs each output with the buffer that it replaces. The cache is on only while dualmx compiles.

Programs for other processes are StableHLO with JAX's own calling convention.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import jax
import numpy as np
from jax import export as jax_export
from jax.experimental.compilation_cache import compilation_cache

from ..core import knobs, process
from ..core.context import Context
from ..graph.explain import cache_miss_reason
from ..graph.interpreter import JaxExecutor, run
from ..graph.loops import MIN_STEPS, with_loops
from ..graph.program import Alias, program_of_prefix
from ..graph.trie import LEAF, State, Value, trie
from ..op.lowering_context import device_axis, lowering_on, lowering_on_platform
from .cpu.fused_matmul import has_fusible_operand, has_loop_of_products, sub_jaxprs
from .cpu.onednn.ffi_handlers import available
from .cpu.onednn.rewrite import REWRITE_RULES, materialize_once
from .cpu.transpose_sinking import sink_transposes
from .devices import device_of, sharding_of, x64
from .events import CompileEvent, counters, listeners
from .multi_device import AXIS, DeviceGroup

_log = logging.getLogger(__name__)
_lock = threading.RLock()
LONG_SECONDS = 2.0
_SETTINGS = {"jax_persistent_cache_min_compile_time_secs": 0.0, "jax_persistent_cache_min_entry_size_bytes": -1}


def describe_program(steps: Sequence[State]) -> str:
    """Return how large a program is, and where its last operation was recorded."""
    where = next((f", the last at {s.user_line[0]}:{s.user_line[1]}" for s in reversed(steps) if s.user_line), "")
    return f"a program of {sum(s.call is not None for s in steps)} operations{where}"


@contextlib.contextmanager
def announcement(description: str) -> Iterator[None]:
    """Log that this thread waits for the compilation of a program, if it does for long."""
    text = "compiling %s takes more than %g s; it is kept for later runs, and on disk for later processes"
    timer = threading.Timer(LONG_SECONDS, _log.warning, (text, description, LONG_SECONDS))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def persistent_cache() -> Iterator[None]:
    """Use dualmx's cache folder in this scope, and restore the user's JAX settings afterwards.

    A folder that the user configured for JAX is used instead and nothing is touched.
    """
    folder = os.path.expanduser(knobs.CACHE.read())
    if not folder or jax.config.values["jax_compilation_cache_dir"]:
        yield
        return
    with _lock:
        before = {name: getattr(jax.config, name) for name in _SETTINGS}
        # The folder's state is settled at first use, so both changes need a reset to be seen.
        compilation_cache.reset_cache()
        jax.config.update("jax_compilation_cache_dir", folder)
        for name, value in _SETTINGS.items():
            jax.config.update(name, value)
        try:
            yield
        finally:
            jax.config.update("jax_compilation_cache_dir", None)
            for name, value in before.items():
                jax.config.update(name, value)
            compilation_cache.reset_cache()


def lower(
    steps: Sequence[State], results: Sequence[Value], shardings: Sequence[Any] = ()
) -> Callable[[Any, Any, Sequence[Any]], list[Any]]:
    """Return `f(runtime, keys, leaves) -> results` for a chain of steps.

    `runtime` is a float32 vector of runtime scalars, `keys` a (k, 2) uint32 array of random keys, `leaves` the arrays
    that enter, in order. `shardings` tells how leaves are cut over a mesh; their gradients are cut alike.
    """
    program = program_of_prefix(steps, results)
    cut = dict(enumerate(shardings))
    cut.update((s.out, cut[s.source]) for s in program.steps if isinstance(s, Alias) and s.source in cut)
    is_rolled = len(program.steps) >= MIN_STEPS and not cut

    def lowered(runtime: Any, keys: Any, leaves: Sequence[Any]) -> list[Any]:
        executor = JaxExecutor(lambda n: jax.random.wrap_key_data(keys[n]), runtime, cut)
        return run(with_loops(program) if is_rolled else program, leaves, executor)

    return lowered


def export_stablehlo(
    fn: Callable[..., Any], args: Sequence[jax.Array], platforms: Sequence[str] | None
) -> jax_export.Exported:
    """Return the program of a function for arrays like `args`; see `jax.export.export` for `platforms`."""
    with x64():
        return jax_export.export(jax.jit(fn), platforms=platforms)(*args)


class Executable:
    """One compiled program.

    Attributes:
        call: the compiled function of `[runtime,] [keys,] *leaves, *scratch`; None if nothing is computed.
        outputs: the values it yields, in the order of its results.
        donate: positions of leaves whose buffers it takes over.
        donated_types: avals of the buffers it recycles for outputs that have no old value in the program.
        constant_outputs, passthrough_leaves: results made without the program: constants on the host, leaves handed
        through by position.
        saved_steps: recorded steps that must be kept for a later backward.
        is_multi_process: other processes take part.
        output_index: for each tuple of wanted values met so far, where they stand in the results.
        promotion: counts the runs until another executable takes its place; None if none does.

    Args:
        promoted_at: when it takes the place of another executable, in words; empty if it is the first.
    """

    __slots__ = (
        "call",
        "outputs",
        "donate",
        "donated_types",
        "has_runtime",
        "has_keys",
        "saved_steps",
        "constant_outputs",
        "passthrough_leaves",
        "output_index",
        "is_multi_process",
        "promotion",
    )

    def __init__(
        self,
        steps: Sequence[State],
        wanted: Sequence[Value],
        donate: Sequence[int],
        scratch: Sequence[Value],
        ctx: Context,
        leaf_shardings: Sequence[Any],
        group: DeviceGroup | None = None,
        promoted_at: str = "",
    ):
        last = steps[-1]
        self.outputs, self.donate, self.donated_types = tuple(wanted), tuple(donate), tuple(scratch)
        self.has_runtime, self.has_keys = last.n_runtime > 0, last.n_keys > 0
        self.saved_steps: Any = ()
        self.constant_outputs: Any = ()
        self.passthrough_leaves: tuple[int, ...] = ()
        self.output_index: Any = None
        self.promotion: Any = None
        self.is_multi_process = getattr(ctx, "remote", False)
        self.call = self._compile(steps, last, ctx, leaf_shardings, group, promoted_at) if wanted else None

    def describe(self) -> str:
        """Return how it runs."""
        return "compiled"

    def _compile(
        self,
        steps: Sequence[State],
        last: State,
        ctx: Context,
        leaf_shardings: Sequence[Any],
        group: DeviceGroup | None,
        promoted_at: str,
    ) -> Any:
        began = time.perf_counter()
        leaves = [s.out for s in steps if s.kind == LEAF]
        mesh = ctx if ctx.mesh is not None else None
        program = lower(steps, self.outputs, leaf_shardings if mesh else ())
        n_leaves, offset = last.n_leaves, self.has_runtime + self.has_keys
        has_runtime, has_keys = self.has_runtime, self.has_keys

        # Runtime scalars and keys are one array each: a call of many arguments costs more than the small step it makes.
        def flat(*args: Any) -> list[Any]:
            runtime = args[0] if has_runtime else None
            keys = args[has_runtime] if has_keys else None
            return program(runtime, keys, args[offset : offset + n_leaves])

        taken = [offset + i for i in self.donate] + [offset + n_leaves + i for i in range(len(self.donated_types))]
        platform = device_of(ctx).platform
        # A program that XLA divides over a mesh must not hold what XLA cannot divide.
        alone = mesh is None
        library = available if platform == "cpu" and alone else None
        body: Any = flat
        if platform == "cpu":
            body = (
                sink_transposes(flat, REWRITE_RULES, materialize_once)
                if alone
                else sink_transposes(flat, single_device=False)
            )
        if group is None:
            place = sharding_of(ctx)
            specs = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in _scalar_input_types(last)]
            specs += [
                jax.ShapeDtypeStruct(v.shape, v.dtype, sharding=s or place)
                for v, s in zip(leaves, leaf_shardings, strict=True)
            ]
            specs += [jax.ShapeDtypeStruct(v.shape, v.dtype, sharding=place) for v in self.donated_types]
            out: Any = None if any(leaf_shardings) else place
            if mesh is not None:
                # What overwrites an array is cut as it was; for the rest XLA decides.
                specs[:offset] = [jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=place) for s in specs[:offset]]
                kept = [leaf_shardings[i] or place for i in self.donate]
                out = [*kept, *[None] * (len(self.outputs) - len(kept))]
        else:
            types = [*_scalar_input_types(last), *((v.shape, v.dtype) for v in (*leaves, *self.donated_types))]
            specs = [group.global_aval(shape, dtype) for shape, dtype in types]
            body = group.shard_mapped(body, [len(s) for s, _ in types], [len(v.shape) for v in self.outputs])
            out = None
        exchange = device_axis(AXIS, group.size, group.is_multi_process) if group is not None else nullcontext()
        # Of a promotion whoever waits for it tells.
        waiting = nullcontext() if promoted_at else announcement(describe_program(steps))
        with x64(), lowering_on_platform(platform, library), lowering_on(mesh), exchange, waiting:
            # `keep_unused`: leaves keep their positions, whether or not the program reads them.
            jitted = jax.jit(body, donate_argnums=tuple(taken), keep_unused=True, out_shardings=out)
            traced = jitted.trace(*specs)
            lowered = traced.lower()
            with persistent_cache():
                compiled = compile_lowered(lowered, platform, traced.jaxpr.jaxpr)
        counters.compiles += 1
        trie.programs += 1
        seconds = time.perf_counter() - began
        counters.compile_seconds += seconds
        if seconds > 0.2:  # a small one leaves little behind
            process.trim()
        if listeners:
            reason = f"{promoted_at} is the first that uses it compiled" if promoted_at else cache_miss_reason(last)
            event = CompileEvent(
                steps,
                len(self.outputs),
                reason,
                began,
                seconds,
                len(taken),
                traced,
                lowered,
                compiled,
                bool(promoted_at),
            )
            for w in list(listeners):  # a copy: a listener may remove itself while it is told
                w.compiled(event)
        return compiled


def _scalar_input_types(last: State) -> list[tuple[tuple[int, ...], Any]]:
    """Shapes and types of the runtime scalars and random keys of a program, where it has any."""
    runtime = [((last.n_runtime,), np.float32)] if last.n_runtime else []
    return [*runtime, ((last.n_keys, 2), np.uint32)] if last.n_keys else [*runtime]


_OPTIONS: dict[str, dict[str, Any] | None] = {
    # Each matrix product is the library's by itself. XLA's own convolution kernels beat the library's on the shapes we
    # measured (docs/performance.md).
    "cpu": {"xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"},
}
_FUSED_PRODUCTS = {"xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_DOT"}

# By itself XLA:CPU finds that values that are made again are the first ones, and computes as soon as it can.
_REMAT_OPTIONS = {"xla_disable_hlo_passes": "cse", "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}


def has_remat(jaxpr: Any) -> bool:
    """Whether a program rematerializes values in its backward pass (`jax.checkpoint`).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> has_remat(jax.make_jaxpr(jax.checkpoint(jnp.sin))(0.5).jaxpr)
        True
    """
    return any("prevent_cse" in e.params or any(map(has_remat, sub_jaxprs(e))) for e in jaxpr.eqns)


def compiler_options(platform: str, jaxpr: Any = None) -> dict[str, Any] | None:
    """Return compiler options for a program on a platform, None once this XLA has refused them."""
    options = _OPTIONS.get(platform)
    if options and platform == "cpu" and jaxpr is not None:
        if has_loop_of_products(jaxpr) and not has_fusible_operand(jaxpr):
            options = {**options, **_FUSED_PRODUCTS}
        options = {**options, **_REMAT_OPTIONS} if has_remat(jaxpr) else options
    return options


def compile_lowered(lowered: Any, platform: str, jaxpr: Any) -> Any:
    """Compile with the options of the platform, without those that this XLA does not know."""
    options = compiler_options(platform, jaxpr)
    try:
        return lowered.compile(compiler_options=options)
    except jax.errors.JaxRuntimeError as e:
        if not options or not any(name in str(e) for name in options):
            raise
        _OPTIONS[platform] = None
        return lowered.compile()


__all__ = [
    "Executable",
    "announcement",
    "compile_lowered",
    "compiler_options",
    "describe_program",
    "export_stablehlo",
    "persistent_cache",
    "sub_jaxprs",
]
