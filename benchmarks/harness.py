"""Interleaved comparison: contestants live in their own processes and take turns in short chunks."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
QUIET = 0.12  # cores that other processes may use during a chunk that counts as quiet


@dataclass
class Contestant:
    """One process to measure: interpreter, framework, network, batch size, mode."""

    name: str
    framework: str
    network: str
    batch: int
    mode: str
    python: str = sys.executable
    chunks: list[tuple[float, float]] = field(default_factory=list)
    info: dict[str, Any] = field(default_factory=dict)

    def command(self, *flags: str) -> list[str]:
        """The command line of its process."""
        return [self.python, "-m", "benchmarks.serve", self.framework, self.network, str(self.batch), self.mode, *flags]

    @property
    def ms(self) -> float:
        """Median milliseconds a step over the quiet chunks, or over the least disturbed quarter."""
        quiet = [ms for ms, foreign in self.chunks if foreign <= QUIET]
        if len(quiet) < 3:
            calm = sorted(self.chunks, key=lambda c: c[1])
            quiet = [ms for ms, _ in calm[: max(3, len(calm) // 4)]]
        return statistics.median(quiet)

    @property
    def quiet_share(self) -> float:
        """Share of chunks that no other process disturbed."""
        return sum(foreign <= QUIET for _, foreign in self.chunks) / max(1, len(self.chunks))


class Failed(RuntimeError):
    """A contestant ended early; the text is the end of its error output."""


class Process:
    """A running contestant."""

    def __init__(self, contestant: Contestant, environment: dict[str, str]):
        self.contestant = contestant
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            contestant.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
            cwd=ROOT, env=environment,
        )  # fmt: skip
        contestant.info.update(self.answer("READY"))

    def answer(self, word: str) -> Any:
        """The JSON after the next line that begins with `word`."""
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith(word):
                return json.loads(line[len(word) :])
        self.errors.seek(0)
        raise Failed(f"{self.contestant.name}: {self.errors.read()[-2000:].strip()}")

    def say(self, line: str) -> None:
        """Send one line."""
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def run(self, seconds: float) -> None:
        """One turn."""
        self.say(f"RUN {seconds}")
        self.contestant.chunks += [tuple(c) for c in self.answer("TIMES")]

    def end(self) -> None:
        """Let it report and finish."""
        self.say("END")
        self.contestant.info.update(self.answer("DONE"))
        self.process.wait()


def environment(**extra: str) -> dict[str, str]:
    """This environment with the thread counts that all contestants share."""
    cores = str(os.cpu_count())
    shared = {"OMP_NUM_THREADS": cores, "MKL_NUM_THREADS": cores, "JAX_PLATFORMS": "cpu", "PYTHONWARNINGS": "ignore"}
    return {**os.environ, **shared, **extra}


def compete(contestants: Sequence[Contestant], rounds: int, seconds: float, **extra: str) -> list[str]:
    """Fill in the chunks of every contestant by turns; returns the failures, whose contestants have no chunks.

    Programs are compiled at their first run, since a chunk shows what is reached in the end.
    """
    extra = {"DUALMX_TIER": "xla", **extra}
    running: list[Process] = []
    failures: list[str] = []
    for contestant in contestants:
        try:
            running.append(Process(contestant, environment(**extra)))
        except Failed as e:
            failures.append(str(e))
    for _ in range(rounds):
        for process in list(running):
            try:
                process.run(seconds)
            except (Failed, BrokenPipeError) as e:
                failures.append(str(e))
                running.remove(process)
    for process in running:
        process.end()
    return failures


def once(contestant: Contestant, *flags: str, **extra: str) -> dict[str, float]:
    """Start a fresh process, take one step (or what `flags` say), return its `first_step`, `age` and `first_loss`."""
    done = subprocess.run(
        contestant.command(*(flags or ("--once",))), capture_output=True, text=True, cwd=ROOT, env=environment(**extra)
    )
    for line in done.stdout.splitlines():
        if line.startswith("READY"):
            return json.loads(line[5:])
    raise Failed(f"{contestant.name}: {done.stderr[-2000:].strip()}")


@dataclass
class Row:
    """One line of the table.

    Attributes:
        measure: what is measured.
        value: the figure, a ratio or in `unit`.
        gate, aim: what it must and wants to reach, `None` where there is none.
        at_least: larger is better.
        note: absolute numbers behind the figure.
    """

    measure: str
    value: float | None
    gate: float | None = None
    aim: float | None = None
    unit: str = "x"
    at_least: bool = True
    note: str = ""

    def verdict(self) -> str:
        """`aim`, `gate`, `missed`, or `-` where nothing was asked."""
        if self.value is None:
            return "not run"
        for word, bound in (("aim", self.aim), ("gate", self.gate)):
            if bound is not None and (self.value >= bound if self.at_least else self.value <= bound):
                return word
        return "-" if self.gate is None else "missed"

    def markdown(self) -> str:
        """The line as Markdown."""

        def shown(x: float | None) -> str:
            return "-" if x is None else f"{x:.3g}" if abs(x) < 100 else f"{x:.0f}"

        sign = "≥" if self.at_least else "≤"
        unit = "" if self.unit == "x" else f" {self.unit}"
        gate = "-" if self.gate is None else f"{sign} {shown(self.gate)}{unit}"
        aim = "-" if self.aim is None else f"{sign} {shown(self.aim)}{unit}"
        value = "-" if self.value is None else f"**{shown(self.value)}{unit}**"
        return f"| {self.measure} | {value} | {gate} | {aim} | {self.verdict()} | {self.note} |"


HEADER = "| measure | figure | gate | aim | reaches | behind it |\n|---|---|---|---|---|---|"


def table(rows: Sequence[Row]) -> str:
    """All rows as a Markdown table."""
    return "\n".join([HEADER, *(r.markdown() for r in rows)])
