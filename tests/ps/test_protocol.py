"""Messages as records: what is written is read again, and nothing else is."""

from __future__ import annotations

import ast
import json
import re
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import pytest

from dualmx.core.errors import FormatError
from dualmx.ps import protocol
from dualmx.ps.protocol import Limit, Messages, header, parse
from dualmx.ps.van.frame import NOTICE, Message

TABLES = {name: one for name, one in vars(protocol).items() if isinstance(one, Messages)}
RECORDS = [one for name, one in vars(protocol).items() if name[0] != "_" and hasattr(one, "_fields")]
RECORDS.remove(Limit)
PLAIN = {str: "a", int: 3, float: 0.5, bool: True, dict: {"b": [1, None]}, list: [1, "c"], Any: None}


def sample(hint: Any) -> Any:
    """A value of a field."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Annotated, Union, UnionType):
        return sample(parts[0])
    if origin is list:
        return [sample(parts[0])] * 2
    if origin is tuple:
        return tuple(map(sample, parts))
    return next(iter(hint)) if isinstance(hint, type) and issubclass(hint, StrEnum) else PLAIN[hint]


def made(kind: Any) -> Any:
    hints = get_type_hints(kind, include_extras=True)
    return kind(*(sample(hints[name]) for name in kind._fields))


def said(record: Any, **more: Any) -> Message:
    return Message(NOTICE, 0, json.loads(json.dumps({**header(record), **more})))


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_every_record_is_read_as_it_was_written(kind: Any) -> None:
    record = made(kind)
    assert parse(kind, said(record).meta) == record and parse(kind, said(record, more="words").meta) == record
    bare = kind(*(sample(get_type_hints(kind)[n]) for n in kind._fields if n not in kind._field_defaults))
    assert parse(kind, said(bare).meta) == bare  # what is left out is the default


@pytest.mark.parametrize("table", TABLES)
def test_every_word_is_read_as_its_record(table: str) -> None:
    for op, kind in TABLES[table].kinds.items():
        record = made(kind)
        message = said(record, op=op)
        found = TABLES[table].read(message)
        assert type(found) is kind and said(found, op=op) == message


def test_unknown_words_are_refused() -> None:
    for table in TABLES.values():
        for op in ("of nobody", "", None, 3, ["push"], True):
            with pytest.raises(
                FormatError, match=f"unknown request {op!r}|message: op={re.escape(repr(op))}: not as expected"
            ):
                table.read(Message(NOTICE, 0, {"op": op}))
        with pytest.raises(FormatError, match="message: op=None: not as expected"):
            table.read(Message(NOTICE, 0))


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_wrong_and_missing_fields_are_refused(kind: Any) -> None:
    whole, hints = header(made(kind)), get_type_hints(kind)
    for name in kind._fields:
        word = name.rstrip("_")
        if name not in kind._field_defaults:
            with pytest.raises(FormatError, match=f"{word}=None: not as expected"):
                parse(kind, {w: value for w, value in whole.items() if w != word})
        if hints[name] is not Any:
            with pytest.raises(FormatError, match=f"{word}="):
                parse(kind, {**whole, word: object()})
    for meta in (None, [], "a", 3):
        if kind._fields and kind._fields[0] not in kind._field_defaults:
            with pytest.raises(FormatError, match=f"message '{kind.__name__}'"):
                parse(kind, meta)


class Bounded(NamedTuple):
    """A record with every kind of bound."""

    count: Annotated[int, Limit(0, 9)]
    words: Annotated[list[str], Limit(1, 2)]
    row: tuple[int, float | int]
    maybe: bool | None = None
    note: Annotated[str | None, protocol.NULL] = None


def test_bounds_and_rows() -> None:
    good = {"count": 9, "words": ["a"], "row": [1, 2]}
    assert parse(Bounded, good) == Bounded(9, ["a"], (1, 2))
    assert header(Bounded(9, ["a"], (1, 2))) == {"count": 9, "words": ["a"], "row": (1, 2), "note": None}
    for change in (
        {"count": 10}, {"count": -1}, {"count": True}, {"count": 1.0}, {"count": 10**400}, {"words": []},
        {"words": ["a"] * 3}, {"words": "ab"}, {"words": {"a": 1}}, {"row": [1]}, {"row": [1, 2, 3]},
        {"row": [True, 2]}, {"row": 3}, {"maybe": 1}, {"maybe": "yes"}, {"note": 3},
    ):  # fmt: skip
        with pytest.raises(FormatError, match="not as expected") as error:
            parse(Bounded, {**good, **change})
        assert len(str(error.value)) < 200


ROOMS = ("ps", "kvstore", "launch", "distributed")  # whose processes tell each other something


def words_in_json(path: Path) -> list[int]:
    """Lines of a file that write or read the word `op` of a message by hand."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value == protocol.OP]


def test_only_the_protocol_knows_what_tells_records_apart(tmp_path: Path) -> None:
    package = Path(protocol.__file__).parents[1]
    files = [path for room in ROOMS for path in (package / room).rglob("*.py") if path != Path(protocol.__file__)]
    assert len(files) > 50 and not [path for path in files if words_in_json(path)]
    by_hand = tmp_path / "by_hand.py"
    by_hand.write_text('meta = {"op": "push"}\nif message.meta.get("op") == "bye":\n    pass\n')
    assert words_in_json(by_hand) == [1, 2]
