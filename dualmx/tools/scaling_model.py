"""Scaling model: the speedup of R workers from measured or given times, all in seconds.

An epoch of N samples takes N / (R·B) steps of Tcomp + Tsync with R workers and batches of B, and N / B steps of Tcomp
with one: S = R·Tcomp / (Tcomp + Tsync). A job that overlaps communication with computation is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

BITS = {"2bit": 2, "1bit": 1, "fp16": 16}  # of 32, of what workers push


def speedup(workers: int, tcomp: float, tsync: float) -> float:
    """Return S = R·Tcomp / (Tcomp + Tsync): samples per second of R workers by those of one.

    Example:
        >>> speedup(4, 0.75, 0.25)
        3.0
    """
    return workers * tcomp / (tcomp + tsync)


def break_even(workers: int, tcomp: float) -> float:
    """Return (R - 1)·Tcomp: where Tsync is less, R workers are faster than one.

    Example:
        >>> break_even(3, 0.25)
        0.5
    """
    return (workers - 1) * tcomp


def all_reduce_seconds(nbytes: float, workers: int, bandwidth: float, latency: float = 0.0) -> float:
    """Return Tsync of an exchange without servers, where each worker sends, and receives, 2·(R-1)/R of the bytes.

    Args:
        nbytes: of the gradients.
        workers: R.
        bandwidth: bytes per second that a worker sends while it receives as many.
        latency: what an exchange takes however small it is.

    Example:
        >>> all_reduce_seconds(1e8, 4, 1e9, 0.01)
        0.16
    """
    return 2 * (workers - 1) / workers * nbytes / bandwidth + latency


def servers_seconds(
    nbytes: float, workers: int, servers: int, bandwidth: float, latency: float = 0.0, pushed: float = 1.0
) -> float:
    """Return Tsync of a push and a pull by S servers, through each of which go R/S of the bytes of one worker.

    Args:
        nbytes: of the gradients.
        workers, servers: R and S.
        bandwidth: bytes per second in each direction of a worker or server.
        latency: what an exchange takes however small it is.
        pushed: part of its bytes that a gradient has when it is compressed; what is pulled is not compressed.

    Example:
        >>> servers_seconds(1e8, 4, 2, 1e9), servers_seconds(1e8, 4, 2, 1e9, pushed=1 / 16)
        (0.4, 0.2125)
    """
    return (1 + pushed) * max(1.0, workers / servers) * nbytes / bandwidth + latency


def scaling_table(
    tcomp: Sequence[tuple[int, float]],
    workers: Sequence[int],
    tsync: Callable[[int, str], float],
    compression: str = "none",
    samples: int = 0,
) -> list[dict[str, Any]]:
    """Return what is to be expected of each batch size and number of workers.

    Args:
        tcomp: batch sizes of a worker, and the time of a step.
        workers: numbers of workers.
        tsync: returns the time of an exchange for a number of workers and a kind of compression.
        compression: that is compared with none; `"none"`: there is nothing to compare.
        samples: of an epoch, whose time is told as well; 0: it is not.
    """
    rows = []
    for count in workers:
        kinds = ["none", *([compression] if compression != "none" else [])]
        for kind, sync in [(kind, tsync(count, kind)) for kind in kinds]:
            for batch, comp in tcomp:
                speed = count * batch / (comp + sync)
                row = {
                    "batch": batch, "workers": count, "compression": kind, "tcomp": comp, "tsync": sync,
                    "break_even": break_even(count, comp), "worth_it": sync < break_even(count, comp),
                    "speedup": speedup(count, comp, sync), "efficiency": comp / (comp + sync), "samples_per_s": speed,
                }  # fmt: skip
                rows.append(row | ({"epoch": samples / speed} if samples else {}))
    return sorted(rows, key=lambda row: (row["batch"], row["workers"]))


def fastest(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the fastest of `scaling_table`, the one with fewest workers among equals; one worker alone may be it."""
    alone = [
        {**row, "workers": 1, "compression": "none", "tsync": 0.0, "break_even": 0.0, "worth_it": False,
         "speedup": 1.0, "efficiency": 1.0, "samples_per_s": row["batch"] / row["tcomp"],
         **({"epoch": row["epoch"] * row["speedup"]} if "epoch" in row else {})}
        for row in rows
    ]  # fmt: skip
    return max([*alone, *rows], key=lambda row: (row["samples_per_s"], -row["workers"], row["compression"] == "none"))


__all__ = ["BITS", "all_reduce_seconds", "break_even", "fastest", "scaling_table", "servers_seconds", "speedup"]
