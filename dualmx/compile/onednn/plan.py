"""Plans: a convolution, or the gradient of one, prepared by oneDNN for fixed shapes."""

from __future__ import annotations

import ctypes
import math
import threading
from collections import OrderedDict
from dataclasses import astuple, dataclass
from typing import Any

from .library import (
    DIFF_DST,
    DIFF_SRC,
    DIFF_WEIGHTS,
    DIFF_WEIGHTS_OF,
    DIRECT,
    DST,
    SRC,
    TRAINING,
    WEIGHTS,
    WEIGHTS_OF,
    Argument,
    Handle,
    Library,
    dims,
)

FORWARD, DATA, FILTERS = range(3)  # what is computed: the result, or the gradient of the data or of the filters
_MOST = 512  # plans kept

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Convolution:
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
        """The convolution as text, for the program that calls it.

        Example:
            >>> one = (1,)
            >>> c = Convolution(FORWARD, 1, (1, 2, 5), (3, 2, 3), (1, 3, 3), one, one, (0,), (0,), (0, 1, 2))
            >>> Convolution.parse(c.text()) == c
            True
        """
        kind, groups, *sizes = astuple(self)
        return ";".join([str(kind), str(groups), *(",".join(map(str, s)) for s in sizes)])

    @staticmethod
    def parse(text: str) -> Convolution:
        """The convolution that `text` describes."""
        kind, groups, *sizes = text.split(";")
        return Convolution(int(kind), int(groups), *(tuple(map(int, s.split(","))) for s in sizes))

    def flops(self) -> int:
        """Floating-point operations."""
        return 2 * math.prod(self.result) * math.prod(self.filters[1:])


def _last(sizes: Sizes) -> list[int]:
    """Strides of an array (N, C, *S) stored as (N, *S, C)."""
    return _strides(sizes, (0, *range(2, len(sizes)), 1))


def _strides(sizes: Sizes, order: Sizes) -> list[int]:
    strides, step = [0] * len(sizes), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= sizes[axis]
    return strides


class Scratch:
    """Memory that every plan uses in turn for filters in oneDNN's own arrangement."""

    def __init__(self) -> None:
        self._size, self._buffer = 0, None
        self.address = 0

    def of(self, size: int) -> int:
        """The address of at least `size` bytes."""
        if size > self._size:
            self._buffer = ctypes.create_string_buffer(size + 64)
            self._size, self.address = size, -(-ctypes.addressof(self._buffer) // 64) * 64
        return self.address


class Plan:
    """A primitive, its memories, and the re-arrangement of the filters where it wants another one."""

    def __init__(self, library: Library, c: Convolution):
        self._made: list[tuple[str, Handle]] = []
        self._lib = library
        filters, strides = c.filters, _strides(c.filters, c.order)
        if c.groups > 1:
            filters = (c.groups, filters[0] // c.groups, *filters[1:])
            strides = [strides[0] * filters[1], *strides]
        data, result = (self._keep("memory_desc", library.strided(s, _last(s))) for s in (c.data, c.result))
        plain = self._keep("memory_desc", library.strided(filters, strides))
        free = self._keep("memory_desc", library.free(filters))
        steps = (dims(c.stride), dims([d - 1 for d in c.dilate]), dims(c.low), dims(c.high))
        eng = library.engine
        forward = self._describe("convolution_forward", eng, TRAINING, DIRECT, data, free, None, result, *steps, None)
        if c.kind == FORWARD:
            chosen, roles, asked = forward, (SRC, WEIGHTS, DST), WEIGHTS_OF
        elif c.kind == DATA:
            chosen = self._describe("convolution_backward_data", eng, DIRECT, data, free, result, *steps, forward, None)
            roles, asked = (DIFF_SRC, WEIGHTS, DIFF_DST), WEIGHTS_OF
        else:
            chosen = self._describe(
                "convolution_backward_weights", eng, DIRECT, data, free, None, result, *steps, forward, None
            )
            roles, asked = (SRC, DIFF_WEIGHTS, DIFF_DST), DIFF_WEIGHTS_OF
        arranged = library.asked(chosen, asked)
        self._memories = [self._keep("memory", library.memory(m)) for m in (data, plain, result)]
        inner, self._arrange, self._size = self._memories[1], None, 0
        if not library.same(arranged, plain):
            inner, self._size = self._keep("memory", library.memory(arranged)), library.size(arranged)
            ends = (arranged, plain) if c.kind == FILTERS else (plain, arranged)
            copy = self._describe("reorder", ends[0], eng, ends[1], eng, None)
            pair = (inner, self._memories[1]) if c.kind == FILTERS else (self._memories[1], inner)
            self._arrange = (self._primitive(copy), 2, (Argument * 2)(Argument(SRC, pair[0]), Argument(DST, pair[1])))
        self._inner = inner
        ordered = (self._memories[0], inner, self._memories[2])
        main = (self._primitive(chosen), 3, (Argument * 3)(*map(Argument, roles, ordered)))
        self._steps: list[Any] = [main]
        if self._arrange:
            self._steps.insert(len(self._steps) if c.kind == FILTERS else 0, self._arrange)

    def _keep(self, what: str, handle: Handle) -> Handle:
        self._made.append((what, handle))
        return handle

    def _describe(self, kind: str, *args: Any) -> Handle:
        return self._keep("primitive_desc", self._lib.described(kind, *args))

    def _primitive(self, description: Handle) -> Handle:
        return self._keep("primitive", self._lib.primitive(description))

    def run(self, data: int, filters: int, result: int, scratch: Scratch) -> None:
        """Compute on buffers at these addresses."""
        call, stream = self._lib.call, self._lib.stream
        for memory, address in zip(self._memories, (data, filters, result), strict=True):
            call("dnnl_memory_set_data_handle", memory, Handle(address))
        if self._arrange:
            call("dnnl_memory_set_data_handle", self._inner, Handle(scratch.of(self._size)))
        for primitive, count, arguments in self._steps:
            call("dnnl_primitive_execute", primitive, stream, count, arguments)
        call("dnnl_stream_wait", stream)

    def destroy(self) -> None:
        """Give back what oneDNN holds."""
        while self._made:
            what, handle = self._made.pop()
            self._lib.call(f"dnnl_{what}_destroy", handle)


class Plans:
    """The plans of a process, the latest used kept. One runs at a time, on all cores."""

    def __init__(self, library: Library, lock: threading.Lock):
        self._lib, self._lock, self._scratch = library, lock, Scratch()
        self._plans: OrderedDict[bytes, Plan] = OrderedDict()

    def run(self, text: bytes, first: int, second: int, out: int) -> None:
        """Compute what `text` describes; what is given comes first, in the order data, filters, result."""
        kind = text[0] - ord("0")
        if kind == FORWARD:
            data, filters, result = first, second, out
        elif kind == DATA:
            data, filters, result = out, second, first
        else:
            data, filters, result = first, out, second
        with self._lock:
            plan = self._plans.get(text)
            if plan is None:
                plan = self._plans[text] = Plan(self._lib, Convolution.parse(text.decode()))
                if len(self._plans) > _MOST:
                    self._plans.popitem(last=False)[1].destroy()
            self._plans.move_to_end(text)
            plan.run(data, filters, result, self._scratch)


class Products:
    """Matrix products that sum over the leading axis of both operands: (k, m) and (k, n) give (m, n)."""

    def __init__(self, library: Library, lock: threading.Lock):
        self._lib, self._lock = library, lock

    def run(self, text: bytes, first: int, second: int, out: int) -> None:
        """Multiply buffers at these addresses; `text` holds m, n and k."""
        m, n, k = map(int, text.split(b","))
        with self._lock:
            self._lib.product(m, n, k, first, second, out)
