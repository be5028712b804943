"""`Vocabulary`: tokens and their indices; counting of tokens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError


class Vocabulary:
    """Numbers tokens: 0 is the unknown one, then the reserved ones, then those of a counter, frequent ones first.

    Args:
        counter: how often each token occurs; no further tokens if `None`.
        most_freq_count: keep at most so many of the counter's tokens.
        min_freq: keep tokens that occur at least so often.
        unknown_token: stands for all others.
        reserved_tokens: get numbers in any case.

    Raises:
        ArgumentError: `min_freq` below 1, or reserved tokens that repeat themselves or the unknown one.
        ArgumentTypeError: `counter` is no `collections.Counter`.

    Example:
        >>> from collections import Counter
        >>> v = Vocabulary(Counter("a b b c c c".split()), min_freq=2, reserved_tokens=["<pad>"])
        >>> v.idx_to_token, v.to_indices(["c", "x"])
        (['<unk>', '<pad>', 'c', 'b'], [2, 0])
    """

    def __init__(
        self, counter: Counter[Any] | None = None, most_freq_count: int | None = None, min_freq: int = 1,
        unknown_token: Hashable = "<unk>", reserved_tokens: Sequence[Any] | None = None,
    ):  # fmt: skip
        if min_freq < 1:
            raise ArgumentError(f"Vocabulary: min_freq={min_freq}: expected at least 1")
        reserved = list(reserved_tokens or ())
        if unknown_token in reserved:
            raise ArgumentError(f"Vocabulary: reserved_tokens has the unknown token {unknown_token!r}")
        if len(set(reserved)) != len(reserved):
            raise ArgumentError(f"Vocabulary: reserved_tokens={reserved}: expected each token once")
        if counter is not None and not isinstance(counter, Counter):
            raise ArgumentTypeError(
                f"Vocabulary: counter of type {type(counter).__name__}: expected a collections.Counter"
            )
        self._unknown_token = unknown_token
        self._reserved_tokens = None if reserved_tokens is None else reserved
        self._idx_to_token: list[Any] = [unknown_token, *reserved]
        special = set(self._idx_to_token)
        ranked = sorted((counter or Counter()).items(), key=lambda item: item[0])
        ranked.sort(key=lambda item: item[1], reverse=True)
        left = len(ranked) if most_freq_count is None else most_freq_count
        for token, count in ranked:
            if count < min_freq or left <= 0:
                break
            if token not in special:
                self._idx_to_token.append(token)
                left -= 1
        self._token_to_idx = {token: i for i, token in enumerate(self._idx_to_token)}

    def __len__(self) -> int:
        return len(self._idx_to_token)

    @property
    def token_to_idx(self) -> dict[Any, int]:
        """Numbers by token."""
        return self._token_to_idx

    @property
    def idx_to_token(self) -> list[Any]:
        """Tokens in the order of their numbers."""
        return self._idx_to_token

    @property
    def unknown_token(self) -> Any:
        """The token that represents unknown tokens."""
        return self._unknown_token

    @property
    def reserved_tokens(self) -> list[Any] | None:
        """The reserved tokens."""
        return self._reserved_tokens

    def to_indices(self, tokens: Any) -> Any:
        """Return the number of a token, or the numbers of a list of tokens; 0 for unknown ones."""
        if isinstance(tokens, (list, tuple)):
            return [self._token_to_idx.get(token, 0) for token in tokens]
        return self._token_to_idx.get(tokens, 0)

    def to_tokens(self, indices: Any) -> Any:
        """Return the token of a number, or the tokens of a list of numbers.

        Raises:
            ArgumentError: a number that no token has. ArgumentTypeError: not a number.
        """
        several = isinstance(indices, (list, tuple))
        found = []
        for index in indices if several else [indices]:
            if isinstance(index, bool) or not hasattr(index, "__index__"):
                raise ArgumentTypeError(f"to_tokens: {index!r} is no integer")
            if not 0 <= int(index) < len(self):
                raise ArgumentError(f"to_tokens: index {index}: expected 0 to {len(self) - 1}")
            found.append(self._idx_to_token[int(index)])
        return found if several else found[0]


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


__all__ = ["Vocabulary"]
