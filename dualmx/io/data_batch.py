"""`DataDesc` and `DataBatch`: the description of an array, and a batch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import ArgumentTypeError


class _NameShape(NamedTuple):
    name: str
    shape: tuple[int, ...]


class overridable_property:
    """A property that iterators of users replace by assignment, as the attributes of MXNet's are.

    Args:
        fget: computes the value while nothing is assigned.
    """

    def __init__(self, fget: Callable[[Any], Sequence[Any]]):
        self.fget = fget
        self.__doc__ = fget.__doc__

    def __get__(self, iterator: Any, owner: type | None = None) -> Any:
        return self if iterator is None else self.fget(iterator)


class DataDesc(_NameShape):
    """Name, shape, dtype and layout of one input; unpacks as the pair `(name, shape)`.

    Args:
        name: name of the input, such as `"data"`.
        shape: shape of a whole batch.
        dtype: element type, float32 by default.
        layout: one letter an axis; `"N"` marks the batch axis.

    Example:
        >>> name, shape = DataDesc("data", (32, 3, 224, 224))
        >>> shape
        (32, 3, 224, 224)
    """

    dtype: Any
    layout: str | None

    def __new__(cls, name: str, shape: Sequence[int], dtype: Any = np.float32, layout: str | None = "NCHW") -> DataDesc:
        self = super().__new__(cls, name, tuple(shape))
        self.dtype, self.layout = dtype, layout
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.name, self.shape, self.dtype, self.layout)

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    __str__ = __repr__

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """Return the position of `"N"` in `layout`: 0 for `None`, -1 if it has no batch axis."""
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes: Sequence[Any], types: Sequence[Any] | None) -> list[DataDesc]:
        """Return descriptions of `(name, shape)` pairs and, where given, `(name, dtype)` pairs."""
        named = dict(types) if types is not None else {}
        return [DataDesc(n, s, named[n]) if n in named else DataDesc(n, s) for n, s in shapes]


def parse_descs(shapes: Sequence[Any] | None) -> list[DataDesc]:
    """Return `DataDesc`s of a list of them or of `(name, shape[, dtype])` tuples; `[]` for `None`."""
    if shapes is not None and not isinstance(shapes, (list, tuple)):
        raise ArgumentTypeError(f"data_shapes: {shapes!r}: expected a list of DataDescs or of (name, shape) pairs")
    return [s if isinstance(s, DataDesc) else DataDesc(*s) for s in shapes or ()]


class DataBatch:
    """One mini-batch.

    Args:
        data: list of input arrays.
        label: list of label arrays, or `None`.
        pad: number of rows at the end that only fill up the batch.
        index: identities of the rows, if known.
        bucket_key: which bucket of a `BucketingModule` the batch belongs to.
        provide_data, provide_label: `DataDesc`s, where they differ from batch to batch.

    Raises:
        ArgumentTypeError: `data` or `label` is not a list.
    """

    def __init__(
        self,
        data: Sequence[Any],
        label: Sequence[Any] | None = None,
        pad: int | None = None,
        index: Any = None,
        bucket_key: Any = None,
        provide_data: Sequence[Any] | None = None,
        provide_label: Sequence[Any] | None = None,
    ):
        for what, value in (("data", data), ("label", label)):
            if value is not None and not isinstance(value, (list, tuple)):
                raise ArgumentTypeError(f"DataBatch: {what}: got {type(value).__name__}, expected a list of NDArrays")
        self.data, self.label, self.pad, self.index = data, label, pad, index
        self.bucket_key = bucket_key
        self.provide_data, self.provide_label = provide_data, provide_label

    def __str__(self) -> str:
        labels = [tuple(x.shape) for x in self.label] if self.label else None
        return f"DataBatch: data shapes: {[tuple(x.shape) for x in self.data]} label shapes: {labels}"


def named_arrays(value: Any, default_name: str, may_be_empty: bool) -> list[tuple[str, Any]]:
    """Return `(name, array)` pairs of an array, a list of arrays, or a dict (sorted by name); an array may be nested
    lists of numbers inside these.

    Raises:
        ArgumentTypeError: something else, or nothing although something is needed.
    """
    if value is None:
        value = []
    if isinstance(value, Mapping):
        pairs = sorted(value.items())
    elif isinstance(value, (list, tuple)):
        many = len(value) > 1
        pairs = [(f"_{i}_{default_name}" if many else default_name, v) for i, v in enumerate(value)]
    else:
        pairs = [(default_name, value)]
    if not pairs and not may_be_empty:
        raise ArgumentTypeError(f"{default_name}: expected at least one array")
    return [(name, v if hasattr(v, "shape") else _array_of(name, v)) for name, v in pairs]


def _array_of(name: str, value: Any) -> np.ndarray:
    """Return nested lists of numbers as a float32 array."""
    if isinstance(value, (list, tuple)):
        with contextlib.suppress(TypeError, ValueError):
            return np.asarray(value, dtype=np.float32)
    raise ArgumentTypeError(
        f"{name}: got {type(value).__name__}: expected an NDArray, a numpy.ndarray, or a list or dict of them"
    )
