"""The shape of the house: floors, no circle between files, whole classes, private names, sizes.

Every import counts: deferred ones, those under `TYPE_CHECKING`, and `import_module` with a name written out. Each rule
is a function of the sources, so that a control beside it shows it failing on a bad example.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "dualmx"

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
    {
        "autograd": set(),
        "random": set(),
        "profiler": set(),
        "debug": set(),
        "visualization": set(),
        "operator": set(),
    },  # fmt: skip
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
    {"model": set(), "executor_manager": set(), "lightning": set(), "onnx": set()},
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
# The package itself, the command line and the bridges see everything.
FREE = {"", "__main__", "cli", "diagnose", "tools", "bridge", "test_utils", "util", "operator", *ALONE}

# The file that imports modules of our own by a name which is computed or written out.
BY_NAME = {"core.module_alias"}
# Files that name modules to it: of public names, which are imported when they are first used.
LAZY_NAMES = {
    "",
    "base",
    "contrib",
    "contrib.svrg_optimization.svrg_optimizer",
    "gluon.contrib.cnn.conv_layers",
    "image.image",
    "io.io",
    "kvstore.kvstore",
    "namespace.lazy_module",
    "ndarray.ndarray",
    "ndarray.numpy",
    "ndarray.numpy_extension",
    "ndarray.utils",
    "optimizer.optimizer",
    "symbol.numpy",
    "symbol.numpy_extension",
    "symbol.symbol",
}
# Files that call a function of a room above their own through it, inside a public function.
LOADED = {"cli", "namespace.generate", "namespace.methods", "namespace.nd_functions", "parallel.rpc"}
# Files that import optional packages of others by a computed name.
FOREIGN_BY_NAME = {"contrib.safetensors", "contrib.tensorboard", "io.arrow_columns", "ps.van.frame"}
# What `jax.export` keeps private of its symbols is read in this file only.
READS_INTERNALS_OF_JAX = {"op.symbolic_sizes"}
# Attributes of imported objects that are still assigned at module level, by file.
ASSIGNED: dict[str, set[str]] = {
    "kvstore": {"base"},
    "ndarray.indexing": {"NDArray"},
    "ndarray.numpy_protocol": {"NDArray"},
    "numpy.indexing": {"ndarray"},
    "numpy.protocol": {"ndarray"},
}
# Bases with one subclass in another file of the room which are no classes of their own yet.
SLICES: set[str] = set()
# Private names that are none: those of named tuples, MXNet's public module of internal operators, and pyspark's idiom
# `Param(Params._dummy(), ...)`.
NOT_PRIVATE = {"_replace", "_fields", "_field_defaults", "_internal", "_dummy"}


@dataclass
class File:
    """A source file: its module's name inside the package, its text, whether it is an `__init__.py`."""

    name: str
    text: str
    is_package: bool = False

    @property
    def room(self) -> str:
        """First part of its name, `""` for the package itself."""
        return self.name.split(".")[0]

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.name)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def imported(self) -> set[str]:
        """Names that imports bind here."""
        return {
            (alias.asname or alias.name).split(".")[0]
            for node in self.nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }

    def _absolute(self, level: int, module: str | None) -> str | None:
        """Name inside the package of a module that is imported here; None for one of others."""
        if not level:
            first, _, rest = (module or "").partition(".")
            return rest if first == "dualmx" else None
        parts = self.name.split(".") if self.name else []
        up = level - self.is_package
        return ".".join([*parts[: len(parts) - up], *([module] if module else [])])

    @cached_property
    def imports(self) -> list[tuple[int, str, str]]:
        """(line, module, name) of every import from inside the package; the name is `""` for a whole module."""
        return list(self._find_imports())

    def _find_imports(self) -> Iterator[tuple[int, str, str]]:
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    module = self._absolute(0, alias.name)
                    if module is not None:
                        yield node.lineno, module, ""
            elif isinstance(node, ast.ImportFrom):
                module = self._absolute(node.level, node.module)
                if module is not None:
                    yield from ((node.lineno, module, alias.name) for alias in node.names)
            elif isinstance(node, ast.Call) and is_import_module(node) and isinstance(node.args[0], ast.Constant):
                text = str(node.args[0].value)
                level = len(text) - len(text.lstrip("."))
                # The second argument is this file's package, or the name of a package's own `__init__.py`.
                module = self._absolute(level, text[level:])
                if module is not None:
                    yield node.lineno, module, ""


def last_name(node: ast.expr) -> str:
    """The last part of a dotted name; `""` for other expressions."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_import_module(node: ast.Call) -> bool:
    return last_name(node.func) == "import_module"


@dataclass
class House:
    """All files by name."""

    files: dict[str, File] = field(default_factory=dict)

    @classmethod
    def read(cls, package: Path) -> House:
        house = cls()
        for path in sorted(package.rglob("*.py")):
            parts = path.relative_to(package).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            house.files[name] = File(name, path.read_text(encoding="utf-8"), is_package)
        return house

    @classmethod
    def of(cls, **sources: str) -> House:
        """A house of a control: `gluon__block="from ..core import errors"`."""
        named = {name.replace("__", "."): text for name, text in sources.items()}
        packages = {name for name in named if any(other.startswith(f"{name}.") for other in named)}
        return cls({name: File(name, text, name in packages) for name, text in named.items()})

    def targets(self, file: File) -> Iterator[tuple[int, str]]:
        """(line, file) of what a file imports: a submodule where the name is one."""
        for line, module, name in file.imports:
            inner = f"{module}.{name}".strip(".")
            target = inner if inner in self.files else module
            if target in self.files and target != file.name:
                yield line, target


def circles(house: House) -> list[set[str]]:
    """Sets of files that import each other (Tarjan's strongly connected components)."""
    graph = {name: {t for _, t in house.targets(file)} for name, file in house.files.items()}
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in graph[node]:
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            at = stack.index(node)
            found.append(set(stack[at:]))
            del stack[at:]

    for name in graph:
        if name not in index:
            visit(name)
    return [c for c in found if len(c) > 1]


def upward_imports(house: House) -> list[tuple[str, str, str]]:
    """(room, imported room, place) of imports from a room that is not below."""
    wrong = []
    for file in house.files.values():
        if file.room in FREE:
            continue
        allowed = LEFT.get(file.room, set()) | {file.room}
        for line, module, name in file.imports:
            room = (module or name).split(".")[0]
            if room not in allowed:
                wrong.append((file.room, room, f"{file.name}:{line}"))
    return wrong


def imports_by_name(house: House) -> set[str]:
    """Files that give `import_module` a name of our own modules, or one that is computed."""
    found = set()
    for file in house.files.values():
        for node in file.nodes:
            if isinstance(node, ast.Call) and is_import_module(node):
                name = node.args[0]
                if not isinstance(name, ast.Constant) or str(name.value).split(".")[0] in ("", "dualmx"):
                    found.add(file.name)
    return found


def lazy_imports(house: House, *functions: str) -> set[str]:
    """Files that take one of these functions from the file which imports by name."""
    return {
        file.name
        for file in house.files.values()
        for _, module, name in file.imports
        if module == "core.module_alias" and name in functions
    }


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in NOT_PRIVATE


def names_made(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Names that nodes define: functions, classes, variables, attributes of its objects, slots."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                yield node.attr
        elif isinstance(node, ast.Assign) and any(last_name(t) == "__slots__" for t in node.targets):
            yield from (c.value for c in ast.walk(node.value) if isinstance(c, ast.Constant) and c.value is not None)


def members_made(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Names that the classes among nodes define: in their bodies, of their objects, slots."""
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                defines = isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                yield from [inner.name] if defines else names_made(ast.walk(inner))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                yield node.attr


def private_reaches(house: House) -> dict[str, set[str]]:
    """Private names that a room takes from others, by room.

    An attribute counts if no class of the room defines its name, and no file where it is one of an imported name, a
    module perhaps. It does not count of `self`, which may inherit it.
    """
    made: dict[str, set[str]] = defaultdict(set)
    members: dict[str, set[str]] = defaultdict(set)
    for file in house.files.values():
        made[file.room].update(names_made(file.nodes))
        members[file.room].update(members_made(file.nodes))
    reached: dict[str, set[str]] = defaultdict(set)
    for file in (f for f in house.files.values() if f.name not in READS_INTERNALS_OF_JAX):
        for _, module, name in file.imports:
            if is_private(name) and module.split(".")[0] != file.room:
                reached[file.room].add(name)
        for node in file.nodes:
            if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in members[file.room]:
                owner = ast.unparse(node.value).split(".")[-1]
                # Operators of `nd._internal` are MXNet's, whatever their names begin with.
                if owner in ("self", "cls", "os", "sys", "_internal"):
                    continue
                if owner not in file.imported or node.attr not in made[file.room]:
                    reached[file.room].add(node.attr)
    return dict(reached)


def assigned_from_outside(house: House) -> dict[str, set[str]]:
    """Attributes of imported objects that a file assigns at module level, in so many words or by `setattr`."""
    found: dict[str, set[str]] = defaultdict(set)
    for file in house.files.values():
        blocks = [n for n in file.tree.body if not isinstance(n, ast.FunctionDef | ast.ClassDef)]
        for node in (inner for block in blocks for inner in ast.walk(block)):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                target = node.value
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
                target = node.args[0]
            else:
                continue
            if ast.unparse(target).split(".")[0] in file.imported:
                found[file.name].add(ast.unparse(target))
    return dict(found)


def slices_of_classes(house: House) -> set[str]:
    """Bases whose only subclass lies in another file of their room; not those that are made themselves or exported."""
    bases: dict[str, str] = {}  # class -> its file; names that stand twice are left alone
    twice: set[str] = set()
    for file in house.files.values():
        for node in file.tree.body:
            if isinstance(node, ast.ClassDef):
                twice |= {node.name} & set(bases)
                bases[node.name] = file.name
    heirs: dict[str, list[str]] = defaultdict(list)
    used: set[str] = set()  # made, or exported
    for file in house.files.values():
        for node in file.nodes:
            if isinstance(node, ast.ClassDef):
                for base in node.bases:
                    heirs[ast.unparse(base).split("[")[0].split(".")[-1]].append(file.name)
            elif isinstance(node, ast.Call):
                used.add(last_name(node.func))
            elif isinstance(node, ast.Assign) and last_name(node.targets[0]) == "__all__":
                used.update(str(c.value) for c in ast.walk(node.value) if isinstance(c, ast.Constant))
            elif isinstance(node, ast.ImportFrom) and file.is_package:
                used.update(alias.name for alias in node.names)
    return {
        f"{home}.{name}"
        for name, home in bases.items()
        if name not in twice and name not in used and len(heirs[name]) == 1
        for heir in heirs[name]
        if heir != home and heir.split(".")[0] == home.split(".")[0]
    }


HOUSE = House.read(PACKAGE)


def test_no_circle_between_files() -> None:
    found = [sorted(circle) for circle in circles(HOUSE)]
    assert not found, f"files import each other, perhaps by a deferred import or one for types: {found}"


def test_floors() -> None:
    assert not upward_imports(HOUSE)


def test_every_room_has_a_floor() -> None:
    rooms = {file.room for file in HOUSE.files.values()}
    assert rooms <= set(LEFT) | FREE, f"rooms without a place in ORDER: {sorted(rooms - set(LEFT) - FREE)}"


def test_modules_are_imported_by_name_in_few_files() -> None:
    assert imports_by_name(HOUSE) <= BY_NAME | FOREIGN_BY_NAME


def test_lazy_imports_are_for_public_names() -> None:
    assert lazy_imports(HOUSE, "lazy_names", "lazy_reexport") <= LAZY_NAMES
    assert lazy_imports(HOUSE, "load") <= LOADED, "import what you need, from a room below"


def test_private_names_stay_in_their_room() -> None:
    found = private_reaches(HOUSE)
    assert not found, f"private names of other rooms; make them public in their room: {found}"


def test_nothing_is_assigned_to_what_others_made() -> None:
    fresh = {
        name: new for name, objs in assigned_from_outside(HOUSE).items() if (new := objs - ASSIGNED.get(name, set()))
    }
    assert not fresh


def test_classes_are_whole() -> None:
    assert slices_of_classes(HOUSE) <= SLICES


def test_files_stay_short() -> None:
    assert not {name: n for name, f in HOUSE.files.items() if (n := len(f.text.splitlines())) > 800}


@pytest.mark.parametrize(
    "back",
    [
        "from . import a",
        "def f():\n    from .a import g",
        "if TYPE_CHECKING:\n    from .a import A",
        "importlib.import_module('.a', __package__)",
        "importlib.import_module('dualmx.gluon.a')",
    ],
)
def test_control_circles(back: str) -> None:
    assert circles(House.of(gluon="", gluon__a="from .b import B", gluon__b=back)) == [{"gluon.a", "gluon.b"}]
    assert not circles(House.of(gluon="", gluon__a="from .b import B", gluon__b="from ..core import errors"))


def test_control_floors() -> None:
    assert upward_imports(House.of(op__a="if TYPE_CHECKING:\n    from ..gluon.block import Block"))
    assert not upward_imports(House.of(gluon__a="from ..op import registry"))


def test_control_imports_by_name() -> None:
    house = House.of(a="import_module(f'.{x}', __name__)", b="import_module('cv2')", c="import_module('dualmx.io')")
    assert imports_by_name(house) == {"a", "c"}


def test_control_lazy_imports() -> None:
    house = House.of(a__b="from ..core.module_alias import load", c="from .core.module_alias import lazy_names as f")
    assert lazy_imports(house, "load") == {"a.b"}
    assert lazy_imports(house, "lazy_names") == {"c"}


def test_control_private_names() -> None:
    made = "class A:\n    def __init__(self):\n        self._x = 1\n"
    assert private_reaches(House.of(op__a=made, gluon__b="def f(a):\n    return a._x")) == {"gluon": {"_x"}}
    assert private_reaches(House.of(op__a="_x = 1", gluon__b="from ..op.a import _x")) == {"gluon": {"_x"}}
    # A function of this name does not make the attribute one of the room.
    assert private_reaches(House.of(op__a=made, gluon__b="def _x(a):\n    return a._x")) == {"gluon": {"_x"}}
    assert not private_reaches(House.of(op__a=made, op__b="def f(a):\n    return a._x"))
    assert not private_reaches(House.of(op__a="_x = 1", op__b="from . import a\na._x"))
    assert not private_reaches(House.of(op__a="_x = 1", gluon__b="def f(F):\n    return F._internal._x()"))


def test_control_assignments() -> None:
    for text in ("engine.flush = f", "setattr(engine, 'flush', f)", "for n in X:\n    engine.flush = n"):
        assert assigned_from_outside(House.of(a=f"from .b import engine\n{text}")) == {"a": {"engine"}}
    assert not assigned_from_outside(House.of(a="def f(): pass\nf.__name__ = 'g'"))


def test_control_slices() -> None:
    base, heir = "class Slice:\n    pass", "from .a import Slice\nclass Whole(Slice):\n    pass"
    assert slices_of_classes(House.of(op__a=base, op__b=heir)) == {"op.a.Slice"}
    assert not slices_of_classes(House.of(op__a=base, op__b=heir, op__c="from .a import Slice\nx = Slice()"))
    assert not slices_of_classes(House.of(op__a=base, op__b=heir, op__c=heir.replace("Whole", "Other")))
