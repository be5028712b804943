"""Draw the rooms of the package from their imports: `docs/house.svg`, the picture of docs/design.md.

    python docs/house.py           # writes docs/house.svg
    python docs/house.py --check   # exits 1 where the picture is older than the imports

A box is a package of `dualmx/`; the number below its name is its thousands of lines. An arrow leads to a room that it
imports, deferred imports included; arrows that follow from others are left out, and so are modules outside a package.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "dualmx"
PICTURE = Path(__file__).resolve().parent / "house.svg"
BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y = 136, 44, 16, 36

Edges = dict[str, set[str]]


def rooms() -> list[str]:
    """Names of the packages."""
    return sorted(p.parent.name for p in PACKAGE.glob("*/__init__.py"))


def imported(file: Path) -> Iterator[str]:
    """First part, inside the package, of every module that a file imports."""
    package = file.relative_to(PACKAGE).parts[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            yield from (
                [base[0]]
                if base
                else [(node.module or "").split(".")[0]]
                if node.module
                else [a.name for a in node.names]
            )
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dualmx."):
            yield str(node.module).split(".")[1]


@cache
def edges() -> Edges:
    """The rooms that each room imports."""
    names = rooms()
    return {
        room: {i for file in (PACKAGE / room).rglob("*.py") for i in imported(file) if i in names} - {room}
        for room in names
    }


def reachable(graph: Edges, start: str) -> set[str]:
    """Everything that `start` imports, directly or not."""
    found: set[str] = set()
    front = [start]
    while front:
        new = graph[front.pop()] - found
        found |= new
        front += new
    return found


def reduced(graph: Edges) -> Edges:
    """The arrows that do not follow from others."""
    return {a: {b for b in to if not any(b in reachable(graph, c) for c in to - {b})} for a, to in graph.items()}


def floors(graph: Edges) -> list[list[str]]:
    """Rooms by the longest path down to a room without imports."""
    heights: dict[str, int] = {}

    def height(room: str, above: tuple[str, ...] = ()) -> int:
        if room in above:
            raise SystemExit(f"rooms import each other: {' -> '.join((*above, room))}")
        if room not in heights:
            heights[room] = 1 + max((height(r, (*above, room)) for r in graph[room]), default=-1)
        return heights[room]

    for room in graph:
        height(room)
    return [sorted(r for r in graph if heights[r] == h) for h in range(max(heights.values()) + 1)]


def lines(room: str) -> int:
    """Lines of Python of a room."""
    return sum(file.read_text(encoding="utf-8").count("\n") for file in (PACKAGE / room).rglob("*.py"))


def svg() -> str:
    """The picture."""
    graph = reduced(edges())
    levels = floors(graph)
    width = max(len(level) for level in levels) * (BOX_WIDTH + GAP_X) + GAP_X
    height = len(levels) * (BOX_HEIGHT + GAP_Y) + GAP_Y
    x: dict[str, float] = {}
    y: dict[str, float] = {}
    for number, level in enumerate(levels):
        # Beside the rooms that it stands on, so that few arrows cross.
        order = sorted(level, key=lambda room: sum(x[r] for r in graph[room]) / max(1, len(graph[room])))
        left = (width - len(order) * (BOX_WIDTH + GAP_X) + GAP_X) / 2
        for place, room in enumerate(order):
            x[room] = left + place * (BOX_WIDTH + GAP_X)
            y[room] = height - (number + 1) * (BOX_HEIGHT + GAP_Y)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'text-anchor="middle" role="img" aria-label="Rooms of dualmx and their imports">',
        "<style>rect{fill:#eef2fb;stroke:#4a5fa8}text{fill:#1d2440;font-size:15px}.n{font-size:11px;fill:#5a6485}"
        ".a{fill:none;stroke:#8a93b5;marker-end:url(#a)}marker path{fill:#8a93b5}"
        "@media(prefers-color-scheme:dark){rect{fill:#252c45;stroke:#8fa2e8}text{fill:#e6e9f5}.n{fill:#aab2d0}}</style>",
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    for room, targets in sorted(graph.items()):
        for target in sorted(targets):
            x0, y0 = x[room] + BOX_WIDTH / 2, y[room] + BOX_HEIGHT
            x1, y1 = x[target] + BOX_WIDTH / 2, y[target]
            parts.append(f'<path class="a" d="M{x0:g} {y0:g}C{x0:g} {y0 + 30:g} {x1:g} {y1 - 30:g} {x1:g} {y1:g}"/>')
    for room in sorted(graph):
        middle = x[room] + BOX_WIDTH / 2
        parts.append(f'<rect x="{x[room]:g}" y="{y[room]:g}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>')
        parts.append(f'<text x="{middle:g}" y="{y[room] + 20:g}">{room}</text>')
        parts.append(f'<text class="n" x="{middle:g}" y="{y[room] + 36:g}">{lines(room) / 1000:.1f}</text>')
    return "\n".join([*parts, "</svg>\n"])


def structure(picture: str) -> list[str]:
    """Rooms and arrows of a picture without the numbers of lines, which change daily."""
    return [line for line in picture.splitlines() if 'class="n"' not in line]


def main(argv: list[str]) -> None:
    if argv == ["--check"]:
        if structure(PICTURE.read_text(encoding="utf-8")) != structure(svg()):
            raise SystemExit("docs/house.svg is older than the imports: run python docs/house.py")
        return
    PICTURE.write_text(svg(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
