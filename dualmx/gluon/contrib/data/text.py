"""The WikiText language modelling datasets."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np

from ....base import data_dir
from ....core.download import check_sha1, download
from ....core.errors import ArgumentError, DownloadError, FormatError
from ....core.repository import fetch_unpacked
from ....ndarray import array
from ....text import Vocabulary, count_tokens_from_str
from ...data import Dataset

EOS = "<eos>"


class _WikiText(Dataset):
    """Consecutive sequences of token numbers; the label is the sequence one token later.

    Args:
        root: folder with the token files, or into which they are downloaded.
        segment: `"train"`, `"validation"` or `"test"`.
        vocab: the vocabulary; made from the segment if `None`.
        seq_len: tokens per sample.

    Raises:
        ArgumentError: another segment. DownloadError: no file, and it cannot be downloaded.
    """

    _namespace = ""
    _archive: tuple[str, str]
    _files: dict[str, tuple[str, str]]

    def __init__(self, root: str | None = None, segment: str = "train", vocab: Any = None, seq_len: int = 35):
        if segment not in self._files:
            raise ArgumentError(f"{type(self).__name__}: segment={segment!r}: expected one of {sorted(self._files)}")
        folder = os.path.join(data_dir(), "datasets", self._namespace) if root is None else root
        self._root, self._segment, self._seq_len = os.path.expanduser(folder), segment, int(seq_len)
        with open(self._path(), encoding="utf8") as f:
            content = f.read()
        self._counter: Counter[str] = count_tokens_from_str(content)
        self._vocab = Vocabulary(counter=self._counter, reserved_tokens=[EOS]) if vocab is None else vocab
        lines = [line.strip().split() for line in content.splitlines()]
        tokens = [token for line in lines if line for token in (*line, EOS)]
        numbers = np.array(self._vocab.to_indices(tokens), np.int32)
        count = (len(numbers) - 1) // self._seq_len * self._seq_len
        self._data = array(numbers[:count].reshape(-1, self._seq_len), dtype="int32")
        self._label = array(numbers[1 : count + 1].reshape(-1, self._seq_len), dtype="int32")

    def _path(self) -> str:
        name, digest = self._files[self._segment]
        path = os.path.join(self._root, name)
        if os.path.exists(path) and check_sha1(path, digest):
            return path
        archive, archive_digest = self._archive
        kind = type(self).__name__
        try:
            fetch_unpacked(
                kind,
                f"dataset/{self._namespace}/{archive}",
                self._root,
                os.path.basename,
                lambda: os.path.exists(path) and check_sha1(path, digest),
                archive_digest,
            )
        except (OSError, FormatError) as e:
            state = "has another checksum than the original" if os.path.exists(path) else "does not exist"
            raise DownloadError(f"{path!r} {state}: {e}; put {name} or {archive} into {self._root!r}") from e
        if not os.path.exists(path):
            raise FormatError(f"{kind}: {archive} was fetched, but has no {name}")
        return path

    @property
    def vocabulary(self) -> Any:
        """The vocabulary."""
        return self._vocab

    @property
    def frequencies(self) -> Counter[str]:
        """How often each token occurs."""
        return self._counter

    def __getitem__(self, idx: int) -> tuple[Any, Any]:
        return self._data[idx], self._label[idx]

    def __len__(self) -> int:
        return len(self._label)


class WikiText2(_WikiText):
    __doc__ = (_WikiText.__doc__ or "").replace("Consecutive", "WikiText-2: consecutive", 1)
    _namespace = "wikitext-2"
    _archive = ("wikitext-2-v1.zip", "3c914d17d80b1459be871a5039ac23e752a53cbe")
    _files = {
        "train": ("wiki.train.tokens", "863f29c46ef9d167fff4940ec821195882fe29d1"),
        "validation": ("wiki.valid.tokens", "0418625c8b4da6e4b5c7a0b9e78d4ae8f7ee5422"),
        "test": ("wiki.test.tokens", "c7b8ce0aa086fb34dab808c5c49224211eb2b172"),
    }


class WikiText103(_WikiText):
    __doc__ = (_WikiText.__doc__ or "").replace("Consecutive", "WikiText-103: consecutive", 1)
    _namespace = "wikitext-103"
    _archive = ("wikitext-103-v1.zip", "0aec09a7537b58d4bb65362fee27650eeaba625a")
    _files = {
        "train": ("wiki.train.tokens", "b7497e2dfe77e72cfef5e3dbc61b7b53712ac211"),
        "validation": ("wiki.valid.tokens", "c326ac59dc587676d58c422eb8a03e119582f92b"),
        "test": ("wiki.test.tokens", "8a5befc548865cec54ed4273cf87dbbad60d1e47"),
    }


__all__ = ["WikiText103", "WikiText2", "check_sha1", "download"]
