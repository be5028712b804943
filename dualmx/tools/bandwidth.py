"""`dualmx bandwidth`: measure the throughput of a key-value store, and check its sums."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, MXNetError
from ..ps.codecs import CODECS


def resnet50() -> list[int]:
    """Return the elements of each of ResNet-50's 161 parameters."""
    sizes, channels = [9408, 64, 64], 64
    for middle, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        wide = 4 * middle
        for block in range(blocks):
            sizes += [channels * middle, middle, middle, 9 * middle * middle, middle, middle, middle * wide, wide, wide]
            sizes += [channels * wide, wide, wide] if block == 0 else []
            channels = wide
    return [*sizes, 2048 * 1000, 1000]


def sizes_of(text: str) -> list[tuple[str, list[int]]]:
    """Return (name, bytes of the arrays) of a list like `4KB,1MB,4KB+1MB,resnet50`; those with a plus move together.

    Raises:
        ArgumentError: a size that is none.
    """
    units = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
    out: list[tuple[str, list[int]]] = []
    for one in text.split(","):
        parts = [re.fullmatch(r"(\d+)([kmg]?)b?", part.strip().lower()) for part in one.split("+")]
        found = [max(4, int(part[1]) * units[part[2]] // 4 * 4) for part in parts if part and int(part[1]) > 0]
        if one.strip().lower() == "resnet50":
            out.append(("resnet50", [4 * size for size in resnet50()]))
        elif len(found) == len(parts):
            out.append((one.strip() if len(found) == 1 else f"{len(found)} arrays", found))
        else:
            raise ArgumentError(f"--sizes: {one!r}: expected sizes such as 4KB, 1MB, 4KB+1MB, or resnet50")
    return out


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(
        prog="dualmx bandwidth",
        description="Push and pull arrays through a key-value store: GB/s, rounds/s, and whether the sums are right.",
        epilog="A dist store is measured inside a job (dualmx-launch … dualmx bandwidth), or in one that -n starts.",
    )
    p.add_argument("--kv-store", default="device", help="local, device, dist_sync, dist_async, …")
    p.add_argument("--sizes", default="4KB,1MB,16MB,resnet50", help="bytes of arrays; 4KB+1MB: two at once; resnet50")
    p.add_argument("--rounds", type=int, default=10, help="measured rounds of each size")
    p.add_argument("--devices", type=int, default=1, help="values pushed by each worker, as from that many devices")
    p.add_argument("--optimizer", default="", help="update by it where the store does, such as sgd; no check of sums")
    p.add_argument("--gc-type", default="none", choices=["none", *CODECS], help="compression of gradients")
    p.add_argument("--json", action="store_true", help="one line of JSON for each size")
    p.add_argument("-n", "--num-workers", type=int, default=0, help="start a job of that many workers on this host")
    p.add_argument("-s", "--num-servers", type=int, help="and that many servers")
    return p


def measure(kv: Any, name: str, sizes: Sequence[int], o: argparse.Namespace, first_key: int) -> dict[str, Any]:
    """Measure rounds of pushing and pulling arrays of `sizes` bytes; returns the figures of this worker.

    GB/s counts what a worker sends and receives: 2 × bytes / time. The error is the greatest relative one of a sum.
    """
    from ..kvstore.horovod import AllReduceStore
    from ..namespace import nd
    from ..ndarray import full, waitall

    keeps = not isinstance(kv, AllReduceStore)
    keys = list(range(first_key, first_key + len(sizes)))
    shapes = [(size // 4,) for size in sizes]
    if keeps:
        kv.init(keys, [full(s, 0.0) for s in shapes])
    workers, ranks = kv.num_workers, np.arange(1, kv.num_workers + 1)
    outs = [full(s, 0.0) for s in shapes]
    grads = [[full(s, float(kv.rank + 1)) for _ in range(o.devices)] for s in shapes]
    expected = float(ranks.sum() * o.devices)
    times = []
    for turn in range(o.rounds + 2):  # the first two rounds compile and connect
        waitall()
        start = time.perf_counter()
        if keeps:
            kv.push(keys, grads)
            kv.pull(keys, outs)
        else:
            for key, grad, out in zip(keys, grads, outs, strict=True):
                kv.pushpull(key, grad, out)
        for out in outs:
            out.wait_to_read()
        if turn > 1:
            times.append(time.perf_counter() - start)
    error = 0.0
    if not o.optimizer and o.gc_type == "none" and "async" not in kv.type:
        error = max(float((nd.abs(out - expected).max() / expected).asscalar()) for out in outs)
    second = float(np.median(times))
    total = sum(sizes)
    return {
        "size": name, "bytes": total, "arrays": len(sizes), "store": kv.type, "rank": kv.rank, "workers": workers,
        "ms": second * 1e3, "rounds_per_s": 1 / second, "gb_per_s": 2 * total / second / 1e9, "error": error,
    }  # fmt: skip


def run(o: argparse.Namespace) -> int:
    """Measure in this process; returns 1 if a sum was wrong."""
    from .. import kvstore, optimizer

    kv: Any = kvstore.create(o.kv_store)
    if (o.optimizer or o.gc_type != "none") and not kv.is_capable("optimizer"):
        raise ArgumentError(f"--kv-store {o.kv_store}: it only sums; expected no --optimizer and no --gc-type")
    if o.gc_type != "none":
        kv.set_gradient_compression({"type": o.gc_type, "threshold": 0.5})
    if o.optimizer or "async" in kv.type:
        kv.set_optimizer(optimizer.create(o.optimizer or "sgd", learning_rate=1e-3))
    wrong, key = False, 0
    if kv.rank == 0 and not o.json:
        print(f"{kv.type}: {kv.num_workers} worker(s), {o.devices} value(s) each, median of {o.rounds} rounds")
        print(f"{'size':>10} {'arrays':>6} {'ms':>10} {'rounds/s':>10} {'GB/s':>8} {'error':>9}")
    for name, sizes in sizes_of(o.sizes):
        found = measure(kv, name, sizes, o, key)
        key += len(sizes)
        wrong |= found["error"] > 1e-5
        if kv.rank == 0 and o.json:
            print(json.dumps(found))
        elif kv.rank == 0:
            figures = (
                f"{found['ms']:10.3f} {found['rounds_per_s']:10.1f} {found['gb_per_s']:8.3f} {found['error']:9.1e}"
            )
            print(f"{name:>10} {len(sizes):6d} {figures}")
        sys.stdout.flush()
    if wrong:
        print(f"worker {kv.rank}: sums are wrong", file=sys.stderr)
    return int(wrong)


def main(argv: Sequence[str]) -> int:
    """Run the command line."""
    p = parser()
    o = p.parse_args(argv)
    if o.rounds < 1 or o.devices < 1:
        p.error("--rounds and --devices: expected 1 or more")
    try:
        sizes_of(o.sizes)
        if o.num_workers and not os.environ.get("DMLC_ROLE"):
            from ..launch import main as launch

            servers = o.num_workers if o.num_servers is None else o.num_servers
            return launch(
                ["-n", str(o.num_workers), "-s", str(servers), sys.executable, "-m", "dualmx.cli", "bandwidth", *argv]
            )
        return run(o)
    except MXNetError as e:
        print(f"dualmx bandwidth: {e}", file=sys.stderr)
        return 2
