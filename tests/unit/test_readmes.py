"""Every room has a README of ten lines: what it is for, what it imports, where to start; and its files exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "dualmx"
ROOMS = sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))


def complaints(room: Path) -> list[str]:
    readme = room / "README.md"
    if not readme.exists():
        return [f"{readme}: missing: say what the room is for, what it imports, where to start reading"]
    text = readme.read_text(encoding="utf-8")
    files = re.findall(r"`([\w/]+(?:\.py|/))`", text)
    found = [f"{readme}: {f} does not exist" for f in files if not (room / f).exists() and not (PACKAGE / f).exists()]
    wanted = (f"# {room.name}\n", "\nImports: ", "\nStart with ")
    found += [f"{readme}: has no {part.strip()!r}" for part in wanted if part not in text]
    return found + [f"{readme}: more than 14 lines"] * (text.count("\n") > 14)


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_a_room_has_a_readme(room: Path) -> None:
    assert not complaints(room)


def test_what_is_missing_is_found(tmp_path: Path) -> None:
    assert "missing" in complaints(tmp_path)[0]
    (tmp_path / "README.md").write_text(f"# {tmp_path.name}\n\nImports: core.\n\nBegin with `borogove.py`.\n")
    assert [text.split(": ")[1] for text in complaints(tmp_path)] == [
        "borogove.py does not exist",
        "has no 'Start with'",
    ]
