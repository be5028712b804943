"""One table of calls for every registered operator, made of the recorded cases and of `tests/op/more_samples.py`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dualmx.op.registry import OPS, Op
from tests.goldens import contrib_cases, elementwise_cases, nn_cases, shape_cases, vision_cases
from tests.op.replay import recorded

Arrays = Mapping[str, np.ndarray]


def wave(shape: tuple[int, ...], index: int = 0) -> np.ndarray:
    """Different float32 values, none of them zero."""
    return (np.cos(np.arange(np.prod(shape, dtype=int)) * 1.3 + index) + 1.5).reshape(shape).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Sample:
    """One call of an operator.

    Attributes:
        op: registry name.
        arrays: inputs, auxiliary states included.
        params: keywords.
        smooth: positions of the inputs whose gradients are compared.
        train: training mode.
        head: `(shape, output index) -> head gradient`.
        numeric: whether the gradient is the limit of differences.
        recorded: returns what MXNet gave, under `out0`, `grad1`, `next2` (new value of input 2).
    """

    op: str
    arrays: tuple[np.ndarray, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    smooth: tuple[int, ...] = ()
    train: bool = True
    head: Callable[[tuple[int, ...], int], np.ndarray] = wave
    recorded: Callable[[], Arrays] = dict
    numeric: bool = True

    def __str__(self) -> str:
        shown = ", ".join(f"{k}={v}" for k, v in self.params.items())
        return f"{self.op}({shown}) on {[a.shape for a in self.arrays]}"


def _only_first(head: Callable[..., np.ndarray]) -> Callable[[tuple[int, ...], int], np.ndarray]:
    return lambda shape, index: np.zeros(shape, np.float32) if index else head(shape)


def _elementwise() -> Iterator[Sample]:
    for case in elementwise_cases.CASES:
        arrays = tuple(case.arrays())
        smooth = tuple(range(len(arrays)))
        found = functools.partial(recorded().get, case.name, {})
        yield Sample(case.op, arrays, case.params, smooth, True, case.head, found, case.numeric)


def _shape() -> Iterator[Sample]:
    for case in shape_cases.CASES:
        found = functools.partial(recorded().get, case.name, {})
        yield Sample(case.op, case.arrays, case.params, case.smooth, True, _only_first(case.head), found)


def _nn() -> Iterator[Sample]:
    for case in (
        c for table in (nn_cases, vision_cases, contrib_cases) for cases in table.GROUPS.values() for c in cases
    ):
        arrays = case.arrays()
        names = list(arrays)
        smooth = tuple(i for i, n in enumerate(names) if n not in case.still)
        found = functools.partial(recorded().get, case.name, {})
        yield Sample(case.op, tuple(arrays.values()), case.params, smooth, case.train, _only_first(case.head), found)


@functools.cache
def all_samples() -> dict[str, list[Sample]]:
    """Operator name -> its samples, the recorded ones first."""
    from tests.op import np_samples, npx_samples
    from tests.op.more_samples import MORE

    table: dict[str, list[Sample]] = {}
    for sample in (*_elementwise(), *_shape(), *_nn(), *MORE, *np_samples.samples(), *npx_samples.samples()):
        table.setdefault(OPS[sample.op].name, []).append(sample)
    return table


def registered() -> list[Op]:
    """Every operator once."""
    return list(dict.fromkeys(OPS.values()))


def chosen(per_op: int) -> list[Sample]:
    """At most `per_op` samples of every deterministic operator, those of other parameters first."""
    found = []
    for name in sorted(all_samples()):
        kept: dict[Any, Sample] = {}
        for sample in all_samples()[name]:
            kept.setdefault((sample.train, *sample.params), sample)
        rest = [s for s in all_samples()[name] if s not in kept.values()]
        found.extend([*kept.values(), *rest][:per_op])
    return found
