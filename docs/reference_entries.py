"""Classes and functions as Markdown: signature, docstring in sections, members, and a link to the source."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from reference_symbols import PACKAGE, ROOT, Unimported

# Sections of docstrings. The text of those in the second line may begin beside the title.
_LISTS = ("Args", "Attributes", "Inputs", "Parameters", "Raises", "Returns")
_TEXTS = ("Shapes", "Returns", "Reference", "Differentiable", "Example", "Examples")
_TITLE = re.compile(rf"({'|'.join({*_LISTS, *_TEXTS})}):(.*)")
_BULLET = re.compile(r"(\s*)[-*] ")
_NAME = r"[`*]*[A-Za-z_][\w.`*]*"
_ITEM = re.compile(rf"({_NAME}(?:(?:, | or | and ){_NAME})*):(?:\s+(.*))?")

# Gives the address of a source line, or None if there is none.
SourceLink = Callable[[Path, int], "str | None"]


def escape(text: str) -> str:
    """`text` with the marks of Markdown and HTML taken literally, except within backticks."""
    parts = re.split(r"(`+[^`]+`+)", text)
    return "".join(p if p.startswith("`") else re.sub(r"\\?([*_\[\]])", r"\\\1", p).replace("<", "&lt;") for p in parts)


def cell(text: str) -> str:
    """`text` as one cell of a table."""
    return escape(text).replace("|", "\\|").replace("\n", " ")


def summary(doc: str | None) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join(inspect.cleandoc(doc or "").partition("\n\n")[0].split())


def prose(lines: list[str]) -> list[str]:
    """Paragraphs, lists and indented code of a docstring."""
    out: list[str] = []
    for line in lines:
        item = _BULLET.match(line)
        if item and out and out[-1].strip() and not _BULLET.match(out[-1]):
            out.append("")  # without which Markdown goes on with the paragraph
        if line.startswith("    ") and (not out or not out[-1].strip() or out[-1].startswith("    ")):
            out.append(line)
        elif item:
            out.append(f"{item[1]}- {escape(line[item.end() :])}")
        else:
            out.append(re.sub("^#", r"\\#", escape(line)))
    return out


def sections(doc: str) -> Iterator[tuple[str, list[str]]]:
    """Titles and dedented lines of a docstring's sections; the text before and between them has the title `""`."""
    title, lines = "", []
    for line in [*inspect.cleandoc(doc).splitlines(), None]:
        match = line is not None and _TITLE.fullmatch(line)
        if match and match[2] and match[1] not in _TEXTS:  # a sentence that begins with the word
            match = None
        ends = title and line and not line.startswith(" ") and (title in _LISTS or not lines or not lines[-1].strip())
        if line is None or match or ends:
            if any(part.strip() for part in lines):
                yield title, textwrap.dedent("\n".join(lines)).strip("\n").splitlines()
            title, lines = (match[1], [match[2].strip()] if match[2].strip() else []) if match else ("", [])
        if line is not None and not match:
            lines.append(line)


def docstring(doc: str | None, facts: dict[str, str]) -> list[str]:
    """A docstring as Markdown; `facts` are the type and default of each parameter."""
    out: list[str] = []
    for title, lines in sections(doc or ""):
        if title in ("Example", "Examples"):
            out += ["**Example**", "", *example(lines), ""]
        elif title in ("Inputs", "Parameters") or (title in _LISTS and any(map(_ITEM.fullmatch, lines))):
            name = "Parameters" if title == "Args" else title
            out += [f"**{name}**", "", *items(lines, facts if title in ("Args", "Parameters") else {}), ""]
        elif title:
            out += ["\n".join([f"**{title}:** " + escape(lines[0]), *map(escape, lines[1:])]), ""]
        else:
            out += [*prose(lines), ""]
    return out


def example(lines: list[str]) -> list[str]:
    """Code and the text between, as in a docstring's example."""
    out: list[str] = []
    for block in "\n".join(lines).split("\n\n"):
        code = block.lstrip().startswith((">>>", "..."))
        out += ["```pycon", block, "```", ""] if code else [*prose(textwrap.dedent(block).splitlines()), ""]
    return out


def items(lines: list[str], facts: dict[str, str]) -> list[str]:
    """The entries of a section such as `Args` as a list; a deeper line continues the one before."""
    out: list[str] = []
    for line in lines:
        match = None if line.startswith(" ") else _ITEM.fullmatch(line)
        if match:
            names = [n.strip("`") for n in re.split(", | or | and ", match[1])]
            known = [facts.get(n.lstrip("*"), "") for n in names]
            if len(set(known)) == 1:  # said once, behind all of them
                known[:-1] = [""] * (len(names) - 1)
            label = ", ".join(f"`{n}`{f' ({fact})' if fact else ''}" for n, fact in zip(names, known, strict=True))
            out.append(f"- {label}: {escape(match[2] or '')}")
        elif line.lstrip("*").isidentifier():  # an operator's input of which nothing is said but the name
            out.append(f"- `{line}`")
        else:
            out.append(f"{'    ' if out else '- '}{escape(line.strip())}")
    return out


def annotation_text(annotation: Any) -> str:
    """A type as its author wrote it, without the modules of its parts; `""` for none and for `Any`."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    text = re.sub(rf"\b(?:{PACKAGE}|typing|collections)(?:\.\w+)*\.(\w+)", r"\1", text.strip("'\""))
    return "" if annotation is inspect.Parameter.empty or text == "Any" else text


def default_text(value: Any) -> str:
    """A default as code; what has no short form that says something is an ellipsis."""
    if inspect.isclass(value) or inspect.isroutine(value):
        return value.__name__
    text = repr(value).replace(str(Path.home()), "~")
    return "..." if " at 0x" in text or "\n" in text or len(text) > 60 else text


def signature_of(value: Any, skip_first: bool = False) -> inspect.Signature | None:
    """The signature without `self`, or None if Python knows none."""
    try:
        signature = inspect.signature(value)
    except (ValueError, TypeError):
        return None
    parameters = list(signature.parameters.values())
    return signature.replace(parameters=parameters[1:] if skip_first else parameters)


def facts_of(signature: inspect.Signature | None) -> dict[str, str]:
    """Parameter -> its type and default, in code."""
    facts = {}
    for name, p in signature.parameters.items() if signature else ():
        kind = annotation_text(p.annotation)
        default = "" if p.default is p.empty else f"default `{default_text(p.default)}`"
        facts[name] = ", ".join(filter(None, [f"`{kind}`" if kind else "", default]))
    return facts


def call_text(path: str, signature: inspect.Signature | None) -> str:
    """The call as code, with types and defaults."""
    if signature is None:
        return f"{path}(...)"
    parts, mark = [], ""
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and mark != "*":
            parts.append("*")
            mark = "*"
        if mark == "/" and p.kind is not p.POSITIONAL_ONLY:
            parts.append("/")
            mark = ""
        mark = {p.POSITIONAL_ONLY: "/", p.VAR_POSITIONAL: "*"}.get(p.kind, mark)
        kind, stars = annotation_text(p.annotation), {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else f"{' = ' if kind else '='}{default_text(p.default)}"
        parts.append(f"{stars}{p.name}{f': {kind}' if kind else ''}{default}")
    if mark == "/":
        parts.append("/")
    return call_lines(path, parts, annotation_text(signature.return_annotation))


def call_lines(path: str, parts: list[str], result: str = "") -> str:
    """A call in one line, or where that has more than 88 characters with a line for each part."""
    tail = f") -> {result}" if result else ")"
    line = f"{path}({', '.join(parts)}{tail}"
    return line if len(line) <= 88 else f"{path}(\n" + "".join(f"    {p},\n" for p in parts) + tail


@functools.cache
def lines_of(file: Path) -> dict[str, int]:
    """Qualified name -> line of each class and function in `file`."""
    lines: dict[str, int] = {}

    def visit(body: Iterable[ast.AST], prefix: str) -> None:
        for node in body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                lines.setdefault(prefix + node.name, node.lineno)
                visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, (ast.If, ast.Try)):
                visit(node.body, prefix)

    visit(ast.parse(file.read_text(encoding="utf-8")).body, "")
    return lines


def source_of(value: Any) -> tuple[Path, int] | None:
    """File (below the repository) and line of a class or function of this package."""
    if isinstance(value, Unimported):
        return value.file.relative_to(ROOT), value.line
    value = inspect.unwrap(value.fget if isinstance(value, property) else value)
    try:
        file = Path(inspect.getsourcefile(value) or "")
    except TypeError:  # a class or function of C
        return None
    if not file.is_relative_to(ROOT / PACKAGE):
        return None
    code = getattr(value, "__code__", None)
    line = lines_of(file).get(value.__qualname__) or (code.co_firstlineno if code else 1)
    return file.relative_to(ROOT), line


def is_method(member: object) -> bool:
    """Whether an attribute of a class is a method or property with a docstring."""
    kinds = (property, functools.cached_property, classmethod, staticmethod)
    return (inspect.isfunction(member) or isinstance(member, kinds)) and bool(getattr(member, "__doc__", None))


def code(text: str) -> list[str]:
    """A block of Python."""
    return ["```python", text, "```", ""]


def heading(level: int, text: str, anchor: str) -> list[str]:
    """A heading with an address of its own, and with the last part of its name in the page's table of contents."""
    return [f"{'#' * level} {escape(text)} {{ #{anchor} data-toc-label='{text.rpartition('.')[2]}' }}", ""]


class EntryWriter:
    """Writes entries.

    Args:
        link_source: gives the address of a source line.
        link_class: gives the address of the entry of a class, or None if it has none.
    """

    def __init__(self, link_source: SourceLink, link_class: Callable[[type], str | None]):
        self._link_source, self._link_class = link_source, link_class

    def entry(self, path: str, value: Any) -> list[str]:
        """The entry of the class or function that users call by `path`."""
        out = heading(2, path, path)
        if isinstance(value, Unimported):
            out += code(f"class mx.{path}{value.signature}")
            return [*out, *self.source(value), *docstring(value.doc, {})]
        signature = signature_of(value)
        call = call_text(f"mx.{path}", signature)
        out += code(f"class {call}" if inspect.isclass(value) else call)
        out += self.source(value)
        if inspect.isclass(value):
            out += self.bases(value)
        out += docstring(inspect.getdoc(value), facts_of(signature))
        return out + (self.members(path, value) if inspect.isclass(value) else [])

    def source(self, value: Any) -> list[str]:
        """The link to the source."""
        place = source_of(value)
        address = place and self._link_source(*place)
        return [f"[source]({address}){{ .source }}", ""] if address else []

    def bases(self, cls: type) -> list[str]:
        """What the class derives from, if readers can look it up."""
        bases = [b for b in cls.__bases__ if b is not object]
        linked = [f"[`{b.__name__}`]({self._link_class(b)})" for b in bases if self._link_class(b)]
        plain = [f"`{b.__name__}`" for b in bases if b.__module__ == "builtins"]
        return [f"Bases: {', '.join(linked + plain)}", ""] if linked or plain else []

    def members(self, path: str, cls: type) -> list[str]:
        """Public methods and properties: first those that no base with an entry has, then the names of the others."""
        out: list[str] = []
        own: dict[str, Any] = {}
        inherited: dict[type, list[str]] = defaultdict(list)
        described = [base for base in cls.__mro__[1:] if self._link_class(base)]
        for name in dict.fromkeys(name for base in cls.__mro__ for name in vars(base)):
            member = inspect.getattr_static(cls, name)
            if name.startswith("_") or not is_method(member):
                continue
            base = next((b for b in reversed(described) if inspect.getattr_static(b, name, None) is member), None)
            if base:
                inherited[base].append(name)
            else:
                own[name] = member
        brief = []
        for name, member in own.items():
            doc = getattr(member, "__doc__", None) or inspect.getdoc(getattr(cls, name, None))
            overrides = any(hasattr(base, name) for base in described)
            if overrides and "\n" not in inspect.cleandoc(doc or ""):
                brief.append(f"- `{name}`: {escape(summary(doc))}")
            else:
                out += self.member(path, name, member, doc)
        if brief:
            out += ["**Overridden methods**", "", *brief, ""]
        for base, names in inherited.items():
            address = self._link_class(base)
            out += [f"Inherited from [`{base.__name__}`]({address}): {', '.join(f'`{n}`' for n in names)}", ""]
        return out

    def member(self, path: str, name: str, member: Any, doc: str | None) -> list[str]:
        """The entry of a method or property."""
        out = heading(3, f"{path.rpartition('.')[2]}.{name}", f"{path}.{name}")
        if not inspect.isfunction(member) and not isinstance(member, (classmethod, staticmethod)):
            return [*out, "*property*", "", *self.source(member), *docstring(doc, {})]
        function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        signature = signature_of(function, skip_first=not isinstance(member, staticmethod))
        if isinstance(member, (classmethod, staticmethod)):
            out += [f"*{type(member).__name__}*", ""]
        return [*out, *code(call_text(name, signature)), *self.source(function), *docstring(doc, facts_of(signature))]
