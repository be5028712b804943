"""The reference of operators, generated from the registry: a page for each theme, and an index with the differences."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections import defaultdict
from functools import cached_property
from typing import Any

from reference_contents import BOOST_OF_RARE, BOOSTS, RARE_THEMES, THEMES, theme_of
from reference_entries import SourceLink, call_lines, cell, code, docstring, heading, source_of, summary
from reference_symbols import public_symbols

import dualmx as mx
from dualmx.namespace.lazy_module import public_names
from dualmx.op.registry import OPS, Op

OTHER = "Other operators"

DIFFERENCES = """## Differences from MXNet 1.9.1

Each is deliberate; everything else is meant to be the same, and recorded from the original.

- Arrays of length 0 pass through operators; MXNet's classic mode refuses most of them.
- `Pad` and `SequenceMask` take whole numbers and `Pad` any axis; 16-bit floats work wherever 32-bit ones do on CPUs.
- Labels and indices may have another dtype than the data (`SoftmaxOutput`, `SVMOutput`, `pick`, `take`).
- `fft`, `ifft`, `count_sketch` and the gradients of `ModulatedDeformableConvolution` and `RROIAlign` exist on every
  device; all operators are differentiable to any order where mathematics allows.
- `BatchNorm` and its relatives refuse statistics whose length is not the number of channels.
- `image.flip_left_right` and `flip_top_bottom` keep the middle of odd sizes, which MXNet leaves unwritten.
- `image.random_saturation` mixes with the grey of all three channels, MXNet with the blue share.
- `contrib.quantized_conv` takes int8 as well as uint8, rescales its bias, and returns the range that belongs to its
  inputs' dtypes; `contrib.quantized_elemwise_add` adds mixed dtypes. `contrib.requantize` of the least int32 keeps its
  sign.
- `contrib.dgl_*` fill unused elements with 0, where MXNet leaves what was in memory; `dgl_graph_compact` returns the
  mapping of edges, which MXNet leaves empty; wrong graphs are errors, where MXNet ends the process.
- `contrib.boolean_mask` takes any axis.
- Whole numbers out of the range of their type saturate or wrap in one way on all processors.
- Crashes and reads beyond the end for wrong parameters (`LRN(nsize=-1)`, `Correlation(stride1=-2)`,
  `Reshape` to fewer elements) are errors here.
"""


class OperatorPages:
    """Pages of operators, by theme.

    Args:
        link_source: gives the address of a source line.
        examples: run the operators that need no parameters, and show what they gave.

    Attributes:
        addresses: (path of a module, name in it) -> page and anchor of the operator behind a generated function.
        themes: page and anchor -> theme.
        titles: theme -> file name of its page, in the order of the navigation.
    """

    def __init__(self, link_source: SourceLink, examples: bool = True):
        self._link_source, self._examples = link_source, examples
        self._by_theme: dict[str, list[Op]] = defaultdict(list)
        for op in {id(op): op for op in OPS.values()}.values():
            self._by_theme[theme_of(op.name) or OTHER].append(op)
        self.titles = {t: f"operators-{slug(t)}.md" for t in [*reversed(THEMES), OTHER] if t in self._by_theme}
        self.themes = {self.address(op): title for title, ops in self._by_theme.items() for op in ops}
        self.addresses: dict[tuple[str, str], str] = {}
        for front in ("ndarray", "symbol"):
            for room in ("", "contrib", "image", "linalg", "random", "sparse"):
                path = f"{front}.{room}".rstrip(".")
                for name, value in public_symbols(path).items():
                    op = owners().get(f"{room}.{name}".lstrip(".")) or owners().get(name)
                    # Functions written by hand under an operator's name have their own docstrings.
                    if op is not None and is_generated(value):
                        self.addresses[path, name] = self.address(op)

    def address(self, op: Op) -> str:
        """Page and anchor of an operator."""
        return f"{self.titles[theme_of(op.name) or OTHER]}#{anchor(op)}"

    @cached_property
    def pages(self) -> dict[str, str]:
        """File name -> text."""
        shown = executed([op for ops in self._by_theme.values() for op in ops]) if self._examples else {}
        return {"operators.md": self._index()} | {p: self._theme(t, shown) for t, p in self.titles.items()}

    def _index(self) -> str:
        lines = ["# Operators", "", f"{len(self.themes)} operators under {len(OPS)} names.", ""]
        lines += ["| Theme | Operators |", "|---|---|"]
        for title, page in self.titles.items():
            names = ", ".join(f"[`{name_of(op)}`]({self.address(op)})" for op in in_order(self._by_theme[title])[:12])
            lines.append(f"| [{title}]({page}) | {names}{', …' if len(self._by_theme[title]) > 12 else ''} |")
        return "\n".join([*lines, "", DIFFERENCES])

    def _theme(self, title: str, shown: dict[str, list[str]]) -> str:
        ops = in_order(self._by_theme[title])
        boost = BOOST_OF_RARE if title in RARE_THEMES else BOOSTS["Arrays"]
        lines = [f"---\nsearch:\n  boost: {boost}\n---\n", f"# {title}", "", "| Operator | Description |", "|---|---|"]
        lines += [f"| [`{name_of(op)}`](#{anchor(op)}) | {cell(summary(op.fn.__doc__))} |" for op in ops]
        for op in ops:
            lines += ["", *self.entry(op), *shown.get(op.name, [])]
        return "\n".join([*lines, ""])

    def entry(self, op: Op) -> list[str]:
        """Heading, signature, other names, docstring, inputs and parameters of one operator."""
        name = name_of(op)
        inputs = [("*" if i.variadic else "") + i.name + ("=None" if i.optional or i.when else "") for i in op.inputs]
        params = [f.name if f.required else f"{f.name}={f.default!r}" for f in op.params.values()]
        lines = heading(2, anchor(op), anchor(op))
        lines += code(call_lines(f"mx.nd.{name}", [*inputs, *params]))
        source = source_of(op.fn)
        if source:
            lines += [f"[source]({self._link_source(*source)}){{ .source }}", ""]
        others = [n for n in (public_path(r) for r in (op.name, *op.aliases)) if n != name]
        also = [f"`mx.sym.{name}`", *(f"`{n}`" for n in others if not n.startswith("_internal."))]
        registered = ", ".join(f"`{n}`" for n in (op.name, *op.aliases))
        lines += [f"Also {', '.join(also)}. Registered as {registered}.", ""]
        described, _, _ = (front_function(name).__doc__ or "").partition("\nParameters:\n")
        lines += docstring(described, {})
        if op.params:
            arguments = mx.operator.get_operator_arguments(op.name)
            types = dict(zip(arguments.names, arguments.types, strict=True))
            effects = {name: ", no effect" if field.ignored else "" for name, field in op.params.items()}
            lines += ["**Parameters**", "", *(f"- `{n}`: `{types[n]}`{effect}" for n, effect in effects.items()), ""]
        return lines


def public_path(registered: str) -> str:
    """What users write after `mx.nd.` for a registered name; `_internal.` comes before names meant for other code."""
    room, name = public_names(registered)
    return f"{room}.{name}" if room else name


@functools.cache
def owners() -> dict[str, Op]:
    """What users write after `mx.nd.` -> operator; where two have the same name, the first is called by it."""
    table: dict[str, Op] = {}
    for registered, op in OPS.items():
        table.setdefault(public_path(registered), op)
    return table


def name_of(op: Op) -> str:
    """The name under which users find an operator: its first public one that is not of a function written by hand."""
    paths = [p for p in map(public_path, (op.name, *op.aliases)) if owners()[p] is op]
    return next((p for p in paths if not p.startswith("_internal.") and is_generated(front_function(p))), paths[0])


def anchor(op: Op) -> str:
    """Where the entry of an operator is on its page."""
    return f"nd.{name_of(op)}"


def in_order(ops: list[Op]) -> list[Op]:
    """Operators by name, those without a public one last."""
    return sorted(ops, key=lambda op: (name_of(op).startswith("_internal."), name_of(op).lower()))


def front_function(name: str) -> Any:
    """The function of `mx.nd` that calls an operator."""
    return functools.reduce(getattr, name.split("."), mx.nd)


def is_generated(function: Any) -> bool:
    """Whether a function was made from an operator, whose docstring it then has."""
    return function.__module__ in (mx.nd.__name__, mx.sym.__name__)


def slug(title: str) -> str:
    """A title as part of a file name."""
    return re.sub(r"\W+", "-", title.lower())


def executed(ops: list[Any]) -> dict[str, list[str]]:
    """Examples of the operators that take one or two arrays and need no parameter, with the results they gave."""
    literals = ("[[2, 1], [1, 3]]", "[[1, 2], [3, 4]]")
    arrays = [mx.nd.array(json.loads(g)) for g in literals]
    results: dict[str, Any] = {}
    for op in ops:
        room, short = public_names(op.name)
        if room in ("_internal", "random") or op.variadic or op.has_key or any(f.required for f in op.params.values()):
            continue
        if len(op.inputs) not in (1, 2) or any(i.when or i.optional for i in op.inputs):
            continue
        try:
            out = getattr(getattr(mx.nd, room) if room else mx.nd, short)(*arrays[: len(op.inputs)])
        except mx.MXNetError:
            continue
        if isinstance(out, mx.nd.NDArray):
            called = f"nd.{room + '.' if room else ''}{short}"
            results[op.name] = f"{called}({', '.join(f'nd.array({g})' for g in literals[: len(op.inputs)])})", out
    with contextlib.suppress(mx.MXNetError):  # indices outside the arrays; the others have their values
        mx.nd.waitall()
    shown = {}
    for name, (call, out) in results.items():
        with contextlib.suppress(mx.MXNetError):
            result = str(out.asnumpy().round(4).tolist())
            shown[name] = ["```py", f">>> {call}.asnumpy().round(4).tolist()", result, "```", ""]
    return shown
