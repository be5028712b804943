"""Operators that only arrange elements: reshape, split and join.

Their shapes follow from numbers among their parameters; results and gradients are those of NumPy, of whatever type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from ..core.errors import ArgumentError
from .shape_rules import one_axis
from .traits import Arrangement, Shapes

Params = Mapping[str, Any]


def reshaped(old: tuple[int, ...], codes: tuple[int, ...], reverse: bool = False) -> tuple[int, ...]:
    """Resolve MXNet's reshape codes for an array of shape `old`.

    A positive code is a length, 0 keeps the next input axis, -1 is inferred (once), -2 keeps all remaining input
    axes, -3 merges the next two, -4 splits the next one into the two lengths that follow (one may be -1). With
    `reverse` axes and codes are read from the right, so that -4 stands after its two lengths.

    Raises:
        ArgumentError: a code asks for an input axis that does not exist, or the number of elements changes.

    Example:
        >>> reshaped((2, 3, 4), (-4, 1, 2, -2))
        (1, 2, 3, 4)
    """
    shape, text = list(old), f"shape={codes}: "
    if reverse:
        shape, codes = shape[::-1], codes[::-1]
    new: list[int] = []
    at = 0
    waiting = iter(codes)

    def source(count: int) -> list[int]:
        nonlocal at
        if at + count > len(shape):
            raise ArgumentError(f"{text}expected no more than the {len(shape)} axes of the input shape {old}")
        at += count
        return shape[at - count : at]

    for code in waiting:
        if code > 0 or code == -1:
            new.append(code)
            at += 1
        elif code == 0:
            new += source(1)
        elif code == -2:
            new += shape[at:]
            at = len(shape)
        elif code == -3:
            new.append(prod(source(2)))
        elif code == -4:
            (size,) = source(1)
            parts = [next(waiting, -2), next(waiting, -2)]
            if min(parts) < -1 or parts == [-1, -1] or 0 in parts:
                raise ArgumentError(f"{text}expected two lengths beside -4, at most one of them -1")
            known = prod(p for p in parts if p > 0)
            if size % known or (-1 not in parts and size != known):
                raise ArgumentError(f"{text}cannot split an axis of length {size} into {tuple(parts)}")
            new += [size // known if p == -1 else p for p in parts]
        else:
            raise ArgumentError(f"{text}expected positive lengths or the codes 0, -1, -2, -3, -4")
    if new.count(-1) > 1:
        raise ArgumentError(f"{text}expected at most one -1")
    size, known = prod(old), prod(n for n in new if n != -1)
    if -1 in new and known and size % known == 0:
        new[new.index(-1)] = size // known
    if prod(new) != size or -1 in new:
        raise ArgumentError(f"{text}expected {size} elements, those of the input shape {old}")
    return tuple(new[::-1] if reverse else new)


def _legacy_shape(old: tuple[int, ...], target: tuple[int, ...], keep_highest: bool) -> tuple[int, ...]:
    """Resolve the old `target_shape`, in which 0 is inferred and `keep_highest` keeps axis 0."""
    if keep_highest:
        target = (old[0], *target[1:])
    if target.count(0) > 1:
        raise ArgumentError(f"target_shape={target}: expected at most one 0")
    return reshaped(old, tuple(-1 if n == 0 else n for n in target))


def new_shape(p: Params, old: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that `Reshape` gives an array."""
    if p["shape"]:
        return reshaped(old, p["shape"], p["reverse"])
    if p["target_shape"]:
        return _legacy_shape(old, p["target_shape"], p["keep_highest"])
    raise ArgumentError("shape=(): expected at least one length or code")


RESHAPE = Arrangement(
    shapes=lambda p, shapes: [new_shape(p, shapes[0])],
    run=lambda p, arrays: [arrays[0].reshape(new_shape(p, arrays[0].shape))],
    pull=lambda p, shapes, cotangents: [cotangents[0].reshape(shapes[0])],
)


def require_equal_shapes(shapes: Shapes, axis: int | None) -> None:
    """Check that all shapes agree, except along `axis`."""

    def rest(shape: tuple[int, ...]) -> list[int]:
        return [-1 if k == axis else n for k, n in enumerate(shape)]

    for i, shape in enumerate(shapes):
        if rest(shape) != rest(shapes[0]):
            apart = "" if axis is None else f" except along axis {axis}"
            raise ArgumentError(f"input {i} has shape {shape}, input 0 {shapes[0]}: expected equal shapes{apart}")


def _joined_shape(p: Params, shapes: Shapes) -> Shapes:
    """The shape of the result of `Concat`."""
    axis = one_axis(p["dim"], len(shapes[0]), "dim")
    require_equal_shapes(shapes, axis)
    first = shapes[0]
    return [(*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])]


def _cut_joined(p: Params, shapes: Shapes, cotangents: Sequence[Any]) -> list[Any]:
    axis = one_axis(p["dim"], len(shapes[0]), "dim")
    return np.split(cotangents[0], [*accumulate(shape[axis] for shape in shapes[:-1])], axis)


CONCATENATE = Arrangement(
    shapes=_joined_shape,
    run=lambda p, arrays: [np.concatenate(arrays, p["dim"])],
    pull=_cut_joined,
)


def equal_parts(p: Params, shapes: Shapes) -> Shapes:
    """The shapes of the results of `SliceChannel`."""
    (shape,), count = shapes, p["num_outputs"]
    axis = one_axis(p["axis"], len(shape))
    n = shape[axis]
    if n % count:
        raise ArgumentError(f"num_outputs={count}: expected a divisor of {n}, axis {axis} of {shape}")
    left, right = shape[:axis], shape[axis + 1 :]
    if not p["squeeze_axis"]:
        return [(*left, n // count, *right)] * count
    if n != count:
        lengths = [n // count] * count
        raise ArgumentError(f"squeeze_axis=True: expected parts of length 1 along axis {axis}, got {lengths}")
    return [(*left, *right) or (1,)] * count


def _split(p: Params, arrays: Sequence[Any]) -> list[Any]:
    (data,) = arrays
    parts = np.split(data, p["num_outputs"], one_axis(p["axis"], data.ndim))
    return [part.reshape(shape) for part, shape in zip(parts, equal_parts(p, [data.shape]), strict=True)]


def _join_parts(p: Params, shapes: Shapes, cotangents: Sequence[Any]) -> list[Any]:
    (part, *_) = equal_parts({**p, "squeeze_axis": False}, shapes)
    return [np.concatenate([ct.reshape(part) for ct in cotangents], one_axis(p["axis"], len(part)))]


SPLIT = Arrangement(shapes=equal_parts, run=_split, pull=_join_parts)
