"""Run cases on JAX values, and find what MXNet recorded for them."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.test_util import check_grads

import dualmx.op.defs  # noqa: F401
from dualmx.op.registry import OPS, Call
from tests.goldens.elementwise_cases import Case
from tests.goldens.store import load

RECORDINGS = ("elementwise", "shape", "nn", "vision", "contrib", "edge")


@functools.cache
def recorded() -> dict[str, dict[str, np.ndarray]]:
    """Case name -> what (`out0`, `grad1`, `next2`: the new value of a state) -> value that MXNet gave, in its dtype."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for name in RECORDINGS:
        assert not found.keys() & load(name).keys(), "two cases have one name"
        found |= load(name)
    return found


def apply(call: Call, *arrays: Any, key: Any = None) -> list[np.ndarray]:
    """Run a call on NumPy arrays as the engine does, checking that inference foretold shapes and dtypes."""
    told = call.infer(tuple((x.shape, np.dtype(x.dtype)) for x in arrays))
    with jax.enable_x64(True):
        outs = call.apply([jnp.asarray(x) for x in arrays], key)
    assert [(o.shape, np.dtype(o.dtype)) for o in outs] == list(told)
    return [np.asarray(o) for o in outs]


def run(name: str, *arrays: Any, **params: Any) -> Any:
    """Run an operator by name; returns one array, or the list of several."""
    outs = apply(OPS[name].call(**params), *(np.asarray(x) for x in arrays))
    return outs[0] if len(outs) == 1 else outs


def gradients(name: str, *arrays: Any, head: Any = 1.0, **params: Any) -> list[np.ndarray]:
    """Gradients of the first output with respect to every input, for a head gradient."""
    call = OPS[name].call(**params)
    with jax.enable_x64(True):
        out, pull = jax.vjp(lambda *x: call.apply(x)[0], *(jnp.asarray(x) for x in arrays))
        return [np.asarray(g) for g in pull(jnp.broadcast_to(jnp.asarray(head, out.dtype), out.shape))]


def check_recorded(case: Case, rtol: float = 3e-5, atol: float = 3e-6) -> None:
    """Compare outputs and gradients in float32 with those of MXNet."""
    want = recorded()[case.name]
    call, arrays = OPS[case.op].call(**case.params), case.arrays()
    outs = apply(call, *arrays)
    for i, out in enumerate(outs):
        np.testing.assert_allclose(out.astype(np.float32), want[f"out{i}"], rtol, atol)
        assert out.shape == want[f"out{i}"].shape
    if "grad0" not in want or not any(o.dtype.kind == "f" for o in outs):
        return
    with jax.enable_x64(True):
        primal, pull = jax.vjp(lambda *x: call.apply(x), *map(jnp.asarray, arrays))
        got = pull(tuple(jnp.asarray(case.head(p.shape, i), p.dtype) for i, p in enumerate(primal)))
    for i, g in enumerate(got):
        np.testing.assert_allclose(np.asarray(g), want[f"grad{i}"], rtol, atol)


def check_numeric(case: Case, order: int) -> None:
    """Compare derivatives up to `order` in float64 with differences."""
    call = OPS[case.op].call(**case.params)
    with jax.enable_x64(True):
        arrays = [jnp.asarray(x, jnp.float64) for x in case.arrays()]
        check_grads(lambda *x: call.apply(x), arrays, order, ["rev"], atol=1e-4, rtol=1e-4)


def defined_in(*modules: str) -> list[str]:
    """Names of the operators that these definition modules register, without those of NumPy (see tests/numpy)."""
    names = {o.name for o in OPS.values() if o.fn.__module__.rsplit(".", 1)[-1] in modules}
    assert names, f"no operators in {modules}"
    return sorted(n for n in names if not n.startswith(("_np_", "_npi_", "_npx_")))
