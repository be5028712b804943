"""Partition rules: patterns of parameter names and their partition specs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..compile.devices import Spec, parse_spec
from ..core.errors import ArgumentError


def match_partition_rules(
    rules: Mapping[str, Any] | Iterable[tuple[str, Any]], names: Sequence[str], unused: bool = False
) -> dict[str, Spec]:
    """Return the spec of each name that a rule matches; the first matching rule decides.

    Args:
        rules: regular expressions and specs such as `("model", None)`.
        names: names of parameters.
        unused: accept rules that match nothing.

    Raises:
        ArgumentError: a rule matches no name, or is not a regular expression.

    Example:
        >>> rules = [("dense0_weight$", ("model", None)), ("bias$", ())]
        >>> match_partition_rules(rules, ["dense0_weight", "dense0_bias"])
        {'dense0_weight': ('model', None), 'dense0_bias': ()}
    """
    pairs: Any = rules.items() if isinstance(rules, Mapping) else rules
    listed: list[tuple[str, Any]] = list(pairs)
    found: dict[str, Spec] = {}
    matched = set()
    for name in names:
        for pattern, spec in listed:
            try:
                hit = re.search(pattern, name)
            except re.error as e:
                raise ArgumentError(f"shard: rule {pattern!r}: not a regular expression: {e}") from None
            if hit:
                matched.add(pattern)
                found.setdefault(name, parse_spec(spec))
    missing = [p for p, _ in listed if p not in matched]
    if missing and not unused:
        known = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
        raise ArgumentError(f"shard: rule {missing[0]!r} matches no parameter; the names are {known or 'to come'}")
    return found
