"""Replicated updates: one SPMD program sums the gradients of all contexts and updates every replica."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ndarray import NDArray
from ..ndarray.execute_joint import ProcessRunner, all_reduce, can_run_as_spmd, spmd_region
from ..ndarray.handle import assign
from ..optimizer import LBSGD, SGLD, Optimizer, Updater
from ..optimizer.optimizer import registered_class, update_counts_by_device
from ..optimizer.updater import in_one_call

PerContext = Sequence[Sequence[NDArray]]

# These read values on the host, or draw other random numbers on each device.
_NOT_DETERMINISTIC = (LBSGD, SGLD)


def is_replica_deterministic(optimizer: Any) -> bool:
    """True if an optimizer records the same update on every device for the same gradients."""
    kind = registered_class(type(optimizer))
    return (
        isinstance(optimizer, Optimizer)
        and not issubclass(kind, _NOT_DETERMINISTIC)
        and kind.__module__.startswith(Optimizer.__module__.rpartition(".")[0] + ".")
        and in_one_call(optimizer)
    )


def step_as_spmd(
    updaters: Sequence[Any], indices: Sequence[Any], grads: PerContext, weights: PerContext, keep: bool,
    processes: ProcessRunner | None = None,
) -> bool:  # fmt: skip
    """Sum gradients over contexts and update all weights, as one program on all devices, if that is possible.

    Args:
        updaters: one per context.
        indices: of the parameters.
        grads, weights: for each parameter one array per context.
        keep: write the sums back into `grads`.
        everywhere: other processes, on whose contexts the same program runs as well.

    Returns:
        Whether it was done: each context must have a device of its own and the same pending work, the optimizer must
        work alike everywhere, and no other library may see the arrays.
    """
    if not weights or not all(isinstance(u, Updater) and is_replica_deterministic(u.optimizer) for u in updaters):
        return False
    contexts = [w.context for w in weights[0]]
    if any(a.is_sparse for group in (*grads, *weights) for a in group):
        return False
    if (len(contexts) < 2 and processes is None) or any([w.context for w in arrays] != contexts for arrays in weights):
        return False
    # Memory that other libraries see is read and written at each operation, and not on all contexts alike.
    possible = not any(a.is_exposed for group in (*grads, *weights) for a in group)
    if not can_run_as_spmd(contexts, len(grads), processes, possible):
        return False
    with spmd_region(contexts, processes):
        sums = all_reduce(grads)
        for k, updater in enumerate(updaters):
            own = [s[k] for s in sums]
            if keep:
                for g, s in zip(grads, own, strict=True):
                    assign(g[k], s, "gradient sum")
            updater(list(indices), own, [w[k] for w in weights])
    return True


class ReplicatedUpdater:
    """Updaters of all contexts, made from that of the first one, whose states are saved.

    Args:
        first: updater of the first context.
    """

    def __init__(self, first: Updater):
        self._first = first
        self._others: list[Updater] = []
        self._seen: Any = None
        self.stale = True

    def step(
        self, indices: Sequence[Any], grads: PerContext, weights: PerContext, everywhere: ProcessRunner | None = None
    ) -> bool:
        """Sum and update on all contexts; see `step_as_spmd`."""
        if not weights or not is_replica_deterministic(self._first.optimizer):
            return False
        contexts = [w.context for w in weights[0]]
        if self.stale or self._seen is not self._first.states or len(self._others) != len(contexts) - 1:
            self._copy([c.device_id for c in contexts])
        return step_as_spmd([self._first, *self._others], indices, grads, weights, False, everywhere)

    def _copy(self, devices: Sequence[int]) -> None:
        """Take over the states and the counts of updates of the first context."""
        self._others = [Updater(self._first.optimizer) for _ in devices[1:]]
        counts = update_counts_by_device(self._first.optimizer)
        counts.update((d, dict(counts.get(devices[0], {}))) for d in devices[1:])
        if self._first.states:
            content = self._first.get_states()
            for updater in self._others:
                updater.set_states(content)
        for updater in self._others:
            updater.optimizer = self._first.optimizer
        self._seen, self.stale = self._first.states, False
