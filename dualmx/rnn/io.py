"""`BucketSentenceIter`: encoded sentences in batches of similar length."""

from __future__ import annotations

import bisect
import random
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError
from ..io import DataBatch, DataDesc, DataIter
from ..io.data_batch import overridable_property
from ..namespace import nd


def encode_sentences(
    sentences: Sequence[Sequence[str]],
    vocab: dict[str, int] | None = None,
    invalid_label: int = -1,
    invalid_key: str = "\n",
    start_label: int = 0,
    unknown_token: str | None = None,
) -> tuple[list[list[int]], dict[str, int]]:
    """Replace words by numbers.

    Args:
        sentences: lists of words.
        vocab: number of each word; made from the sentences, and returned, if `None`.
        invalid_label: number of `invalid_key`, given to no word.
        invalid_key: stands for padding.
        start_label: first number of a new vocabulary.
        unknown_token: word that replaces words missing in `vocab`.

    Returns:
        the sentences as numbers, and the vocabulary.

    Raises:
        ArgumentError: a word is missing in `vocab` and there is no `unknown_token`.

    Example:
        >>> encode_sentences([["a", "b"], ["b"]])
        ([[0, 1], [1]], {'\\n': -1, 'a': 0, 'b': 1})
    """
    fresh = vocab is None
    known = {invalid_key: invalid_label} if vocab is None else vocab
    number = start_label

    def of(word: str) -> int:
        nonlocal number
        if word not in known:
            if not fresh and not unknown_token:
                raise ArgumentError(f"encode_sentences: unknown token {word}: give unknown_token, or add it to vocab")
            if unknown_token:
                word = unknown_token
        if word not in known:
            while number == invalid_label or (not fresh and number in known.values()):
                number += 1
            known[word] = number
            number += 1
        return known[word]

    return [[of(word) for word in sentence] for sentence in sentences], known


class BucketSentenceIter(DataIter):
    """Batches of sentences padded to the length of their bucket; the label of a word is the next word.

    Args:
        sentences: lists of numbers.
        batch_size: sentences in a batch; what does not fill a batch is left out.
        buckets: lengths; by default all that at least `batch_size` sentences have.
        invalid_label: padding.
        data_name, label_name: names of data and label.
        dtype: element type.
        layout: `"NT"` or `"TN"`.

    Raises:
        ArgumentError: another layout.

    Each batch carries its length as `bucket_key`, for `BucketingModule`. `reset()` shuffles anew with Python's and
    NumPy's global generators.
    """

    def __init__(
        self,
        sentences: Sequence[Sequence[int]],
        batch_size: int,
        buckets: list[int] | None = None,
        invalid_label: int = -1,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: Any = "float32",
        layout: str = "NT",
    ):
        super().__init__(batch_size)
        if layout not in ("NT", "TN"):
            raise ArgumentError(f"BucketSentenceIter: layout={layout!r}: expected 'NT' or 'TN'")
        if not buckets:
            counts = np.bincount([len(s) for s in sentences])
            buckets = [length for length, count in enumerate(counts) if count >= batch_size]
        if not buckets:
            raise ArgumentError("BucketSentenceIter: no length has a batch of sentences; give buckets")
        buckets = sorted(buckets)
        rows: list[list[np.ndarray]] = [[] for _ in buckets]
        left_out = 0
        for sentence in sentences:
            at = bisect.bisect_left(buckets, len(sentence))
            if at == len(buckets):
                left_out += 1
                continue
            row = np.full((buckets[at],), invalid_label, dtype=dtype)
            row[: len(sentence)] = sentence
            rows[at].append(row)
        if left_out:
            warnings.warn(f"discarded {left_out} sentences longer than the largest bucket", stacklevel=2)
        self.data = [np.asarray(r, dtype=dtype).reshape(-1, n) for r, n in zip(rows, buckets, strict=True)]
        self.buckets, self.invalid_label, self.dtype, self.layout = buckets, invalid_label, dtype, layout
        self.data_name, self.label_name = data_name, label_name
        self.major_axis = layout.find("N")
        self.default_bucket_key = max(buckets)
        self.idx = [(i, at) for i, r in enumerate(self.data) for at in range(0, len(r) - batch_size + 1, batch_size)]
        self.curr_idx = 0
        self.reset()

    def _described(self, name: str, length: int) -> DataDesc:
        shape = (self.batch_size, length) if self.major_axis == 0 else (length, self.batch_size)
        return DataDesc(name, shape, layout=self.layout)

    @overridable_property
    def provide_data(self) -> list[DataDesc]:
        """Description of the data of the longest bucket."""
        return [self._described(self.data_name, self.default_bucket_key)]

    @overridable_property
    def provide_label(self) -> list[DataDesc]:
        """Description of the label of the longest bucket."""
        return [self._described(self.label_name, self.default_bucket_key)]

    def reset(self) -> None:
        """Shuffle, and return to the beginning."""
        self.curr_idx = 0
        random.shuffle(self.idx)
        self.nddata: list[Any] = []
        self.ndlabel: list[Any] = []
        for rows in self.data:
            np.random.shuffle(rows)
            label = np.empty_like(rows)
            label[:, :-1] = rows[:, 1:]
            label[:, -1] = self.invalid_label
            for kept, values in ((self.nddata, rows), (self.ndlabel, label)):
                kept.append(nd.array(values, dtype=self.dtype) if len(values) else None)

    def next(self) -> DataBatch:
        """Return the next batch; raises `StopIteration` after the last."""
        if self.curr_idx == len(self.idx):
            raise StopIteration
        i, at = self.idx[self.curr_idx]
        self.curr_idx += 1
        data, label = self.nddata[i][at : at + self.batch_size], self.ndlabel[i][at : at + self.batch_size]
        if self.major_axis == 1:
            data, label = data.T, label.T
        length = self.buckets[i]
        return DataBatch(
            [data],
            [label],
            pad=0,
            bucket_key=length,
            provide_data=[self._described(self.data_name, length)],
            provide_label=[self._described(self.label_name, length)],
        )


__all__ = ["BucketSentenceIter", "encode_sentences"]
