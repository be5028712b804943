"""Shapes inferred by functions of symbolic sizes are those of a trace with the sizes themselves."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import dualmx as mx
from dualmx import nd
from dualmx.core.errors import MXNetError
from dualmx.graph.trie import trie
from dualmx.op import shape_functions, symbolic_sizes
from dualmx.op.registry import OPS, Call
from dualmx.op.shape_functions import ShapeFunctions
from dualmx.op.symbolic_sizes import pattern_of, sizes_source, trace_symbolically
from tests.op.samples import Sample, all_samples


def call_of(sample: Sample) -> Call:
    op, params = OPS[sample.op], dict(sample.params)
    if op.variadic and "num_args" in op.params:
        params.setdefault("num_args", len(sample.arrays))
    return op.call(sample.train, **params)


def inferred(call, avals, functions):
    """What `infer` gives with these shape functions, without any by a trace; nothing of it is kept."""
    call.avals, call.shape_functions = {}, functions or ShapeFunctions()
    try:
        return call.infer(avals)
    except MXNetError as e:
        return type(e), str(e)
    finally:
        call.avals, call.shape_functions = {}, None


def answers(sample: Sample, *growths) -> list[tuple[object, object]]:
    """Pairs of what a call infers from earlier sizes and what it infers without."""
    call, found = call_of(sample), []
    given = tuple((a.shape, a.dtype) for a in sample.arrays)
    functions = ShapeFunctions([given])
    for grow in (lambda n: n, *growths):
        avals = tuple((tuple(grow(n) if n > 1 else n for n in shape), dtype) for shape, dtype in given)
        got = [inferred(call, avals, functions) for _ in range(2)][1]
        found.append((got, inferred(call, avals, None)))
    return found


INFERRED = [
    name for name, samples in sorted(all_samples().items()) if not (call_of(samples[0]).joint or OPS[name].dynamic)
]


@pytest.mark.parametrize("name", INFERRED)
def test_shapes_at_other_sizes_are_those_of_a_trace(name):
    for got, want in answers(all_samples()[name][0], lambda n: n + 3):
        assert got == want


@pytest.mark.slow
@pytest.mark.parametrize("name", INFERRED)
def test_shapes_of_all_samples_at_many_sizes(name):
    for sample in all_samples()[name][:2]:
        for got, want in answers(sample, lambda n: 2 * n, lambda n: 3 * n + 1, lambda n: max(2, n - 1)):
            assert got == want


@pytest.mark.parametrize(
    ("name", "params", "shapes"),
    [
        ("FullyConnected", {"num_hidden": 3}, lambda n: [(n, 4, 5), (3, 20), (3,)]),
        ("Convolution", {"kernel": (3, 3), "num_filter": 8}, lambda n: [(n, 4, 20 + n, 31 + n), (8, 4, 3, 3), (8,)]),
        ("Pooling", {"kernel": (2, 2), "stride": (2, 2)}, lambda n: [(n, 3, 30 + 2 * n, 50 + 2 * n)]),
        ("BatchNorm", {}, lambda n: [(n, 3, 20 + n, 40 + n), (3,), (3,), (3,), (3,)]),
        ("softmax", {}, lambda n: [(n, 20 + n)]),
        ("broadcast_add", {}, lambda n: [(n, 1, 30 + n), (n, 40 + n, 1)]),
        ("dot", {}, lambda n: [(n, 30 + n), (30 + n, 60 + n)]),
        ("Flatten", {}, lambda n: [(n, 6, 20 + n)]),
        ("stack", {"axis": 1, "num_args": 2}, lambda n: [(n, 20 + n), (n, 20 + n)]),
        ("SoftmaxOutput", {"normalization": "batch"}, lambda n: [(n, 40 + n), (n,)]),
        ("Embedding", {"input_dim": 9, "output_dim": 4}, lambda n: [(n, 30 + n), (9, 4)]),
        ("mean", {"axis": (0,)}, lambda n: [(n, 30 + n)]),
    ],
)
def test_one_function_serves_for_all_sizes(name, params, shapes):
    given, functions = OPS[name].call(**params), ShapeFunctions([])
    for n in range(11, 21):
        avals = tuple((shape, np.dtype("float32")) for shape in shapes(n))
        call = given.without_stated_sizes(avals)  # which is the one that is traced
        assert inferred(call, avals, functions) == inferred(call, avals, None)
    assert 1 <= functions.count <= 3  # JAX's caches compare sizes by chance, and each comparison is a guard


def free_sizes(body, *shapes):
    pattern, sizes = pattern_of([(s, np.dtype("float32")) for s in shapes])
    return trace_symbolically(body, pattern, sizes)


def test_a_decision_about_a_size_is_a_guard():
    traced = free_sizes(lambda specs: "long" if specs[0].shape[0] >= 4 else "short", (6,))
    assert (traced.result, traced.guards, traced.fixed) == ("long", ["(d0) >= (4)"], frozenset())
    traced = free_sizes(lambda specs: "odd" if specs[0].shape[0] % 2 else "even", (6,))
    assert (traced.result, traced.guards) == ("even", ["(((d0)%(2))) == 0"])


def test_a_size_used_as_a_number_is_fixed_and_others_stay_free():
    traced = free_sizes(lambda specs: [0] * specs[0].shape[0] and specs[0].shape[1] + 1, (6, 5))
    assert traced.fixed == {0} and sizes_source([traced.result]) == "((d1+1),)"


def test_without_symbols_shapes_come_from_traces(monkeypatch):
    monkeypatch.setattr(symbolic_sizes, "is_available", False)
    call = OPS["softmax"].call(axis=0)
    for n in (3, 4, 5):
        assert call.infer((((n, 2), np.dtype("float32")),)) == (((n, 2), np.dtype("float32")),)


def test_symbols_of_users_decide_nothing():
    from jax import export

    nd.softmax(nd.ones((2, 3))).wait_to_read()
    nd.softmax(nd.ones((4, 5))).wait_to_read()
    a, b = export.symbolic_shape("a, b")
    assert a != b and bool(a) and a == a
    with pytest.raises(Exception, match="inconclusive|Symbolic"):
        a >= b  # noqa: B015
    with pytest.raises(Exception, match="inconclusive|Symbolic"):
        int(a)


def test_a_wrong_shape_raises_as_before_and_spoils_nothing():
    w = nd.ones((4, 6))
    for n in (2, 3, 5):
        assert nd.FullyConnected(nd.ones((n, 6)), w, no_bias=True, num_hidden=4).shape == (n, 4)
        with pytest.raises(mx.MXNetError, match=r"FullyConnected.*weight has shape \(4, 6\)"):
            nd.FullyConnected(nd.ones((n, 7)), w, no_bias=True, num_hidden=4)


def test_wrong_sizes_are_tried_with_numbers_and_right_ones_get_a_function_after_them(monkeypatch):
    traces = []

    def counted(body, pattern, sizes):
        traces.append(sizes)
        return trace_symbolically(body, pattern, sizes)

    monkeypatch.setattr(shape_functions, "trace_symbolically", counted)
    monkeypatch.setattr(shape_functions, "read_shapes", lambda *_: [])  # of no earlier process
    call, float32 = OPS["dot"].call(), np.dtype("float32")
    call.avals, call.shape_functions = {}, None
    for n in range(5, 13):
        with pytest.raises(mx.MXNetError, match="dot"):
            call.infer((((3, n + 7), float32), ((n, 4), float32)))
    assert not traces
    for n in (20, 21, 22):
        assert call.infer((((3, n), float32), ((n, 4), float32)))[0][0] == (3, 4)
    assert traces == [(3, 21, 4)]


def test_a_trace_keeps_no_array_of_the_user_alive():
    trie.clear()
    call = OPS["sin"].call()
    call.avals, call.shape_functions = {}, None
    gc.collect()
    gc.disable()
    try:
        for n in (5, 6, 7):
            kept = weakref.ref(x := nd.ones((n, 3)))
            nd.exp(nd.sin(x)).wait_to_read()
            del x
            assert kept() is None
    finally:
        gc.enable()
    assert call.shape_functions is not None and call.shape_functions.count
