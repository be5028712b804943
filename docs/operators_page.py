"""The operator reference, generated from the registry: a mkdocs hook, and `python docs/operators_page.py > page.md`."""

from __future__ import annotations

import contextlib
import inspect
import json
from collections import defaultdict
from typing import Any

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


def text(examples: bool = True) -> str:
    """The page: one section for each module of definitions, one entry for each operator, then the differences."""
    import dualmx  # noqa: F401  (fills the registry)
    from dualmx.op.registry import OPS, Op

    themes: dict[str, dict[str, Op]] = defaultdict(dict)
    for op in {id(op): op for op in OPS.values()}.values():
        themes[op.fn.__module__.rsplit(".", 1)[-1]][op.name] = op
    shown = executed([op for ops in themes.values() for op in ops.values()]) if examples else {}
    lines = ["# Operators", "", f"{len({id(op) for op in OPS.values()})} operators under {len(OPS)} names.", ""]
    for theme in sorted(themes):
        lines += [f"## {theme.replace('_', ' ').capitalize()}", ""]
        for name in sorted(themes[theme], key=str.lower):
            lines += [*entry(themes[theme][name]), *shown.get(name, [])]
    return "\n".join(lines) + "\n" + DIFFERENCES


def entry(op: Any) -> list[str]:
    """Heading, signature, aliases and docstring of one operator."""
    inputs = [("*" if i.variadic else "") + i.name + ("=None" if i.optional or i.when else "") for i in op.inputs]
    params = [f.name if f.required else f"{f.name}={f.default!r}" for f in op.params.values()]
    lines = [f"### `{op.name}`", "", "```py", f"{op.name}({', '.join([*inputs, *params])})", "```", ""]
    if op.aliases:
        lines += ["Also: " + ", ".join(f"`{a}`" for a in op.aliases), ""]
    return [*lines, inspect.cleandoc(op.fn.__doc__ or ""), ""]


def executed(ops: list[Any]) -> dict[str, list[str]]:
    """Examples of the operators that take one or two arrays and need no parameter, with the results they gave."""
    import dualmx as mx
    from dualmx.namespace.lazy_module import public_names

    given = ("[[2, 1], [1, 3]]", "[[1, 2], [3, 4]]")
    arrays = [mx.nd.array(json.loads(g)) for g in given]
    made: dict[str, Any] = {}
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
            made[op.name] = f"{called}({', '.join(f'nd.array({g})' for g in given[: len(op.inputs)])})", out
    with contextlib.suppress(mx.MXNetError):  # indices outside the arrays; the others have their values
        mx.nd.waitall()
    shown = {}
    for name, (code, out) in made.items():
        with contextlib.suppress(mx.MXNetError):
            result = str(out.asnumpy().round(4).tolist())
            shown[name] = ["```py", f">>> {code}.asnumpy().round(4).tolist()", result, "```", ""]
    return shown


def on_files(files: Any, config: Any) -> Any:
    """mkdocs hook: add the generated page."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "operators.md", content=text()))
    return files


if __name__ == "__main__":
    print(text(), end="")
