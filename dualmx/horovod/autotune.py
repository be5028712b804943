"""Autotuning by Bayesian optimization (Mockus 1978; Snoek et al. 2012)."""

from __future__ import annotations

import csv
import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core import knobs

MAX_FUSION_BYTES = 64 << 20
CYCLES = (0.2, 25.0)  # milliseconds


@dataclass(frozen=True)
class TunableParams:
    """Parameters of the background loop that autotuning changes.

    Attributes:
        threshold: most bytes that travel together.
        cycle: milliseconds for which exchanges are collected.
        hierarchical: add up on each host first.
    """

    threshold: int
    cycle: float
    hierarchical: bool


class BayesianSearch:
    """Looks for the maximum of a noisy function on the unit cube.

    Args:
        dimensions: how many numbers it takes.
        noise: variance of a sample, relative to that of all samples.
        seed: of the candidates.

    Example:
        >>> search = BayesianSearch(1, 0.01)
        >>> for _ in range(15):
        ...     (x,) = search.propose()
        ...     search.add_sample((x,), -((x - 0.3) ** 2))
        >>> abs(search.best()[0] - 0.3) < 0.1
        True
    """

    LENGTH = 0.3  # how far away samples say something, of the whole range

    def __init__(self, dimensions: int, noise: float = 0.8, seed: int = 0):
        self._n, self._noise = dimensions, noise
        self._draw = np.random.RandomState(seed)
        self._at: list[tuple[float, ...]] = []
        self._scores: list[float] = []

    def add_sample(self, x: tuple[float, ...], score: float) -> None:
        """Take down a sample."""
        self._at.append(tuple(x))
        self._scores.append(float(score))

    def propose(self) -> tuple[float, ...]:
        """Return where the expected improvement over the best sample is greatest."""
        if not self._n or len(self._at) < 2:
            return tuple(self._draw.rand(self._n))
        x = self._draw.rand(500, self._n)
        mean, deviation, best = self._posterior(x)
        z = (mean - best) / deviation
        density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
        below = np.array([0.5 * (1 + math.erf(v / math.sqrt(2))) for v in z])
        return tuple(x[int(np.argmax((mean - best) * below + deviation * density))].tolist())

    def best(self) -> tuple[float, ...]:
        """Return the sample with the best expected score."""
        mean, _, _ = self._posterior(np.array(self._at).reshape(len(self._at), self._n))
        return self._at[int(np.argmax(mean))]

    def _posterior(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Mean and deviation of a Gaussian process at points, and the best mean at samples; of normed scores."""
        at = np.array(self._at).reshape(len(self._at), self._n)
        scores = np.array(self._scores)
        scores = (scores - scores.mean()) / (scores.std() or 1.0)
        kernel = self._kernel(at, at)
        solved = np.linalg.inv(kernel + self._noise * np.eye(len(at)))
        there = self._kernel(x, at)
        variance = 1 - np.einsum("ij,jk,ik->i", there, solved, there)
        return there @ solved @ scores, np.sqrt(np.maximum(variance, 1e-9)), float((kernel @ solved @ scores).max())

    def _kernel(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        distance = ((a[:, None, :] - b[None, :, :]) ** 2).sum(-1)
        return np.exp(-0.5 * distance / self.LENGTH**2)


class ParameterManager:
    """Tries out settings that the environment does not fix; bytes per second are the score.

    Args:
        first: the settings to begin with.
        several_hosts: adding up on each host first is worth trying.
    """

    def __init__(self, first: TunableParams, several_hosts: bool):
        names = [("threshold", knobs.FUSION_THRESHOLD), ("cycle", knobs.CYCLE_TIME)]
        if several_hosts:
            names.append(("hierarchical", knobs.HIERARCHICAL))
        self._free = [name for name, knob in names if not knob.is_set()]
        self.settings = first
        self.over = not self._free
        self._search = BayesianSearch(len(self._free), knobs.AUTOTUNE_NOISE.number())
        self._warmup, self._steps = knobs.AUTOTUNE_WARMUP.integer(), knobs.AUTOTUNE_STEPS.integer(1)
        self._samples = knobs.AUTOTUNE_SAMPLES.integer(1)
        self._at = tuple(self._place(name) for name in self._free)
        self._count = self._seen = self._bytes = 0
        self._began = time.monotonic()
        self._log: Any = None
        if knobs.AUTOTUNE_LOG.read() and not self.over:
            self._log = open(knobs.AUTOTUNE_LOG.read(), "w", newline="")  # noqa: SIM115
            self._row("sample", "hierarchical_allreduce", "cycle_time_ms", "tensor_fusion_threshold", "score")

    def _place(self, name: str) -> float:
        s = self.settings
        if name == "threshold":
            return s.threshold / MAX_FUSION_BYTES
        if name == "cycle":
            return math.log(max(s.cycle, CYCLES[0]) / CYCLES[0]) / math.log(CYCLES[1] / CYCLES[0])
        return float(s.hierarchical)

    def _settings(self, x: tuple[float, ...]) -> TunableParams:
        change: dict[str, Any] = {}
        for name, v in zip(self._free, x, strict=True):
            if name == "threshold":
                change[name] = int(v * 64) << 20
            elif name == "cycle":
                change[name] = round(CYCLES[0] * (CYCLES[1] / CYCLES[0]) ** v, 2)
            else:
                change[name] = v >= 0.5
        return replace(self.settings, **change)

    def cycle(self, nbytes: int) -> TunableParams | None:
        """Note a cycle that exchanged so many bytes; returns new settings if it is time for some."""
        if self.over:
            return None
        self._count += 1
        self._bytes += nbytes
        if self._count < self._steps:
            return None
        score = self._bytes / max(time.monotonic() - self._began, 1e-9)
        return self.sample(score)

    def sample(self, score: float) -> TunableParams | None:
        """Note how good the present settings are; returns the next ones, or None if there are none."""
        self._count, self._bytes, self._began = 0, 0, time.monotonic()
        self._seen += 1
        if self._seen <= self._warmup:
            return None
        s = self.settings
        self._row(self._seen - self._warmup, int(s.hierarchical), s.cycle, s.threshold, f"{score:.0f}")
        self._search.add_sample(self._at, score)
        self.over = self._seen - self._warmup >= self._samples
        self._at = self._search.best() if self.over else self._search.propose()
        self.settings = self._settings(self._at)
        if self.over:
            s = self.settings
            self._row("best", int(s.hierarchical), s.cycle, s.threshold, "")
            self.close()
        return self.settings

    def close(self) -> None:
        """Complete the log."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _row(self, *values: Any) -> None:
        if self._log is not None:
            csv.writer(self._log).writerow(values)
            self._log.flush()
