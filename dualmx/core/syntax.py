"""Python's parser, in one thread at a time.

Python 3.11 counts how deep syntax trees are for all threads together: where two threads make one, `ast.parse` raises
`SystemError`.
"""

from __future__ import annotations

import ast
import threading
from typing import Any

_lock = threading.Lock()
_MAX_TRIES = 5  # threads of other libraries may parse as well


def parse(source: str, mode: str = "exec") -> Any:
    """Return the syntax tree of a source, as `ast.parse` does.

    Raises:
        SyntaxError: it is no Python.

    Example:
        >>> len(parse("a = 1").body)
        1
    """
    with _lock:
        for _ in range(_MAX_TRIES - 1):
            try:
                return ast.parse(source, mode=mode)
            except SystemError:
                continue
        return ast.parse(source, mode=mode)


def literal_of(text: str) -> Any:
    """Return the value of a literal, as `ast.literal_eval` does.

    Raises:
        ValueError, SyntaxError: it is none.

    Example:
        >>> literal_of("(2, 3)")
        (2, 3)
    """
    return ast.literal_eval(parse(text.lstrip(" \t"), "eval"))


__all__ = ["literal_of", "parse"]
