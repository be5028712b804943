"""Reads damaged inputs one after the other under limits, in a process that may die of them."""

from __future__ import annotations

import collections
import contextlib
import json
import logging
import mmap
import os
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from random import Random
from typing import Any

from dualmx.core.errors import FormatError, MXNetError

from .corpus import scratch, seed_of
from .limits import Excess, Hang, Limits
from .readers import READERS, Reader


def damaged_input(reader: Reader, good: list[bytes], seed: int, number: int) -> bytes:
    """Input `number` of a reader; the first ones are the good files themselves."""
    rng = Random(seed_of(reader.name, seed, number))
    if number < len(good):
        return good[number]
    return reader.damage(rng, rng.choice(good), good)


def verdict(reader: Reader, error: BaseException | None) -> tuple[str, str]:
    """What became of an input (`accepted`, `refused` or a fault), and why."""
    if error is None:
        return "accepted", ""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, FormatError):
        if reader.named and not (error.source and error.remedy and error.expected and reader.named in text):
            return "unnamed", text
        return "refused", text
    if isinstance(error, reader.allowed):
        return "refused", text
    if isinstance(error, Hang):
        return "hang", text
    if isinstance(error, (Excess, MemoryError)):
        return "memory", text
    return "foreign", text


def read_inputs(name: str, first: int, last: int, seed: int, at: Any) -> dict[str, Any]:
    """Read inputs `first` to `last - 1`; `at` keeps the number of the one that is being read."""
    reader, limits = READERS[name], Limits(READERS[name].factor)
    counts: collections.Counter[str] = collections.Counter()
    faults: list[tuple[int, str, str]] = []
    slowest, most = 0.0, 0
    with tempfile.TemporaryDirectory(prefix="fuzz", dir=scratch()) as folder:
        path = Path(folder) / f"input{reader.suffix}"
        good = reader.corpus(Path(folder))
        for data in good[:3]:  # what is loaded once is not the input's
            path.write_bytes(data)
            with contextlib.suppress(MXNetError):
                reader.read(path)
        for number in range(first, last):
            at[:8] = number.to_bytes(8, "little")
            data = damaged_input(reader, good, seed, number)
            path.write_bytes(data)
            began, error = time.process_time(), None
            try:
                most = max(most, limits.run(lambda: reader.read(path), len(data)))
            except (Exception, Hang, Excess) as e:
                error = e
            slowest = max(slowest, time.process_time() - began)
            kind, text = verdict(reader, error)
            if number < len(good) and kind != "accepted":
                kind = "good one refused"
            counts[kind] += 1
            if kind not in ("accepted", "refused") and len(faults) < 200:
                trace = "".join(traceback.format_exception(error)[-6:]) if error else ""
                faults.append((number, kind, f"{text[:300]}\n{trace[-1500:]}"))
    return {"counts": counts, "faults": faults, "slowest": slowest, "memory": most}


def main() -> None:
    """`python -m tests.fuzz.child READER FIRST LAST SEED FILE`: a line of JSON at the end."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    name, first, last, seed, file = sys.argv[1:]
    with open(file, "r+b") as f:
        at = mmap.mmap(f.fileno(), 8)
    told = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    found = read_inputs(name, int(first), int(last), int(seed), at)
    os.write(told, json.dumps(found).encode() + b"\n")
    os._exit(0)  # threads of libraries may outlive their iterators


if __name__ == "__main__":
    main()
