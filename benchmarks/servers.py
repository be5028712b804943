"""Rounds of push and pull through parameter servers, with SGD and momentum on the servers: dualmx beside MXNet.

python -m benchmarks.servers [--oracle PYTHON] [--only 4KB,1MB,16MB,100MB,resnet50] [--tcp] [--encrypt]

Prints, for each size, the wall time of a round of one worker and the processor time of all processes of the job. With
`--oracle`, the interpreter of an environment that has MXNet 1.9.1, its servers are measured in turns with these.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SIZES = {"4KB": 4096, "1MB": 1 << 20, "16MB": 16 << 20, "100MB": 100 << 20}
SECONDS = 1.0  # of measuring, for each size and repetition


def resnet50() -> list[tuple[int, ...]]:
    """Shapes of the 161 arrays of ResNet-50."""
    shapes: list[tuple[int, ...]] = [(64, 3, 7, 7), (64,), (64,)]
    inputs = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            for s in ((width, inputs, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1)):
                shapes += [s, (s[0],), (s[0],)]
            if block == 0:
                shapes += [(4 * width, inputs, 1, 1), (4 * width,), (4 * width,)]
            inputs = 4 * width
    return [*shapes, (1000, 2048), (1000,)]


def processor_seconds(folder: Path) -> float:
    """Processor time of all processes of the job."""
    total = 0
    for path in folder.glob("*.pid"):
        try:
            fields = Path(f"/proc/{path.stem}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return total / os.sysconf("SC_CLK_TCK")


def work(package: str, folder: Path, only: list[str]) -> None:
    """One worker: measures, and prints one line of JSON per size."""
    mx: Any = __import__(package)
    kv = mx.kv.create("dist_sync")
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.01, momentum=0.9))
    for name in only:
        shapes = resnet50() if name == "resnet50" else [(SIZES[name] // 4,)]
        keys = [f"{name}{i}" for i in range(len(shapes))]
        values, gradients = [mx.nd.zeros(s) for s in shapes], [mx.nd.ones(s) for s in shapes]
        for key, value in zip(keys, values):  # noqa: B905
            kv.init(key, value)
        mx.nd.waitall()

        def round_(keys: Any = keys, gradients: Any = gradients, values: Any = values) -> None:
            for i, key in enumerate(keys):
                kv.push(key, gradients[i], priority=-i)
            for i, key in enumerate(keys):
                kv.pull(key, out=values[i], priority=-i)
            mx.nd.waitall()

        for _ in range(4):
            round_()
        best = None
        for _ in range(3):
            kv._barrier()
            begin, rounds, used = time.perf_counter(), 0, processor_seconds(folder)
            goal = max(3, int(SECONDS / max(_one(round_), 1e-4)) // 3)
            goal = goal if kv.num_workers == 1 else _shared(kv, folder, name, goal)
            while rounds < goal:
                round_()
                rounds += 1
            wall = (time.perf_counter() - begin) / (rounds + 1)
            kv._barrier()
            cpu = (processor_seconds(folder) - used) / (rounds + 1)
            best = min(best or (wall, cpu), (wall, cpu))
        assert best is not None
        if kv.rank == 0:
            print(json.dumps({"what": name, "ms": best[0] * 1e3, "cpu_ms": best[1] * 1e3}), flush=True)
    kv._barrier()


def _one(round_: Any) -> float:
    begin = time.perf_counter()
    round_()
    return time.perf_counter() - begin


def _shared(kv: Any, folder: Path, name: str, goal: int) -> int:
    """The number of rounds that worker 0 has chosen, for all."""
    path = folder / f"{name}.rounds"
    if kv.rank == 0 and not path.exists():
        draft = folder / f"{name}.draft"
        draft.write_text(str(goal))
        draft.replace(path)
    while not path.exists():
        time.sleep(0.0005)
    return int(path.read_text())


def job(python: str, package: str, only: list[str], env: dict[str, str]) -> dict[str, tuple[float, float]]:
    """Run a job of two workers and two servers; returns (wall, processor) ms of a round by size."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        base = {
            **os.environ, **env, "DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": str(port),
            "DMLC_NUM_WORKER": "2", "DMLC_NUM_SERVER": "2", "DMLC_NODE_HOST": "127.0.0.1", "JAX_PLATFORMS": "cpu",
        }  # fmt: skip
        command = [python, "-W", "ignore", str(Path(__file__).resolve()), "--work", package, folder, ",".join(only)]
        started = []
        for role in ("scheduler", "server", "server", "worker", "worker"):
            p = subprocess.Popen(command, env={**base, "DMLC_ROLE": role}, stdout=subprocess.PIPE, text=True)
            (Path(folder) / f"{p.pid}.pid").touch()
            started.append(p)
        try:
            lines = [line for p in started for line in p.communicate(timeout=300)[0].splitlines()]
        finally:
            for p in started:
                p.kill()
                p.wait()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    if len(found) != len(only):
        print(f"{package}: the job ended early; sizes without a figure are printed as nan", file=sys.stderr)
    return {one["what"]: (one["ms"], one["cpu_ms"]) for one in found}


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--oracle", help="interpreter of an environment with MXNet 1.9.1")
    parser.add_argument("--only", default=",".join([*SIZES, "resnet50"]))
    parser.add_argument("--tcp", action="store_true", help="connect over TCP alone, as between hosts")
    parser.add_argument("--encrypt", action="store_true", help="over TCP, under TLS 1.3, as between hosts by default")
    parser.add_argument("--times", type=int, default=1, help="repetitions; the best of them count")
    options = parser.parse_args()
    only = options.only.split(",")
    here = {
        "PYTHONPATH": str(Path(__file__).resolve().parents[1]), "DUALMX_ENCRYPT": "1" if options.encrypt else "0",
        "DUALMX_TCP": "1" if options.tcp or options.encrypt else "0",
    }  # fmt: skip
    results: list[dict[str, dict[str, tuple[float, float]]]] = []
    for _ in range(options.times):
        one = {"dualmx": job(sys.executable, "dualmx", only, here)}
        if options.oracle:
            one["MXNet"] = job(options.oracle, "mxnet", only, {})
        results.append(one)
    print(f"{'arrays':10s} " + " ".join(f"{who + ' ms':>12s} {'cpu ms':>8s}" for who in results[0]))
    for name in only:
        row = [min(r[who].get(name, (math.nan, math.nan)) for r in results) for who in results[0]]
        print(f"{name:10s} " + " ".join(f"{wall:12.2f} {cpu:8.2f}" for wall, cpu in row))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], Path(sys.argv[3]), sys.argv[4].split(","))
    else:
        main()
