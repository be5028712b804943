"""The house rules that a machine can check: room order, the only caller of `jax.jit`, names, sizes."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "dualmx"
FILES = sorted(p for p in PACKAGE.rglob("*.py"))

# Left to right; a room imports from the rooms of the lines above its own, and from those named beside it.
ORDER: list[dict[str, set[str]]] = [
    {"core": set()},
    {"op": set(), "launch": set(), "ps": set(), "base": set(), "log": set(), "error": {"base"}, "registry": set()},
    {"graph": set()},
    {"compile": set()},
    {"ndarray": set(), "context": set(), "runtime": set()},
    {"sparse": set(), "symbol": {"sparse"}},
    {"namespace": set(), "attribute": set(), "name": set(), "executor": set(), "engine": set()},
    {"numpy_dispatch_protocol": set(), "numpy": set()},
    {"parallel": set()},
    {"autograd": set(), "random": set(), "profiler": set(), "debug": set(), "visualization": set(), "operator": set()},
    {
        "initializer": set(),
        "lr_scheduler": set(),
        "optimizer": {"lr_scheduler"},
        "metric": set(),
        "io": set(),
        "text": set(),
    },
    {"recordio": set(), "image": set()},
    {"numpy_extension": {"util"}},
    {"kvstore": set()},
    {"checkpoint": set(), "callback": {"checkpoint"}, "monitor": set(), "predictor": {"checkpoint"}},
    {"gluon": set(), "module": set(), "rnn": set()},
    {"contrib": set(), "horovod": set(), "keras": set(), "distributed": set()},
    {"model": set(), "executor_manager": set(), "lightning": set()},
    {"spark": set()},
]
LEFT: dict[str, set[str]] = {}
for _line in ORDER:
    _above = set(LEFT)
    for _room, _beside in _line.items():
        LEFT[_room] = _above | _beside
LEFT["launch"] = LEFT["ps"] = {"core"}

# Rooms that stand for parts of MXNet that are not here; nothing imports them.
ALONE = {"libinfo", "library", "rtc"}
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
# A DataLoader and its own worker processes pickle to each other over inherited sockets and memory without a name.
TRUSTS_ITS_OWN_CHILDREN = {"gluon/data/worker.py"}


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def room_of(parts: tuple[str, ...]) -> str:
    """First part of a module path inside the package, `""` for the package itself."""
    return parts[0] if parts else ""


def running_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes except those under `if TYPE_CHECKING:`, which never run."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from running_nodes(child)


def imported_rooms(path: Path) -> Iterator[tuple[int, str]]:
    """(line, room) of every import from inside the package."""
    here = path.relative_to(PACKAGE).with_suffix("").parts
    package = here[:-1]
    for node in running_nodes(tree(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                parts = tuple(alias.name.split("."))
                if parts[0] == "dualmx":
                    yield node.lineno, room_of(parts[1:])
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                base = package[: len(package) - (node.level - 1)] + module
            elif module and module[0] == "dualmx":
                base = module[1:]
            else:
                continue
            if base:
                yield node.lineno, room_of(base)
            else:
                for alias in node.names:
                    yield node.lineno, alias.name


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_imports_point_left(path: Path) -> None:
    room = room_of(path.relative_to(PACKAGE).with_suffix("").parts)
    if room not in LEFT:  # the package itself, the command line and the bridges see everything
        return
    allowed = LEFT[room] | {room}
    wrong = [f"line {line}: {room} imports {target}" for line, target in imported_rooms(path) if target not in allowed]
    assert not wrong, f"{relative(path)}: {'; '.join(wrong)}"


def test_every_room_is_known() -> None:
    top = {room_of(p.relative_to(PACKAGE).with_suffix("").parts) for p in FILES}
    free = {"__init__", "__main__", "cli", "diagnose", "tools", "bridge", "test_utils", "util", "operator", *ALONE}
    assert top <= set(LEFT) | free, f"rooms without a place in ORDER: {sorted(top - set(LEFT) - free)}"


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_only_compile_calls_jit(path: Path) -> None:
    if room_of(path.relative_to(PACKAGE).parts) == "compile":
        return
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and node.attr in ("jit", "pjit", "pmap"):
            assert not (isinstance(node.value, ast.Name) and node.value.id == "jax"), f"line {node.lineno}"
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "jax":
            assert not {a.name for a in node.names} & {"jit", "pjit", "pmap"}, f"line {node.lineno}"


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_public_jax_only(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "jax._src" not in text
    assert "jaxlib." not in text or room_of(path.relative_to(PACKAGE).parts) in ("cli.py", "compile")


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_nothing_is_unpickled_or_evaluated(path: Path) -> None:
    modules: set[str] = set()  # what the unsafe modules are called here
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            modules |= {a.asname or a.name for a in node.names if a.name in UNSAFE_MODULES}
        if isinstance(node, ast.ImportFrom) and node.module in UNSAFE_MODULES:
            assert not {a.name for a in node.names} & UNSAFE, f"line {node.lineno}"
    trusting = relative(path) in TRUSTS_ITS_OWN_CHILDREN
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("eval", "exec", "__import__"), f"line {node.lineno}"
        # Mentioning is enough: a subclass of Unpickler, or a function handed on, can load as well.
        if isinstance(node, ast.Attribute) and node.attr in UNSAFE and not trusting:
            assert ast.unparse(node.value) not in modules, f"line {node.lineno}"


def test_names_say_what_is_inside() -> None:
    named = [p for p in PACKAGE.rglob("*") if p.suffix == ".py" or (p.is_dir() and p.name != "__pycache__")]
    bad = [
        relative(p)
        for p in named
        if (p.stem in BANNED_NAMES or p.stem.endswith("_ex")) and relative(p) not in PUBLIC_SPELLINGS
    ]
    assert not bad


def test_files_stay_short() -> None:
    lengths = {relative(p): len(p.read_text(encoding="utf-8").splitlines()) for p in FILES}
    assert not {n: k for n, k in lengths.items() if k > 800}


def test_unfinished_work_is_not_left_in_the_code() -> None:
    marks = ("TO" + "DO", "FIX" + "ME", "XX" + "X:")
    left = [relative(p) for p in FILES if any(m in p.read_text(encoding="utf-8") for m in marks)]
    assert not left


def run_python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=PACKAGE.parent
    ).stdout


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
