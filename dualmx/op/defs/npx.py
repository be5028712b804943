"""Operators of `mx.npx` that have no classic form."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import Shape, Tensor, UntypedTensor


def reshaped_np(old: tuple[int, ...], codes: tuple[int, ...], reverse: bool = False) -> tuple[int, ...]:
    """Resolve the codes of `npx.reshape` for an array of shape `old`.

    A code of 0 or more is a length, -1 is inferred (once), -2 keeps the next axis, -3 drops it if its length is 1, -4
    keeps all remaining axes, -5 merges the next two, -6 splits the next one into the two lengths that follow. With
    `reverse` axes and codes are read from the right.

    Raises:
        ArgumentError: a code asks for an input axis that does not exist, or the number of elements changes.

    Example:
        >>> reshaped_np((2, 3, 4), (-5, -6, 2, -1))
        (6, 2, 2)
    """
    text = f"reshape: newshape={codes} of an array of shape {old}: "
    left, todo = list(old), list(codes)
    if reverse:
        left, todo = left[::-1], todo[::-1]
    new: list[int] = []

    def take() -> int:
        if not left:
            raise ArgumentError(f"{text}there is no axis left for a code")
        return left.pop(0)

    while todo:
        code = todo.pop(0)
        if code >= -1:
            new.append(code)
            if left:
                left.pop(0)
        elif code == -2:
            new.append(take())
        elif code == -3:
            if (length := take()) != 1:
                raise ArgumentError(f"{text}-3 drops an axis of length 1, not {length}")
        elif code == -4:
            new += left
            left = []
        elif code == -5:
            new.append(take() * take())
        elif code == -6:
            pair, todo = todo[:2], todo[2:]
            if len(pair) < 2 or min(pair) < -1:
                raise ArgumentError(f"{text}-6 needs two lengths, one of which may be -1")
            length = take()
            if pair.count(-1) == 1 and math.prod(n for n in pair if n != -1):
                pair = [length // math.prod(n for n in pair if n != -1) if n == -1 else n for n in pair]
            if math.prod(pair) != length:
                raise ArgumentError(f"{text}{tuple(pair)} do not multiply to the length {length}")
            new += pair
        else:
            raise ArgumentError(f"{text}unknown code {code}: expected -6 to -1, or a length")
    if new.count(-1) > 1:
        raise ArgumentError(f"{text}expected at most one -1")
    if -1 in new:
        rest, size = math.prod(n for n in new if n != -1), math.prod(old)
        if not rest or size % rest:
            raise ArgumentError(f"{text}-1 cannot be inferred from {size} elements")
        new[new.index(-1)] = size // rest
    if math.prod(new) != math.prod(old):
        raise ArgumentError(f"{text}{math.prod(new)} elements: expected {math.prod(old)}")
    return tuple(new[::-1] if reverse else new)


@op()
def _npx_reshape(a: Tensor, *, newshape: Shape, reverse: bool = False, order: str = "C") -> jax.Array:
    """Give `a` a new shape of as many elements; dtype of `a`.

    Codes: -1 infer; -2 keep the next axis; -3 drop it if its length is 1; -4 keep all remaining axes; -5 merge the next
    two; -6 split the next one into the two lengths that follow. `reverse` reads from the right; `order` is "C".
    """
    if order != "C":
        raise ArgumentError(f"reshape: order={order!r}: only 'C' is supported")
    return a.reshape(reshaped_np(a.shape, newshape, reverse))


@op()
def _npx_constraint_check(x: UntypedTensor, *, msg: str = "Constraint violated!") -> jax.Array:
    """True, of shape (), if no element of `x` is False; the function of `mx.npx` else raises `msg`."""
    return jnp.all(x != 0)
