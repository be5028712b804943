"""Elastic sampler: divides the rest of an epoch among the current processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any

import numpy as np

from ... import parallel
from ...gluon.data.sampler import Sampler
from ..basics import rank, size


class ElasticSampler(Sampler):
    """Deals out the samples of an epoch that were not used yet, equally many to each process.

    As a value of a `State`, what is used is kept and handed out with the rest of it. All processes record the same
    batches: each knows by that what the others have used, also if one of them dies. If what is left cannot be cut
    equally, its first samples are repeated.

    Args:
        dataset: something with a length.
        shuffle: in another order in each epoch. seed: of the orders, the same for all processes.

    Attributes:
        epoch: the present one.
        rank, num_replicas: of the processes among which samples are dealt out.
        remaining_indices: what was not used when they were dealt out, in their order.
        num_samples: how many each process gets; total_size: all of them.

    Example:
        >>> import dualmx.horovod as hvd
        >>> hvd.init()
        >>> sampler = hvd.elastic.ElasticSampler(range(5), shuffle=False)
        >>> sampler.record_batch(batch_idx=0, batch_size=2)
        >>> sampler.reset()
        >>> list(sampler), sampler.get_indices(0, 2)
        ([2, 3, 4], [2, 3])
        >>> sampler.set_epoch(1)
        >>> len(sampler)
        5
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0):
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = 0
        self._used = np.zeros(len(dataset), bool)  # by all processes
        self._own = np.zeros(len(dataset), bool)  # recorded here, one by one
        self.reset()

    @property
    def processed_indices(self) -> set[int]:
        """Samples of this epoch that are known to be used."""
        return set(np.flatnonzero(self._used | self._own).tolist())

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch, of which nothing is used."""
        self.epoch = epoch
        self._used[:] = self._own[:] = False
        self.reset()

    def reset(self) -> None:
        """Deal out what is left among the processes that there are now."""
        self.rank, self.num_replicas = rank(), size()
        order = np.arange(len(self._used))
        if self.shuffle:
            order = np.random.Generator(np.random.PCG64([self.seed, self.epoch])).permutation(order)
        left = order[~(self._used | self._own)[order]]
        self.remaining_indices: list[int] = left.tolist()
        self.num_samples = -(-len(left) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas
        # Row k has the k-th sample of each process.
        self._dealt = np.resize(left, (self.num_samples, self.num_replicas))

    def get_indices(self, batch_idx: int, batch_size: int) -> list[int]:
        """Return the samples of this process in a batch, counted from when they were dealt out."""
        return self._dealt[batch_idx * batch_size : (batch_idx + 1) * batch_size, self.rank].tolist()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Note that all processes have used their samples of a batch; each calls it for the same batches."""
        self._used[self._dealt[batch_idx * batch_size : (batch_idx + 1) * batch_size].reshape(-1)] = True

    def record_indices(self, indices: Iterable[int]) -> None:
        """Note that this process has used some samples, which the others learn of at the next `sync`."""
        self._own[list(indices)] = True

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` reads."""
        used, own = np.flatnonzero(self._used), np.flatnonzero(self._own)
        return {"epoch": self.epoch, "processed_indices": used, "own_indices": own}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore `state_dict`, and divide what is left of the epoch."""
        self.epoch = state_dict["epoch"]
        for indices, name in ((self._used, "processed_indices"), (self._own, "own_indices")):
            indices[:] = False
            indices[np.asarray(list(state_dict.get(name, ())), int)] = True
        self.reset()

    def sync(self) -> None:
        """Be where the sampler of the first process is, but for samples that others have recorded in this epoch."""
        states = parallel.all_gather_object(self.state_dict())
        epoch = states[0]["epoch"]
        own = [t["own_indices"] for t in states if t["epoch"] == epoch]
        self.load_state_dict(
            {"epoch": epoch, "processed_indices": np.concatenate([states[0]["processed_indices"], *own])}
        )

    def __iter__(self) -> Iterator[int]:
        return iter(self._dealt[:, self.rank].tolist())

    def __len__(self) -> int:
        return self.num_samples


__all__ = ["ElasticSampler"]
