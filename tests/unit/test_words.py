"""Names are made of the field's words: those of docs/glossary.md and of words.txt beside this file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dualmx"
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Words that say neither what is done nor what comes out, and words of a coach and horses.
BANNED = set(
    "again alike anew bell beside bury crossed farewell gives heard lane lent lined loan loans neighbour rope seat "
    "seated spoke spread stranger strangers told whole wholes wish".split()
)


def known() -> set[str]:
    listed = (Path(__file__).parent / "words.txt").read_text(encoding="utf-8")
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = " ".join(re.findall(r"^\| ([^|]+) \|", glossary, re.MULTILINE))
    return {line.strip() for line in listed.splitlines() if line and line[0] != "#"} | set(re.findall(r"\w+", terms))


def words(name: str) -> list[str]:
    """Return the words of a name: `MaxPool2D` is max and pool, single letters are left out."""
    return [word.lower() for word in WORD.findall(name) if len(word) > 1]


def unknown_words(name: str, vocabulary: set[str]) -> list[str]:
    """Return the words of a file stem or class name that are not in the vocabulary; it may hold a name as a whole."""
    return [] if name in vocabulary else [w for w in words(name) if not {w, w.removesuffix("s")} & vocabulary]


def names(path: Path) -> Iterator[tuple[str, str]]:
    """(kind, name) of a file, its classes, functions, arguments, variables and attributes."""
    yield "file", path.stem
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.ClassDef():
                yield "class", node.name
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield "function", node.name
            case ast.arg():
                yield "argument", node.arg
            case ast.Name(ctx=ast.Store()):
                yield "variable", node.id
            case ast.Attribute(ctx=ast.Store()):
                yield "attribute", node.attr


def complaints(path: Path, vocabulary: set[str]) -> Iterator[str]:
    for kind, name in names(path):
        if banned := BANNED & set(words(name)):
            yield f"{path}: {kind} {name}: {', '.join(banned)}: say what it does or returns, in the field's word"
        if kind in ("file", "class") and (new := unknown_words(name, vocabulary)):
            yield f"{path}: {kind} {name}: {', '.join(new)}: choose a word of the glossary, or add a line to words.txt"


def test_names_are_made_of_the_words_of_the_house() -> None:
    vocabulary = known()
    found = [text for path in sorted(PACKAGE.rglob("*.py")) for text in complaints(path, vocabulary)]
    assert not found, "\n".join(found)


def test_words_are_listed_once_and_in_order() -> None:
    lines = (Path(__file__).parent / "words.txt").read_text(encoding="utf-8").splitlines()
    listed = [line for line in lines if line and line[0] != "#"]
    assert listed == sorted(set(listed), key=lambda word: (word.lower(), word))
    assert not BANNED & set(listed)


def test_an_unknown_word_and_a_banned_one_are_found(tmp_path: Path) -> None:
    path = tmp_path / "borogove.py"
    path.write_text("class MimsyRath:\n    def told(self, a_seat): self.lane = again = a_seat\n")
    texts = list(complaints(path, {"mimsy"}))
    assert sorted(text.split(": ")[1] for text in texts) == [
        "argument a_seat", "attribute lane", "class MimsyRath", "file borogove", "function told", "variable again",
    ]  # fmt: skip
