"""Counting the tokens of a text."""

from __future__ import annotations

import re
from collections import Counter


def count_tokens_from_str(
    source_str: str, token_delim: str = " ", seq_delim: str = "\n", to_lower: bool = False,
    counter_to_update: Counter[str] | None = None,
) -> Counter[str]:  # fmt: skip
    """Count the tokens of a text.

    Args:
        source_str: the text.
        token_delim, seq_delim: regular expressions of what separates tokens and sequences.
        to_lower: count in lower case.
        counter_to_update: add to this counter instead of a new one.

    Example:
        >>> sorted(count_tokens_from_str("a b\\nA", to_lower=True).items())
        [('a', 2), ('b', 1)]
    """
    tokens = [t for t in re.split(f"{token_delim}|{seq_delim}", source_str) if t]
    counter = Counter() if counter_to_update is None else counter_to_update
    counter.update(t.lower() for t in tokens) if to_lower else counter.update(tokens)
    return counter
