"""Symbols against goldens of MXNet 1.9.1: names and JSON byte for byte, inference, executor runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.op.registry import OPS
from tests.goldens.store import load
from tests.goldens.symbol_cases import BUILDS, EXPRESSIONS, INFERENCES, RUNS


def golden(name: str) -> Any:
    return load("symbol")[name]


def evaluate(text: str) -> Any:
    with mx.name.NameManager():
        return eval(text, {"sym": mx.sym, **{n: mx.sym.Variable(n) for n in "xyz"}})


@pytest.mark.parametrize("name", BUILDS)
def test_graph_is_written_byte_for_byte(name):
    want = golden("graphs")[name]
    with mx.name.NameManager():
        symbol = BUILDS[name](mx)
    assert symbol.tojson() == want["json"]
    assert symbol.name == want["name"]
    assert symbol.list_arguments() == want["arguments"]
    assert symbol.list_outputs() == want["outputs"]
    assert symbol.list_auxiliary_states() == want["states"]
    assert symbol.get_internals().list_outputs() == want["internals"]
    assert symbol.attr_dict() == want["attr_dict"]


@pytest.mark.parametrize("name", BUILDS)
def test_graph_survives_a_round_trip_of_the_golden_file(name):
    text = golden("graphs")[name]["json"]
    assert mx.sym.load_json(text).tojson() == text


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_node_is_written_byte_for_byte(text):
    want = golden("nodes")[text]
    symbol = evaluate(text)
    assert symbol.list_outputs() == want["outputs"]
    assert symbol.name == want["name"]
    assert symbol.tojson() == want["json"]


def plain(value: Any) -> Any:
    return None if value is None else list(value) if isinstance(value, tuple) else np.dtype(value).name


def agrees(found: Any, want: Any) -> bool:
    """True for a shape or dtype that says everything that MXNet's does, whose unknown ones are empty or None."""
    if isinstance(want, list) and want:
        return len(found) == len(want) and all(w in (0, f) for f, w in zip(found, want, strict=True))
    return want in ([], None) or found == want


def knows_at_least(found: Any, want: Any) -> bool:
    """True if a partial result says everything that MXNet says; it may say more, but of nothing else."""
    return want is None or all(
        w is None or (len(f) == len(w) and all(map(agrees, f, w))) for f, w in zip(found, want, strict=True)
    )


def test_control_what_is_less_than_wanted_is_told_apart():
    want = [[[0, 3], []], [[2]], []]
    assert knows_at_least([[[5, 3], [1]], [[2]], []], want) and knows_at_least(want, want)
    for wrong in (
        [[[5, 4], [1]], [[2]], []],
        [[[5, 3]], [[2]], []],
        [[[5, 3], [1]], [[2]], [[1]]],
        [[[3], []], [[2]], []],
    ):
        assert not knows_at_least(wrong, want)


@pytest.mark.parametrize(
    ("text", "method", "kwargs", "want"),
    [(*case, want) for case, (_, _, _, want) in zip(INFERENCES, golden("inference"), strict=True)],
)
def test_inference(text, method, kwargs, want):
    symbol = evaluate(text)
    if want == "error":
        with pytest.raises(mx.MXNetError, match="^(infer_(shape|type)|in node .*): "):
            getattr(symbol, method)(**kwargs)
        return
    found = [None if part is None else [plain(v) for v in part] for part in getattr(symbol, method)(**kwargs)]
    if method.endswith("partial"):
        assert knows_at_least(found, want), (found, want)
    else:
        assert found == want


@pytest.mark.parametrize("seed", range(len(golden("random"))))
def test_inference_of_a_random_graph(seed):
    case = golden("random")[seed]
    symbol = mx.sym.load_json(case["graph"])
    given = {k: tuple(v) for k, v in case["given"].items()}
    if case["full"] == "error":
        pytest.skip("MXNet rejects the graph")
    arguments, outputs, states = symbol.infer_shape(**given)
    if case["full"][0] is not None:
        assert [[list(s) for s in part] for part in (arguments, outputs, states)] == case["full"]
    partial = [[list(s) for s in part] for part in symbol.infer_shape_partial(**given)]
    assert knows_at_least(partial, case["partial"]), (partial, case["partial"])


@pytest.mark.parametrize("name", RUNS)
def test_executor_agrees(name):
    build, shapes, grad_req = RUNS[name]
    want = golden("runs")[name]
    with mx.name.NameManager():
        symbol = BUILDS[build](mx)
    exe = symbol.simple_bind(mx.cpu(), grad_req=grad_req, **shapes)
    rng = np.random.RandomState(7)
    for key in sorted(exe.arg_dict):
        exe.arg_dict[key][:] = rng.uniform(-1, 1, exe.arg_dict[key].shape).astype(np.float32)
    for key, array in exe.aux_dict.items():
        array[:] = 1 if key.endswith("var") else 0
    for step in want["steps"]:
        exe.forward(is_train=True)
        exe.backward([mx.nd.array(rng.uniform(0.5, 1.5, o.shape)) for o in exe.outputs])
        for got, expected in zip(exe.outputs, step["outputs"], strict=True):
            np.testing.assert_allclose(got.asnumpy(), np.float32(expected), rtol=2e-5, atol=1e-6)
        for key, expected in step["grads"].items():
            np.testing.assert_allclose(
                exe.grad_dict[key].asnumpy(), np.float32(expected), rtol=2e-4, atol=2e-5, err_msg=key
            )
        for key, expected in step["states"].items():
            np.testing.assert_allclose(exe.aux_dict[key].asnumpy(), np.float32(expected), rtol=1e-5, atol=1e-6)
    for got, expected in zip(exe.forward(), want["inference"], strict=True):
        np.testing.assert_allclose(got.asnumpy(), np.float32(expected), rtol=2e-5, atol=1e-6)


def test_registry_names_are_those_of_mxnet():
    """An op must be registered under the name that MXNet writes to files, its other names as aliases."""
    known = golden("names")
    wrong = {
        alias: (op.name, known[alias])
        for alias, op in OPS.items()
        if alias in known
        and not alias.startswith(("_npx_", "_np_", "_npi_"))
        and not alias.endswith("_v1")
        and op.name != known[alias]
    }
    assert not wrong
