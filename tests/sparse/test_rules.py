"""Storage types and values of operators on sparse arrays, and updates by sparse gradients, as MXNet 1.9.1 has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualmx as mx
from tests.goldens.sparse_cases import OPTIMIZERS, calls, made, updated
from tests.goldens.store import load

KINDS: dict[str, list[Any]] = load("sparse")["kinds"]
# MXNet 1.9.1 reads memory that it did not write.
WRONG_IN_MXNET = {"dot default csr True False csr", "dot default csr True True csr"}


@pytest.fixture(scope="module")
def recorded() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Values by the name of the call, and weights by the name of the optimizer."""
    flat, at = load("sparse")["values"], 0
    found, weights = {}, {}
    for name, (kind, *shape) in KINDS.items():
        if kind != "error":
            size = int(np.prod(shape))
            found[name], at = flat[at : at + size].reshape(shape), at + size
    for key in OPTIMIZERS:
        weights[key], at = flat[at : at + 18].reshape(6, 3), at + 18
    assert at == len(flat)
    return found, weights


@pytest.mark.slow
def test_operators(recorded: Any) -> None:
    """Everything is recorded before anything is read, so that few programs are compiled."""
    results = {name: call() for name, call in calls(mx) if KINDS[name] != ["error"]}
    kinds = {name: [r.stype, *r.shape] for name, r in results.items()}
    assert kinds == {name: kind for name, kind in KINDS.items() if kind != ["error"]}
    dense = {name: r.tostype("default") for name, r in results.items()}
    problems = []
    for name, r in dense.items():
        if name not in WRONG_IN_MXNET and not np.allclose(
            r.asnumpy(), recorded[0][name], rtol=1e-4, atol=1e-5, equal_nan=True
        ):
            problems.append((name, r.asnumpy().tolist(), recorded[0][name].tolist()))
    assert not problems


@pytest.mark.parametrize("key", OPTIMIZERS)
def test_updates(key: str, recorded: Any) -> None:
    np.testing.assert_allclose(updated(mx, key), recorded[1][key], rtol=1e-5, atol=1e-6)


WEIGHT = mx.nd.ones((5, 2))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: mx.nd.clip(made(mx, "csr"), 0.5, 1), "clip.*the bounds must include 0; convert with tostype"),
        (lambda: mx.nd.sparse.retain(made(mx, "csr"), mx.nd.array([0])), "retain.*the array must be row_sparse"),
        (
            lambda: mx.nd.Embedding(made(mx, "csr"), mx.nd.ones((5, 2)), input_dim=5, output_dim=2),
            "Embedding.*the ids must be dense, the table dense or row_sparse",
        ),
        (
            lambda: mx.nd.Embedding(mx.nd.array([0]), made(mx, "csr"), input_dim=4, output_dim=3),
            "Embedding.*the ids must be dense, the table dense or row_sparse",
        ),
        (
            lambda: mx.nd.cast_storage(made(mx, "csr"), "row_sparse"),
            "cast_storage.*convert by way of the default storage type",
        ),
        (
            lambda: mx.nd._internal._square_sum(made(mx, "csr"), axis=1),
            "_square_sum.*the array must be row_sparse, with an axis",
        ),
        (
            lambda: mx.nd.sparse.dot(made(mx, "csr"), mx.nd.ones((3,))),
            "dot: rhs of shape .3,.: the product with a csr array needs 2 axes",
        ),
        (
            lambda: mx.nd.sparse.dot(made(mx, "csr"), mx.nd.ones((2, 1))),
            "dot: shapes .4, 3. and .2, 1.: expected axis 1 of lhs",
        ),
        (
            lambda: made(mx, "csr") + made(mx, "csr", 0, (3, 3)),
            "broadcast_add: shapes .4, 3. and .3, 3. do not broadcast",
        ),
        (
            lambda: made(mx, "csr") + made(mx, "csr").astype("float64"),
            "elemwise_add.*float32.*float64.*cast with .astype",
        ),
        (lambda: mx.nd.sum(made(mx, "csr"), axis=2), "sum: axis=2: expected a value in"),
        (
            lambda: mx.nd.sgd_update(WEIGHT, mx.nd.sparse.zeros("row_sparse", (4, 2)), lr=0.1, out=WEIGHT),
            "sgd_update: grad has shape .4, 2., expected the weight's .5, 2.",
        ),
    ],
)
def test_refused(call: Any, said: str) -> None:
    with pytest.raises(mx.MXNetError, match=said):
        call()


def test_fallback_is_logged_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "1")
    mx.nd.softsign(made(mx, "csr"))
    mx.nd.softsign(made(mx, "csr"))
    assert [r.args[0] for r in caplog.records if r.args] == ["softsign"]
    assert "csr" in caplog.text
    monkeypatch.setenv("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "0")
    mx.nd.softsign(made(mx, "row_sparse"))
    assert "row_sparse" not in caplog.text


def test_functions_that_keep_storage_types_are_those_of_the_sparse_namespace() -> None:
    for kind in ("csr", "row_sparse"):
        a = made(mx, kind)
        for name in ("add", "subtract", "multiply"):
            assert getattr(mx.nd.sparse, name)(a, a).stype == kind
            assert getattr(mx.nd, name)(a, a).stype == "default"
        assert (a + a).stype == (a - a).stype == kind
    quotient = mx.nd.sparse.divide(made(mx, "csr"), mx.nd.zeros((4, 3)))
    assert quotient.stype == "default" and np.isnan(quotient.asnumpy()).any()


@pytest.mark.parametrize("held", [False, True], ids=["pieces", "dense"])
def test_states_of_updates_without_a_rule_are_written_back(held: bool) -> None:
    weight, grad = mx.nd.ones((3, 2)), mx.nd.ones((3, 2))
    for state in (mx.nd.ones((3, 2)), mx.nd.ones((3, 2)).tostype("row_sparse")):
        if held and state.stype != "default":
            state.attach_grad()
        for _ in range(2):
            mx.nd.signum_update(weight, grad, state, lr=0.1, momentum=0.5, out=weight)
        np.testing.assert_allclose(state.asnumpy(), np.full((3, 2), -0.5), rtol=1e-6)


def test_the_naive_engine_computes_densely_too() -> None:
    with mx.engine.naive():
        rows = made(mx, "row_sparse")
        np.testing.assert_allclose(mx.nd.cos(rows).asnumpy(), np.cos(rows.asnumpy()), rtol=1e-6)
        weight, state = mx.nd.ones((4, 3)), mx.nd.zeros((4, 3))
        mx.nd.nag_mom_update(weight, rows, state, lr=0.1, momentum=0.9, out=weight)
        np.testing.assert_allclose(state.asnumpy(), -0.1 * rows.asnumpy(), rtol=1e-6)
