"""What is public: the modules a script may import, and the names that each of them offers."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from reference_contents import INTERNAL, SHORT_NAMES

import dualmx

PACKAGE = dualmx.__name__
ROOT = Path(dualmx.__file__).parent.parent

# Modules whose functions are made from operators and tables when they are first named, so `__all__` lacks them.
FRONT_ENDS = ("ndarray", "symbol", "numpy")

# Front ends of symbols that offer what those of arrays do.
MIRRORS = {"symbol.numpy": "numpy", "symbol.numpy_extension": "numpy_extension"}


@dataclass(frozen=True)
class Unimported:
    """A class that needs a package which is not installed here, as its source describes it."""

    name: str
    doc: str
    signature: str
    file: Path
    line: int


def load(path: str) -> ModuleType:
    """The public module at `path` below the package; `""` is the package itself.

    Namespaces of operators, such as `ndarray.random`, are attributes without a file.
    """
    module: Any = dualmx
    for part in filter(None, path.split(".")):
        if not hasattr(module, part):
            importlib.import_module(f"{module.__name__}.{part}")
        module = getattr(module, part)
    return module


def shown(path: str) -> str:
    """`path` as users write it after `mx.`: `nd.random` for `ndarray.random`."""
    return ".".join(SHORT_NAMES.get(part, part) for part in path.split("."))


@cache
def public_symbols(path: str) -> dict[str, Any]:
    """Names and values that the module at `path` offers, but for modules.

    They are those of `__all__` and those it serves when asked. A module without `__all__` offers the classes and
    functions that it defines, a package also those of its files; or else what it imports from other modules.
    """
    module = load(path)
    listed = getattr(module, "__all__", None)
    names = list(listed or ())
    others = [n for n in dir(module) if not n.startswith("_") and n not in names]
    if path in MIRRORS:
        names = [n for n in public_symbols(MIRRORS[path]) if hasattr(module, n)]
    elif path in FRONT_ENDS or not hasattr(module, "__file__"):
        names += [n for n in others if is_front_end(module, getattr(module, n))]
    elif listed is None:
        package = hasattr(module, "__path__") or "__getattr__" in vars(module)
        names = [n for n in others if is_defined_in(module.__name__, value_of(module, n), package)]
        if not names and "__getattr__" in vars(module):  # another path of the package around it
            names = [n for n in public_symbols(path.rpartition(".")[0]) if n in others]
        names = names or [n for n in others if is_defined_in(PACKAGE, value_of(module, n), True)]
        names += [n for n in others if n.isupper() and not callable(value_of(module, n))]
    else:
        names += [n for n in others if n not in vars(module)]
    symbols = {name: value_of(module, name) for name in names if not name.startswith("_")}
    return {name: value for name, value in symbols.items() if not inspect.ismodule(value)}


def is_front_end(module: ModuleType, value: object) -> bool:
    """Whether `value` is a function of this package, a class of `module`, or one of NumPy's dtypes and functions."""
    owner = getattr(value, "__module__", None) or ""
    if owner.partition(".")[0] == "numpy":
        return callable(value)
    return is_defined_in(PACKAGE if inspect.isfunction(value) else module.__name__, value, True)


def is_defined_in(owner: str, value: object, package: bool) -> bool:
    """Whether `value` is a class or function of the module `owner`, or if `package` of one below it."""
    if not inspect.isclass(value) and not inspect.isroutine(value):
        return isinstance(value, Unimported)
    place = value.__module__ or ""
    return place == owner or (package and place.startswith(f"{owner}."))


def value_of(module: ModuleType, name: str) -> Any:
    """The attribute, or its source where the package that it needs is missing."""
    try:
        return getattr(module, name)
    except (ImportError, dualmx.MXNetError):
        source = next((u for u in unimported(Path(module.__file__ or "").parent) if u.name == name), None)
        if source is None:
            raise
        return source


@cache
def unimported(folder: Path) -> tuple[Unimported, ...]:
    """The classes in the files of `folder` and below."""

    def classes() -> Iterator[Unimported]:
        for file in sorted(folder.rglob("*.py")):
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    init = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
                    signature = ast.unparse(init.args).removeprefix("self").lstrip(", ") if init else ""
                    yield Unimported(node.name, ast.get_docstring(node) or "", f"({signature})", file, node.lineno)

    return tuple(classes())


def public_modules() -> dict[str, ModuleType]:
    """Paths and modules that scripts may import: attributes of the package, packages, and what these list as modules.

    Modules that are reachable twice (`nd` and `ndarray`) are there once, under the path of their file.
    """
    modules = {"": dualmx}
    pending = [value_of(dualmx, n) for n in dir(dualmx) if not n.startswith("_")]
    for info in pkgutil.walk_packages(dualmx.__path__, f"{PACKAGE}.", onerror=lambda name: None):
        if info.ispkg and not is_internal(info.name) and not info.name.startswith(f"{PACKAGE}.spark."):
            pending.append(importlib.import_module(info.name))
    while pending:
        module = pending.pop()
        if not isinstance(module, ModuleType) or is_internal(module.__name__):
            continue
        path = module.__name__.partition(".")[2]
        if path not in modules:
            modules[path] = module
            pending += [value_of(module, n) for n in getattr(module, "__all__", ())]
    return dict(sorted(modules.items()))


def is_internal(name: str) -> bool:
    """Whether the module belongs to another package, or to what the public modules are made of."""
    head, _, path = name.partition(".")
    parts = path.split(".")
    return head != PACKAGE or parts[0] in INTERNAL or any(p.startswith("_") for p in parts)
