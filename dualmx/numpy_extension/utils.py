"""Save and load arrays with NumPy semantics."""

from __future__ import annotations

from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray import load as load_classic
from ..ndarray import save as save_classic
from ..numpy.np_ndarray import as_np_class, ndarray


def save(file: str, arr: Any) -> None:
    """Write an array, a list of arrays or a dict of arrays by name in MXNet's `.params` format.

    Raises:
        ArgumentError: something else. ArgumentTypeError: a collection of something else.

    Example:
        >>> import dualmx as mx
        >>> mx.npx.save("x.params", {"x": mx.np.ones((2,))})
        >>> mx.npx.load("x.params")["x"]
        array([1., 1.])
    """
    given = [arr] if isinstance(arr, ndarray) else arr
    inside = list(given.values()) if isinstance(given, dict) else given
    named = not isinstance(given, dict) or all(isinstance(k, str) for k in given)
    if not named or not isinstance(inside, (list, tuple)) or not all(isinstance(a, ndarray) for a in inside):
        error = ArgumentTypeError if isinstance(arr, (dict, list, tuple)) else ArgumentError
        raise error("npx.save: expected a mx.np.ndarray, a list of them, or a dict of them by name")
    save_classic(file, given)


def savez(file: str, *args: Any, **kwargs: Any) -> None:
    """Write arrays under their keywords, positional ones as `arr_0`, `arr_1`, … in MXNet's `.params` format."""
    save(file, {**{f"arr_{i}": a for i, a in enumerate(args)}, **kwargs})


def load(file: str) -> Any:
    """Read a `.params` file: a list of arrays, or a dict if they were saved with names."""
    found = load_classic(file)
    if isinstance(found, dict):
        return {name: as_np_class(a) for name, a in found.items()}
    return [as_np_class(a) for a in found]


__all__ = ["load", "save", "savez"]
