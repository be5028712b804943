"""Convolutions by oneDNN on arrays that end, or begin, at pages that nobody may touch; values compared with NumPy.

`python tests/compile/guard_pages.py 0 10000` tries those of 10,000 seeds, each in processes that may die, and prints
what was found. `--all` also tries those that programs leave to XLA (`plan.faulty`).
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import itertools
import math
import mmap
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from dualmx.compile.cpu.onednn import build, primitives
from dualmx.compile.cpu.onednn.bindings import handlers

_CHANNELS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 24, 31, 32, 33, 48, 63, 64, 65, 96, 100, 128, 130, 256)
_SIZES = (1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17, 23, 28, 32, 33, 48, 56, 64, 100)
_WORK = 3e7  # products, at most
_ELEMENTS = 1_500_000
_ACCURACY = 2e-5  # of the largest value


def _axis(draw: random.Random) -> tuple[int, ...] | None:
    """Sizes of data, kernel and result, step, spacing and paddings along one axis, which may hardly fit."""
    size = draw.choice(_SIZES)
    kernel = draw.choice((1, 1, 1, 2, 3, 3, 3, 4, 5, 6, 7, 9, 11, size))
    dilate, stride = draw.choice((1, 1, 1, 1, 2, 3, 5, 7)), draw.choice((1, 1, 1, 2, 2, 3, 4, 5, 7))
    extent = dilate * (kernel - 1)
    low = draw.choice((0, 0, 1, (kernel - 1) // 2, kernel - 1, extent, draw.randrange(2 * kernel + 1)))
    high = draw.choice((low, low, 0, kernel - 1, draw.randrange(2 * kernel + 1)))
    fits = (size + low + high - extent - 1) // stride + 1
    result = draw.choice((fits, fits, fits, 1, 2, draw.randrange(1, 20)))
    need = (result - 1) * stride + extent + 1 - size - low
    if result < 1 or need <= -stride:
        return None
    return size, kernel, result, stride, dilate, low, max(need, 0)


def convolution(seed: int) -> primitives.ConvSpec:
    """The convolution of a seed."""
    draw = random.Random(seed)
    kind, n = draw.randrange(3), draw.choice((1, 1, 2, 2, 2, 2, 3))
    while True:
        batch, groups = draw.choice((1, 1, 2, 3, 4, 5, 8, 16, 17, 32)), 1
        inputs, outputs = draw.choices(_CHANNELS, k=2)
        if kind == primitives.FORWARD and draw.random() < 0.3:
            groups = draw.choice((2, 3, 4, 8, 16, 32, 64))
            inputs, outputs = (groups * m for m in draw.choice(((1, 1), draw.choices((1, 2, 3, 4, 8, 16), k=2))))
        axes = [_axis(draw) for _ in range(n)]
        if None in axes:
            continue
        size, kernel, out, stride, dilate, low, high = zip(*axes, strict=True)
        data, filters, result = (batch, inputs, *size), (outputs, inputs // groups, *kernel), (batch, outputs, *out)
        elements = max(map(math.prod, (data, filters, result)))
        if elements > _ELEMENTS or math.prod(result) * math.prod(filters[1:]) > _WORK:
            continue
        spatial = tuple(range(2, n + 2))
        order = draw.choice(((0, 1, *spatial), (0, 1, *spatial), (1, 0, *spatial), (*spatial, 1, 0), (0, *spatial, 1)))
        return primitives.ConvSpec(kind, groups, data, filters, result, stride, dilate, low, high, order)


def expected(c: primitives.ConvSpec, data: np.ndarray, filters: np.ndarray, result: np.ndarray) -> np.ndarray:
    """What a convolution computes of two of these, by NumPy in their type."""
    batch, groups = c.data[0], c.groups
    padded = np.zeros((*c.data[:2], *(map(sum, zip(c.data[2:], c.low, c.high, strict=True)))), data.dtype)
    inner = (..., *(slice(lo, lo + s) for lo, s in zip(c.low, c.data[2:], strict=True)))
    padded[inner] = data
    data = padded.reshape(batch, groups, -1, *padded.shape[2:])
    filters = filters.reshape(groups, -1, *c.filters[1:])
    result = result.reshape(batch, groups, -1, *c.result[2:])
    out = np.zeros_like((result, data, filters)[c.kind])
    for k in itertools.product(*map(range, c.filters[2:])):
        window = zip(k, c.dilate, c.result[2:], c.stride, strict=True)
        at = (..., *(slice(i * d, i * d + (t - 1) * s + 1, s) for i, d, t, s in window))
        if c.kind == primitives.FORWARD:
            out += np.einsum("ngc...,goc->ngo...", data[at], filters[(..., *k)], optimize=True)
        elif c.kind == primitives.DATA:
            out[at] += np.einsum("ngo...,goc->ngc...", result, filters[(..., *k)], optimize=True)
        else:
            flat = (a.reshape(*a.shape[:3], -1) for a in (result, data[at]))
            out[(..., *k)] = np.einsum("ngot,ngct->goc", *flat, optimize=True)
    if c.kind == primitives.DATA:
        out = out.reshape(padded.shape)[inner]
    return out.reshape((c.result, c.data, c.filters)[c.kind])


_libc = ctypes.CDLL(None, use_errno=True)
_NOBODY = 0  # may touch a page
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


@contextlib.contextmanager
def guarded(values: np.ndarray, at_end: bool) -> Iterator[np.ndarray]:
    """A copy whose last, or first, byte lies beside a page that nobody may touch."""
    page = mmap.PAGESIZE
    room = -(-values.nbytes // page) * page
    area = mmap.mmap(-1, room + 2 * page)
    first = ctypes.addressof(ctypes.c_char.from_buffer(area))
    for guard in (first, first + page + room):
        if _libc.mprotect(guard, page, _NOBODY):
            raise OSError(ctypes.get_errno(), "mprotect")
    copy = np.frombuffer(area, values.dtype, values.size, page + (room - values.nbytes if at_end else 0))
    copy = copy.reshape(values.shape)
    copy[...] = values
    yield copy  # the pages are unmapped with the last array that sees them


_SCRATCH = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static int at_guard(void** area, size_t bytes) {
  size_t page = sysconf(_SC_PAGESIZE), room = (bytes + page - 1) / page * page;
  char* first = mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (first == MAP_FAILED || mprotect(first + page, room, PROT_READ | PROT_WRITE)) return 1;
  *area = first + page + room - bytes;
  return 0;
}
#define posix_memalign(area, line, bytes) at_guard(area, bytes)
#define free(area) (void)(area)
"""


def build_guarded(folder: Path) -> Path:
    """Compile handlers whose scratch memory, too, ends at a page that nobody may touch."""
    source = folder / "handlers.c"
    source.write_text(_SCRATCH + build.SOURCE.read_text())
    with mock.patch.object(build, "SOURCE", source):
        return build.build()


def computing(path: Path) -> Any:
    """The function of the compiled handlers that computes a convolution on three addresses."""
    compute = handlers(path).dualmx_onednn_compute
    compute.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p]
    compute.restype = None
    return compute


def wrong(compute: Any, c: primitives.ConvSpec, seed: int, at_end: bool) -> str:
    """What is wrong with the result, empty if nothing is."""
    draw = np.random.RandomState(seed)
    data, filters, result = (draw.randn(*s).astype("f") for s in (c.data, c.filters, c.result))
    want = expected(c, *(a.astype("d") for a in (data, filters, result)))
    stored = [np.moveaxis(data, 1, -1), filters.transpose(c.order), np.moveaxis(result, 1, -1)]
    out = (2, 0, 1)[c.kind]
    want = want.transpose(c.order) if c.kind == primitives.FILTERS else np.moveaxis(want, 1, -1)
    operands = [np.ascontiguousarray(a) for i, a in enumerate(stored) if i != out]
    if c.kind == primitives.DATA:
        operands.reverse()  # the result comes first
    text, message = c.text().encode(), ctypes.create_string_buffer(512)
    with contextlib.ExitStack() as stack:
        arrays = [stack.enter_context(guarded(a, at_end)) for a in (*operands, np.full(want.shape, np.nan, "f"))]
        compute(text, len(text), (ctypes.c_void_p * 3)(*(a.ctypes.data for a in arrays)), message)
        if message.value:
            return message.value.decode()
        if not all(np.array_equal(a, b) for a, b in zip(operands, arrays, strict=False)):
            return "an operand was written"
        error = np.abs(arrays[2] - want).max() / max(np.abs(want).max(), 1e-3)
    return "" if error < _ACCURACY else f"wrong by {error:.2g} of the largest value"


def _try(first: int, last: int, everything: bool, path: Path) -> None:
    """In a process that may die: print each seed before it is tried, and what is wrong after it."""
    compute = computing(path)
    for seed in range(first, last):
        c = convolution(seed)
        if primitives.faulty(c) and not everything:
            continue
        print(seed, flush=True)
        for at_end in (True, False):
            if said := wrong(compute, c, seed, at_end):
                print(seed, said, flush=True)


def search(first: int, last: int, everything: bool = False) -> dict[int, str]:
    """What was found, by seed."""
    found: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        options = ["--child", str(build_guarded(Path(folder))), *(["--all"] if everything else [])]
        while first < last:
            command = [sys.executable, __file__, str(first), str(last), *options]
            done = subprocess.run(command, capture_output=True, text=True)
            lines = done.stdout.splitlines()
            found |= {int(seed): said for seed, _, said in (line.partition(" ") for line in lines) if said}
            if not done.returncode:
                break
            if done.returncode > 0:
                raise RuntimeError(done.stderr)
            seed = int(lines[-1].split()[0])
            found[seed] = f"died of signal {-done.returncode}"
            first = seed + 1
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--child", type=Path, metavar="HANDLERS", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        _try(args.first, args.last, args.all, args.child)
    else:
        found = search(args.first, args.last, args.all)
        for seed, said in sorted(found.items()):
            print(f"seed {seed}: {said}: {convolution(seed)}")
        print(f"{len(found)} of {args.last - args.first} seeds")
        sys.exit(bool(found))
