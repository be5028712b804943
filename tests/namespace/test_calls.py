"""Calling every registered operator: signatures, documentation, parameters through JSON, and errors at the call."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import MXNetError
from dualmx.op.registry import OPS, Op
from dualmx.op.schema import TENSOR
from tests.op.fronts import call, function, symbol_of
from tests.op.samples import Sample, all_samples, registered

OPERATORS = registered()
SAMPLES = [cases[0] for cases in all_samples().values()]
each_operator = pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.name)
each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.op)


def arrays(sample: Sample) -> list[Any]:
    """NDArrays of the inputs of a sample."""
    return [mx.nd.array(a, dtype=a.dtype) for a in sample.arrays]


def must_fail(op: str, action: Any, *words: str) -> None:
    """The call itself raises an MXNetError that begins with the operator's name and contains the words."""
    with pytest.raises(MXNetError, match=f"^{re.escape(OPS[op].name)}") as e:
        action()
    for word in words:
        assert word in str(e.value)


@each_operator
@pytest.mark.parametrize("front", [mx.nd, mx.sym], ids=["nd", "sym"])
def test_signature_and_documentation_name_everything(front, op):
    made = function(front, op.name)
    named = inspect.signature(made).parameters
    documented = {line.split(":")[0].strip().lstrip("*") for line in (inspect.getdoc(made) or "").splitlines()}
    for name in (*(i.name for i in op.inputs), *op.params):
        assert name in named
        assert name in documented
    assert (inspect.getdoc(made) or "").splitlines()[0]
    for field in op.params.values():
        assert named[field.name].default == (None if field.required else field.default)
    assert ("out" in named) == (front is mx.nd)


def test_every_alias_is_the_same_operator():
    for name in OPS:
        assert inspect.signature(function(mx.nd, name)) == inspect.signature(function(mx.nd, OPS[name].name)), name


@each_sample
def test_parameters_survive_json(sample):
    if not OPS[sample.op].call(**arity(sample)).n_visible:
        must_fail(sample.op, lambda: symbol_of([sample]), "no output")
        return
    symbol = symbol_of([sample])[0]
    text = symbol.tojson(remove_amp_cast=False)
    read = mx.sym.load_json(text)
    assert read.tojson(remove_amp_cast=False) == text
    (node, _), (again, _) = symbol.entries[0], read.entries[0]
    assert again.op is node.op
    assert again.params == node.params
    assert read.list_inputs() == symbol.list_inputs()
    assert read.list_outputs() == symbol.list_outputs()


def arity(sample: Sample) -> dict[str, Any]:
    """The parameters of a sample, with the number of inputs if the operator counts them."""
    counted = "num_args" in OPS[sample.op].params and OPS[sample.op].variadic
    return {**({"num_args": len(sample.arrays)} if counted else {}), **sample.params}


@each_sample
def test_unknown_parameter(sample):
    wrong = Sample(sample.op, sample.arrays, {**sample.params, "no_such_thing": 1})
    if OPS[sample.op].params or OPS[sample.op].variadic:
        must_fail(sample.op, lambda: call(mx.nd, wrong, arrays(sample)), "no_such_thing")
        must_fail(sample.op, lambda: symbol_of([wrong]), "no_such_thing")
    else:
        with pytest.warns(UserWarning, match=f"{sample.op}: it has no parameters: 'no_such_thing' ignored"):
            call(mx.nd, wrong, arrays(sample))


@each_sample
def test_unusable_parameter_value(sample):
    for field in OPS[sample.op].params.values():
        if field.ignored or field.convert is str or field.type is str or field.name in ("ctx", "spec"):
            continue
        wrong = Sample(sample.op, sample.arrays, {**sample.params, field.name: "nonsense"})
        must_fail(sample.op, lambda w=wrong: call(mx.nd, w, arrays(sample)), field.name, "nonsense")
        must_fail(sample.op, lambda w=wrong: symbol_of([w]), field.name, "nonsense")


@each_sample
def test_missing_required_parameter(sample):
    for field in OPS[sample.op].params.values():
        if field.required:
            less = {k: v for k, v in sample.params.items() if k != field.name}
            wrong = Sample(sample.op, sample.arrays, less)
            must_fail(sample.op, lambda w=wrong: call(mx.nd, w, arrays(sample)), field.name)
            must_fail(sample.op, lambda w=wrong: symbol_of([w]), field.name)


def needed(op: Op, sample: Sample) -> list[int]:
    """Positions of the inputs that the sample cannot do without."""
    if op.variadic:
        return []
    params = op.parse(sample.params)
    live = [i for i in op.inputs if i.when is None or i.when.holds(params)]
    return [k for k, i in enumerate(live) if not i.optional]


@each_sample
def test_missing_input(sample):
    op = OPS[sample.op]
    for k in needed(op, sample)[-1:]:
        must_fail(sample.op, lambda k=k: call(mx.nd, sample, arrays(sample)[:k]), op.inputs[k].name)
    if op.inputs and not op.inputs[0].optional:
        must_fail(sample.op, lambda: call(mx.nd, sample, ["text", *arrays(sample)[1:]]), "text", "NDArray")


@each_sample
def test_mixed_dtypes(sample):
    op = OPS[sample.op]
    given = arrays(sample)
    shared = range(len(given)) if op.variadic else [k for k in needed(op, sample) if op.inputs[k].role is TENSOR]
    if len(shared) < 2 or op.inputs[0].role is not TENSOR:
        return
    last = list(shared)[-1]
    given[last] = given[last].astype("int64" if given[last].dtype != np.int64 else "int32")
    must_fail(sample.op, lambda: call(mx.nd, sample, given), "dtype")


@each_sample
def test_other_shapes_compute_or_raise_the_right_error(sample):
    for k, array in enumerate(sample.arrays):
        for shape in {(7,), (1,) * (array.ndim + 1), (3,) * max(array.ndim - 1, 1), (2, 3, 5, 7)}:
            given = arrays(sample)
            given[k] = mx.nd.zeros(shape, dtype=array.dtype)
            try:
                call(mx.nd, sample, given)
            except MXNetError as e:
                assert str(e).startswith(OPS[sample.op].name), str(e)


@pytest.mark.parametrize("given", [1, 3])
def test_as_many_arrays_are_written_as_there_are_results(given):
    out = [mx.nd.zeros((2, 1)) for _ in range(given)]
    with pytest.raises(MXNetError, match=f"expected 2 array.*got {given}"):
        mx.nd.split(mx.nd.ones((2, 2)), 2, out=out)
    with pytest.raises(MXNetError, match="expected 1 array"):
        mx.nd.relu(mx.nd.ones((2, 1)), out=[mx.nd.zeros((2, 1)), mx.nd.zeros((2, 1))])
    assert all(o.asnumpy().sum() == 0 for o in out)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: mx.nd.ones_like(x, ctx=mx.cpu()),
        lambda x: x.ones_like(dtype="int32"),
        lambda x: mx.nd.exp(x - 1, axis=1),
    ],
)
def test_operators_without_parameters_ignore_what_they_are_given(call):
    with pytest.warns(UserWarning, match="it has no parameters: '(ctx|dtype|axis)' ignored") as found:
        made = call(mx.nd.ones((2,)))
    assert found[0].filename == __file__
    assert (made.dtype, made.asnumpy().tolist()) == (np.float32, [1.0, 1.0])


def test_symbols_of_operators_without_parameters_keep_what_they_are_given():
    net = mx.sym.zeros_like(mx.sym.var("x"), ctx=mx.cpu(), name="zero")
    assert net.attr_dict() == {"zero": {"ctx": "cpu(0)"}}
