"""Dtypes, shapes and values of `mx.np` as the real MXNet gave them."""

from __future__ import annotations

import json
from pathlib import Path

import dualmx as mx
import numpy as onp
from tests.goldens import np_cases

RECORDED = json.loads((Path(__file__).parents[1] / "goldens" / "np.json").read_text(encoding="utf-8"))


def test_as_mxnet():
    """All calls are recorded before the first one is computed, so that they are few programs."""
    found = {name: np_cases.evaluate(np_cases.EXPRESSIONS[name], mx.np, onp) for name in RECORDED}
    wrong = []
    for name, (dtype, shape, values) in RECORDED.items():
        got = found[name].asnumpy()
        want = onp.array([float(v) for v in values], "float32").reshape(shape)
        near = {"rtol": 2e-3 if dtype == "float16" else 1e-5, "atol": 1e-6, "equal_nan": True}
        if str(got.dtype) != dtype or got.shape != want.shape or not onp.allclose(got.astype("float32"), want, **near):
            wrong.append(f"{name}: {got!r}, expected {dtype} {want!r}")
    assert not wrong, f"{len(wrong)} of {len(RECORDED)}:\n" + "\n".join(wrong)
