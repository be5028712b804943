"""oneDNN convolution primitives: how a program describes one to its handler, and which are supported."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass

FORWARD, DATA, FILTERS = range(3)  # what is computed: the result, or the gradient of the data or of the filters

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class ConvSpec:
    """A convolution in float32 with channels last in data and result.

    Attributes:
        kind: `FORWARD`, `DATA` or `FILTERS`.
        groups: number of groups.
        data: (N, C, *S).
        filters: (O, C/groups, *K).
        result: (N, O, *T).
        stride, dilate, low, high: steps, kernel spacing and paddings per spatial axis.
        order: the axes of `filters` as they lie in memory, outermost first.
    """

    kind: int
    groups: int
    data: Sizes
    filters: Sizes
    result: Sizes
    stride: Sizes
    dilate: Sizes
    low: Sizes
    high: Sizes
    order: Sizes

    def text(self) -> str:
        """The convolution as text, for the program that calls it (`handlers.c`, `parse`).

        Example:
            >>> one = (1,)
            >>> c = ConvSpec(FORWARD, 1, (1, 2, 5), (3, 2, 3), (1, 3, 3), one, one, (0,), (0,), (0, 1, 2))
            >>> ConvSpec.parse(c.text()) == c
            True
        """
        kind, groups, *sizes = astuple(self)
        return f"{kind};{groups};{short(self):d};" + ";".join(",".join(map(str, s)) for s in sizes)

    @staticmethod
    def parse(text: str) -> ConvSpec:
        """The convolution that `text` describes."""
        kind, groups, _, *sizes = text.split(";")
        return ConvSpec(int(kind), int(groups), *(tuple(map(int, s.split(","))) for s in sizes))

    def flops(self) -> int:
        """Floating-point operations."""
        return 2 * math.prod(self.result) * math.prod(self.filters[1:])


def upper_padding(data: Sizes, result: Sizes, kernel: Sizes, stride: Sizes, dilate: Sizes, low: Sizes) -> Sizes | None:
    """Return the upper paddings with which a convolution of `data` has the sizes `result`, None if there are none."""
    out = []
    for s, t, k, step, d, p in zip(data, result, kernel, stride, dilate, low, strict=True):
        need = (t - 1) * step + d * (k - 1) + 1 - s - p
        if p < 0 or need <= -step:
            return None
        out.append(max(need, 0))
    return tuple(out)


def faulty(c: ConvSpec) -> bool:
    """True for gradients of filters that oneDNN 3.2 computes wrongly, or with reads beyond its operands.

    Each class was found between guard pages, and is drawn a little wider than what was found: see docs/faults.md.
    """
    if c.kind != FILTERS or max(c.stride) == 1:
        return False
    kernel, size = c.filters[2:], c.data[2:]
    if max(kernel) == 1 and c.data[1] < 16:
        return True  # fewer channels than a vector has elements, of which it gathers every other pixel
    if any(s > 1 and d > 1 and low >= 8 for s, d, low in zip(c.stride, c.dilate, c.low, strict=True)):
        return True
    extent = c.dilate[0] * (kernel[0] - 1) + c.stride[0]
    return len(size) == 3 and c.stride[0] > 1 and c.low[0] > c.stride[0] and extent > size[0]


def short(c: ConvSpec) -> bool:
    """True where oneDNN's channels-last kernels are slow: short rows, and arrays small compared with their filters.

    With oneDNN 3.2 and AVX-512, 512 channels of 4x4 take 12 ms so, 8 ms re-arranged to blocks of channels and back; of
    14x14 they take 10 % longer with the latter.
    """
    return c.result[-1] <= 8 and math.prod(c.data) + math.prod(c.result) < math.prod(c.filters)
