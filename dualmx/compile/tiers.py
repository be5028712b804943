"""Tiers: whether a program runs operator by operator, on NumPy arrays or by their executables, or is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import knobs
from ..core.context import Context
from ..graph.trie import State, Value
from .devices import device_of
from .executable import Executable
from .job_rounds import job_rounds, must_compile
from .multi_device import DeviceGroup
from .promotion import promotion_of, sizes_of


def current_tier(is_varied: bool = False) -> str:
    """Return how programs of this process run.

    In a job of several processes that depends on the job, and on the round that it is in; see `JobRounds`. A program
    with ever other sizes begins at any round as it would in a process by itself.
    """
    tier = knobs.TIER.read()
    if tier == "auto" and knobs.ROOT_URI.is_set() and (must_compile() or (job_rounds.is_changed and not is_varied)):
        return "xla"
    return tier


def first_tier(ctx: Context, is_varied: bool = False) -> str:
    """Return how programs on one device begin to run: `numpy`, `operators` or `xla`."""
    tier, on_cpu = current_tier(is_varied), device_of(ctx).platform == "cpu"
    if tier == "auto":
        if on_cpu:
            return "numpy"
        # Nobody has measured on another device what it is worth, so that it is for those who ask for it.
        return "operators" if knobs.TIER.is_set() else "xla"
    return "xla" if tier == "numpy" and not on_cpu else tier


def make_executable(
    steps: Sequence[State],
    wanted: Sequence[Value],
    donate: Sequence[int],
    scratch: Sequence[Value],
    ctx: Context,
    leaf_shardings: Sequence[Any],
    group: DeviceGroup | None = None,
) -> Executable:
    """Return the executable of a program in the tier of this process; what tier 0 lacks is compiled."""
    is_on_one_device = group is None and ctx.mesh is None and not getattr(ctx, "remote", False)
    # Where a tier is forced, nothing depends on sizes.
    sizes = sizes_of(steps) if knobs.TIER.read() == "auto" else None
    is_varied = sizes is not None and sizes.is_varied
    if wanted and is_on_one_device and not any(leaf_shardings) and (tier := first_tier(ctx, is_varied)) != "xla":
        # Deferred: a process that runs no program needs no kernels, and generating them takes longer to import.
        from .first_tier import Unsupported

        if tier == "numpy":
            from .numpy_executable import NumpyExecutable as FirstTier
        else:
            from .operators_executable import OperatorsExecutable as FirstTier
        try:
            executable = FirstTier(steps, wanted, ctx)
        except Unsupported:
            pass  # it is compiled
        else:
            executable.promotion = promotion_of(executable, sizes) if sizes is not None else None
            return executable
    return Executable(steps, wanted, donate, scratch, ctx, leaf_shardings, group)
