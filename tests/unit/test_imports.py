"""The house rules that a machine can check: the only caller of `jax.jit`, nothing unpickled, names."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from tests import jobs

PACKAGE = Path(__file__).parents[2] / "dualmx"
FILES = sorted(p for p in PACKAGE.rglob("*.py"))

BANNED_NAMES = {"util", "utils", "helper", "helpers", "manager", "handler", "misc"}
# Names of MXNet's own public modules.
PUBLIC_SPELLINGS = {
    "contrib/text/utils.py",
    "ndarray/utils.py",
    "gluon/utils.py",
    "numpy_extension/utils.py",
    "test_utils.py",
    "util.py",
}
UNSAFE_MODULES = {"pickle", "_pickle", "cPickle", "marshal", "dill", "cloudpickle", "shelve"}
UNSAFE = {"load", "loads", "Unpickler"}
RUNS_SOURCE = {"eval", "exec", "__import__"}
JITS = {"jit", "pjit", "pmap"}
# A DataLoader and its own worker processes pickle to each other over inherited sockets and memory without a name.
TRUSTS_ITS_OWN_CHILDREN = {"gluon/data/worker.py"}
# Functions are made as source, from traces of this process, or from stored data that op/stored_source.py verified.
RUNS_SOURCE_IT_GENERATES = {"op/symbolic_sizes.py"}
# Symbols of `jax.export` have no public way to decide a comparison; tests/op/test_shape_functions.py says which parts.
NEEDS_INTERNALS_OF_JAX = {"op/symbolic_sizes.py"}


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def nodes(path: Path, names: set[str]) -> list[ast.AST]:
    """All nodes of a file that has one of these names somewhere, else none."""
    text = path.read_text(encoding="utf-8")
    if not names & set(re.findall(r"\w+", text)):
        return []
    return list(ast.walk(ast.parse(text, str(path))))


def room_of(parts: tuple[str, ...]) -> str:
    """First part of a module path inside the package, `""` for the package itself."""
    return parts[0] if parts else ""


def jit_calls(path: Path) -> Iterator[str]:
    for node in nodes(path, JITS):
        if isinstance(node, ast.Attribute) and node.attr in JITS:
            if isinstance(node.value, ast.Name) and node.value.id == "jax":
                yield f"{relative(path)}:{node.lineno}"
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "jax":
            if {a.name for a in node.names} & JITS:
                yield f"{relative(path)}:{node.lineno}"


def test_only_compile_calls_jit() -> None:
    above = [p for p in FILES if room_of(p.relative_to(PACKAGE).parts) != "compile"]
    assert not [place for path in above for place in jit_calls(path)]


def test_public_jax_only() -> None:
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert "jax._src" not in text or relative(path) in NEEDS_INTERNALS_OF_JAX, relative(path)
        assert "jaxlib." not in text or room_of(path.relative_to(PACKAGE).parts) in ("cli.py", "compile"), relative(
            path
        )


def unsafe_calls(path: Path) -> Iterator[str]:
    modules: set[str] = set()  # what the unsafe modules are called here
    trusting = relative(path) in TRUSTS_ITS_OWN_CHILDREN
    generating = relative(path) in RUNS_SOURCE_IT_GENERATES
    found = nodes(path, UNSAFE_MODULES | RUNS_SOURCE)
    for node in found:
        if isinstance(node, ast.Import):
            modules |= {a.asname or a.name for a in node.names if a.name in UNSAFE_MODULES}
        if isinstance(node, ast.ImportFrom) and node.module in UNSAFE_MODULES:
            if {a.name for a in node.names} & UNSAFE:
                yield f"{relative(path)}:{node.lineno}"
    for node in found:
        place = f"{relative(path)}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in RUNS_SOURCE and not generating:
                yield place
        # Mentioning is enough: a subclass of Unpickler, or a function handed on, can load as well.
        if isinstance(node, ast.Attribute) and node.attr in UNSAFE and not trusting:
            if ast.unparse(node.value) in modules:
                yield place


def test_nothing_is_unpickled_or_evaluated() -> None:
    assert not [place for path in FILES for place in unsafe_calls(path)]


def test_names_say_what_is_inside() -> None:
    named = [p for p in PACKAGE.rglob("*") if p.suffix == ".py" or (p.is_dir() and p.name != "__pycache__")]
    bad = [
        relative(p)
        for p in named
        if (p.stem in BANNED_NAMES or p.stem.endswith("_ex")) and relative(p) not in PUBLIC_SPELLINGS
    ]
    assert not bad


def test_unfinished_work_is_not_left_in_the_code() -> None:
    marks = ("TO" + "DO", "FIX" + "ME", "XX" + "X:")
    left = [relative(p) for p in FILES if any(m in p.read_text(encoding="utf-8") for m in marks)]
    assert not left


def run_python(code: str) -> str:
    return jobs.run(jobs.PYTHON, "-c", code).stdout


def test_import_changes_no_jax_setting() -> None:
    code = (
        "import json, jax\n"
        "before = {k: repr(v) for k, v in jax.config.values.items()}\n"
        "import dualmx\n"
        "after = {k: repr(v) for k, v in jax.config.values.items()}\n"
        "print(json.dumps({k: [before.get(k), after[k]] for k in after if after[k] != before.get(k)}))"
    )
    assert json.loads(run_python(code)) == {}


def test_import_loads_no_optional_module() -> None:
    code = "import sys, json, dualmx, dualmx.spark; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    loaded = set(json.loads(run_python(code)))
    assert not loaded & {"flax", "optax", "graphviz", "matplotlib", "torch", "pandas", "pyspark", "pyarrow"}


def test_import_loads_no_kernels() -> None:
    code = "import sys, json, dualmx; print(json.dumps([m for m in sys.modules if 'cpu.kernels' in m]))"
    assert json.loads(run_python(code)) == []
