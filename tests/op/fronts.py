"""Run samples of many operators through one front end, all in one program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.namespace.lazy_module import public_names
from dualmx.op.registry import OPS
from tests.op.samples import Sample

Dtype = Any


@dataclass
class Result:
    """What one sample gave: outputs, gradients by input position, the inputs afterwards."""

    outs: list[np.ndarray]
    grads: dict[int, np.ndarray] = field(default_factory=dict)
    after: list[np.ndarray] = field(default_factory=list)


def function(front: Any, name: str) -> Callable[..., Any]:
    """The function of an operator in `mx.nd` or `mx.sym`; samplers are taken from within, as the public ones differ."""
    room, short = public_names(name)
    room = "_internal" if name.startswith(("_random_", "_sample_")) else room
    return getattr(getattr(front, room), name if room == "_internal" else short) if room else getattr(front, short)


def call(front: Any, sample: Sample, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of a sample on arrays or symbols."""
    outs = function(front, sample.op)(*inputs, **sample.params)
    if outs is None:
        return []
    return list(outs) if isinstance(outs, (list, tuple)) or front is mx.sym else [outs]


def cast(sample: Sample, dtype: Dtype) -> list[np.ndarray]:
    """The inputs of a sample, those in float32 as `dtype`; mixed precision stays as it is."""
    if any(a.dtype == np.float16 for a in sample.arrays):
        return list(sample.arrays)
    return [a.astype(dtype) if a.dtype == np.float32 else a for a in sample.arrays]


def arrays_of(samples: Sequence[Sample], dtype: Dtype, gradients: bool = True) -> list[list[Any]]:
    """NDArrays of the inputs; the smooth ones are variables."""
    made = []
    for sample in samples:
        inputs = [mx.nd.array(a, dtype=a.dtype) for a in cast(sample, dtype)]
        for i in sample.smooth if gradients else ():
            inputs[i].attach_grad()
        made.append(inputs)
    return made


def heads_of(sample: Sample, outs: Sequence[Any]) -> list[Any]:
    """The head gradients of the outputs, in their dtypes."""
    return [mx.nd.array(sample.head(o.shape, i), dtype=o.dtype) for i, o in enumerate(outs)]


def results(samples: Sequence[Sample], inputs: Sequence[Sequence[Any]], outs: Sequence[Sequence[Any]]) -> list[Result]:
    """Gather values after a backward pass."""
    return [
        Result(
            [o.asnumpy() for o in found],
            {i: given[i].grad.asnumpy() for i in sample.smooth if given[i].grad is not None},
            [a.asnumpy() for a in given],
        )
        for sample, given, found in zip(samples, inputs, outs, strict=True)
    ]


def backward(samples: Sequence[Sample], outs: Sequence[Sequence[Any]]) -> None:
    """One backward pass from all outputs through which gradients may flow."""
    heads, seeds = [], []
    for sample, found in zip(samples, outs, strict=True):
        if sample.smooth:
            chosen = [(h, s) for h, s in zip(found, heads_of(sample, found), strict=True) if is_float(h)]
            heads += [h for h, _ in chosen]
            seeds += [s for _, s in chosen]
    if heads:
        mx.autograd.backward(heads, seeds)


def is_float(a: Any) -> bool:
    """True if gradients can flow through an array."""
    return np.dtype(a.dtype).kind not in "biu"


def run_nd(samples: Sequence[Sample], dtype: Dtype = np.float32, gradients: bool = True) -> list[Result]:
    """Through `mx.nd` and autograd."""
    inputs = arrays_of(samples, dtype, gradients)
    outs = []
    with mx.autograd.record():
        for sample, given in zip(samples, inputs, strict=True):
            with mx.autograd.train_mode() if sample.train else mx.autograd.predict_mode():
                outs.append(call(mx.nd, sample, given))
    if gradients:
        backward(samples, outs)
    return results(samples, inputs, outs)


class Everything(mx.gluon.HybridBlock):
    """A block that applies each sample's operator to its share of the inputs."""

    def __init__(self, samples: Sequence[Sample]):
        super().__init__()
        self.samples = samples
        self.counts: list[int] = []

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        left = [x, *args]
        found = []
        for sample in self.samples:
            n = len(sample.arrays)
            found.append(call(F, sample, left[:n]))
            left = left[n:]
        self.counts = [len(outs) for outs in found]
        return [o for outs in found for o in outs]


def split(flat: Sequence[Any], counts: Sequence[int]) -> list[list[Any]]:
    """Regroup a flat list."""
    left = list(flat)
    return [[left.pop(0) for _ in range(n)] for n in counts]


def run_block(samples: Sequence[Sample], dtype: Dtype = np.float32) -> list[Result]:
    """Through a hybridized block; all samples are of one mode."""
    net = Everything(samples)
    net.hybridize()
    inputs = arrays_of(samples, dtype)
    given = [a for arrays in inputs for a in arrays] or [mx.nd.ones(1)]
    with mx.autograd.record(train_mode=samples[0].train):
        flat = net(*given)
    outs = split(flat, net.counts)
    backward(samples, outs)
    return results(samples, inputs, outs)


def symbol_of(samples: Sequence[Sample]) -> tuple[Any, list[list[str]], list[int]]:
    """One symbol of all samples, the names of their inputs, and their numbers of outputs."""
    names, heads, counts = [], [], []
    for k, sample in enumerate(samples):
        names.append([f"s{k}_{i}" for i in range(len(sample.arrays))])
        outs = call(mx.sym, sample, [mx.sym.var(n) for n in names[-1]])
        heads += outs
        counts.append(len(outs))
    return mx.sym.Group(heads), names, counts


def run_sym(samples: Sequence[Sample], dtype: Dtype = np.float32) -> list[Result]:
    """Through an executor; all samples are of one mode, gradients exist in training mode only."""
    train = samples[0].train
    symbol, names, counts = symbol_of(samples)
    inputs = arrays_of(samples, dtype)
    by_name = {n: a for ns, given in zip(names, inputs, strict=True) for n, a in zip(ns, given, strict=True)}
    smooth = {ns[i] for ns, sample in zip(names, samples, strict=True) for i in sample.smooth}
    states = symbol.list_auxiliary_states()
    exe = symbol.bind(
        mx.cpu(),
        {n: by_name[n] for n in symbol.list_arguments()},
        {n: by_name[n].grad for n in symbol.list_arguments() if n in smooth},
        {n: "write" if n in smooth else "null" for n in symbol.list_arguments()},
        {n: by_name[n] for n in states},
    )
    outs = split(exe.forward(is_train=train), counts)
    if train:
        exe.backward([h for sample, found in zip(samples, outs, strict=True) for h in heads_of(sample, found)])
    return results(samples, inputs, outs)


def is_random(sample: Sample) -> bool:
    """True if the values of a sample depend on the seed."""
    op = OPS[sample.op]
    return op.has_key and sample.op not in ("LeakyReLU", "RNN")


def groups(samples: Sequence[Sample], size: int = 24) -> list[list[Sample]]:
    """Samples of one mode each, in groups for one program."""
    found = []
    for train in (True, False):
        chosen = [s for s in samples if s.train is train]
        found += [chosen[k : k + size] for k in range(0, len(chosen), size)]
    return found


def named(found: Sequence[Sequence[Sample]]) -> pytest.MarkDecorator:
    """Parametrise over groups, which show up by their first and last operator."""
    return pytest.mark.parametrize("samples", found, ids=[f"{g[0].op}-{g[-1].op}" for g in found])
