"""The checked-in stub files: fresh, complete, and understood by a type checker."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dualmx as mx
from dualmx.namespace.fluent import FLUENT
from dualmx.namespace.lazy_module import PREFIXES
from dualmx.namespace.stubs import FRONTS, PACKAGE, StubTarget, stubs
from dualmx.op.registry import OPS

SCRIPT = """\
import dualmx as mx
from dualmx import gluon, nd

x = mx.nd.random.uniform(shape=(2, 3))
y = nd.FullyConnected(x, nd.ones((4, 3)), no_bias=True, num_hidden=4)
z = (2 - y.relu() ** 2).sum(axis=1, keepdims=True)[0]
reveal_type(z)
x.attach_grad()
with mx.autograd.record():
    loss = nd.maximum(mx.nd.square(x), 0.5).mean()
loss.backward()
reveal_type(x.grad.asnumpy())
left, right = nd.split(x.transpose(), num_outputs=2, axis=1)
reveal_type(left)
reveal_type(nd.linalg.gemm2(x, x, transpose_b=True))
reveal_type(nd.contrib.arange_like(x))
out = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=10, name="fc").softmax(axis=-1)
reveal_type(out)
reveal_type(mx.sym.random.normal(0, 1, shape=(2,)))
net = gluon.nn.Dense(3)
net.initialize(mx.init.Xavier())
"""

WRONG = """\
import dualmx as mx

mx.nd.Convolutoin(mx.nd.ones((1, 1)))
mx.nd.softmax(mx.nd.ones((1, 1)), axes=1)
mx.nd.Activation(mx.nd.ones((1, 1)), act_type="rleu")
mx.nd.ones((1, 1)).summ()
mx.nd.ones((1, 1)) + "1"
mx.sym.relu(3)
mx.gloun
"""


@pytest.mark.parametrize("path", stubs(), ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_files_are_fresh(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == stubs()[path], "run `python -m dualmx.namespace.stubs`"


def declared(path: Path) -> set[str]:
    """Names that a stub declares or hands on, those of classes as `Class.name`."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            found |= {a.asname for a in node.names if a.asname}
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{n.name}" for n in node.body if isinstance(n, ast.FunctionDef)}
    return found


@pytest.mark.parametrize("front", FRONTS, ids=lambda f: f.shown)
def test_every_function_and_method_is_declared(front: StubTarget) -> None:
    folder = PACKAGE / front.folder
    top = declared(folder / "op.pyi")
    assert {n for n in OPS if not n.startswith("_")} <= top | set(vars(front.package))
    for prefix, room in PREFIXES.items():
        names = {n[len(prefix) :] for n in OPS if n.startswith(prefix)}
        assert {n for n in names if not n.startswith("_")} <= declared(folder / f"{room}.pyi"), room
    methods = declared(folder / "fluent.pyi")
    assert {f"Fluent.{n}" for n in FLUENT if n in OPS} <= methods
    assert all(hasattr(front.cls, m.partition(".")[2]) for m in methods)


def test_declared_parameters_are_accepted() -> None:
    x = mx.nd.ones((2, 3))
    assert mx.nd.sum(x, axis=1, keepdims=True, name="s").shape == (2, 1)
    assert mx.nd.one_hot(mx.nd.array([0, 1]), 3).shape == (2, 3)
    assert mx.nd.reshape(x, (3, 2)).shape == (3, 2)


def check(script: str, folder: Path) -> str:
    """Return what pyright says of a script that lies outside of the repository."""
    pytest.importorskip("pyright")
    path = folder / "script.py"
    path.write_text(script)
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(path)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
def test_user_script_is_typed(tmp_path: Path) -> None:
    lazy = [n for n, room in mx._LAZY.items() if (PACKAGE / room).is_dir() or (PACKAGE / f"{room}.py").exists()]
    said = check(SCRIPT + "".join(f"print(mx.{n})\n" for n in lazy), tmp_path)
    shown = [line.rpartition(" is ")[2] for line in said.splitlines() if "information: Type of" in line]
    assert "\n0 errors" in said, said
    assert [
        s.split("[")[0].strip('"') for s in shown
    ] == "NDArray ndarray NDArray NDArray NDArray Symbol Symbol".split()


@pytest.mark.slow
def test_mistakes_are_found(tmp_path: Path) -> None:
    said = check(WRONG, tmp_path)
    lines = {int(line.split(":")[1]) for line in said.splitlines() if " - error: " in line}
    assert lines == set(range(3, 10)), said
