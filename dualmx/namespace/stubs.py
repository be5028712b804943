"""Stub files of the generated front ends: `python -m dualmx.namespace.stubs` writes them beside the packages.

The functions of `mx.nd` and `mx.sym` are made from the registry when they are first named, which type checkers and
editors cannot see; these files tell them names, signatures and one line of documentation.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, get_args, get_origin

from .. import ndarray as nd
from .. import symbol as sym
from ..ndarray.ndarray import NDArray
from ..op import schema
from ..op.registry import OPS, Op
from ..op.schema import ParamField
from ..symbol.symbol import Symbol
from . import generate, methods
from .fluent import FLUENT
from .lazy_module import PREFIXES, public_names
from .table import BINARY_FUNCTIONS

PACKAGE = Path(__file__).parents[1]
NOTICE = "# Written by `python -m dualmx.namespace.stubs`. Generated, so its length has no bound.\n"
WIDTH = 120

# Annotations of op bodies whose public type is wider than what the body receives.
_ALIASES: list[tuple[Any, str]] = [
    (schema.Shape, "Shape"),
    (schema.Axes, "Axes"),
    (schema.OptionalInts, "Holes"),
    (schema.Floats, "Floats"),
    (schema.RuntimeFloats, "Floats"),
    (schema.DType, "DType"),
    (schema.OptDType, "DType | None"),
]

# Where the names that stubs use come from, in the order of the import block.
_IMPORTS: list[tuple[str, tuple[str, ...]]] = [
    ("collections.abc", ("Callable", "Mapping", "Sequence")),
    ("typing", ("Any", "Literal", "TypeAlias")),
    ("..core.argcheck", ("Axes", "DType", "Floats", "Holes", "Shape")),
    ("..core.context", ("Context",)),
]
_THIRD_PARTY = (("jax", "import jax"), ("np", "import numpy as np"))


class StubTarget:
    """One front end: what its functions take and return.

    Attributes:
        package: `nd` or `sym`.
        cls: the class of its values.
        fluent: names of the fluent methods written by hand, which are functions of the value.
    """

    def __init__(self, package: ModuleType, shown: str, cls: type, own: Iterable[Callable[..., Any]]):
        self.package, self.shown, self.cls = package, shown, cls
        self.own = {fn.__name__: fn for fn in own}
        self.folder = package.__name__.rpartition(".")[2]
        self.symbolic = cls is Symbol
        self.source = cls.__module__.rpartition(".")[2]
        self.header = "" if self.symbolic else "_Array: TypeAlias = NDArray | np.ndarray | jax.Array\n"

    def inputs(self, op: Op) -> list[str]:
        """Declarations of the inputs of `op`."""
        kind = "Symbol" if self.symbolic else "_Array"
        if op.variadic:
            return [f"*{op.inputs[0].name}: {kind} | Sequence[{kind}]"]
        found, missing = [], self.symbolic
        for i in op.inputs:
            missing = missing or i.optional or i.when is not None  # what follows such an input needs a default too
            found.append(f"{i.name}: {kind} | None = None" if missing else f"{i.name}: {kind}")
        return found

    def extra(self, op: Op) -> list[str]:
        """Declarations of the keywords that every function has."""
        if self.symbolic:
            return ["name: str | None = None", "attr: Mapping[str, str] | None = None", "**kwargs: Any"]
        ctx = [] if op.inputs or "ctx" in op.params else ["ctx: Context | str | None = None"]
        return [*ctx, "out: NDArray | Sequence[NDArray] | None = None", "name: str | None = None"]

    def result(self, op: Op) -> str:
        """Return type of the function of `op`."""
        if self.symbolic:
            return "Symbol"
        return {1: "NDArray", None: "NDArray | list[NDArray]"}.get(shown_outputs(op), "list[NDArray]")


FRONTS = (
    StubTarget(nd, "mx.nd", NDArray, methods.HANDWRITTEN),
    StubTarget(sym, "mx.sym", Symbol, generate.HANDWRITTEN),
)


class _Defaults:
    """Default parameters as attributes."""

    def __init__(self, op: Op):
        self.__dict__.update({f.name: f.default for f in op.params.values() if not f.required})


def shown_outputs(op: Op) -> int | None:
    """How many outputs front ends return for default parameters, None if that depends on a required one.

    With other parameters there may be several instead of one; an NDArray can be unpacked and indexed like a list.
    """
    count = op.outputs if op.visible is None else op.visible
    try:
        return count(_Defaults(op)) if callable(count) else count
    except AttributeError:
        return None


def type_text(t: Any) -> str:
    """Return the public type of a parameter annotation as source text."""
    for annotation, text in _ALIASES:
        if t == annotation:
            return text
    if t is type(None):
        return "None"
    if get_origin(t) is Annotated:
        return type_text(get_args(t)[0])
    if get_origin(t) is Literal:
        return f"Literal[{', '.join(quoted(v) for v in get_args(t))}]"
    if get_origin(t) in (typing.Union, types.UnionType):
        return " | ".join(type_text(a) for a in get_args(t))
    return {tuple: "Sequence[Any]"}.get(t, getattr(t, "__name__", "Any"))


def quoted(value: Any) -> str:
    """Return a string in double quotes, any other value as Python writes it."""
    return '"' + repr(value)[1:-1].replace('"', '\\"') + '"' if isinstance(value, str) else repr(value)


def default_text(value: Any) -> str:
    """Return a default as source text, `...` for what has no literal."""
    plain = isinstance(value, (int, str, tuple, type(None))) or (isinstance(value, float) and abs(value) < 1e300)
    return quoted(value) if plain else "..."


def field_text(f: ParamField, has_default: bool) -> str:
    """Return the declaration of a parameter; one behind a parameter with a default needs one too."""
    kind = "Context | str | None" if f.name == "ctx" else type_text(f.type)
    if f.required:
        return f"{f.name}: {kind} = ..." if has_default else f"{f.name}: {kind}"
    if f.default is None and "None" not in kind and kind != "Axes" and kind != "Holes":
        kind += " | None"
    return f"{f.name}: {kind} = {default_text(f.default)}"


def parameters(front: StubTarget, op: Op, method: bool = False) -> list[str]:
    """Return the declarations of all parameters of the function of `op`, or of its method."""
    inputs = front.inputs(op)
    has_default = bool(inputs) and inputs[-1].endswith("= None")
    fields = []
    for f in op.params.values():
        if f.name not in ("out", "name"):
            fields.append(field_text(f, has_default and not op.variadic))
            has_default = has_default or not f.required
    return [*(["self", *inputs[1:]] if method else inputs), *fields, *front.extra(op)]


def render_def(name: str, args: list[str], result: str, doc: str, indent: str = "") -> str:
    """Return a declaration, broken over lines as the formatter does."""
    body = f"\n{indent}    {docstring(doc, indent)}\n" if doc else " ...\n"
    line = f"{indent}def {name}({', '.join(args)}) -> {result}:"
    if len(line) + (0 if doc else 4) <= WIDTH:
        return line + body
    inner = f"{indent}    {', '.join(args)}"
    if len(inner) <= WIDTH:
        return f"{indent}def {name}(\n{inner}\n{indent}) -> {result}:{body}"
    rows = "".join(f"{indent}    {a},\n" for a in args)
    return f"{indent}def {name}(\n{rows}{indent}) -> {result}:{body}"


def docstring(text: str, indent: str) -> str:
    """Return the first paragraph of a documentation as a docstring that fits the line."""
    summary = " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
    quote = 'r"""' if "\\" in summary else '"""'
    lines = textwrap.wrap(summary, WIDTH - 7 - len(indent), initial_indent=quote)
    return f"\n{indent}    ".join([*lines, '"""'] if len(lines) > 1 else lines) + ("" if len(lines) > 1 else '"""')


def operator_function(front: StubTarget, op: Op, name: str) -> str:
    """Return the declaration of the front-end function of `op`."""
    return render_def(name, parameters(front, op), front.result(op), op.fn.__doc__ or "")


def pair_function(name: str) -> str:
    """Return the declaration of a function of two arrays or numbers."""
    args = ["lhs: _Array | float", "rhs: _Array | float"]
    return render_def(name, args, "NDArray", getattr(nd, name).__doc__)


def module_stub(front: StubTarget, room: str) -> tuple[str, list[str]]:
    """Return the declarations of a sub-namespace (`"op"`: the top one) and the imports of what is written by hand."""
    module = front.package if room == "op" else getattr(front.package, room)
    by_hand: list[str] = []
    found: list[str] = []
    for name in sorted(dir(module)):
        if name.startswith("_"):
            continue
        value = getattr(module, name)
        source = getattr(value, "__module__", "") or ""
        if name in BINARY_FUNCTIONS and room in ("op", "sparse") and not front.symbolic:
            found.append(pair_function(name))
        elif source.startswith("dualmx.namespace."):
            by_hand.append(f"from ..namespace.{source.rpartition('.')[2]} import {name} as {name}")
        elif front.symbolic and source in ("dualmx.symbol.control", "dualmx.symbol.python_ops"):
            by_hand.append(f"from .{source.rpartition('.')[2]} import {name} as {name}")
        elif source.startswith("dualmx.sparse"):
            by_hand.append(f"from ..sparse import {name} as {name}")
        elif (op := find(room, name)) is not None and source == front.package.__name__ and inspect.isfunction(value):
            found.append(operator_function(front, op, name))
    return "\n".join(found), sorted(by_hand)


def find(room: str, name: str) -> Op | None:
    """Return the op behind a public name."""
    if room == "op":
        return OPS.get(name) if not public_names(name)[0] else None
    return next((OPS[p + name] for p, r in PREFIXES.items() if r == room and p + name in OPS), None)


def fluent_stub(front: StubTarget) -> str:
    """Return the class that declares the fluent methods."""
    found = []
    for name in FLUENT:
        op = OPS.get(name)
        if op is not None and name not in front.own:
            args = parameters(front, op, method=True)
            found.append(render_def(name, args, front.result(op), op.fn.__doc__ or "", "    "))
    for name, fn in front.own.items():
        found.append(render_def(name, signature_text(fn), fn.__annotations__["return"], fn.__doc__ or "", "    "))
    base = "" if front.symbolic else "(Handle)"
    what = f'    """Operators of `{front.shown}` as methods."""\n\n'
    return f"class Fluent{base}:\n{what}" + "\n".join(sorted(found, key=method_name))


def method_name(text: str) -> str:
    """Return the name that a declaration declares."""
    return text.split("def ", 1)[1].split("(", 1)[0]


def signature_text(fn: Callable[..., Any]) -> list[str]:
    """Return the declarations of the parameters of a method written by hand."""
    found = [str(p) for p in inspect.signature(fn).parameters.values()]
    return ["self", *(a.replace("'", "") for a in found[1:])]


def imports(body: str, front: StubTarget, by_hand: list[str]) -> str:
    """Return the import block of what `body` uses."""
    standard, local = [], []
    for source, names in _IMPORTS:
        used = [n for n in names if re.search(rf"\b{n}\b", body)]
        if used:
            (local if source.startswith(".") else standard).append(f"from {source} import {', '.join(used)}")
    third = [line for name, line in _THIRD_PARTY if re.search(rf"\b{name}\.", body)]
    beside = [f"from .{front.source} import {front.cls.__name__}"]
    if "(Handle)" in body:
        beside.append("from .handle import Handle")
    blocks = ["\n".join(b) for b in (standard, third, [*local, *by_hand, *sorted(beside)]) if b]
    return "\n\n".join(blocks) + "\n"


def render_all(body: str, by_hand: list[str]) -> str:
    """Return the `__all__` of a stub: what a wildcard import hands on."""
    names = [*re.findall(r"^def (\w+)", body, re.M), *(line.rpartition(" ")[2] for line in by_hand)]
    rows = textwrap.fill(", ".join(quoted(n) for n in sorted(names)) + ",", WIDTH - 4)
    return f"__all__ = [\n{textwrap.indent(rows, '    ')}\n]  # fmt: skip\n"


def stubs() -> dict[Path, str]:
    """Return the content of every stub file by its path."""
    found: dict[Path, str] = {}
    for front in FRONTS:
        for room in ("op", *dict.fromkeys(PREFIXES.values())):
            body, by_hand = module_stub(front, room)
            where = front.shown if room == "op" else f"{front.shown}.{room}"
            head = front.header + "\n" if "_Array" in body else ""
            imported = imports(head + body, front, by_hand)
            text = f'{NOTICE}"""Types of `{where}`."""\n\n{imported}\n{render_all(body, by_hand)}\n{head}{body}'
            found[PACKAGE / front.folder / f"{room}.pyi"] = text.rstrip() + "\n"
        internal = (
            f'{NOTICE}"""Types of `{front.shown}._internal`: every registered name."""\n\n'
            "from collections.abc import Callable\nfrom typing import Any\n\n"
            "def __getattr__(name: str) -> Callable[..., Any]: ...\n"
        )
        found[PACKAGE / front.folder / "_internal.pyi"] = internal
        body = fluent_stub(front)
        head = front.header + "\n" if "_Array" in body else ""
        what = f"Fluent methods of `{front.shown}.{front.cls.__name__}`."
        text = f'{NOTICE}"""{what}"""\n\n{imports(head + body, front, [])}\n{head}{body}'
        found[PACKAGE / front.folder / "fluent.pyi"] = text.rstrip() + "\n"
    return found


def main() -> int:
    """Write the stub files that are not as they should be; returns the exit status."""
    for path, text in stubs().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(PACKAGE.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
