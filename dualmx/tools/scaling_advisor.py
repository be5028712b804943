"""`dualmx speedup`: predict the speedup of several workers, and the best batch size."""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, MXNetError, suggest
from .scaling_model import BITS, all_reduce_seconds, fastest, scaling_table, servers_seconds

DIRECT = ("collective", "horovod", "byteps")  # stores without servers
DIGITS = ("lenet", "mlp")
MAX_CHOICES = 64  # batch sizes, or numbers of workers


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(
        prog="dualmx speedup",
        description="Predict S = R·Tcomp / (Tcomp + Tsync) for R workers with batches of B samples each.",
        epilog="What is not told is measured here: Tcomp in one process, Tsync in jobs of R workers on this host. For "
        "a cluster elsewhere: --tcomp 0.12 --batch-sizes 64 --bandwidth 1.25 --latency 0.0005 --workers 2,8,32",
    )
    p.add_argument("--net", default="lenet", help="lenet, mlp, or a network of the model zoo such as resnet18_v1")
    p.add_argument("--shape", default="", help="of one sample; 1,28,28 for lenet and mlp, else 3,224,224")
    p.add_argument("--batch-sizes", default="32,64,128", help="samples of one step of one worker")
    p.add_argument("--workers", default="2,4", help="numbers of workers")
    p.add_argument("--kv-store", default="dist_sync", help="dist_sync, dist_async, …; without servers: collective")
    p.add_argument("-s", "--num-servers", type=int, default=0, help="servers; as many as workers by default")
    p.add_argument("--gc-type", default="2bit", choices=["none", *BITS], help="compression that is compared with none")
    p.add_argument("--rounds", type=int, default=10, help="measured steps, and exchanges; the median counts")
    p.add_argument("--samples", type=int, default=0, help="of an epoch, whose time is predicted as well")
    p.add_argument("--tcomp", default="", help="seconds of a step for each batch size, instead of measuring them")
    p.add_argument("--bytes", type=int, default=0, help="of the gradients, instead of the network's")
    p.add_argument("--bandwidth", type=float, help="GB/s of a worker or server in each direction: Tsync is computed")
    p.add_argument("--latency", type=float, help="seconds of an exchange however small it is, beside --bandwidth")
    p.add_argument("--json", action="store_true", help="one line of JSON")
    return p


def numbers(text: str, name: str, low: int) -> list[int]:
    """Parse a list of integers like `32,64`.

    Raises:
        ArgumentError: something else, too small, too many, or twice.

    Example:
        >>> numbers("2,8", "--workers", 2)
        [2, 8]
    """
    parts = [part.strip() for part in text.split(",")]
    found = [int(part) for part in parts if part.isdecimal()]
    if len(found) != len(parts) or min(found) < low or len(set(found)) < len(found) or len(found) > MAX_CHOICES:
        raise ArgumentError(
            f"{name} {text!r}: expected up to {MAX_CHOICES} different numbers of {low} or more, as 32,64"
        )
    return found


def seconds_of(text: str, batches: Sequence[int]) -> list[float]:
    """Return the times of `--tcomp`, one for each batch size.

    Raises:
        ArgumentError: no times, or not as many.
    """
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if len(found) != len(batches) or not all(0 < t < math.inf for t in found):
        raise ArgumentError(f"--tcomp {text!r}: expected seconds above 0 for each of the {len(batches)} --batch-sizes")
    return found


def shape_of(text: str) -> tuple[int, ...]:
    """Return the lengths of axes, as `3,224,224`; () of nothing.

    Raises:
        ArgumentError: something else.
    """
    if not text:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ArgumentError(f"--shape {text!r}: expected lengths of axes, as 3,224,224")
    return tuple(int(part) for part in parts)


class Network:
    """A network to be measured, with random weights.

    Args:
        name: `lenet`, `mlp`, or of the model zoo.
        shape: of one sample; () for the usual one.

    Attributes:
        sizes: bytes of the gradient of each parameter.

    Raises:
        ArgumentError: there is no such network. MXNetError: it does not take samples of this shape.
    """

    def __init__(self, name: str, shape: tuple[int, ...] = ()):
        from .. import gluon, init
        from ..gluon.model_zoo import vision
        from ..ndarray import zeros

        usual = (1, 28, 28) if name in DIGITS else (3, 299, 299) if name == "inceptionv3" else (3, 224, 224)
        self.shape = shape or usual
        self._net = digits_network(name) if name in DIGITS else vision.get_model(name)
        self._net.initialize(init.Xavier())
        self._net.hybridize()
        self._classes = self._net(zeros((1, *self.shape))).shape[-1]
        params = [p for p in self._net.collect_params().values() if p.grad_req != "null"]
        self.sizes = [int(np.prod(p.shape)) * np.dtype(p.dtype).itemsize for p in params]
        # So small a rate that the weights stay as they are, and numbers as quick to compute.
        self._trainer = gluon.Trainer(
            self._net.collect_params(), "sgd", {"learning_rate": 1e-9, "momentum": 0.9}, kvstore=None
        )

    def step_seconds(self, batch: int, rounds: int) -> float:
        """Return the time of a step with `batch` samples, its update included: the median of `rounds`."""
        from .. import autograd, gluon
        from ..ndarray import array, waitall

        draw = np.random.default_rng(0)
        x = array(draw.standard_normal((batch, *self.shape), np.float32))
        y = array(draw.integers(0, self._classes, batch).astype(np.float32))
        loss, times = gluon.loss.SoftmaxCrossEntropyLoss(), []
        for turn in range(rounds + 2):  # the first two compile
            waitall()
            start = time.perf_counter()
            with autograd.record():
                found = loss(self._net(x), y)
            found.backward()
            self._trainer.step(batch)
            waitall()
            if turn > 1:
                times.append(time.perf_counter() - start)
        return float(np.median(times))


def digits_network(name: str) -> Any:
    """Return a new LeNet with relu (`lenet`), or two hidden layers of 512 (`mlp`), for images of digits."""
    from ..gluon import nn

    net = nn.HybridSequential()
    with net.name_scope():
        if name == "lenet":
            for channels in (20, 50):
                net.add(nn.Conv2D(channels, kernel_size=5, activation="relu"), nn.MaxPool2D(pool_size=2, strides=2))
        for width in (500,) if name == "lenet" else (512, 512):
            net.add(nn.Dense(width, activation="relu"))
        net.add(nn.Dense(10))
    return net


def exchange_seconds(o: argparse.Namespace, sizes: Sequence[int], workers: int, servers: int, kind: str) -> float:
    """Return the time of an exchange of arrays in a job on this host: the median of `o.rounds`.

    Raises:
        MXNetError: the job failed.
    """
    command = [sys.executable, "-m", "dualmx.cli", "bandwidth", "-n", str(workers), "-s", str(servers), "--json"]
    command += ["--kv-store", o.kv_store, "--rounds", str(o.rounds), "--gc-type", kind]
    command += ["--sizes", "+".join(map(str, sizes))]
    env = {k: v for k, v in os.environ.items() if not k.startswith("DMLC_")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    lines = [line[line.index("{") :] for line in done.stdout.splitlines() if '"ms"' in line]
    if done.returncode or len(lines) != 1:
        said = "\n".join(done.stderr.strip().splitlines()[-8:])
        raise MXNetError(f"an exchange of {workers} workers by {o.kv_store!r} could not be measured:\n{said}")
    return json.loads(lines[0])["ms"] / 1e3


def _exchange(o: argparse.Namespace, sizes: Sequence[int]) -> Callable[[int, str], float]:
    """What returns the time of an exchange for a number of workers and a compression."""

    def computed(workers: int, kind: str) -> float:
        rate, latency = o.bandwidth * 1e9, o.latency or 0.0
        if o.kv_store in DIRECT:
            return all_reduce_seconds(sum(sizes), workers, rate, latency)
        pushed = BITS[kind] / 32 if kind != "none" else 1.0
        return servers_seconds(sum(sizes), workers, o.num_servers or workers, rate, latency, pushed)

    def measured(workers: int, kind: str) -> float:
        servers = 0 if o.kv_store in DIRECT else o.num_servers or workers
        return exchange_seconds(o, sizes, workers, servers, kind)

    return measured if o.bandwidth is None else computed


def predicted(o: argparse.Namespace) -> dict[str, Any]:
    """Return the command's results as plain data.

    Raises:
        ArgumentError: an option is wrong. MXNetError: something could not be measured.
    """
    batches, workers = numbers(o.batch_sizes, "--batch-sizes", 1), numbers(o.workers, "--workers", 2)
    seconds = seconds_of(o.tcomp, batches) if o.tcomp else []
    network = Network(o.net, shape_of(o.shape)) if not (seconds and o.bytes) else None
    times = seconds or [network.step_seconds(batch, o.rounds) for batch in batches if network is not None]
    sizes = [o.bytes] if o.bytes or network is None else network.sizes
    kind = "none" if o.kv_store in DIRECT else o.gc_type
    rows = scaling_table(list(zip(batches, times, strict=True)), workers, _exchange(o, sizes), kind, o.samples)
    pays = [row for row in rows if row["compression"] != "none"]
    plain = {(row["batch"], row["workers"]): row for row in rows if row["compression"] == "none"}
    return {
        "net": o.net if network is not None else "", "bytes": sum(sizes), "arrays": len(sizes), "store": o.kv_store,
        "servers": 0 if o.kv_store in DIRECT else o.num_servers, "measured": [
            *([] if seconds else ["tcomp"]), *(["tsync"] if o.bandwidth is None else []),
        ],
        "rows": rows, "best": fastest(rows), "compression": kind,
        "compression_pays": any(r["tsync"] < plain[r["batch"], r["workers"]]["tsync"] for r in pays),
    }  # fmt: skip


def page(found: dict[str, Any]) -> str:
    """The prediction for people."""
    arrays = f"{found['bytes'] / 1e6:.1f} MB in {found['arrays']} array(s)"
    servers = "as many servers as workers" if not found["servers"] else f"{found['servers']} server(s)"
    where = found["store"] + (f" with {servers}" if found["store"] not in DIRECT else "")
    how = [f"{name} {'measured' if name.lower() in found['measured'] else 'told'}" for name in ("Tcomp", "Tsync")]
    epoch = "epoch" in found["best"]
    names = ["batch", "workers", "compress", "Tcomp ms", "Tsync ms", "< (R-1)Tcomp", "S", "S/R", "samples/s"]
    head = f"{found['net'] or 'gradients'}: {arrays}, {where}; {', '.join(how)}"
    out = [head, "".join(f"{name:>13}" for name in [*names, *(["epoch s"] if epoch else [])])]
    for row in found["rows"]:
        cells = [
            str(row["batch"]), str(row["workers"]), row["compression"], f"{row['tcomp'] * 1e3:.3f}",
            f"{row['tsync'] * 1e3:.3f}", f"{row['break_even'] * 1e3:.3f} {'yes' if row['worth_it'] else 'no'}",
            f"{row['speedup']:.2f}", f"{row['efficiency']:.0%}", f"{row['samples_per_s']:.1f}",
        ]  # fmt: skip
        out.append("".join(f"{cell:>13}" for cell in [*cells, *([f"{row['epoch']:.1f}"] if epoch else [])]))
    top = found["best"]
    if top["workers"] == 1:
        out.append(f"best: one worker with batches of {top['batch']}; no exchange is quick enough for more")
    else:
        packed = f", {top['compression']} compression" if top["compression"] != "none" else ""
        how = f"{top['workers']} workers with batches of {top['batch']}{packed}"
        out.append(f"best: {how}: {top['speedup']:.2f} times one worker")
    if found["compression"] != "none":
        out.append(f"{found['compression']} compression {'pays' if found['compression_pays'] else 'does not pay'}")
    return "\n".join(out)


def _check(o: argparse.Namespace) -> None:
    from ..gluon.model_zoo.vision import MODELS
    from ..kvstore import is_distributed, known

    o.kv_store, o.net = known(o.kv_store), o.net.lower()
    if not is_distributed(o.kv_store) or o.kv_store == "dist_mixed":
        raise ArgumentError(f"--kv-store {o.kv_store!r}: expected one among processes, as dist_sync or collective")
    if o.net not in DIGITS and o.net not in MODELS:
        raise ArgumentError(f"--net {o.net!r}: {suggest(o.net, [*DIGITS, *MODELS])}")
    for name, low in (("num_servers", 0), ("rounds", 1), ("samples", 0), ("bytes", 0)):
        if getattr(o, name) < low:
            raise ArgumentError(f"--{name.replace('_', '-')} {getattr(o, name)}: expected {low} or more")
    if o.num_servers and o.kv_store in DIRECT:
        raise ArgumentError(f"--num-servers {o.num_servers}: expected no such option, as {o.kv_store!r} has none")
    if o.bandwidth is not None and not 0 < o.bandwidth < math.inf:
        raise ArgumentError(f"--bandwidth {o.bandwidth:g}: expected GB/s above 0")
    if o.latency is not None and (o.bandwidth is None or not 0 <= o.latency < math.inf):
        raise ArgumentError(f"--latency {o.latency:g}: expected seconds of 0 or more, beside --bandwidth")


def main(argv: Sequence[str]) -> int:
    """Run the command line; returns 2 if an option is wrong or something could not be measured."""
    o = parser().parse_args(argv)
    try:
        _check(o)
        found = predicted(o)
    except MXNetError as e:
        print(f"dualmx speedup: {e}", file=sys.stderr)
        return 2
    print(json.dumps(found) if o.json else page(found))
    return 0


__all__ = [
    "Network",
    "digits_network",
    "exchange_seconds",
    "main",
    "numbers",
    "page",
    "parser",
    "predicted",
    "shape_of",
]
