"""The stub files: complete, made without JAX as well, and understood by a type checker."""

from __future__ import annotations

import ast
import functools
import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dualmx as mx
from dualmx.namespace.fluent import FLUENT
from dualmx.namespace.lazy_module import PREFIXES
from dualmx.op.registry import OPS
from dualmx.tools.stub_files import FRONTS, PACKAGE, StubTarget, np_function, stubs

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
a = mx.np.add(mx.np.arange(3), 1.5)
reveal_type(a)
reveal_type((2 * mx.np.sqrt(a) - a).relu().sum())
reveal_type(mx.np.random.uniform(size=(2,)))
net = gluon.nn.Dense(3)
net.initialize(mx.init.Xavier())
"""
TYPES = "NDArray ndarray NDArray NDArray NDArray Symbol Symbol ndarray ndarray ndarray".split()

WRONG = """\
import dualmx as mx

mx.nd.Convolutoin(mx.nd.ones((1, 1)))
mx.nd.softmax(mx.nd.ones((1, 1)), axes=1)
mx.nd.Activation(mx.nd.ones((1, 1)), act_type="rleu")
mx.nd.ones((1, 1)).summ()
mx.nd.ones((1, 1)) + "1"
mx.sym.relu(3)
mx.gloun
mx.np.zeroes((1,))
mx.np.sqrt("1")
mx.np.ones((1,)).summ()
"""


stub_files = functools.cache(stubs)


def parsed(path: Path) -> ast.Module:
    return ast.parse(stub_files()[path])


def test_files_parse_and_declare_a_name_once() -> None:
    for path in stub_files():
        names = [
            n.name
            for n in parsed(path).body
            if isinstance(n, ast.FunctionDef) and "overload" not in {getattr(d, "id", "") for d in n.decorator_list}
        ]
        assert len(names) == len(set(names)), path


def declared(path: Path) -> set[str]:
    """Names that a stub declares or hands on, those of classes as `Class.name`."""
    found = set()
    for node in parsed(path).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.ImportFrom):
            found |= {a.asname for a in node.names if a.asname}
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{n.name}" for n in node.body if isinstance(n, ast.FunctionDef)}
    return found


@pytest.mark.parametrize("front", FRONTS, ids=lambda f: f.shown)
def test_every_function_and_method_is_declared(front: StubTarget) -> None:
    folder = PACKAGE / front.folder
    top = declared(folder / "fluent.pyi")
    assert {n for n in OPS if not n.startswith("_")} <= top | set(vars(front.package))
    for prefix, room in PREFIXES.items():
        names = {n[len(prefix) :] for n in OPS if n.startswith(prefix)}
        assert {n for n in names if not n.startswith("_")} <= declared(folder / f"{room}.pyi"), room
    methods = {n for n in top if n.startswith("Fluent.")}
    assert {f"Fluent.{n}" for n in FLUENT if n in OPS} <= methods
    assert all(hasattr(front.cls, m.partition(".")[2]) for m in methods)


def test_every_public_name_of_np_is_declared() -> None:
    found = declared(PACKAGE / "numpy" / "__init__.pyi")
    public = {n for n in dir(mx.np) if n[0] != "_" and hasattr(mx.np, n)}
    assert public - found == {"Any", "FUNCTIONS", "annotations", "builtins", "onp", "second_handle", "sys"}
    assert all(hasattr(mx.np, n) for n in found if n[0] != "_")


def test_every_method_of_np_arrays_is_declared() -> None:
    cls = mx.np.ndarray
    own = {n.name for n in ast.walk(ast.parse(inspect.getsource(cls))) if isinstance(n, ast.FunctionDef)}
    methods = {m.partition(".")[2] for m in declared(PACKAGE / "numpy" / "fluent.pyi") if m.startswith("Fluent.")}
    public = {n for n in vars(cls) if n[0] != "_"} | {f"__{n}__" for n in ("add", "rsub", "imul", "lt", "matmul")}
    assert public - own - {"T", "to_device"} <= methods
    assert all(hasattr(cls, m) for m in methods)


def test_signatures_of_np_functions_agree() -> None:
    text = np_function("hypot", mx.np.hypot)
    declared = [a.arg for a in ast.parse(text).body[-1].args.args]  # type: ignore[attr-defined]
    assert declared == [p for p in inspect.signature(mx.np.hypot).parameters if p != "kwargs"]


def test_declared_parameters_are_accepted() -> None:
    x = mx.nd.ones((2, 3))
    assert mx.nd.sum(x, axis=1, keepdims=True, name="s").shape == (2, 1)
    assert mx.nd.one_hot(mx.nd.array([0, 1]), 3).shape == (2, 3)
    assert mx.nd.reshape(x, (3, 2)).shape == (3, 2)


WITHOUT_JAX = """\
import importlib.util, pathlib, sys

spec = importlib.util.spec_from_file_location("tool", sys.argv[1])
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)
sys.path.insert(0, str(tool.ROOT))
sys.meta_path.insert(0, tool.PlaceholderFinder())
from dualmx.tools.stub_files import write

write(pathlib.Path(sys.argv[2]))
assert "jax" in sys.modules and not hasattr(sys.modules["jax"], "__version__")
"""


def test_the_same_is_written_without_jax(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_JAX, str(PACKAGE / "tools" / "stubs.py"), str(tmp_path)], check=True)
    for path, text in stub_files().items():
        assert (tmp_path / path.relative_to(PACKAGE.parent)).read_text(encoding="utf-8") == text, path


def check(script: str, folder: Path, with_stubs: bool = True) -> str:
    """Return what pyright says of a script beside a copy of the package, with its stubs or without."""
    pytest.importorskip("pyright")
    shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=shutil.ignore_patterns("*.pyi", "*.so", "__pycache__"))
    for path, text in stub_files().items() if with_stubs else ():
        (folder / path.relative_to(PACKAGE.parent)).write_text(text, encoding="utf-8")
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
    assert [s.split("[")[0].strip('"') for s in shown] == TYPES


@pytest.mark.slow
def test_without_stubs_nothing_is_wrong(tmp_path: Path) -> None:
    said = check(SCRIPT, tmp_path, with_stubs=False)
    assert "\n0 errors" in said, said


@pytest.mark.slow
def test_mistakes_are_found(tmp_path: Path) -> None:
    said = check(WRONG, tmp_path)
    lines = {int(line.split(":")[1]) for line in said.splitlines() if " - error: " in line}
    assert lines == set(range(3, 13)), said
