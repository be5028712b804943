"""Checked axis arguments: negative axes count from the end, wrong ones raise at the call."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.errors import ArgumentError


def one_axis(axis: int, ndim: int, name: str = "axis") -> int:
    """Return `axis` in `[0, ndim)`; `ArgumentError` when it is not in `[-ndim, ndim)`."""
    if not -ndim <= axis < ndim:
        raise ArgumentError(f"{name}={axis}: expected a value in [{-ndim}, {ndim - 1}] for {ndim} dimensions")
    return axis % ndim


def many_axes(axes: Iterable[int], ndim: int, name: str = "axis") -> tuple[int, ...]:
    """Return `axes` in `[0, ndim)`; `ArgumentError` when one is out of range or occurs twice."""
    axes = tuple(axes)
    found = tuple(one_axis(a, ndim, name) for a in axes)
    if len(set(found)) != len(found):
        raise ArgumentError(f"{name}={axes}: expected every axis at most once")
    return found
