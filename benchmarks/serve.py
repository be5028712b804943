"""One contestant in its own process: builds a loop, then runs chunks of it on request.

    python -m benchmarks.serve FRAMEWORK NETWORK BATCH MODE

Prints `READY {json}` after the first step, then answers `RUN seconds` with `TIMES [[ms, foreign load], ...]` and
anything else with `DONE {json}`. FRAMEWORK is jax, dualmx, mxnet or torch; MODE is plain or kernels (jax),
imperative, hybrid, drawn (hybrid with initial values of its own) or module (dualmx, mxnet), eager (all; NETWORK then
names the case). With `--steps N` it takes N steps, reads each loss as scripts do, prints `READY` with the time of the
whole process, and ends. "plain on 8" and "kernels on 8" (jax) and "on 8" (dualmx) cut each batch over eight devices.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from .machine import busy_seconds, peak_megabytes, process_age


def build(framework: str, network: str, size: int, mode: str) -> Any:
    """The loop object: `step()`, `sync()`, `loss()`."""
    if mode == "eager":
        from .loops import EagerChain

        return EagerChain(framework, network)
    from .workloads import WORKLOADS, WorkloadLoop

    if framework == "torch":
        from .peers import TorchWide

        return TorchWide()
    if network in WORKLOADS:
        return WorkloadLoop(__import__(framework), network, hybrid=mode == "hybrid")
    from .networks import batches

    data = batches(network, size)
    if framework == "jax":
        from .hand import Hand

        kind, _, devices = mode.partition(" on ")
        return Hand(network, data, kind == "kernels", int(devices or 1))
    mx = __import__(framework)
    from .loops import DevicesLoop, GluonLoop, ModuleLoop

    if mode.startswith("on "):
        return DevicesLoop(mx, network, data, int(mode.removeprefix("on ")))
    if mode == "module":
        return ModuleLoop(mx, network, data)
    return GluonLoop(mx, network, data, hybrid=mode in ("hybrid", "drawn"), given=mode != "drawn")


def chunk(loop: Any, steps: int) -> tuple[float, float]:
    """(ms per step, cores used by others meanwhile) of one chunk."""
    machine, own = busy_seconds()
    start = time.perf_counter()
    for _ in range(steps):
        loop.step()
    loop.sync()
    spent = time.perf_counter() - start
    machine_after, own_after = busy_seconds()
    foreign = max(0.0, machine_after - machine - (own_after - own)) / spent
    return spent / steps * 1e3, foreign


def main() -> None:
    """Serve until the input ends."""
    framework, network, size, mode = sys.argv[1:5]
    loop = build(framework, network, int(size), mode)
    if "--steps" in sys.argv:
        for _ in range(int(sys.argv[sys.argv.index("--steps") + 1])):
            loop.step()
            loss = loop.loss()
        print("READY " + json.dumps({"cpu": time.process_time(), "age": process_age(), "loss": loss}), flush=True)
        return
    built = time.perf_counter()
    loop.step()
    loop.sync()
    info = {"first_step": time.perf_counter() - built, "age": process_age(), "first_loss": loop.loss()}
    if "--once" in sys.argv:
        print("READY " + json.dumps(info), flush=True)
        return
    warm = time.perf_counter()
    done = 0
    while done < 5 or time.perf_counter() - warm < 0.5:
        loop.step()
        loop.sync()
        done += 1
    info["losses"] = done + 1
    start = time.perf_counter()
    for _ in range(2):
        loop.step()
    loop.sync()
    steps = max(1, int(0.2 / ((time.perf_counter() - start) / 2)))
    print("READY " + json.dumps(info), flush=True)
    for line in sys.stdin:
        if not line.startswith("RUN"):
            break
        loop.step()
        loop.sync()
        end = time.perf_counter() + float(line.split()[1])
        times = [chunk(loop, steps)]
        while time.perf_counter() < end:
            times.append(chunk(loop, steps))
        print("TIMES " + json.dumps(times), flush=True)
    print("DONE " + json.dumps({"loss": loop.loss(), "peak_mb": peak_megabytes()}), flush=True)


if __name__ == "__main__":
    main()
