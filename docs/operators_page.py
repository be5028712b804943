"""The operator reference, generated from the registry: a mkdocs hook, and `python docs/operators_page.py > page.md`."""

from __future__ import annotations

import inspect
from collections import defaultdict
from typing import Any


def text() -> str:
    """The page: one section for each module of definitions, one entry for each operator."""
    import dualmx  # noqa: F401  (fills the registry)
    from dualmx.op.registry import OPS, Op

    themes: dict[str, dict[str, Op]] = defaultdict(dict)
    for op in {id(op): op for op in OPS.values()}.values():
        themes[op.fn.__module__.rsplit(".", 1)[-1]][op.name] = op
    lines = ["# Operators", "", f"{len({id(op) for op in OPS.values()})} operators under {len(OPS)} names.", ""]
    for theme in sorted(themes):
        lines += [f"## {theme.replace('_', ' ').capitalize()}", ""]
        for name in sorted(themes[theme], key=str.lower):
            lines += entry(themes[theme][name])
    return "\n".join(lines) + "\n"


def entry(op: Any) -> list[str]:
    """Heading, signature, aliases and docstring of one operator."""
    inputs = [("*" if i.variadic else "") + i.name + ("=None" if i.optional or i.when else "") for i in op.inputs]
    params = [f.name if f.required else f"{f.name}={f.default!r}" for f in op.params.values()]
    lines = [f"### `{op.name}`", "", "```py", f"{op.name}({', '.join([*inputs, *params])})", "```", ""]
    if op.aliases:
        lines += ["Also: " + ", ".join(f"`{a}`" for a in op.aliases), ""]
    return [*lines, inspect.cleandoc(op.fn.__doc__ or ""), ""]


def on_files(files: Any, config: Any) -> Any:
    """mkdocs hook: add the generated page."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "operators.md", content=text()))
    return files


if __name__ == "__main__":
    print(text(), end="")
