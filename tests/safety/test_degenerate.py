"""No shape kills the interpreter: every operator and layer at degenerate sizes, many times, in processes of their own.

The children compute with freed memory overwritten (`MALLOC_PERTURB_`), their inputs beside pages that kill who touches
them, and their results in buffers that are taken over and in others: all runs give the same bits.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 420  # that a child may take
PARTS = {"operators": 10, "windows": 4, "layers": 3}


@dataclass
class Verdict:
    """What the children of one part said: how many cases ran, which were refused, what was wrong."""

    ran: int = 0
    refused: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Runner:
    """Runs a part of a family in children, one after another as they die."""

    def __init__(self, folder: Path, family: str, part: int, parts: int, fault: str | None = None, tier: str = "xla"):
        self.folder, self.verdict = folder, Verdict()
        self.command = [sys.executable, "-m", "tests.safety.child", family, str(part), str(parts)]
        self.command += ["--fault", fault] if fault else []
        settings = {"MALLOC_PERTURB_": "165", "DUALMX_POISON": "1", "DUALMX_CACHE_DIR": "", "JAX_PLATFORMS": "cpu"}
        settings["DUALMX_TIER"] = tier
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MXNET_", "DUALMX_"))}
        self.environment = {**kept, "PYTHONPATH": str(ROOT), **settings}

    def _file(self, option: str, names: list[str]) -> list[str]:
        file = self.folder / f"{option}.json"
        file.write_text(json.dumps(names))
        return [f"--{option}", str(file)]

    def _child(self, *options: str) -> tuple[list[str], list[str], str]:
        """Run one child; returns the cases it has ended, those it was at when it ended, and how it ended."""
        ended: list[str] = []
        current: list[str] = []
        try:
            run = subprocess.run(
                [*self.command, *options],
                cwd=ROOT,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
            text, how = run.stdout, ""
            if run.returncode < 0:
                how = f"the process died of {signal.Signals(-run.returncode).name}"
            elif run.returncode:
                how = f"the process ended with {run.returncode}: {run.stderr[-2000:]}"
        except subprocess.TimeoutExpired as e:
            text, how = (e.stdout or b"").decode(), f"the process took more than {SECONDS} s"
        for line in text.splitlines():
            said = json.loads(line)
            current = said.get("begin", current)
            if "refused" in said:
                self.verdict.refused.append(said["refused"])
            if "end" in said:
                ended += said["end"]
                self.verdict.problems += [f"{said['end']}: {p}" for p in said["problems"]]
                current = []
        return ended, current, how

    def run(self) -> Verdict:
        """Run everything; a program that killed its process is run again, each of its cases alone."""
        done: list[str] = []
        while True:
            ended, current, how = self._child(*self._file("skip", done))
            self.verdict.ran += len(ended)
            if not how:
                return self.verdict
            if not current:
                self.verdict.problems.append(how)
                return self.verdict
            done += [*ended, *current]
            self._alone(current, how)

    def _alone(self, names: list[str], how: str) -> None:
        """Find out which of the cases of a program is at fault."""
        left, guilty = list(names), False
        while left:
            ended, current, died = self._child("--together", "1", *self._file("only", left), *self._file("skip", []))
            self.verdict.ran += len(ended)
            if not died:
                break
            guilty = True
            self.verdict.problems.append(f"{current[0] if current else left}: {died}")
            if not current:
                break
            left = [n for n in left if n not in ended and n not in current]
        if not guilty:
            self.verdict.problems.append(f"{names}: {how}, in one program; none of them does so alone")


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["xla", "numpy"])
@pytest.mark.parametrize(("family", "part"), [(f, k) for f, parts in PARTS.items() for k in range(parts)])
def test_degenerate_shapes_kill_nobody_and_repeat_their_bits(tmp_path: Path, family: str, part: int, tier: str) -> None:
    verdict = Runner(tmp_path, family, part, PARTS[family], tier=tier).run()
    assert not verdict.problems, "\n".join(verdict.problems)
    # Shapes that an operator does not take are no cases; a tier that refuses more than a few would prove nothing.
    assert verdict.ran > 30 and len(verdict.refused) < verdict.ran / 5


def _control(tmp_path: Path, fault: str) -> Verdict:
    return Runner(tmp_path, "windows", 0, 40, fault).run()


@pytest.mark.slow
def test_a_kernel_that_reads_behind_its_input_is_named(tmp_path: Path) -> None:
    verdict = _control(tmp_path, "overread")
    assert verdict.problems == ["reads behind its input: the process died of SIGSEGV"]
    assert verdict.ran > 5  # the others went on


@pytest.mark.slow
def test_memory_that_is_written_while_it_is_seen_is_noticed(tmp_path: Path) -> None:
    problems = _control(tmp_path, "reuse").problems
    assert any("differs from run 0" in p for p in problems)
