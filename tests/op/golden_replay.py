"""What MXNet gave for one call of every operator in every dtype: `tests/goldens/operators.json`."""

from __future__ import annotations

from functools import cache

import numpy as np

from tests.goldens.store import load
from tests.op.samples import Sample, chosen

DTYPES = ("float32", "float64", "float16", "int32", "int64", "uint8", "int8")


def chosen_samples() -> list[Sample]:
    """One sample of every operator of `nd` and `sym`; those of NumPy's semantics are recorded apart."""
    return [s for s in chosen(1) if not s.op.startswith("_np")]


def inputs_in(sample: Sample, dtype: str) -> list[np.ndarray] | None:
    """The inputs with those in float32 as `dtype`; None if that is another dtype and there are none, or 16-bit ones."""
    kinds = {a.dtype.name for a in sample.arrays}
    if dtype != "float32" and ("float32" not in kinds or "float16" in kinds):
        return None
    return [a.astype(dtype) if a.dtype == np.float32 else a for a in sample.arrays]


@cache
def _recorded() -> frozenset[Sample]:
    return frozenset(chosen_samples())


def golden(sample: Sample, dtype: str) -> list[tuple[np.dtype, tuple[int, ...], np.ndarray | None]] | str | None:
    """Dtype, shape and values (None if drawn) of each output; why there are none; or None without a record.

    Other samples of an operator may read the same and have other inputs.
    """
    if sample not in _recorded():
        return None
    found = load("operators").get(str(sample), {}).get(dtype)
    if found is None or isinstance(found, str):
        return found
    return [
        (out.dtype, out.shape, out) if isinstance(out, np.ndarray) else (np.dtype(out[0]), tuple(out[1]), None)
        for out in found
    ]
