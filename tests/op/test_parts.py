"""Calls that are made of parts, such as updates of many weights: the parts together do what the whole does."""

from __future__ import annotations

import numpy as np
import pytest

from dualmx.core.errors import MXNetError
from dualmx.op.registry import OPS, Call
from dualmx.op.runtime_scalars import SharedScalars
from tests.op.samples import Sample, all_samples

NAMES = sorted(name for name, op in OPS.items() if op.parts is not None and name == op.name)


def avals_of(arrays) -> tuple:
    return tuple((a.shape, a.dtype) for a in arrays)


def sample_of(name: str) -> tuple[Call, Sample]:
    sample = all_samples()[name][0]
    return OPS[name].call(sample.train, **sample.params), sample


def by_parts(call: Call, arrays, scalars) -> list[np.ndarray]:
    """What the parts of a call compute, result by result, of arrays with one axis where they may have one."""
    found = {}
    for part in call.parts:
        own = [arrays[i] for i in part.ins]
        flat = [x.reshape(-1) for x in own] if part.is_flat else own
        results = part.call.apply(flat, None, [scalars[i] for i in part.scalars])
        if part.is_flat:
            results = [r.reshape(own[0].shape) for r in results]
        found.update(zip(part.outs, results, strict=True))
    assert sorted(found) == list(range(call.n_results))
    return [np.asarray(found[i]) for i in range(call.n_results)]


def assert_same(found, wanted) -> None:
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, np.asarray(b))


def test_updates_of_many_weights_have_parts():
    assert {"multi_sgd_mom_update", "multi_mp_sgd_update", "_multi_adam_update", "_multi_mp_lamb_update"} <= {*NAMES}
    assert OPS["preloaded_multi_sgd_update"].parts is None  # its rates are parts of arrays


@pytest.mark.parametrize("name", NAMES)
def test_parts_together_are_the_whole(name):
    call, sample = sample_of(name)
    assert len(call.parts) > 1
    scalars = [0.5 + i for i in range(call.n_runtime)]
    assert_same(by_parts(call, sample.arrays, scalars), call.apply(sample.arrays, None, scalars))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("differ", [False, True])
def test_parts_of_a_form_with_shared_numbers(name, differ):
    call, sample = sample_of(name)
    lists = {n for n in call.op.runtime if call.op.params[n].vector}
    count = len(call.parts)
    given = {n: tuple(1.0 + differ * k for k in range(count)) if n in lists else 0.5 for n in call.op.runtime}
    shared, scalars = SharedScalars(call)(given)
    plain = [x for n in call.op.runtime for x in (given[n] if n in lists else (given[n],))]
    assert len(scalars) < len(plain) or differ
    assert_same(by_parts(shared, sample.arrays, scalars), call.apply(sample.arrays, None, plain))


def test_one_group_has_no_parts():
    call, sample = sample_of("multi_sgd_update")
    (part, *_) = call.parts
    assert part.call.parts == ()
    assert part.call is call.parts[0].call


def test_equal_groups_are_one_call():
    call = OPS["multi_sgd_update"].call(False, lrs=(1.0, 2.0, 3.0), wds=(0.0, 0.5, 0.0), num_weights=3)
    first, second, third = (part.call for part in call.parts)
    assert first is third and first is not second


@pytest.mark.parametrize("name", NAMES)
def test_shapes_come_from_the_parts(name, monkeypatch):
    call, sample = sample_of(name)
    avals = avals_of(sample.arrays)
    wanted = tuple((tuple(r.shape), np.dtype(r.dtype)) for r in call.apply(sample.arrays))
    traced, infer = [], Call._infer_by_trace
    monkeypatch.setattr(Call, "_infer_by_trace", lambda self, *args: traced.append(self) or infer(self, *args))
    call.avals.clear()
    assert call.infer(avals) == wanted
    assert call not in traced


@pytest.mark.parametrize(
    ("shapes", "problem"),
    [
        (((2,), (2,), (3,)), "got 3 arrays, expected 2 for each of the 2 weights"),
        (((2,), (2,), (3,), (3,), (3,)), "got 5 arrays"),
        (((2,), (2,), (3,), (4,)), r"grad of group 1 has shape \(4,\)"),
    ],
)
def test_what_is_wrong_is_told_of_the_whole(shapes, problem):
    call = OPS["multi_sgd_update"].call(False, lrs=(1.0, 2.0), wds=(0.0, 0.0), num_weights=2)
    with pytest.raises(MXNetError, match=problem):
        call.infer(tuple((s, np.dtype("float32")) for s in shapes))


def test_too_few_rates_are_told():
    call = OPS["multi_sgd_update"].call(False, lrs=(1.0,), wds=(0.0, 0.0), num_weights=2)
    assert call.parts == ()
    with pytest.raises(MXNetError, match="got 1 rates"):
        call.infer((((2,), np.dtype("float32")),) * 4)
