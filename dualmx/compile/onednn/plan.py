"""Plans: a convolution, or the gradient of one, prepared by oneDNN for fixed shapes."""

from __future__ import annotations

import ctypes
import math
import threading
from collections import OrderedDict
from dataclasses import astuple, dataclass
from typing import Any

from .library import (
    ASKED,
    DIFF_DST,
    DIFF_SRC,
    DIFF_WEIGHTS,
    DIRECT,
    DST,
    SCRATCHPAD,
    SRC,
    TRAINING,
    WEIGHTS,
    Argument,
    Handle,
    Library,
    dims,
)

FORWARD, DATA, FILTERS = range(3)  # what is computed: the result, or the gradient of the data or of the filters
# Where data, filters and result of each kind stand among the two operands and the output of the call.
_PLACE = {FORWARD: (0, 1, 2), DATA: (2, 1, 0), FILTERS: (0, 2, 1)}
MOST = 512  # plans kept

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


def faulty(c: Convolution) -> bool:
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
    """Memory that every plan uses in turn for what oneDNN arranges in its own way."""

    def __init__(self) -> None:
        self._size, self._buffer = 0, None
        self.address = 0

    def of(self, size: int) -> int:
        """The address of at least `size` bytes."""
        if size > self._size:
            self._buffer = ctypes.create_string_buffer(size + 64)
            self._size, self.address = size, -(-ctypes.addressof(self._buffer) // 64) * 64
        return self.address


def _short(c: Convolution) -> bool:
    """True for rows so short that kernels for channels last are slow, and arrays small beside their filters.

    With oneDNN 3.2 and AVX-512, 512 channels of 4x4 take 12 ms so, 8 ms re-arranged to blocks of channels and back; of
    14x14 they take 10 % longer with the latter.
    """
    return c.result[-1] <= 8 and math.prod(c.data) + math.prod(c.result) < math.prod(c.filters)


class Plan:
    """A primitive, its memories, and their re-arrangements where it wants another one.

    Attributes:
        place: where data, filters and result stand among the operands and the output of a call.
        memories: of data, filters and result.
        inner: what lies in scratch memory of `size` bytes, and where: data, filters and result in oneDNN's own
            arrangement, and what the steps compute in.
        steps: primitive, number of arguments and arguments of what is executed.
    """

    def __init__(self, library: Library, c: Convolution):
        self._made: list[tuple[str, Handle]] = []
        self._lib = library
        filters, strides = c.filters, _strides(c.filters, c.order)
        if c.groups > 1:
            filters = (c.groups, filters[0] // c.groups, *filters[1:])
            strides = [strides[0] * filters[1], *strides]
        shapes = (c.data, filters, c.result)
        laid = (_last(c.data), strides, _last(c.result))
        plain = [self._keep("memory_desc", library.strided(*one)) for one in zip(shapes, laid, strict=True)]
        free = [self._keep("memory_desc", library.free(s)) for s in shapes]
        data, weights, result = free if _short(c) else (plain[0], free[1], plain[2])
        steps = (dims(c.stride), dims([d - 1 for d in c.dilate]), dims(c.low), dims(c.high))
        eng = library.engine
        forward = self._describe(
            "convolution_forward", eng, TRAINING, DIRECT, data, weights, None, result, *steps, library.attributes
        )
        if c.kind == FORWARD:
            chosen, roles = forward, (SRC, WEIGHTS, DST)
        elif c.kind == DATA:
            chosen = self._describe(
                "convolution_backward_data", eng, DIRECT, data, weights, result, *steps, forward, library.attributes
            )
            roles = (DIFF_SRC, WEIGHTS, DIFF_DST)
        else:
            given = (data, weights, None, result, *steps, forward, library.attributes)
            chosen = self._describe("convolution_backward_weights", eng, DIRECT, *given)
            roles = (SRC, DIFF_WEIGHTS, DIFF_DST)
        self.place = _PLACE[c.kind]
        self.memories = [self._keep("memory", library.memory(m)) for m in plain]
        self.inner: list[tuple[Handle, int]] = []
        self.size = 0
        used = list(self.memories)
        before: list[Any] = []
        after: list[Any] = []
        for i, role in enumerate(roles):
            wanted = library.asked(chosen, ASKED[role])
            if library.same(wanted, plain[i]):
                continue
            used[i] = self._scratch(wanted)
            if self.place[i] == 2:
                after.append(self._copy((wanted, used[i]), (plain[i], self.memories[i])))
            else:
                before.append(self._copy((plain[i], self.memories[i]), (wanted, used[i])))
        self.steps = [*before, self._step(chosen, *zip(roles, used, strict=True)), *after]

    def _copy(self, source: tuple[Handle, Handle], target: tuple[Handle, Handle]) -> tuple[Handle, int, Any]:
        """The step that writes one memory into another, each given with its descriptor."""
        (a, source_memory), (b, target_memory) = source, target
        copy = self._describe("reorder", a, self._lib.engine, b, self._lib.engine, self._lib.attributes)
        return self._step(copy, (SRC, source_memory), (DST, target_memory))

    def _step(self, description: Handle, *arguments: tuple[int, Handle]) -> tuple[Handle, int, Any]:
        primitive = self._keep("primitive", self._lib.primitive(description))
        room = self._lib.asked(description, ASKED[SCRATCHPAD])
        if self._lib.size(room):
            arguments = (*arguments, (SCRATCHPAD, self._scratch(room)))
        return primitive, len(arguments), (Argument * len(arguments))(*(Argument(*a) for a in arguments))

    def _scratch(self, descriptor: Handle) -> Handle:
        """Memory of this description inside the scratch memory."""
        memory = self._keep("memory", self._lib.memory(descriptor))
        self.inner.append((memory, self.size))
        self.size += -(-self._lib.size(descriptor) // 64) * 64
        return memory

    def _keep(self, what: str, handle: Handle) -> Handle:
        self._made.append((what, handle))
        return handle

    def _describe(self, kind: str, *args: Any) -> Handle:
        return self._keep("primitive_desc", self._lib.described(kind, *args))

    def run(self, buffers: Sizes, scratch: Scratch) -> None:
        """Compute on the two operands and the output at these addresses."""
        call, stream = self._lib.call, self._lib.stream
        for memory, place in zip(self.memories, self.place, strict=True):
            call("dnnl_memory_set_data_handle", memory, Handle(buffers[place]))
        at = scratch.of(self.size)
        for memory, offset in self.inner:
            call("dnnl_memory_set_data_handle", memory, Handle(at + offset))
        for primitive, count, arguments in self.steps:
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
        with self._lock:
            plan = self._plans.get(text)
            if plan is None:
                plan = self._plans[text] = Plan(self._lib, Convolution.parse(text.decode()))
                if len(self._plans) > MOST:
                    self._plans.popitem(last=False)[1].destroy()
            self._plans.move_to_end(text)
            plan.run((first, second, out), self._scratch)


class Products:
    """Matrix products that sum over the leading axis of both operands: (k, m) and (k, n) give (m, n)."""

    def __init__(self, library: Library, lock: threading.Lock):
        self._lib, self._lock = library, lock

    def run(self, text: bytes, first: int, second: int, out: int) -> None:
        """Multiply buffers at these addresses; `text` holds m, n and k."""
        m, n, k = map(int, text.split(b","))
        with self._lock:
            self._lib.product(m, n, k, first, second, out)
