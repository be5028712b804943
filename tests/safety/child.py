"""A process that runs cases again and again, and says which one it is at.

    python -m tests.safety.child FAMILY PART PARTS [--skip FILE] [--only FILE] [--together N] [--fault overread|reuse]

The files are JSON lists of names of cases.
Each line that it prints is JSON: `{"begin": [names]}` before a program of several cases, `{"end": ..}` after it with
what was wrong, `{"refused": name}` for what an operator does not take.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

import dualmx as mx
from dualmx import MXNetError, autograd, nd
from dualmx.compile.devices import device_put
from dualmx.ndarray import invoke
from dualmx.ndarray.exposed import COUNTS
from dualmx.ndarray.handle import array_from_buffer, is_tracked
from dualmx.ndarray.interop import array_from_numpy
from dualmx.op.registry import OPS, op
from dualmx.op.schema import Tensor
from tests.op.fronts import is_float
from tests.safety.cases import FAMILIES, Case
from tests.safety.memory import guarded

flush = importlib.import_module("dualmx.ndarray.execute")  # the package has a function of this name
TIMES = 20
TOGETHER = 8  # cases in one program
REFUSALS = (MXNetError, TypeError, ValueError)


def say(**what: Any) -> None:
    """Print one line, at once: this may be the last one."""
    print(json.dumps(what), flush=True)


def handed_in(memory: np.ndarray) -> Any:
    """An array on guarded memory, which programs read where it lies."""
    return array_from_buffer(memory, mx.cpu()) if memory.itemsize < 8 else array_from_numpy(memory, mx.cpu(), copy=None)


def zeros_like(a: Any) -> Any:
    """Zeros in a buffer that a program can take over, so that the first run is the program of all others."""
    return array_from_buffer(device_put(np.zeros(a.shape, a.dtype), a.context), a.context)


def recorded(case: Case, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of a case, recorded for gradients."""
    with autograd.record(train_mode=case.train):
        return case.run(inputs)


def head_of(case: Case, out: Any) -> Any:
    """The gradient of an output: None for ones, or one number that the program broadcasts."""
    if case.constant or not out.size or not out.ndim:
        return None
    return nd.broadcast_to(nd.full((1,) * out.ndim, 0.75, dtype=out.dtype), shape=out.shape)


class Together:
    """Some cases in one program, with arrays that its results overwrite."""

    def __init__(self, cases: Sequence[Case]):
        self.cases = list(cases)
        self.forget()

    def forget(self) -> None:
        """Begin again, with other arrays for the results."""
        self.copies: list[list[Any]] = []
        self.sums: list[list[Any]] = []
        self.grads: list[list[Any]] = []

    def run(self, step: int, reuse: bool = False) -> list[bytes]:
        """Run the program once, on other arrays of the same values; returns what it computed."""
        mx.random.seed(11)
        memory = [[guarded(a, step % 2 == 1) for a in case.arrays] for case in self.cases]
        inputs = [[handed_in(m) for m in ms] for ms in memory]
        first = not self.copies
        if first:
            pairs = zip(self.cases, inputs, strict=True)
            self.grads = [[zeros_like(x[i]) for i in case.smooth] for case, x in pairs]
        outs, heads, seeds = [], [], []
        for case, arrays, grads in zip(self.cases, inputs, self.grads, strict=True):
            if case.smooth:
                autograd.mark_variables([arrays[i] for i in case.smooth], grads)
            found = recorded(case, arrays)
            outs.append(found)
            for out in found if case.smooth else ():
                if is_float(out) and is_tracked(out):
                    heads.append(out)
                    seeds.append(head_of(case, out))
        if heads:
            autograd.backward(heads, seeds)
        if first:
            self.copies = [[zeros_like(o) for o in found] for found in outs]
            self.sums = [[zeros_like(o) for o in found if is_float(o)] for found in outs]
        for copies, sums, found in zip(self.copies, self.sums, outs, strict=True):
            for k, out in zip(copies, found, strict=True):
                k[...] = out  # takes over the buffer that an earlier result had
            for s, out in zip(sums, filter(is_float, found), strict=True):
                s *= 0.5
                s += out  # overwrites the buffer that it reads
        if reuse:  # the fault: memory is written that pending work is still to read
            for m in (m for ms in memory for m in ms):
                ctypes.memset(m.ctypes.data, step, m.nbytes)
        results = (self.copies, self.grads, self.sums, inputs)
        return [a.asnumpy().tobytes() for part in results for arrays in part for a in arrays]

    def compare(self, reuse: bool = False) -> list[str]:
        """Run it many times with buffers taken over and many times without; returns what differs."""
        runs: dict[bool, list[list[bytes]]] = {}
        try:
            for takes_over in (True, False):
                self.forget()
                flush._takes_over = takes_over
                runs[takes_over] = [self.run(step, reuse) for step in range(TIMES)]
        finally:
            flush._takes_over = COUNTS
        count = sum(len(arrays) for part in (self.copies, self.grads) for arrays in part)
        reference, problems = runs[True][0], []
        for takes_over, results in runs.items():
            for step, values in enumerate(results):
                at = [i for i in range(count) if values[i] != reference[i]]
                if at:
                    problems.append(f"run {step} (taking over: {takes_over}) differs from run 0 at values {at}")
        if runs[True] != runs[False]:
            problems.append("with and without taking buffers over, results differ")
        return problems


def is_taken(case: Case) -> bool:
    """Whether the operator takes these inputs; nothing is executed."""
    try:
        recorded(case, [nd.array(a, dtype=a.dtype) for a in case.arrays])
    except REFUSALS as e:
        say(refused=case.name, why=str(e)[:200])
        return False
    return True


def compared(cases: Sequence[Case], reuse: bool) -> list[str]:
    """What differs in a program of some cases, or in those of each one if running it raises."""
    try:
        return Together(cases).compare(reuse)
    except REFUSALS as e:
        if len(cases) > 1:
            return [p for case in cases for p in compared([case], reuse)]
        say(refused=cases[0].name, why=f"when it ran: {str(e)[:200]}")
        return []


def overreading() -> Case:
    """A case whose kernel reads behind its input."""

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
    def kernel(out: int, ins: Any) -> None:
        ctypes.memmove(out, ins[0] + 4, 64)

    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    capsule = make(ctypes.cast(kernel, ctypes.c_void_p).value, b"xla._CUSTOM_CALL_TARGET", None)
    jax.ffi.register_ffi_target("reads_behind", capsule, platform="cpu", api_version=0)

    @op(name="_test_reads_behind")
    def body(data: Tensor) -> Any:
        """Copy the elements behind the first one."""
        result = jax.ShapeDtypeStruct((16,), np.float32)
        return jax.ffi.ffi_call("reads_behind", result, custom_call_api_version=1)(data)

    call = OPS["_test_reads_behind"].call()
    case = Case("reads behind its input", [np.ones(16, np.float32)], (), False, lambda x: invoke(call, x))
    object.__setattr__(case, "kernel", kernel)  # lives as long as it may be called
    return case


def _names(file: str) -> list[str]:
    return json.loads(Path(file).read_text())


def main() -> None:
    """Run one part of a family of cases."""
    parser = argparse.ArgumentParser()
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("part", type=int)
    parser.add_argument("parts", type=int)
    parser.add_argument("--skip", type=_names, default=[])
    parser.add_argument("--only", type=_names)
    parser.add_argument("--together", type=int, default=TOGETHER)
    parser.add_argument("--fault", choices=("overread", "reuse"))
    args = parser.parse_args()
    flush._takes_over = COUNTS
    cases = FAMILIES[args.family]()[args.part :: args.parts]
    if args.fault == "overread":
        cases.insert(1, overreading())
    cases = [c for c in cases if c.name not in args.skip and (args.only is None or c.name in args.only)]
    for k in range(0, len(cases), args.together):
        chunk = cases[k : k + args.together]
        names = [c.name for c in chunk]
        say(begin=names)
        taken = [c for c in chunk if is_taken(c)]
        say(end=names, problems=compared(taken, args.fault == "reuse") if taken else [])
    say(done=True)


if __name__ == "__main__":
    main()
