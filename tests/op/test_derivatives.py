"""First and second derivatives of every differentiable operator, in float64, against differences along a direction.

For a head h, the objective is L = Σ h · out, G its gradient by autograd with `create_graph=True`, and S = Σ v · G.
The derivative of L along v must be Σ v · G, that of S along v must be Σ v · ∂S. The samples of a group are one program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from tests.op.fronts import call, cast, groups, is_float, is_random, named
from tests.op.samples import Sample, chosen

STEP = 1e-5
# Operators whose gradient is by definition not the derivative of their result.
OWN_GRADIENT = {
    "MakeLoss", "SoftmaxOutput", "SVMOutput", "LinearRegressionOutput", "LogisticRegressionOutput",
    "MAERegressionOutput",
}  # fmt: skip
# Operators with such a gradient, which is constant for a further derivative; MXNet has none.
FIRST_ONLY = {"IdentityAttachKLSparseReg"}
# Operators whose results are whole numbers through which no gradient passes.
CONSTANT = {"shape_array", "size_array", "_contrib_allclose"}
# Counts, drawn as whole numbers: held still.
STILL = {f"_random_pdf_{stem}": (0,) for stem in ("poisson", "negative_binomial", "generalized_negative_binomial")}
# Operators of symmetric matrices, which are moved as such.
SYMMETRIC = {"_linalg_potrf", "_npi_cholesky"}

SMOOTH = [s for s in chosen(1) if s.smooth and not is_random(s) and s.op not in CONSTANT]


class Probe:
    """Objective, slope along the direction, and what autograd gives for the derivatives of both."""

    def __init__(self, samples: Sequence[Sample], shift: float):
        self.samples = samples
        inputs, directions = [], []
        for sample in samples:
            arrays = cast(sample, np.float64)
            rng = np.random.RandomState(3)
            along = {i: rng.uniform(0.5, 1.0, arrays[i].shape) for i in sample.smooth}
            if sample.op in SYMMETRIC:
                along = {i: v + v.T for i, v in along.items()}
            along |= {i: np.zeros_like(along[i]) for i in STILL.get(sample.op, ())}
            moved = [a + shift * along[i] if i in along else a for i, a in enumerate(arrays)]
            inputs.append([mx.nd.array(a, dtype=a.dtype) for a in moved])
            directions.append({i: mx.nd.array(v, dtype="float64") for i, v in along.items()})
        variables = [given[i] for sample, given in zip(samples, inputs, strict=True) for i in sample.smooth]
        along = [v for by_input in directions for v in by_input.values()]
        for x in variables:
            x.attach_grad()
        with mx.autograd.record():
            heads = [self.objective(s, given) for s, given in zip(samples, inputs, strict=True)]
            first = mx.autograd.grad(heads, variables, create_graph=True)
            slopes = [(g * v).sum() for g, v in zip(first, along, strict=True)]
        mx.autograd.backward(slopes)
        counts = [len(s.smooth) for s in samples]
        self.value = [h.asscalar() for h in heads]
        self.slope = add(counts, [s.asscalar() for s in slopes])
        self.bend = add(counts, [(x.grad * v).sum().asscalar() for x, v in zip(variables, along, strict=True)])

    def objective(self, sample: Sample, given: Sequence[Any]) -> Any:
        """The weighted sum of the outputs of a sample, in float64."""
        with mx.autograd.train_mode() if sample.train else mx.autograd.predict_mode():
            outs = [o for o in call(mx.nd, sample, given) if is_float(o)]
        total = mx.nd.zeros((1,), dtype="float64")
        for i, out in enumerate(outs):
            head = mx.nd.array(sample.head(out.shape, i), dtype="float64")
            total = total + (out.astype("float64") * head).sum()
        return total


def add(counts: Sequence[int], values: Sequence[float]) -> list[float]:
    """Sum `values` over groups of the given lengths."""
    left = list(values)
    return [float(sum(left.pop(0) for _ in range(n))) for n in counts]


def near(got: float, want: float) -> bool:
    """Equal up to the error of central differences."""
    return bool(np.isclose(got, want, 2e-5, 2e-5 * max(1.0, abs(want))))


@pytest.mark.slow
@named(groups(SMOOTH))
def test_derivatives_agree_with_differences(samples):
    here, above, below = (Probe(samples, shift) for shift in (0.0, STEP, -STEP))
    problems = []
    for k, sample in enumerate(samples):
        first = (above.value[k] - below.value[k]) / (2 * STEP)
        second = (above.slope[k] - below.slope[k]) / (2 * STEP)
        if sample.numeric and sample.op not in OWN_GRADIENT and not near(here.slope[k], first):
            problems.append(f"{sample}: first derivative {here.slope[k]:.8g}, differences give {first:.8g}")
        if sample.op not in FIRST_ONLY and not near(here.bend[k], second):
            problems.append(f"{sample}: second derivative {here.bend[k]:.8g}, differences give {second:.8g}")
    assert not problems, "\n".join(problems)
