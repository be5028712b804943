"""The measures of the performance table; each returns the rows it filled in."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .first_steps import FIRST_STEPS, has_hand_written
from .harness import ROOT, Contestant, Failed, Row, compete, environment, once
from .workloads import SIZES, WORKLOADS

LOOPS = ("imperative", "hybrid", "module")
NAMES = {"mlp": "MLP", "lenet": "LeNet", "resnet18": "ResNet-18"}
LOOP_BOUNDS = {  # network -> (gate, aim) of the plain loop, then of the hybridized and symbolic ones
    "mlp": ((0.80, 0.90), (0.85, 0.93)),
    "lenet": ((0.93, 0.98), (0.95, 0.99)),
    "resnet18": ((0.95, 0.99), (0.97, 1.0)),
}
WORKLOAD_BOUNDS = {"resnet50": (0.7, 1.0), "lstm": (0.9, 1.0), "transformer": (1.0, 1.0), "widedeep": (2.5, 2.5)}
PEER_BOUNDS = {"mlp": (128, 1.2, 1.5), "lenet": (64, 0.95, 1.3), "resnet18": (32, 0.85, 1.1)}


@dataclass
class Options:
    """Choices of the command line.

    Attributes:
        oracle, torch: interpreters with MXNet 1.9.1 and PyTorch, or empty.
        rounds, seconds: turns of each contestant and their length.
        networks: which networks to train.
        data: folder with MNIST's t10k files, or empty for the embedded digits.
    """

    oracle: str = ""
    torch: str = ""
    rounds: int = 8
    seconds: float = 1.5
    networks: tuple[str, ...] = ("mlp", "lenet", "resnet18")
    data: str = ""


def report(failures: list[str]) -> None:
    """Show why contestants are missing."""
    for text in failures:
        print("FAILED", text, file=sys.stderr, flush=True)


def script(*command: str, python: str = sys.executable, **extra: str) -> str:
    """Output of a Python process, of this interpreter by default."""
    done = subprocess.run([python, *command], capture_output=True, text=True, cwd=ROOT, env=environment(**extra))
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return done.stdout


def ratio(reference: Contestant, other: Contestant) -> float | None:
    """Speed of `other` relative to `reference`."""
    return reference.ms / other.ms if reference.chunks and other.chunks else None


def recording(_: Options) -> list[Row]:
    """Recording and flushing in one process, best of three processes."""
    runs = [json.loads(script("-m", "benchmarks.micro")) for _ in range(3)]
    best = {name: min(run[name] for run in runs) for name in runs[0]}

    def row(label: str, name: str, gate: float | None = None, aim: float | None = None) -> Row:
        return Row(label, best[name], gate, aim, "µs", at_least=False)

    return [
        row("record one op on a replayed trace, binary (`x + b`)", "record binary", 0.6, 0.3),
        row("record one op, n-ary (3 inputs)", "record n-ary", 1.0, 0.6),
        row("record one op, scalar (`x * 2.0`)", "record scalar"),
        row("record one op, in place (`x += b`)", "record in-place"),
        row("record one op by name with parameters (`nd.FullyConnected(...)`)", "record named"),
        row("flush on a hit, 50 nodes", "flush 50", 40, 20),
        row("flush on a hit, 500 nodes", "flush 500", 100, 60),
        row("flush on a hit, 3000 nodes", "flush 3000", 500, 300),
    ]


def training(options: Options) -> list[Row]:
    """Every loop against the hand-written steps and MXNet, and peak memory, by turns in one run."""
    rows: list[Row] = []
    for network in options.networks:
        sizes = {32} if network == "resnet18" else {64, PEER_BOUNDS[network][0]}
        for size in sorted(sizes):
            rows += _train(network, size, options)
    return rows


def _train(network: str, size: int, options: Options) -> list[Row]:
    label = f"{NAMES[network]} b{size}"
    hand = Contestant("hand, same kernels", "jax", network, size, "kernels")
    plain = Contestant("hand, plain JAX", "jax", network, size, "plain")
    ours = {mode: Contestant(mode, "dualmx", network, size, mode) for mode in LOOPS}
    peer_size, *peer_bounds = PEER_BOUNDS[network]
    # MXNet runs up to 1.6 times slower after weights were copied from NumPy: the faster of both counts.
    forms = (("MXNet hybridized", "hybrid"), ("MXNet hybridized, drawing its own weights", "drawn"))
    peers = [Contestant(name, "mxnet", network, size, mode, options.oracle) for name, mode in forms]
    if not options.oracle or size != peer_size:
        peers = []
    contestants = [hand, *ours.values(), plain, *peers]
    report(compete(contestants, options.rounds, options.seconds))
    done = [c for c in contestants if c.chunks]
    losses = ", ".join(f"{c.name} {c.info['first_loss']:.5f}" for c in done)
    print(f"{label}: first losses {losses}", file=sys.stderr)
    for c in done:
        print(f"{label} {c.name}: {c.ms:.3f} ms, quiet {c.quiet_share:.0%}, {c.info}", file=sys.stderr, flush=True)
    rows = []
    if size == (32 if network == "resnet18" else 64):
        best = min((c for c in (hand, plain) if c.chunks), key=lambda c: c.ms, default=hand)
        for mode, mine in ours.items():
            gate, aim = LOOP_BOUNDS[network][mode != "imperative"]
            note = _milliseconds(mine, hand, plain)
            rows.append(Row(f"{mode} loop / hand-written step, {label}", ratio(best, mine), gate, aim, note=note))
    if peers:
        peer = min((c for c in peers if c.chunks), key=lambda c: c.ms, default=peers[0])
        for mode, mine in ours.items():
            rows.append(
                Row(
                    f"{mode} loop / MXNet hybridized, {label}",
                    ratio(peer, mine),
                    *peer_bounds,
                    note=_milliseconds(mine, *peers),
                )
            )
    imperative = ours["imperative"]
    if network == "resnet18" and hand.chunks and imperative.chunks:
        mine, theirs = imperative.info["peak_mb"], hand.info["peak_mb"]
        note = f"{mine:.0f} MB against {theirs:.0f} MB of resident memory"
        rows.append(
            Row(f"peak memory / hand-written step, {label}", mine / theirs, 1.15, 1.0, at_least=False, note=note)
        )
    return rows


def _milliseconds(*contestants: Contestant) -> str:
    return ", ".join(f"{c.name} {c.ms:.3g} ms" for c in contestants if c.chunks)


def workloads(options: Options) -> list[Row]:
    """Larger networks against MXNet, by turns in one run."""
    rows: list[Row] = []
    for network in WORKLOADS if options.oracle else ():
        size = SIZES[network]
        ours = [Contestant(mode, "dualmx", network, size, mode) for mode in ("imperative", "hybrid")]
        peers = [
            Contestant(f"MXNet {mode}", "mxnet", network, size, mode, options.oracle)
            for mode in ("imperative", "hybrid")
        ]
        third = [Contestant("torch", "torch", network, size, "sparse", options.torch)]
        third = third if network == "widedeep" and options.torch else []
        report(compete([*ours, *peers, *third], options.rounds, options.seconds))
        peer = min((c for c in peers if c.chunks), key=lambda c: c.ms, default=peers[0])
        for mine in ours:
            label = f"{mine.name} loop / MXNet's faster one, {network} b{size}"
            note = _milliseconds(mine, *peers)
            rows.append(Row(label, ratio(peer, mine), *WORKLOAD_BOUNDS[network], note=note))
            for other in third:
                label = f"{mine.name} loop / torch's sparse step, {network} b{size}"
                rows.append(Row(label, ratio(other, mine), 1 / 1.1, 1.0, note=_milliseconds(mine, other)))
    return rows


def devices(options: Options) -> list[Row]:
    """LeNet on eight virtual devices of this process against hand-written `shard_map` steps."""
    mine = Contestant("kvstore='device'", "dualmx", "lenet", 512, "on 8")
    hands = [Contestant(f"shard_map, {kind}", "jax", "lenet", 512, f"{kind} on 8") for kind in ("kernels", "plain")]
    several = "--xla_force_host_platform_device_count=8"
    report(compete([mine, *hands], options.rounds, options.seconds, XLA_FLAGS=several))
    best = min((c for c in hands if c.chunks), key=lambda c: c.ms, default=hands[0])
    note = _milliseconds(mine, *hands)
    return [Row("LeNet b512 on 8 virtual devices / `shard_map` step", ratio(best, mine), 0.93, 0.98, note=note)]


def first_step(options: Options) -> list[Row]:
    """Trace and compile, fresh processes, empty caches, by turns."""
    rows = []
    for network in options.networks:
        size = 32 if network == "resnet18" else 64
        mine = Contestant("imperative", "dualmx", network, size, "imperative")
        hands = [Contestant(f"hand, {mode}", "jax", network, size, mode) for mode in ("kernels", "plain")]
        times: dict[str, list[float]] = {c.name: [] for c in (mine, *hands)}
        for _ in range(2 if network == "resnet18" else 4):
            for contestant in (mine, *hands):
                with tempfile.TemporaryDirectory() as folder:
                    times[contestant.name].append(once(contestant, DUALMX_CACHE_DIR=folder)["first_step"])
        ours, theirs = min(times[mine.name]), min(min(times[c.name]) for c in hands)
        note = ", ".join(f"{name} {min(found):.2f} s" for name, found in times.items())
        label = f"first step / hand-written one, {NAMES[network]} b{size}"
        rows.append(Row(label, ours / theirs, 1.25, 1.1, at_least=False, note=note))
    return rows


def first_steps(options: Options) -> list[Row]:
    """First steps of networks in fresh processes, with the kernels of the package and empty caches, by turns."""
    rows = []
    for network, (name, gate) in FIRST_STEPS.items():
        contestants = {"dualmx": sys.executable}
        if options.oracle:
            contestants["mxnet"] = options.oracle
        if has_hand_written(network):
            contestants["jax"] = sys.executable
        times: dict[str, list[dict[str, float]]] = {library: [] for library in contestants}
        for _ in range(3):
            for library, python in contestants.items():
                with tempfile.TemporaryDirectory() as folder:
                    command = ("-m", "benchmarks.first_steps", library, network)
                    times[library].append(json.loads(script(*command, python=python, DUALMX_CACHE_DIR=folder)))
        cpu, wall = (
            {library: statistics.median(run[kind] for run in runs) for library, runs in times.items()}
            for kind in ("cpu", "wall")
        )
        note = ", ".join(f"{library} {cpu[library]:.3g} s, wall time {wall[library]:.3g} s" for library in times)
        rows.append(Row(f"first step, {name}", cpu["dualmx"], gate, None, "s", at_least=False, note=note))
    return rows


def bucketing(options: Options) -> list[Row]:
    """A script with sentences of many lengths as a whole, with an empty cache and once more with that; CPU time."""
    found: dict[str, list[dict[str, float]]] = {"first": [], "second": [], "MXNet": []}
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            for start in ("first", "second"):
                found[start].append(json.loads(script("-m", "benchmarks.bucketing", "dualmx", DUALMX_CACHE_DIR=folder)))
        if options.oracle:
            printed = script("-m", "benchmarks.bucketing", "mxnet", python=options.oracle)
            found["MXNet"].append(json.loads(printed.splitlines()[-1]))  # it warns before
    times = {name: statistics.median(run["cpu"] for run in runs) for name, runs in found.items() if runs}
    note = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in times.items())
    peer = times.get("MXNet")
    return [
        Row(
            f"bucketing script, {start} start / MXNet's", peer and times[start] / peer, gate, None, at_least=False,
            note=note,
        )
        for start, gate in (("first", 1.0), ("second", 0.8))
    ]  # fmt: skip


def sixty_steps(options: Options) -> list[Row]:
    """Whole processes that take sixty steps, import included; fresh ones with empty caches, CPU time.

    `--networks` may name those of `workloads` as well.
    """
    rows = []
    for network in options.networks:
        size = SIZES.get(network) or PEER_BOUNDS[network][0]
        ours = [Contestant(mode, "dualmx", network, size, mode) for mode in ("imperative", "hybrid")]
        peers = [
            Contestant(f"MXNet {mode}", "mxnet", network, size, mode, options.oracle)
            for mode in ("imperative", "hybrid")
            if options.oracle
        ]
        if network not in WORKLOADS:
            peers += [Contestant(f"JAX by hand, {mode}", "jax", network, size, mode) for mode in ("kernels", "plain")]
        if network == "widedeep" and options.torch:
            peers.append(Contestant("torch", "torch", network, size, "sparse", options.torch))
        spent: dict[str, list[dict[str, float]]] = {c.name: [] for c in (*ours, *peers)}
        for _ in range(min(options.rounds, 2)):
            for contestant in (*ours, *peers):
                with tempfile.TemporaryDirectory() as folder:
                    try:
                        spent[contestant.name].append(once(contestant, "--steps", "60", DUALMX_CACHE_DIR=folder))
                    except Failed as e:
                        report([str(e)])
        least = {name: min(run["cpu"] for run in runs) for name, runs in spent.items() if runs}
        peer = min((least[c.name] for c in peers if c.name in least), default=None)
        ages = {name: min(run["age"] for run in runs) for name, runs in spent.items() if runs}
        note = ", ".join(f"{name} {cpu:.2f} s (wall {ages[name]:.2f})" for name, cpu in least.items())
        for mine in ours:
            value = least[mine.name] / peer if peer and mine.name in least else None
            label = f"60 steps and import, {mine.name} / the best peer's, {network} b{size}"
            rows.append(Row(label, value, 1.0, None, at_least=False, note=note))
    return rows


def importing(_: Options) -> list[Row]:
    """`import dualmx` after `import jax`."""
    code = "import time, jax; t = time.perf_counter(); import dualmx; print(time.perf_counter() - t)"
    times = [float(script("-c", code)) for _ in range(7)]
    return [Row("`import dualmx` beyond `import jax`", min(times), 0.25, 0.1, "s", at_least=False)]


def cold(options: Options) -> list[Row]:
    """Process start to the end of the first LeNet step, with a warm persistent cache, against MXNet."""
    if not options.oracle:
        return []
    mine = Contestant("dualmx", "dualmx", "lenet", 64, "imperative")
    peer = Contestant("MXNet", "mxnet", "lenet", 64, "hybrid", options.oracle)
    ages: dict[str, list[float]] = {"dualmx": [], "MXNet": []}
    with tempfile.TemporaryDirectory() as folder:
        once(mine, DUALMX_CACHE_DIR=folder)
        once(peer)
        for _ in range(6):
            for contestant in (mine, peer):
                ages[contestant.name].append(once(contestant, DUALMX_CACHE_DIR=folder)["age"])
    ours, theirs = (statistics.median(ages[name]) for name in ("dualmx", "MXNet"))
    note = f"{ours:.2f} s against {theirs:.2f} s"
    label = "process start to first LeNet step, second run / MXNet's"
    return [Row(label, ours / theirs, 1.0, 0.7, at_least=False, note=note)]


def shapes(options: Options) -> list[Row]:
    """A size never met before, by turns and without caches; CPU time."""
    path = str(ROOT / "benchmarks" / "shapes.py")
    contestants = {
        "compiled": (sys.executable, "dualmx", {"DUALMX_TIER": "xla", "DUALMX_CACHE_DIR": ""}),
        "not compiled": (sys.executable, "dualmx", {"DUALMX_TIER": "numpy", "DUALMX_CACHE_DIR": ""}),
        "jax.jit": (sys.executable, "jax", {}),
    }
    if options.oracle:
        contestants["MXNet"] = (options.oracle, "mxnet", {})
    found: dict[str, list[dict[str, float]]] = {name: [] for name in contestants}
    for _ in range(3):
        for name, (python, library, extra) in contestants.items():
            command = [python, path, library]
            done = subprocess.run(command, capture_output=True, text=True, env=environment(**extra), check=True)
            found[name].append(json.loads(done.stdout))
    rows = []
    for label, gate in (("forward", 0.5), ("gradient", 1.0)):
        times = {name: statistics.median(run[label] for run in runs) for name, runs in found.items()}
        note = ", ".join(f"{name} {ms:.2f} ms" for name, ms in times.items())
        for name, bound in (("compiled", None), ("not compiled", gate)):
            row = Row(f"a new size, {label}, {name}", times[name], bound, None, "ms", at_least=False, note=note)
            rows.append(row)
    return rows


def large_arrays(options: Options) -> list[Row]:
    """Large arrays drawn, a table initialized, a loop over cells, against MXNet: CPU time, without caches."""
    path = str(ROOT / "benchmarks" / "large_arrays.py")
    contestants = {"dualmx": sys.executable, **({"MXNet": options.oracle} if options.oracle else {})}
    found: dict[str, list[dict[str, list[float]]]] = {name: [] for name in contestants}
    for _ in range(3):
        for name, python in contestants.items():
            command, variables = [python, path, name.lower()], environment(DUALMX_CACHE_DIR="")
            done = subprocess.run(command, capture_output=True, text=True, env=variables, check=True)
            found[name].append(json.loads(done.stdout))
    rows = []
    for case in found["dualmx"][0]:
        medians = {
            name: [statistics.median(run[case][i] for run in runs) for i in (0, 1)] for name, runs in found.items()
        }
        note = ", ".join(f"{name} {s:.2f} s, {memory:.1f} x the array" for name, (s, memory) in medians.items())
        ratio = medians["dualmx"][0] / medians["MXNet"][0] if "MXNet" in medians else None
        rows.append(Row(f"large arrays, {case} / MXNet's", ratio, None, None, at_least=False, note=note))
    return rows


def parameters(_: Options) -> list[Row]:
    """Nets of many small layers against a jitted step; CPU time, without caches."""
    path = str(ROOT / "benchmarks" / "parameters.py")
    rows = []
    for layers in (10, 100, 500):
        # A process of its own for what only a fresh one shows.
        alone = {
            kind: json.loads(script(path, str(layers), kind, DUALMX_CACHE_DIR=""))[kind] for kind in ("hybrid", "jax")
        }
        steps = json.loads(script(path, str(layers), "all", DUALMX_CACHE_DIR=""))
        for kind, gate in (("hybrid", 1.5), ("imperative", 3.0)):
            (ours, wall), (theirs, their_wall) = ((steps[k]["step_cpu"], steps[k]["step"]) for k in (kind, "jax"))
            note = f"{ours:.3g} against {theirs:.3g} ms; wall time {wall:.3g}, {their_wall:.3g}"
            label = f"step of Dense x{layers}, {kind} / jitted"
            rows.append(Row(label, ours / theirs, gate, None, at_least=False, note=note))
        for what, name, unit in (("first step", "first_step_cpu", "s"), ("memory", "memory", "MB")):
            ours, theirs = (alone[k][name] for k in ("hybrid", "jax"))
            label = f"{what} of Dense x{layers}, hybrid / jitted"
            note = f"{ours:.3g} against {theirs:.3g} {unit}"
            rows.append(Row(label, ours / theirs, 1.5, None, at_least=False, note=note))
    return rows


def unrolled(options: Options) -> list[Row]:
    """An LSTM of 10 and of 30 time steps, unrolled by Python; CPU time, without caches."""
    path = str(ROOT / "benchmarks" / "unrolled.py")
    compiled = {"DUALMX_TIER": "xla", "DUALMX_CACHE_DIR": ""}

    def times(python: str, *arguments: object) -> Any:
        command = [python, path, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(**compiled), check=True)
        return json.loads(done.stdout)

    contestants = {"dualmx": sys.executable, "jax": sys.executable, "scan": sys.executable}
    if options.oracle:
        contestants["mxnet"] = options.oracle
    rows = []
    for n_steps in (10, 30):
        found = {name: times(python, name, n_steps) for name, python in contestants.items()}
        note = ", ".join(f"{name} {t['first']:.2f} s, {t['later'] * 1e3:.1f} ms" for name, t in found.items())
        for which in ("first", "later"):
            label = f"LSTM of {n_steps} steps, compiled, {which} step / jitted by hand"
            value = found["dualmx"][which] / found["jax"][which]
            rows.append(Row(label, value, 1.0, None, at_least=False, note=note))
    layers = times(sys.executable, "layers", 100)
    note = ", ".join(f"{name} {t['first']:.2f} s, {t['later'] * 1e3:.1f} ms" for name, t in layers.items())
    value = layers["scan"]["first"] / layers["as they are"]["first"]
    return [*rows, Row("100 dense layers in JAX, first step, scan / as they are", value, None, None, note=note)]


def eager(options: Options) -> list[Row]:
    """A chain of 100 operators, read at the end."""
    rows = []
    for case, text in (("small", "10 elements"), ("large", "1000x1000"), ("matmul", "64x64 products")):
        mine = Contestant("dualmx", "dualmx", case, 0, "eager")
        peers = []
        if options.oracle:
            peers.append(Contestant("MXNet", "mxnet", case, 0, "eager", options.oracle))
        if options.torch:
            peers.append(Contestant("torch", "torch", case, 0, "eager", options.torch))
        report(compete([mine, *peers], 4, 0.5))
        for peer in peers:
            if not (peer.chunks and mine.chunks):
                continue
            note = f"{mine.ms * 10:.2f} against {peer.ms * 10:.2f} µs an op"
            bounds = (1.0, 1.0) if peer.name == "MXNet" else (None, 1.0)
            rows.append(Row(f"eager chain of 100, {text} / {peer.name}", ratio(peer, mine), *bounds, note=note))
    return rows


def accuracy(options: Options) -> list[Row]:
    """Test accuracy of `examples/train_mnist.py` in each mode."""
    rows = []
    data = ["--data", options.data] if options.data else []
    which = "9,000 train / 1,000 test images" if options.data else "embedded digits, 4,000 / 1,000"
    for mode in LOOPS:
        name = "symbolic" if mode == "module" else mode
        command = [sys.executable, str(Path("examples") / "train_mnist.py"), "--mode", name, *data]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment())
        final = re.search(r"Final accuracy: ([\d.]+) .*?([\d.]+) s in all", done.stderr)
        curve = re.findall(r"Validation-accuracy=([\d.]+)", done.stderr)
        if not final:
            report([f"{name}: {done.stderr[-1500:]}"])
            continue
        note = f"{' '.join(f'{float(c):.1%}' for c in curve)}; {final.group(2)} s"
        bounds = (97.5, 98.3) if options.data else (None, None)
        rows.append(
            Row(f"accuracy, LeNet, 6 epochs, {name} ({which})", 100 * float(final.group(1)), *bounds, "%", note=note)
        )
    return rows


MEASURES: dict[str, Callable[[Options], list[Row]]] = {
    "recording": recording,
    "training": training,
    "workloads": workloads,
    "devices": devices,
    "first_step": first_step,
    "first_steps": first_steps,
    "bucketing": bucketing,
    "sixty_steps": sixty_steps,
    "importing": importing,
    "cold": cold,
    "shapes": shapes,
    "large_arrays": large_arrays,
    "parameters": parameters,
    "unrolled": unrolled,
    "eager": eager,
    "accuracy": accuracy,
}
