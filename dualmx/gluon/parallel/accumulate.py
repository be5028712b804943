"""Gradient accumulation and local SGD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import autograd
from ...core.argcheck import integer
from ...core.errors import ArgumentError
from ...parallel import all_reduce, size
from ..trainer import Trainer
from .distributed import sync_initial_weights


class AccumulatingTrainer(Trainer):
    """A Trainer that updates after several backward passes, or averages weights over processes after several updates.

    With `average_every` each process updates its own weights, and every so many updates all processes take the mean of
    theirs (local SGD, Stich 2019): a k-th of the traffic. They begin with the weights of process 0.

    Args:
        params, optimizer, optimizer_params: see `gluon.Trainer`.
        accumulate: calls of `step` that make one update; gradients add up, as do the batch sizes.
        average_every: updates from one mean of the weights to the next; None: gradients are exchanged, by `kvstore`.
        kvstore: see `gluon.Trainer`; left out with `average_every`.

    Raises:
        ArgumentError: numbers below 1, or a `kvstore` beside `average_every`.

    Example:
        >>> import dualmx as mx
        >>> net = mx.gluon.nn.Dense(1, in_units=2)
        >>> net.initialize()
        >>> trainer = AccumulatingTrainer(net.collect_params(), "sgd", accumulate=2, average_every=8)
        >>> for _ in range(4):
        ...     with mx.autograd.record():
        ...         loss = net(mx.nd.ones((4, 2)))
        ...     loss.backward()
        ...     trainer.step(batch_size=4)
        >>> trainer.updates
        2
    """

    def __init__(
        self, params: Any, optimizer: Any, optimizer_params: Mapping[str, Any] | None = None, accumulate: int = 1,
        average_every: int | None = None, kvstore: Any = None,
    ):  # fmt: skip
        self._accumulate = integer("AccumulatingTrainer", "accumulate", accumulate, 1)
        self._average_every = average_every
        if average_every is not None:
            integer("AccumulatingTrainer", "average_every", average_every, 1)
            if kvstore is not None:
                raise ArgumentError(
                    f"PeriodicTrainer: kvstore={kvstore!r} exchanges gradients; with average_every leave it out"
                )
        super().__init__(params, optimizer, optimizer_params, kvstore=kvstore)
        self._calls, self._sum, self._is_synced = 0, 0.0, False
        self.updates = 0
        if average_every is not None and all(p.is_initialized for p in self._params):
            self._sync_initial()
        if accumulate > 1:
            for p in self._params:
                if p.grad_req == "write":
                    p.grad_req = "add"

    def step(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """Count a backward pass; update, and average, if it is time.

        Args:
            batch_size: rows of this pass.
            ignore_stale_grad: see `gluon.Trainer.step`.

        Raises:
            MXNetError: see `gluon.Trainer.step`; a process is gone.
        """
        rows = self._rows("step", batch_size)
        if self._average_every is not None and not self._is_synced:
            self._sync_initial()
        self._calls += 1
        self._sum += rows
        if self._calls % self._accumulate:
            return
        super().step(self._sum, ignore_stale_grad)  # type: ignore[arg-type]
        self._sum = 0.0
        self.updates += 1
        for p in self._params:
            if p.grad_req == "add":
                p.zero_grad()
        if self._average_every is not None and self.updates % self._average_every == 0:
            self.average()

    def _sync_initial(self) -> None:
        sync_initial_weights(self._params)
        self._is_synced = True

    def average(self) -> None:
        """Replace the weights of all processes by their means; auxiliary states of floats too.

        Raises:
            MXNetError: a process is gone.
        """
        if size() == 1:
            return
        with autograd.pause():
            for stype in dict.fromkeys(p.arrays()[0].stype for p in self._params):
                same = [p for p in self._params if p.arrays()[0].stype == stype]
                means = all_reduce([p.arrays()[0] for p in same], op="average")
                for p, value in zip(same, means, strict=True):
                    p.set_data(value)
