"""Totals by name as the table and JSON of `dumps`."""

from __future__ import annotations

import json

from .recorder import Recorder, Stat

KEYS = {
    "total": lambda t: t.total,
    "avg": lambda t: t.total / t.count,
    "min": lambda t: t.min,
    "max": lambda t: t.max,
    "count": lambda t: t.count,
}
_WIDTHS = (40, 16, 16, 16, 16, 16)
_HEADS = ("Name", "Total Count", "Time (ms)", "Min Time (ms)", "Max Time (ms)", "Avg Time (ms)")
_VALUE_HEADS = ("Name", "Total Count", "Min Value", "Max Value", "Avg Value")
_Groups = dict[str, list[tuple[str, Stat]]]


def stats_by_category(recorder: Recorder, of: dict[tuple[str, str], Stat], sort_by: str, ascending: bool) -> _Groups:
    """Return totals by category, each sorted."""
    with recorder.lock:
        found = list(of.items())
    groups: dict[str, list[tuple[str, Stat]]] = {}
    for (category, name), totals in found:
        groups.setdefault(category, []).append((name, totals))
    key = KEYS[sort_by]
    return {c: sorted(groups[c], key=lambda p: key(p[1]), reverse=not ascending) for c in sorted(groups)}


def op_counts(recorder: Recorder) -> dict[str, int]:
    """Return how often each operation ran inside programs."""
    with recorder.lock:
        return dict(recorder.op_counts)


def _row(cells: tuple[str, ...]) -> str:
    return "".join(c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(cells, _WIDTHS, strict=False)))


def summary_table(recorder: Recorder, sort_by: str, ascending: bool) -> str:
    """Return the table."""
    lines = ["", "Profile Statistics:"]
    for category, rows in stats_by_category(recorder, recorder.totals, sort_by, ascending).items():
        lines += [category, "=" * 17, _row(_HEADS), _row(tuple("-" * len(h) for h in _HEADS))]
        for name, t in rows:
            numbers = (t.total, t.min, t.max, t.total / t.count)
            lines.append(_row((name, str(t.count), *(f"{n:.4f}" for n in numbers))))
        lines.append("")
    for category, rows in stats_by_category(recorder, recorder.values, sort_by, ascending).items():
        lines += [
            f"{category} (counters)",
            "=" * 17,
            _row(_VALUE_HEADS),
            _row(tuple("-" * len(h) for h in _VALUE_HEADS)),
        ]
        lines += [
            _row((name, str(t.count), *(f"{n:.4f}" for n in (t.min, t.max, t.total / t.count)))) for name, t in rows
        ]
        lines.append("")
    counts = op_counts(recorder)
    if counts:
        lines += ["operators inside programs (executed as a whole: no times of their own)", "=" * 17]
        lines += [_row(_HEADS[:2]), _row(("----", "-" * 11))]
        ordered = sorted(counts.items(), key=lambda p: p[1], reverse=not ascending)
        lines += [_row((name, str(n))) for name, n in ordered]
        lines.append("")
    return "\n".join(lines)


def as_json(recorder: Recorder, sort_by: str, ascending: bool) -> str:
    """Return the totals as JSON: `Time` and `Value` by category and name, and the counts of fused operations."""
    times = {
        category: {
            name: {"Count": t.count, "Total": t.total, "Min": t.min, "Max": t.max, "Avg": t.total / t.count}
            for name, t in rows
        }
        for category, rows in stats_by_category(recorder, recorder.totals, sort_by, ascending).items()
    }
    values = {
        category: {name: {"Count": t.count, "Min": t.min, "Max": t.max, "Avg": t.total / t.count} for name, t in rows}
        for category, rows in stats_by_category(recorder, recorder.values, sort_by, ascending).items()
    }
    return json.dumps({"Time": times, "Value": values, "Unit": {"Time": "ms"}, "Fused": op_counts(recorder)}, indent=4)
