"""Hierarchical all-reduce: shared memory within a host, then one process per host over the network."""

from __future__ import annotations

import numpy as np

from ..parallel import ProcessGroup


def _hosts(group: ProcessGroup) -> list[list[int]]:
    """The ranks of each host."""
    assert group.peers is not None
    nodes: dict[str, list[int]] = {}
    for rank in group.ranks:
        nodes.setdefault(group.peers.nodes[rank], []).append(rank)
    return list(nodes.values())


def is_hierarchical(group: ProcessGroup) -> bool:
    """Whether there are several hosts, one of which has several processes."""
    hosts = _hosts(group)
    return 1 < len(hosts) < group.size


class HierarchicalAllReduce:
    """Sums within each host, among the first processes of the hosts, and back.

    Args:
        group: the processes.
    """

    def __init__(self, group: ProcessGroup):
        assert group.peers is not None
        hosts, me, peers = _hosts(group), group.peers.rank, group.peers
        own = next(h for h in hosts if me in h)
        leaders = sorted(h[0] for h in hosts)
        self._size = group.size
        self._local = ProcessGroup(own, peers, f"{group.name}/host{own}", me)
        self._leaders = ProcessGroup(leaders, peers, f"{group.name}/hosts", me)

    def all_reduce(self, x: np.ndarray, op: str, scale: float, what: str) -> np.ndarray:
        """Return what `op` makes of the arrays of all; see `Group.all_reduce`."""
        inner = "sum" if op == "average" else op
        outer = scale / self._size if op == "average" else scale
        local, leaders = self._local, self._leaders
        # A host with one process has nothing to add up, or to pass on.
        part = local.all_reduce(x, inner, 1.0, what) if local.size > 1 else x
        if local.rank == 0:
            total = leaders.all_reduce(part, inner, outer, what) if leaders.size > 1 else part * x.dtype.type(outer)
        else:
            total = part
        return np.array(local.broadcast(total, 0, what)) if local.size > 1 else total


__all__ = ["HierarchicalAllReduce", "is_hierarchical"]
