"""Helpers of unrolling: a sequence is one array with a time axis, or a list of arrays by step."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentError, ArgumentTypeError
from ...namespace import nd, sym
from ...ndarray import NDArray
from ...symbol import Symbol
from ..pytree import with_class_of

ARRAYS = (NDArray, Symbol)


def functions_for(value: Any) -> Any:
    """Return the front end, `nd` or `sym`, of an array or of the first array in a list."""
    first = value[0] if isinstance(value, (list, tuple)) else value
    if not isinstance(first, ARRAYS):
        raise ArgumentTypeError(f"unroll: inputs of type {type(first).__name__}: expected arrays or symbols")
    return sym if isinstance(first, Symbol) else nd


def time_axis(layout: str) -> int:
    """Return the position of the time axis; raises `ArgumentError` for a layout without T or N."""
    if "T" not in layout or "N" not in layout:
        raise ArgumentError(f"unroll: layout={layout!r}: expected a layout with T and N, such as 'NTC' or 'TNC'")
    return layout.index("T")


def split_steps(length: int, inputs: Any, layout: str) -> list[Any]:
    """Return the list of the `length` steps of `inputs`, each (N, ...).

    Raises:
        ArgumentError: the sequence has another length.
    """
    axis = time_axis(layout)
    if isinstance(inputs, ARRAYS):
        if isinstance(inputs, NDArray):
            if inputs.ndim <= axis or inputs.shape[axis] != length:
                raise ArgumentError(
                    f"unroll: inputs of shape {inputs.shape} with layout {layout!r}: expected length={length} steps "
                    f"along axis {axis}"
                )
            made = nd.split(inputs, axis=axis, num_outputs=length, squeeze_axis=True)
            return with_class_of(inputs, [made] if isinstance(made, NDArray) else list(made))
        return list(sym.split(inputs, axis=axis, num_outputs=length, squeeze_axis=True))
    functions_for(inputs)
    if len(inputs) != length:
        raise ArgumentError(f"unroll: {len(inputs)} steps in inputs: expected length={length}")
    return list(inputs)


def merge_steps(steps: Any, layout: str) -> Any:
    """Return the steps stacked along the time axis; a merged array is returned unchanged."""
    if isinstance(steps, ARRAYS):
        return steps
    return with_class_of(steps, functions_for(steps).stack(*steps, axis=time_axis(layout)))


def merge_or_split(length: int, steps: Any, layout: str, merge: bool | None) -> Any:
    """Return `steps` merged, split, or, if `merge` is `None`, as they are."""
    if merge is None:
        return steps
    return merge_steps(steps, layout) if merge else split_steps(length, steps, layout)


def mask_sequence(length: int, steps: Any, layout: str, valid_length: Any, merge: bool) -> Any:
    """Return `steps` with zeros after each sample's valid length, merged or split."""
    merged = merge_steps(steps, layout)
    out = functions_for(merged).SequenceMask(
        merged, sequence_length=valid_length, use_sequence_length=True, axis=time_axis(layout)
    )
    return with_class_of(merged, out) if merge else split_steps(length, with_class_of(merged, out), layout)


def reverse_steps(steps: list[Any], valid_length: Any) -> list[Any]:
    """Return the steps in reverse; those after each sample's valid length stay in place."""
    if valid_length is None:
        return steps[::-1]
    F = functions_for(steps)
    merged = F.SequenceReverse(F.stack(*steps, axis=0), sequence_length=valid_length, use_sequence_length=True)
    return split_steps(len(steps), with_class_of(steps, merged), "TN")


def last_states(F: Any, states: list[list[Any]], valid_length: Any) -> list[Any]:
    """Return, of the states of all steps, each sample's state at its valid length."""
    return [
        with_class_of(
            steps[0],
            F.SequenceLast(F.stack(*steps, axis=0), sequence_length=valid_length, use_sequence_length=True, axis=0),
        )
        for steps in zip(*states, strict=True)
    ]
