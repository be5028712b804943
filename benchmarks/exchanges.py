"""Sums of arrays over two processes of this host: dualmx beside torch.distributed with Gloo.

python -m benchmarks.exchanges [--torch PYTHON] [--only 4KB,1MB,16MB,100MB,resnet50] [--also tcp,xla] [--times 3]

Prints, for each size, the wall time of an all-reduce and the processor time of both processes. With `--torch`, the
interpreter of an environment that has PyTorch, it is measured in turns with dualmx. `--also` measures dualmx over TCP,
and by XLA's collectives, as well.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    from .servers import SIZES, resnet50
except ImportError:  # run as a script by the interpreter of torch
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from benchmarks.servers import SIZES, resnet50

SECONDS = 1.0  # of measuring, for each size


def of_dualmx(where: str, rank: int, shapes: list[tuple[int, ...]]) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """Return what reduces, and what finds the greatest of numbers over both processes."""
    import dualmx as mx

    mx.parallel.init(where, 2, rank)
    arrays = [mx.nd.ones(s) * (rank + 1) for s in shapes]
    mx.nd.waitall()
    return lambda: mx.parallel.all_reduce(arrays), lambda v: mx.parallel.all_reduce(mx.nd.array([v]), "max").asscalar()


def of_torch(where: str, rank: int, shapes: list[tuple[int, ...]]) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """The same for torch."""
    import torch
    import torch.distributed as dist

    if not dist.is_initialized():
        dist.init_process_group("gloo", init_method=f"tcp://{where}", world_size=2, rank=rank)
    arrays = [torch.ones(*s) * (rank + 1) for s in shapes]

    def reduce() -> None:
        for work in [dist.all_reduce(a, async_op=True) for a in arrays]:
            work.wait()

    def greatest(v: float) -> float:
        a = torch.tensor([v])
        dist.all_reduce(a, dist.ReduceOp.MAX)
        return a.item()

    return reduce, greatest


def work(package: str, where: str, rank: int, only: list[str]) -> None:
    """One process: measures, and prints one line of JSON per size."""
    for name in only:
        shapes = resnet50() if name == "resnet50" else [(SIZES[name] // 4,)]
        reduce, greatest = (of_dualmx if package == "dualmx" else of_torch)(where, rank, shapes)
        for _ in range(3):
            reduce()
        begin = time.perf_counter()
        reduce()
        count = max(3, min(1000, int(SECONDS / 3 / greatest(time.perf_counter() - begin))))
        best, used = float("inf"), time.process_time()
        for _ in range(3):
            greatest(0.0)
            begin = time.perf_counter()
            for _ in range(count):
                reduce()
            best = min(best, (time.perf_counter() - begin) / count)
        used = (time.process_time() - used) / (3 * count)
        print(json.dumps({"what": name, "ms": 1e3 * best, "cpu_ms": 1e3 * used}), flush=True)


def job(python: str, package: str, only: list[str], env: dict[str, str]) -> dict[str, tuple[float, float]]:
    """Run two processes; returns (wall of the slower, processor time of both) in ms by size."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{s.getsockname()[1]}"
    base = {**os.environ, **env, "JAX_PLATFORMS": "cpu", "GLOO_SOCKET_IFNAME": "lo"}
    command = [python, "-W", "ignore", str(Path(__file__).resolve()), "--work", package, where]
    started = [
        subprocess.Popen([*command, str(k), ",".join(only)], env=base, stdout=subprocess.PIPE, text=True)
        for k in range(2)
    ]
    try:
        lines = [line for p in started for line in p.communicate(timeout=300)[0].splitlines()]
    finally:
        for p in started:
            p.kill()
            p.wait()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    by_size = {name: [f for f in found if f["what"] == name] for name in only}
    return {name: (max(f["ms"] for f in fs), sum(f["cpu_ms"] for f in fs)) for name, fs in by_size.items()}


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--torch", help="interpreter of an environment with PyTorch")
    parser.add_argument("--only", default=",".join([*SIZES, "resnet50"]))
    parser.add_argument("--also", default="", help="tcp, xla or both")
    parser.add_argument("--times", type=int, default=1, help="repetitions; the best of them count")
    options = parser.parse_args()
    only = options.only.split(",")
    here = {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    ways = {"dualmx": {}, "tcp": {"DUALMX_TCP": "1"}, "xla": {"DUALMX_COLLECTIVES": "xla"}}
    results: list[dict[str, dict[str, tuple[float, float]]]] = []
    for _ in range(options.times):
        one = {
            w: job(sys.executable, "dualmx", only, here | ways[w]) for w in ["dualmx", *options.also.split(",")] if w
        }
        if options.torch:
            one["torch"] = job(options.torch, "torch", only, {})
        results.append(one)
    print(f"{'arrays':10s} " + " ".join(f"{who + ' ms':>12s} {'cpu ms':>8s}" for who in results[0]))
    for name in only:
        row = [min(r[who][name] for r in results) for who in results[0]]
        print(f"{name:10s} " + " ".join(f"{wall:12.2f} {cpu:8.2f}" for wall, cpu in row))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5].split(","))
    else:
        main()
