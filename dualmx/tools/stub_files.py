"""Stub files of the generated front ends, as text; `python -m dualmx.tools.stubs` writes them beside the packages.

The functions of `mx.nd`, `mx.sym` and `mx.np` are made from tables, many when they are first named, which type checkers
and editors cannot see; these files tell them names, signatures and one line of documentation.
"""

from __future__ import annotations

import inspect
import re
import textwrap
import types
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, get_args, get_origin

from .. import ndarray as nd
from .. import numpy as np
from .. import symbol as sym
from ..namespace import generate, methods
from ..namespace.fluent import FLUENT
from ..namespace.lazy_module import PREFIXES, public_names
from ..ndarray.ndarray import NDArray
from ..numpy import methods as np_methods
from ..numpy.elementwise import BINARY, UNARY
from ..op import schema
from ..op.operator_table import BINARY_FUNCTIONS
from ..op.registry import OPS, Op
from ..op.schema import ParamField
from ..symbol.symbol import Symbol

PACKAGE = Path(__file__).parents[1]
NOTICE = "# Written by `python -m dualmx.tools.stubs`.\n"
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
    ("collections.abc", ("Callable", "Iterator", "Mapping", "Sequence")),
    ("types", ("ModuleType",)),
    ("typing", ("Any", "Literal", "TypeAlias", "overload")),
    ("..core.argcheck", ("Axes", "DType", "Floats", "Holes", "Shape")),
    ("..core.context", ("Context",)),
]
_OWN = {
    nd: ("from .handle import Handle", "from .ndarray import NDArray"),
    sym: ("from .symbol import Symbol",),
    np: ("from ..ndarray.ndarray import NDArray", "from .np_ndarray import ndarray"),
}
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
    """Return the declarations of a sub-namespace (`""`: the top one) and the imports of what is written by hand."""
    module = front.package if not room else getattr(front.package, room)
    by_hand: list[str] = []
    found: list[str] = []
    for name in sorted(dir(module)):
        if name.startswith("_"):
            continue
        value = getattr(module, name)
        source = getattr(value, "__module__", "") or ""
        if name in BINARY_FUNCTIONS and room in ("", "sparse") and not front.symbolic:
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
    if not room:
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
    found = ["self"]
    for p in list(inspect.signature(fn).parameters.values())[1:]:
        text = str(p.replace(default=p.empty)).replace("'", "")
        found.append(text if p.default is p.empty else f"{text} = {default_text(p.default)}")
    return found


def np_method(name: str, fn: Callable[..., Any]) -> str:
    """Return the declaration of a method that `mx.np.ndarray` has been given."""
    if name in np_methods.INHERITED and name in OPS:
        return render_def(name, parameters(FRONTS[0], OPS[name], method=True), "ndarray", fn.__doc__ or "", "    ")
    source = np_methods.SHARED.get(name, fn)
    result = source.__annotations__.get("return", "Any")
    result = "ndarray" if result == "Any" else str(result)
    return render_def(name, signature_text(source), result, source.__doc__ or "", "    ")


def np_fluent_stub() -> str:
    """Return the class that declares what `mx.np.ndarray` has been given beside its own methods."""
    made = {
        n: f for n, f in vars(np.ndarray).items() if inspect.isfunction(f) and f.__module__ != np.ndarray.__module__
    }
    made = {n: f for n, f in made.items() if n not in ("__hash__", "__array_ufunc__", "__array_function__")}
    body = "\n".join(np_method(name, made[name]) for name in sorted(made))
    return f'class Fluent(NDArray):\n    """Functions of `mx.np` as methods."""\n\n    T: ndarray\n\n{body}'


def np_function(name: str, fn: Callable[..., Any]) -> str:
    """Return the declaration of a function of `mx.np` that a table or NumPy's own function made."""
    operands = ["x"] if name in UNARY else ["x1", "x2"] if name in BINARY else []
    if not operands:
        return render_def(name, ["*args: Any", "**kwargs: Any"], "Any", fn.__doc__ or "")
    numbers = [*(f"{x}: float" for x in operands), "out: None = None", "**kwargs: Any"]
    kind = "_Array" if name in UNARY else "_Array | float"
    arrays = [*(f"{x}: {kind}" for x in operands), "out: ndarray | None = None", "**kwargs: Any"]
    return "".join(
        f"@overload\n{render_def(name, *rest)}"
        for rest in ((numbers, "Any", ""), (arrays, "ndarray", fn.__doc__ or ""))
    )


def np_stub() -> tuple[str, list[str]]:
    """Return the declarations of what is made in `mx.np`, and the imports of what is written by hand."""
    declared, by_hand = [], []
    for name in dir(np):
        value: Any = getattr(np, name, None)
        source = str(getattr(value, "__module__", ""))
        if name.startswith("_") or name in ("FUNCTIONS", "NDArray") or source == "__future__":
            continue
        if isinstance(value, ModuleType):
            if value.__name__ == f"{np.__name__}.{name}":
                is_file = hasattr(value, "__file__")
                (by_hand if is_file else declared).append(
                    f"from . import {name} as {name}" if is_file else f"{name}: ModuleType\n"
                )
        elif source.startswith(f"{np.__name__}."):
            by_hand.append(f"from .{source.rpartition('.')[2]} import {value.__name__} as {name}")
        elif source == np.__name__:
            declared.append(np_function(name, value))
        elif source in ("builtins", "numpy"):
            by_hand.append(f"from {source} import {name} as {name}")
        elif value is None or isinstance(value, float):
            declared.append(f"{name}: {'None' if value is None else 'float'}\n")
    return "".join(declared), by_hand


def imports(body: str, own: Iterable[str], by_hand: list[str]) -> str:
    """Return the import block of what `body` uses: its `own` class, and what is written by hand."""
    standard, local = [], []
    for source, names in _IMPORTS:
        used = [n for n in names if re.search(rf"\b{n}\b", body)]
        if used:
            (local if source.startswith(".") else standard).append(f"from {source} import {', '.join(used)}")
    third = [line for name, line in _THIRD_PARTY if re.search(rf"\b{name}\.", body)]
    named = [line for line in own if re.search(rf"\b{line.rpartition(' ')[2]}\b", body)]
    blocks = ["\n".join(b) for b in (standard, third, [*local, *by_hand, *sorted(named)]) if b]
    return "\n\n".join(blocks) + "\n"


def render_all(names: Iterable[str]) -> str:
    """Return the `__all__` of a stub: what a wildcard import hands on."""
    rows = textwrap.fill(", ".join(quoted(n) for n in sorted(names)) + ",", WIDTH - 4)
    return f"__all__ = [\n{textwrap.indent(rows, '    ')}\n]  # fmt: skip\n"


def declared_names(body: str, imported: Iterable[str]) -> list[str]:
    """Return the functions that a stub declares, and those it imports."""
    return [*re.findall(r"^def (\w+)", body, re.M), *(line.rpartition(" ")[2] for line in imported)]


def render_file(what: str, *parts: str) -> str:
    """Return a whole stub file, its documentation and its parts."""
    return "\n".join([f'{NOTICE}"""{what}"""\n', *(p for p in parts if p)]).rstrip() + "\n"


def stubs() -> dict[Path, str]:
    """Return the content of every stub file by its path."""
    found: dict[Path, str] = {}
    for front in FRONTS:
        folder = PACKAGE / front.folder
        for room in ("", *dict.fromkeys(PREFIXES.values())):
            body, by_hand = module_stub(front, room)
            names = render_all(declared_names(body, by_hand))
            if not room:  # those of `mx.nd` itself are beside the methods
                body += "\n" + fluent_stub(front)
            head = front.header if "_Array" in body else ""
            parts = imports(head + body, _OWN[front.package], by_hand), names, head, body
            where = f"{front.shown}.{room}" if room else f"{front.shown}` and the methods of its `{front.cls.__name__}"
            found[folder / f"{room or 'fluent'}.pyi"] = render_file(f"Types of `{where}`.", *parts)
        found[folder / "op.pyi"] = render_file(f"Types of `{front.shown}.op`.", "from .fluent import *\n")
        found[folder / "_internal.pyi"] = render_file(
            f"Types of `{front.shown}._internal`: every registered name.",
            "from collections.abc import Callable\nfrom typing import Any\n",
            "def __getattr__(name: str) -> Callable[..., Any]: ...\n",
        )
    folder, header = PACKAGE / "numpy", "_Array: TypeAlias = ndarray | np.ndarray | jax.Array\n"
    body, by_hand = np_stub()
    found[folder / "__init__.pyi"] = render_file("Types of `mx.np`.", imports(header + body, (), by_hand), header, body)
    body = np_fluent_stub()
    what = "Operators and methods of `mx.np.ndarray`."
    found[folder / "fluent.pyi"] = render_file(
        what, imports(FRONTS[0].header + body, _OWN[np], []), FRONTS[0].header, body
    )
    return found


def write(root: Path = PACKAGE.parent) -> list[Path]:
    """Write the stub files below `root` that are not as they should be, and return their paths."""
    changed = {root / path.relative_to(PACKAGE.parent): text for path, text in stubs().items()}
    changed = {p: text for p, text in changed.items() if not p.exists() or p.read_text(encoding="utf-8") != text}
    for path, text in changed.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(changed)
