"""Run the cases of `tests/goldens/shape_cases.py` on JAX values and compare with what MXNet recorded for them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.test_util import check_grads

from dualmx.op.registry import OPS
from tests.goldens.shape_cases import Case
from tests.op.replay import apply, recorded


def check_recorded(case: Case, rtol: float = 3e-5, atol: float = 3e-6) -> None:
    """Compare outputs (shape, dtype, values) and gradients of a case with those of MXNet."""
    want = recorded()[case.name]
    call = OPS[case.op].call(**count(case))
    outs = apply(call, *case.arrays)
    assert len(outs) == sum(k.startswith("out") for k in want)
    for i, out in enumerate(outs):
        expected = want[f"out{i}"]
        assert (out.shape, out.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(out.astype(np.float64), expected, rtol, atol)
    if not case.smooth:
        return
    with jax.enable_x64(True):
        arrays = list(map(jnp.asarray, case.arrays))
        out, pull = jax.vjp(lambda *x: call.apply(put(arrays, case, x))[0], *(arrays[i] for i in case.smooth))
        grads = pull(jnp.asarray(case.head(out.shape)))
    for i, grad in zip(case.smooth, grads, strict=True):
        np.testing.assert_allclose(np.asarray(grad), want[f"grad{i}"], rtol, atol)


def check_numeric(case: Case, order: int = 2) -> None:
    """Compare first and second derivatives in float64 with differences."""
    call = OPS[case.op].call(**count(case))
    with jax.enable_x64(True):
        arrays = [jnp.asarray(a, jnp.float64 if a.dtype.kind == "f" else a.dtype) for a in case.arrays]

        def body(*x: jax.Array) -> list[jax.Array]:
            return [o for o in call.apply(put(arrays, case, x)) if o.dtype == jnp.float64]

        check_grads(body, [arrays[i] for i in case.smooth], order, ["rev"], atol=1e-4, rtol=1e-4)


def put(arrays: list[jax.Array], case: Case, smooth: tuple[jax.Array, ...]) -> list[jax.Array]:
    """The inputs of a case with the smooth ones replaced."""
    out = list(arrays)
    for i, x in zip(case.smooth, smooth, strict=True):
        out[i] = jnp.asarray(x)
    return out


def count(case: Case) -> dict[str, object]:
    """The parameters of a case, with the number of inputs where the operator takes any number of them."""
    return {**case.params, "num_args": len(case.arrays)} if OPS[case.op].variadic else case.params
