"""How many files a call passes through: the walks of docs/design.md, counted.

python docs/walks.py           # the files of each walk, in the order in which they are entered
python docs/walks.py push      # one of them: eager, warm, symbol, step, push
"""

from __future__ import annotations

import atexit
import mmap
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGE = str(Path(__file__).resolve().parents[1] / "dualmx") + os.sep
#: Where "before the engine" ends: at the first call of this function.
ENGINE = ("ndarray/handle.py", "invoke")
#: Rooms that the front ends stand on: their files are not counted where a walk ends before the engine.
BELOW = ("core/", "op/", "ndarray/", "sparse/")
#: Entered by every import of the process, of whatever module.
IMPORTING = ("core/module_alias.py",)
#: Pushes that are counted.
ROUNDS = 3
#: The most files that each walk may pass through.
LIMITS = {"eager": 28, "warm": 10, "symbol": 10, "step": 30, "push": 14}


class Walk:
    """The files of the package that are entered in rounds, in order, of every thread started from now on.

    `round_of` tells the number of the present round, 0 between them; `files` has the rounds that entered a file.

    `before_engine` are those entered before the first call of the engine.
    """

    def __init__(self, round_of: Callable[[], int]):
        self.files: dict[str, set[int]] = {}
        self.before_engine: list[str] | None = None
        self.round_of = round_of

    def __enter__(self) -> Walk:
        threading.setprofile(self._on_event)
        sys.setprofile(self._on_event)
        return self

    def __exit__(self, *exc_info: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _on_event(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE) and (number := self.round_of()):
            file = frame.f_code.co_filename[len(PACKAGE) :].replace(os.sep, "/")
            if file in IMPORTING:
                return
            if self.before_engine is None and (file, frame.f_code.co_name) == ENGINE:
                self.before_engine = list(self.files)
            self.files.setdefault(file, set()).add(number)


def walked(function: Callable[[], Any]) -> Walk:
    """The walk of a call."""
    with Walk(lambda: 1) as walk:
        function()
    return walk


def eager() -> tuple[list[str], list[str]]:
    """Files of a `FullyConnected` with its `asnumpy`: the first call of the process, and the second."""
    import dualmx as mx
    from dualmx.op import trace_store

    trace_store.SHIPPED = trace_store.SHIPPED.with_name("none")
    x, w, b = mx.nd.ones((2, 3)), mx.nd.ones((4, 3)), mx.nd.ones((4,))
    mx.nd.waitall()

    def call() -> None:
        mx.nd.FullyConnected(x, w, b, num_hidden=4).asnumpy()

    return list(walked(call).files), list(walked(call).files)


def step() -> list[str]:
    """Files of a warm training step: record, forward, `backward`, `Trainer.step`, and the loss read."""
    import dualmx as mx

    net = mx.gluon.nn.Dense(4, in_units=3)
    net.initialize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore=None)
    x = mx.nd.ones((2, 3))

    def call() -> None:
        with mx.autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(2)
        loss.asnumpy()

    call()
    call()
    return list(walked(call).files)


def symbol() -> list[str]:
    """Files of the front end that `sym.FullyConnected`, `bind` and `forward` pass through before the engine."""
    import dualmx as mx

    data = mx.sym.Variable("data")
    arrays = {"data": mx.nd.ones((2, 3)), "fc_weight": mx.nd.ones((4, 3)), "fc_bias": mx.nd.ones((4,))}
    mx.nd.waitall()

    def call() -> None:
        net = mx.sym.FullyConnected(data, num_hidden=4, name="fc")
        net.bind(mx.cpu(), arrays).forward(is_train=False)

    return [f for f in walked(call).before_engine or [] if not f.startswith(BELOW)]


def push() -> list[str]:
    """Files of a push with its pull: the worker's, then those that only the parameter server enters."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "window").write_bytes(b"\0")
        env = os.environ | {
            "DMLC_PS_ROOT_URI": "127.0.0.1",
            "DMLC_PS_ROOT_PORT": str(port),
            "DMLC_NUM_WORKER": "1",
            "DMLC_NUM_SERVER": "1",
            "JAX_PLATFORMS": "cpu",
        }
        command = [sys.executable, __file__, "--member", folder]
        members = [subprocess.Popen(command, env=env | {"DMLC_ROLE": r}) for r in ("scheduler", "server", "worker")]
        try:
            codes = [member.wait(120) for member in members]
        finally:
            for member in members:
                member.kill()
        if any(codes):
            raise RuntimeError(f"a process of the job failed: exit statuses {codes}")
        lists = [Path(folder, role).read_text().splitlines() for role in ("worker", "server")]
        return list(dict.fromkeys(lists[0] + lists[1]))


def _be_member(folder: str) -> None:
    """Take part in the job of `push`, and write down the files entered while its window is open."""
    role = os.environ["DMLC_ROLE"]
    with open(Path(folder, "window"), "r+b") as file:
        window = mmap.mmap(file.fileno(), 1)
    walk = Walk(lambda: window[0])
    # What a timer does in one round by chance is no part of the walk.
    atexit.register(
        lambda: Path(folder, role).write_text("\n".join(f for f, n in walk.files.items() if len(n) == ROUNDS))
    )
    with walk:
        import dualmx as mx  # a server or scheduler stays in here until the job ends

        kv = mx.kv.create("dist_sync")
        value, out = mx.nd.ones((8,)), mx.nd.zeros((8,))
        kv.init("w", value)
        kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.1))
        for number in (0, 0, *range(1, ROUNDS + 1)):
            window[0] = number
            kv.push("w", value)
            kv.pull("w", out=out)
            out.asnumpy()
        window[0] = 0


def main(argv: list[str]) -> None:
    os.environ["DUALMX_TIER"] = "xla"  # the whole way
    # What earlier processes kept, and what came with the package, would shorten a cold walk.
    os.environ["DUALMX_CACHE_DIR"] = ""
    if argv[:1] == ["--member"]:
        _be_member(argv[1])
        return
    wanted = argv or list(LIMITS)
    for name in wanted:
        files = {"eager": lambda: eager()[0], "warm": lambda: eager()[1], "symbol": symbol, "step": step, "push": push}[
            name
        ]()
        print(f"{name}: {len(files)} files, at most {LIMITS[name]}")
        print("".join(f"    {f}\n" for f in files))


if __name__ == "__main__":
    main(sys.argv[1:])
