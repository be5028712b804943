"""Runs readers on damaged inputs in child processes, and counts what became of them."""

from __future__ import annotations

import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_DEATHS = 20


@dataclass
class Outcome:
    """What became of the inputs of a reader.

    Attributes:
        reader: its name.
        counts: inputs by what became of them.
        faults: number of the input, kind of the fault, text.
        slowest: seconds of processor time of the slowest input.
        memory: bytes that the largest input touched.
    """

    reader: str
    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    faults: list[tuple[int, str, str]] = field(default_factory=list)
    slowest: float = 0.0
    memory: int = 0

    @property
    def inputs(self) -> int:
        """How many were read."""
        return sum(self.counts.values())

    def row(self) -> str:
        """A line of the table."""
        counts = self.counts
        foreign = self.inputs - sum(counts[k] for k in ("accepted", "refused", "hang", "memory", "died"))
        cells = (
            self.reader, self.inputs, counts["accepted"], counts["refused"], foreign, counts["hang"], counts["died"],
            counts["memory"], f"{self.slowest:.2f} s", f"{self.memory / (1 << 20):.0f} MiB",
        )  # fmt: skip
        return "| " + " | ".join(map(str, cells)) + " |"


HEAD = """\
| reader | inputs | accepted | refused | foreign errors | hangs | deaths | too much memory | slowest | most memory |
|---|---|---|---|---|---|---|---|---|---|"""


def run(reader: str, first: int, last: int, seed: int = 0, setup: str = "") -> Outcome:
    """Read inputs `first` to `last - 1` of a reader.

    Args:
        reader: its name.
        first, last: numbers of inputs.
        seed: of the damage.
        setup: Python that the child runs before, to put a fault back.
    """
    found = Outcome(reader)
    environment = {
        **os.environ, "JAX_PLATFORMS": "cpu", "MALLOC_ARENA_MAX": "1", "OPENCV_LOG_LEVEL": "SILENT",
        "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "DUALMX_CACHE_DIR": "",
    }  # fmt: skip
    with tempfile.NamedTemporaryFile() as at:
        at.write(bytes(8))
        at.flush()
        while first < last and found.counts["died"] < MOST_DEATHS:
            code = f"{setup}\nimport sys; sys.argv = {['', reader, str(first), str(last), str(seed), at.name]!r}\n"
            code += "from tests.fuzz.child import main; main()"
            child = subprocess.run(
                [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, check=False
            )
            if child.returncode == 0:
                told = json.loads(child.stdout.splitlines()[-1])
                found.counts.update(told["counts"])
                found.faults += [tuple(fault) for fault in told["faults"]]
                found.slowest, found.memory = max(found.slowest, told["slowest"]), max(found.memory, told["memory"])
                break
            number = int.from_bytes(Path(at.name).read_bytes()[:8], "little")
            why = child.stderr.decode(errors="replace")[-1500:]
            if child.returncode > 0:
                found.counts["broken"] += 1
                found.faults.append((number, "broken", why))
                break
            name = signal.Signals(-child.returncode).name
            kind = "hang" if name in ("SIGXCPU", "SIGPROF") else "died"
            found.counts[kind] += 1
            found.counts["accepted"] += max(number - first, 0)  # read before, without a fault that was told
            found.faults.append((number, kind, f"{name}\n{why}"))
            first = number + 1
    return found
