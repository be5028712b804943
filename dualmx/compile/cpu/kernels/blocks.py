"""Large arrays in blocks: what computes each part by itself is run part by part, by several threads.

What lies between the statements of a function then stays in a processor's cache. Blocks follow from sizes only, never
from the number of threads, so that sums have the same bits everywhere.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .block_axes import INPUT, SUM, BlockAxis
from .matmul import in_threads, one_blas_thread

Sizes = tuple[int, ...]
Function = Callable[..., tuple[Any, ...]]
_BLOCK_BYTES = 1 << 20  # of the largest array; a smaller one costs more calls than caches save
_MIN_BYTES = 8 << 20  # that all passes over it compute, which are worth waking a thread
_MIN_LENGTH = 2  # since a size that is a symbol is neither 0 nor 1
_MAX_THREADS = 8  # more would wait for Python's lock


def in_blocks(
    run: Function, make_writer: Callable[[], Function], axes: Sequence[BlockAxis], guard: Callable[[Sizes], bool]
) -> Function:
    """Return a function that computes what `run(sizes, *arrays)` does, large arrays in blocks.

    Args:
        make_writer: makes the function of `writing_into`, when it is needed first.
        axes: along which it may be run in parts.
        guard: whether it serves for sizes.
    """
    if not axes:
        return run
    counts = [sum(a.ins[i] >= 0 for a in axes) for i in range(len(axes[0].ins))]
    large = [i for i, n in enumerate(counts) if n == max(counts)]
    passes = min(a.passes for a in axes)
    writer = functools.cache(make_writer)

    def blocked(sizes: Sizes, *arrays: Any) -> tuple[Any, ...]:
        n_bytes = max([arrays[i].nbytes for i in large])
        if n_bytes >= 2 * _BLOCK_BYTES and n_bytes * passes >= _MIN_BYTES:
            # Of equal ones not one that is repeated, which has no memory to be cut.
            largest = max(large, key=lambda i: (arrays[i].nbytes, sum(map(abs, arrays[i].strides))))
            cuts = _cuts(sizes, axes, arrays[largest], largest)
            if cuts and all(map(guard, _all_sizes(sizes, cuts))):
                return _Blocks(run, writer(), sizes, arrays, cuts).compute()
        return run(sizes, *arrays)

    return blocked


_Cut = tuple[BlockAxis, slice]  # a part of an axis


def _cuts(sizes: Sizes, axes: Sequence[BlockAxis], array: Any, which: int) -> list[list[_Cut]]:
    """Return the parts of each axis that is cut; none if the array, input `which`, lies so that it is not worth it.

    The axes with the longest strides are cut first, so that each block is in few pieces of memory.
    """
    wanted = -(-array.nbytes // _BLOCK_BYTES)
    cuts: list[list[_Cut]] = []
    by_place = {a.ins[which]: a for a in axes if a.ins[which] >= 0}
    for place in sorted(range(array.ndim), key=lambda i: -abs(array.strides[i])):
        if array.shape[place] == 1:
            continue
        axis = by_place.get(place)
        if axis is None or wanted < 2 or not array.strides[place]:
            break
        length = sizes[axis.size]
        count = min(wanted, length // _MIN_LENGTH)
        if count > 1:
            cuts.append([(axis, part) for part in _cut(length, count)])
            wanted = -(-wanted // count)
    return cuts


def _cut(length: int, count: int) -> list[slice]:
    """Cut a length into almost equal parts."""
    ends = [length * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(ends)]


def _all_sizes(sizes: Sizes, cuts: Sequence[Sequence[_Cut]]) -> Iterator[Sizes]:
    """The different sizes of blocks."""
    different = [{part.stop - part.start: (axis, part) for axis, part in cut}.values() for cut in cuts]
    return (_sizes_of(sizes, block) for block in itertools.product(*different))


def _sizes_of(sizes: Sizes, block: Sequence[_Cut]) -> Sizes:
    changed = list(sizes)
    for axis, part in block:
        changed[axis.size] = part.stop - part.start
    return tuple(changed)


class _Blocks:
    """One call of a function, in blocks.

    Args:
        run: the function.
        write: the same, which takes memory for results.
        sizes, arrays: what it is called with.
        cuts: those of each axis that is cut.
    """

    def __init__(
        self, run: Function, write: Function, sizes: Sizes, arrays: Sequence[Any], cuts: Sequence[Sequence[_Cut]]
    ):
        self._run, self._write, self._sizes, self._arrays = run, write, sizes, arrays
        self._axes = [cut[0][0] for cut in cuts]
        self._blocks = list(itertools.product(*cuts))
        self._sums: dict[int, list[Any]] = {}  # results that are sums over the blocks, with those of each
        self._copied: dict[int, Any] = {}  # results whose parts are copied

    def compute(self) -> tuple[Any, ...]:
        """Return the results."""
        first = self._run(*self._arguments(self._blocks[0]))
        places = [[a.outs[i] for a in self._axes] for i in range(len(first))]
        n_bytes = sum(x.nbytes for x, at in zip(first, places, strict=True) if SUM in at) * len(self._blocks)
        if any(SUM in at and max(at) != SUM for at in places) or n_bytes > max(x.nbytes for x in self._arrays):
            return self._run(self._sizes, *self._arrays)  # sums over some of the blocks, or large ones
        results = list(first)
        for i, (x, at) in enumerate(zip(first, places, strict=True)):
            if at[0] == SUM:
                self._sums[i] = [None] * len(self._blocks)
            elif at[0] <= INPUT:
                results[i] = self._arrays[INPUT - at[0]]
            elif max(at) >= 0:
                results[i], is_copied = self._memory(x, at)
                if is_copied:
                    self._copied[i] = results[i]
        self._put(0, first, self._outs(0, len(first)))
        others = range(1, len(self._blocks))

        def work(numbers: Iterator[int]) -> None:
            for number in numbers:
                outs = self._outs(number, len(first))
                sizes, *arrays = self._arguments(self._blocks[number])
                self._put(number, self._write(sizes, outs, *arrays), outs)

        in_threads(work, others, min(one_blas_thread.n_outside, _MAX_THREADS, len(others)))
        for i, parts in self._sums.items():
            results[i] = functools.reduce(np.add, parts)
        return tuple(results)

    def _arguments(self, block: Sequence[_Cut]) -> list[Any]:
        arrays = [_part(x, [a.ins[i] for a in self._axes], block) for i, x in enumerate(self._arrays)]
        return [_sizes_of(self._sizes, block), *arrays]

    def _outs(self, number: int, count: int) -> list[Any]:
        """The memory of the results of a block, None for those that are not copied."""
        outs: list[Any] = [None] * count
        for i, result in self._copied.items():
            outs[i] = _part(result, [a.outs[i] for a in self._axes], self._blocks[number])
        return outs

    def _put(self, number: int, values: Sequence[Any], outs: Sequence[Any]) -> None:
        for i, parts in self._sums.items():
            parts[number] = values[i]
        for i in self._copied:
            if values[i] is not outs[i]:
                outs[i][...] = values[i]

    def _memory(self, x: Any, places: Sequence[int]) -> tuple[Any, bool]:
        """Return a result whose first block is x, and whether its blocks are to be copied there; it lies as they do."""
        shape = list(x.shape)
        for axis, place in zip(self._axes, places, strict=True):
            if place >= 0:
                shape[place] = self._sizes[axis.size]
        if not any(x.strides[place] for place in places if place >= 0):  # the same everywhere along the axes
            return np.lib.stride_tricks.as_strided(x, shape, x.strides, writeable=False), False
        order = sorted(range(x.ndim), key=lambda i: -abs(x.strides[i]))
        return np.empty([shape[i] for i in order], x.dtype).transpose(np.argsort(order)), True


def _part(x: Any, places: Sequence[int], block: Sequence[_Cut]) -> Any:
    """The part of an array that is in a block, whose axes are at these places."""
    if max(places) < 0:
        return x
    index = [slice(None)] * x.ndim
    for place, (_, part) in zip(places, block, strict=True):
        if place >= 0:
            index[place] = part
    return x[tuple(index)]
