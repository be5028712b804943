"""Random streams: each draw takes the next (seed, position) pair, which is its whole random key."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .context import Context
from .errors import ArgumentError

_MASK = 0xFFFFFFFF


class RngStreams:
    """One counter per context, so that what one device draws does not depend on what others draw."""

    def __init__(self, seed: int):
        self._seed = seed & _MASK
        self._streams: dict[Context | None, tuple[int, Any]] = {}

    def seed(self, value: Any, ctx: Context | None = None) -> None:
        """Restart the stream of `ctx`, or all of them, from `value` (any integer).

        Raises:
            ArgumentError: not a finite integer.
        """
        if isinstance(value, (float, np.floating)):
            if not math.isfinite(value) or value != int(value):
                raise ArgumentError(f"random.seed: seed_state={value!r}: expected a finite integer")
            value = int(value)
        try:
            value = operator.index(value)
        except TypeError:
            raise ArgumentError(f"random.seed: seed_state={value!r}: expected an integer") from None
        if ctx is None:
            self._seed = value & _MASK
            self._streams.clear()
        else:
            self._streams[ctx] = (value & _MASK, itertools.count())

    def draw(self, ctx: Context) -> tuple[int, int]:
        """Return the next (seed, number) pair of `ctx`."""
        stream = self._streams.get(ctx)
        if stream is None:
            # Devices of one seed must differ; device 0 of any kind draws the same numbers.
            mixed = ctx.common_seed((self._seed + 0x9E3779B9 * ctx.device_id) & _MASK)
            stream = self._streams.setdefault(ctx, (mixed, itertools.count()))
        return stream[0], next(stream[1]) & _MASK

    @contextmanager
    def derived_from(self, ctx: Context, other: Context) -> Iterator[None]:
        """Inside the `with` block, what is drawn on `ctx` follows from the stream of `other`."""
        seed, number = self.draw(other)
        before = self._streams.pop(ctx, None)
        self._streams[ctx] = ((seed + 0x85EBCA6B * (number + 1)) & _MASK, itertools.count())
        try:
            yield
        finally:
            del self._streams[ctx]
            if before is not None:
                self._streams[ctx] = before

    def state(self) -> dict[str, Any]:
        """Return the seed and the position of each stream, as JSON; no other thread may draw meanwhile."""
        # A counter shows its position only by the next number, so a new counter continues from there.
        positions = {ctx: (seed, next(count)) for ctx, (seed, count) in self._streams.items()}
        self._streams = {ctx: (seed, itertools.count(n)) for ctx, (seed, n) in positions.items()}
        return {"seed": self._seed, "streams": {str(ctx): list(at) for ctx, at in positions.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue where `state` was read."""
        self._seed, positions = self.parse(state)
        self._streams = {ctx: (seed, itertools.count(n)) for ctx, (seed, n) in positions.items()}

    @staticmethod
    def parse(state: Any) -> tuple[int, dict[Context, tuple[int, int]]]:
        """Return the seed and the streams that a state describes.

        Raises:
            ArgumentError, KeyError, TypeError, ValueError, AttributeError: it is no state.
        """
        streams = {Context.parse(ctx): (int(seed) & _MASK, int(n)) for ctx, (seed, n) in state["streams"].items()}
        return int(state["seed"]) & _MASK, streams

    def generator(self, ctx: Context) -> np.random.Generator:
        """Return a NumPy generator keyed by the next pair, for values drawn on the host."""
        seed, number = self.draw(ctx)
        return np.random.Generator(np.random.Philox(key=[seed, number]))


rng_streams = RngStreams(int(np.random.SeedSequence().generate_state(1)[0]) & _MASK)
