"""The reference, drawn from docstrings: a mkdocs hook that adds a page for each public module and theme of operators.

The modules are imported and inspected: many functions are made from the table of operators when they are first named,
and stand in no file that a reader of source code could find.
"""

from __future__ import annotations

import inspect
import posixpath
from collections import defaultdict
from functools import cached_property
from pathlib import Path
from typing import Any

from operators_page import OperatorPages
from reference_contents import BOOST_OF_RARE, BOOSTS, SECTIONS, SPECIFIC
from reference_entries import EntryWriter, cell, docstring, escape, summary
from reference_symbols import MIRRORS, ROOT, Unimported, load, public_modules, public_symbols, shown

FOLDER = "reference"


class Reference:
    """Pages of the reference by their path in the site's sources.

    Args:
        repository: address of the browsable source tree, to which paths are appended; without one, links go to copies
            of the files among the pages.
        examples: run the operators that need no parameters, and show what they gave.
    """

    def __init__(self, repository: str = "", examples: bool = True):
        self._repository = repository.rstrip("/")
        self._copied: set[Path] = set()
        self._writer = EntryWriter(self._source_link, self._class_link)
        self.paths = [path for paths in SECTIONS.values() for path in paths]
        self.operators = OperatorPages(self._source_link, examples)
        self._homes: dict[int, tuple[str, str]] = {}
        for path in [*SPECIFIC, *self.paths]:
            for name, value in public_symbols(path).items():
                if is_described(value) and path not in MIRRORS and (path, name) not in self.operators.addresses:
                    self._homes.setdefault(id(value), (path, name))

    @cached_property
    def pages(self) -> dict[str, str]:
        """All pages."""
        pages = {page_name(path): self.module_page(path) for path in self.paths}
        pages |= self.operators.pages
        pages |= {"index.md": self.index_page(), "import_paths.md": self.import_paths_page()}
        pages |= {source_page_name(file): source_page(file) for file in sorted(self._copied)}
        return {f"{FOLDER}/{name}": text for name, text in pages.items()}

    def address(self, path: str, name: str) -> str | None:
        """Page and anchor of what describes `name` of the module at `path`; None for constants."""
        if (path, name) in self.operators.addresses:
            return self.operators.addresses[path, name]
        if path in MIRRORS:
            return self.address(MIRRORS[path], name)
        home = self._homes.get(id(public_symbols(path)[name]))
        return home and f"{page_name(home[0])}#{full_name(*home)}"

    def module_page(self, path: str) -> str:
        """The page of a module: its docstring, tables of all it offers, and the entries of what is at home there."""
        symbols = public_symbols(path)
        at_home = {n: v for n, v in symbols.items() if is_described(v) and self._homes.get(id(v)) == (path, n)}
        elsewhere = [n for n in symbols if n not in at_home and (path, n) not in self.operators.addresses]
        out = [f"---\nsearch:\n  boost: {boost(path) if len(at_home) > len(elsewhere) else BOOST_OF_RARE}\n---\n"]
        title = f"mx.{shown(path)}" if path else "mx"
        out += [f"# {escape(title)}", "", *docstring(load(path).__doc__, {})]
        rows: dict[str, list[tuple[str, str, str | None]]] = defaultdict(list)
        for below in self.paths:
            if path and below.rpartition(".")[0] == path:
                rows["Modules"].append((f"mx.{shown(below)}", summary(load(below).__doc__), page_name(below)))
        for name, value in symbols.items():
            address = self.address(path, name)
            if not address:
                rows["Constants"].append((name, constant_text(value), None))
            elif (path, name) in self.operators.addresses:
                rows[f"Operators: {self.operators.themes[address].lower()}"].append(
                    (name, summary(value.__doc__), address)
                )
            else:
                kind = "Classes" if inspect.isclass(value) or isinstance(value, Unimported) else "Functions"
                rows[kind].append((name, summary(doc_of(value)), address))
        for title in sorted(rows, key=lambda t: (t.startswith("Operators"), t == "Constants")):
            out += table(title, rows[title])
        for name, value in at_home.items():
            out += self._writer.entry(full_name(path, name), value)
        return "\n".join(out)

    def index_page(self) -> str:
        """The table of all pages."""
        out = ["# Reference", "", "Everything a script can import, by what it is for. `mx` is the package.", ""]
        for section, paths in SECTIONS.items():
            out += table(
                section, [(f"mx.{shown(p)}" if p else "mx", summary(load(p).__doc__), page_name(p)) for p in paths]
            )
        out += table("Operators", [(title, "", page) for title, page in self.operators.titles.items()], code=False)
        out += ["MXNet has further paths for the same names: [Other import paths](import_paths.md).", ""]
        return "\n".join(out)

    def import_paths_page(self) -> str:
        """Modules that offer under another path what has its entry elsewhere."""
        out = [
            "# Other import paths",
            "",
            "These modules offer what others describe, under the paths that MXNet has.",
            "",
        ]
        out += ["| Module | Its names are described in |", "|---|---|"]
        for path in public_modules():
            if path not in self.paths:
                homes = {self._homes[id(v)][0] for v in public_symbols(path).values() if id(v) in self._homes}
                links = ", ".join(f"[mx.{cell(shown(home))}]({page_name(home)})" for home in sorted(homes))
                out.append(f"| `mx.{path}` | {links or cell(summary(load(path).__doc__))} |")
        return "\n".join([*out, ""])

    def nav(self) -> list[Any]:
        """The part of the navigation, in sections."""
        sections: list[Any] = [f"{FOLDER}/index.md"]
        for title, paths in SECTIONS.items():
            sections.append({title: [{shown(p) or "mx": f"{FOLDER}/{page_name(p)}"} for p in paths]})
        operators = [{title: f"{FOLDER}/{page}"} for title, page in self.operators.titles.items()]
        return [*sections, {"Operators": operators}, {"Other import paths": f"{FOLDER}/import_paths.md"}]

    def _source_link(self, file: Path, line: int) -> str:
        if self._repository:
            return f"{self._repository}/{file.as_posix()}#L{line}"
        self._copied.add(file)
        return f"{source_page_name(file)}#__codelineno-0-{line}"

    def _class_link(self, cls: type) -> str | None:
        home = self._homes.get(id(cls))
        return home and f"{page_name(home[0])}#{full_name(*home)}"


def page_name(path: str) -> str:
    """File name of the page of a module."""
    return f"{shown(path) or 'mx'}.md"


def boost(path: str) -> float:
    """How much a match on the page of a module counts in the search."""
    section = next(title for title, paths in SECTIONS.items() if path in paths)
    return BOOST_OF_RARE if "contrib" in path or "model_zoo" in path else BOOSTS.get(section, 1)


def full_name(path: str, name: str) -> str:
    """What users write after `mx.` for a name of a module, which is also its anchor."""
    return f"{shown(path)}.{name}" if path else name


def is_described(value: object) -> bool:
    """Whether a name gets an entry: classes and functions, but not constants."""
    return isinstance(value, Unimported) or inspect.isclass(value) or inspect.isroutine(value)


def doc_of(value: Any) -> str | None:
    """The docstring, of a class also where it needs a package that is missing."""
    return value.doc if isinstance(value, Unimported) else inspect.getdoc(value)


def constant_text(value: object) -> str:
    """What a constant is: its value if that is short, or its type."""
    text = repr(value)
    return f"`{text}`" if len(text) <= 60 and "\n" not in text and " at 0x" not in text else type(value).__name__


def table(title: str, rows: list[tuple[str, str, str | None]], code: bool = True) -> list[str]:
    """A titled table of names with links and what they are."""
    out = [f"**{title}**", "", "| Name | Description |", "|---|---|"]
    for name, text, address in rows:
        label = f"`{name}`" if code else name
        out.append(f"| {f'[{label}]({address})' if address else label} | {cell(text)} |")
    return [*out, ""]


def source_page_name(file: Path) -> str:
    """File name of the copy of a source file."""
    return f"source/{file.as_posix()}.md"


def source_page(file: Path) -> str:
    """A copy of a source file with numbered lines, which the search leaves out."""
    text = (ROOT / file).read_text(encoding="utf-8").rstrip("\n")
    fence = "`" * 8
    head = f"---\nsearch:\n  exclude: true\nhide: [navigation, toc]\n---\n# {escape(file.as_posix())}\n"
    return f'{head}\n{fence} {{ .python linenums="1" }}\n{text}\n{fence}\n'


_references: list[Reference] = []


def on_config(config: Any) -> Any:
    """mkdocs hook: put the reference's pages into the navigation, where `reference/index.md` stands."""
    repository = config.repo_url and posixpath.join(config.repo_url, config.extra.get("source_uri", ""))
    _references[:] = [Reference(repository or "")]
    for item in config.nav or ():
        for title, target in item.items():
            if target == f"{FOLDER}/index.md":
                item[title] = _references[0].nav()
    return config


def on_files(files: Any, config: Any) -> Any:
    """mkdocs hook: add the generated pages."""
    from mkdocs.structure.files import File

    for name, text in _references[0].pages.items():
        files.append(File.generated(config, name, content=text))
    return files
