"""Replay of recorded operator cases and numeric gradient checks, shared by the operator tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dualmx.op.defs  # noqa: F401
from dualmx.op.registry import OPS
from tests.goldens.nn_cases import Case
from tests.op.replay import recorded


def replay(case: Case, rtol: float = 2e-5, atol: float = 2e-5, skip: tuple[str, ...] = ()) -> None:
    """Compare outputs, next states and gradients (but of inputs in `skip`) of one case with the record."""
    record = recorded()[case.name]
    op = OPS[case.op]
    params = op.parse(case.params)
    # Calls are shared by all values of runtime parameters: the case's are given where the call is applied.
    call, runtime = op.bind(params, case.train), op.runtime_values(params)
    arrays = case.arrays()
    names = list(arrays)
    with jax.enable_x64(True):
        ins = [jnp.asarray(a) for a in arrays.values()]
        free = [i for i, n in enumerate(names) if n not in case.still]

        def run(*given: Any) -> tuple[Any, ...]:
            full = list(ins)
            for i, g in zip(free, given, strict=True):
                full[i] = g
            return call.apply_keys(full, (), runtime)

        @jax.jit
        def both(given: list[Any]) -> tuple[Any, Any]:
            outs, back = jax.vjp(run, *given)
            heads = [jnp.zeros_like(o) for o in outs]
            heads[0] = jnp.asarray(case.head(outs[0].shape))
            return outs, back(tuple(heads))

        outs, grads = both([ins[i] for i in free])
    inferred = call.infer(tuple((a.shape, a.dtype) for a in arrays.values()))
    assert inferred == tuple((o.shape, np.dtype(o.dtype)) for o in outs)
    for i in range(call.n_visible):
        want = record[f"out{i}"]
        np.testing.assert_allclose(outs[i], want, rtol, atol, err_msg=f"output {i}")
        assert outs[i].dtype == want.dtype
    written = dict(zip(call.aux_positions(len(names)), outs[call.n_outputs :], strict=True))
    for at, n in enumerate(names):
        if not n.startswith("moving"):
            continue
        value = written.get(at, arrays[n])
        np.testing.assert_allclose(value, record[f"next{at}"], rtol, atol, err_msg=f"next {n}")
    for i, g in zip(free, grads, strict=True):
        if names[i] in skip:
            continue
        np.testing.assert_allclose(g, record[f"grad{i}"], rtol, atol, err_msg=f"gradient of {names[i]}")


def numeric_gradients(fn: Callable[..., Any], args: list[np.ndarray], tol: float = 1e-6) -> None:
    """Check reverse-mode gradients of scalar `fn` at float64 `args` against central differences."""
    with jax.enable_x64(True):
        got = jax.jit(jax.grad(fn, tuple(range(len(args)))))(*map(jnp.asarray, args))
        run = jax.jit(fn)
        for k, a in enumerate(args):
            want = np.zeros_like(a)
            for at in np.ndindex(*a.shape):
                step = np.zeros_like(a)
                step[at] = 1e-5
                up, down = ([*args[:k], a + s, *args[k + 1 :]] for s in (step, -step))
                want[at] = (run(*up) - run(*down)) / 2e-5
            np.testing.assert_allclose(got[k], want, tol * 10, tol, err_msg=f"argument {k}")


def scalar(op: str, shapes: list[tuple[int, ...]], seed: int = 0, train: bool = True, **params: Any) -> Any:
    """Return `(fn, args)`: fn is a weighted sum of the op's first output, args random float64 inputs."""
    rng = np.random.default_rng(seed)
    args = [rng.normal(size=s) for s in shapes]
    call = OPS[op].call(train, **params)
    with jax.enable_x64(True):
        shape = jax.eval_shape(lambda *a: call.apply(a)[0], *map(jnp.asarray, args)).shape
    weight = rng.normal(size=shape)

    def fn(*ins: Any) -> Any:
        return jnp.sum(call.apply(ins)[0] * weight)

    return fn, args


def gradients(op: str, shapes: list[tuple[int, ...]], order: int = 2, train: bool = True, **params: Any) -> None:
    """Check first and, for order 2, second derivatives of an op against central differences."""
    fn, args = scalar(op, shapes, train=train, **params)
    numeric_gradients(fn, args)
    if order == 2:
        rng = np.random.default_rng(1)
        weights = [rng.normal(size=a.shape) for a in args]

        def slope(*ins: Any) -> Any:
            grads = jax.grad(fn, tuple(range(len(ins))))(*ins)
            return sum(jnp.sum(g * w) for g, w in zip(grads, weights, strict=True))

        numeric_gradients(slope, args, 1e-5)
