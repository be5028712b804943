"""Pretrained word vectors: GloVe, fastText and custom files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..base import data_dir
from ..core.download import check_sha1
from ..core.errors import ArgumentError, DownloadError, FormatError, suggest
from ..core.reader import Content
from ..core.repository import fetch_unpacked
from ..namespace import nd
from ..ndarray import NDArray, array
from .vocabulary import Vocabulary

# Names and SHA-1 checksums of the files that are published.
_CHECKSUMS = dict(line.split() for line in Path(__file__).with_name("checksums.txt").read_text("ascii").splitlines())
GLOVE = {name: sha1 for name, sha1 in _CHECKSUMS.items() if name.startswith("glove.")}
FASTTEXT = {name: sha1 for name, sha1 in _CHECKSUMS.items() if name not in GLOVE}
REGISTRY: dict[str, type[TokenEmbedding]] = {}
Unknown = Callable[..., NDArray]


def register(embedding_cls: type[Any]) -> type[Any]:
    """Make a class of embeddings known to `create` under its name in lower case."""
    REGISTRY[embedding_cls.__name__.lower()] = embedding_cls
    return embedding_cls


def create(embedding_name: str, **kwargs: Any) -> Any:
    """Make an embedding by the name of its class, in any case.

    Raises:
        ArgumentError: no such class.
    """
    cls = REGISTRY.get(embedding_name.lower())
    if cls is None:
        raise ArgumentError(
            f"embedding {embedding_name!r}: no such class; {suggest(embedding_name.lower(), REGISTRY)}; see register()"
        )
    return cls(**kwargs)


def get_pretrained_file_names(embedding_name: str | None = None) -> Any:
    """Return the names of the files with pretrained vectors of one embedding, or a dict of all.

    Raises:
        KeyError: no such embedding.
    """
    known = {n: list(cls.pretrained_file_name_sha1) for n, cls in REGISTRY.items() if cls.pretrained_file_name_sha1}
    if embedding_name is None:
        return known
    if embedding_name not in known:
        raise KeyError(
            f"get_pretrained_file_names: embedding_name={embedding_name!r}; {suggest(embedding_name, known)}"
        )
    return known[embedding_name]


_LINE_BYTES = 300  # bytes of what is made of a line, beside its numbers


class TokenEmbedding(Vocabulary):
    """A vocabulary whose tokens have vectors; number 0 has that of unknown tokens."""

    pretrained_file_name_sha1: dict[str, str] = {}

    def __init__(self, vocabulary: Vocabulary | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self._vec_len = 0
        self._idx_to_vec: NDArray | None = None
        if vocabulary is not None:
            self._unknown_token, self._reserved_tokens = vocabulary.unknown_token, vocabulary.reserved_tokens

    @property
    def vec_len(self) -> int:
        """Length of the vectors."""
        return self._vec_len

    @property
    def idx_to_vec(self) -> NDArray:
        """The vectors (tokens, length), float32."""
        assert self._idx_to_vec is not None, "no vectors are loaded"
        return self._idx_to_vec

    def _load(self, path: str, delim: str, init_unknown_vec: Unknown, encoding: str) -> None:
        """Read lines of a token and its numbers; the first vector of a token counts, a heading is skipped."""
        path = os.path.expanduser(path)
        if not os.path.isfile(path):
            raise ArgumentError(f"pretrained_file_path={path!r}: there is no such file")
        vectors: list[np.ndarray] = []
        unknown: np.ndarray | None = None
        content = Content(b"", repr(path), "lines of a token and its numbers", size=os.path.getsize(path))
        with content.parsing(UnicodeError), open(path, encoding=encoding) as f:
            for number, line in enumerate(f, 1):
                token, *values = line.rstrip().split(delim)
                if not values:
                    raise content.error(f"line {number}: {line[:80]!r}")
                content.reserve(_LINE_BYTES + 8 * len(values), "its vectors")
                try:
                    vector = np.array(values, np.float32)
                except ValueError as e:
                    raise content.error(f"line {number}, token {token[:80]!r}: {e}") from None
                if token == self._unknown_token and unknown is None:
                    unknown = vector
                elif token in self._token_to_idx:
                    warnings.warn(f"line {number}: token {token!r} again; its first vector counts", stacklevel=4)
                elif len(vector) == 1:
                    warnings.warn(f"line {number}: token {token!r} has a vector of one number; skipped", stacklevel=4)
                else:
                    self._check_length(content, number, vector)
                    vectors.append(vector)
                    self._idx_to_token.append(token)
                    self._token_to_idx[token] = len(self._idx_to_token) - 1
        if not self._vec_len:
            raise content.error("no vectors of two numbers or more")
        if unknown is not None and len(unknown) != self._vec_len:
            found_text = f"a vector of {len(unknown)} numbers for {self._unknown_token!r}"
            raise content.error(found_text, None, str(self._vec_len))
        rows = np.zeros((len(self), self._vec_len), np.float32)
        rows[0] = init_unknown_vec(shape=(self._vec_len,)).asnumpy() if unknown is None else unknown
        if vectors:
            rows[-len(vectors) :] = np.stack(vectors)
        self._idx_to_vec = array(rows)

    def _check_length(self, content: Content, number: int, vector: np.ndarray) -> None:
        if self._vec_len and len(vector) != self._vec_len:
            raise content.error(f"line {number}: a vector of {len(vector)} numbers", None, str(self._vec_len))
        self._vec_len = len(vector)

    def _keep_only(self, vocabulary: Vocabulary) -> None:
        """Take over the numbers of a vocabulary, with the vectors loaded."""
        rows = self.get_vecs_by_tokens(vocabulary.idx_to_token)
        self._take(vocabulary, rows)

    def _take(self, vocabulary: Vocabulary, rows: NDArray) -> None:
        self._idx_to_token, self._token_to_idx = list(vocabulary.idx_to_token), dict(vocabulary.token_to_idx)
        self._unknown_token, self._reserved_tokens = vocabulary.unknown_token, vocabulary.reserved_tokens
        self._idx_to_vec, self._vec_len = rows, rows.shape[1]

    def get_vecs_by_tokens(self, tokens: Any, lower_case_backup: bool = False) -> NDArray:
        """Return the vector of a token, or the vectors of a list.

        Args:
            tokens: a token or a list of tokens; unknown ones have the vector of number 0.
            lower_case_backup: look tokens up in lower case if they are unknown.
        """
        several = isinstance(tokens, (list, tuple))
        numbers = []
        for token in tokens if several else [tokens]:
            number = self._token_to_idx.get(token)
            if number is None and lower_case_backup:
                number = self._token_to_idx.get(token.lower())
            numbers.append(number or 0)
        rows = nd.Embedding(array(numbers), self.idx_to_vec, input_dim=len(self), output_dim=self._vec_len)
        return rows if several else rows[0]

    def update_token_vectors(self, tokens: Any, new_vectors: NDArray) -> None:
        """Replace the vectors of tokens.

        Args:
            tokens: a token or a list of tokens.
            new_vectors: (length,) or (tokens, length).

        Raises:
            ArgumentError: an unknown token, or vectors of another shape.
        """
        names = list(tokens) if isinstance(tokens, (list, tuple)) else [tokens]
        rows = new_vectors.reshape((1, -1)) if new_vectors.ndim == 1 else new_vectors
        if rows.shape != (len(names), self._vec_len):
            raise ArgumentError(
                f"update_token_vectors: shape {new_vectors.shape}: expected {(len(names), self._vec_len)}"
            )
        for token in names:
            if token not in self._token_to_idx:
                raise ArgumentError(
                    f"update_token_vectors: token {token!r} is unknown; name {self._unknown_token!r} to change the "
                    "vector of all unknown tokens"
                )
        for token, row in zip(names, rows, strict=True):
            self.idx_to_vec[self._token_to_idx[token]] = row


class _PretrainedEmbedding(TokenEmbedding):
    """Vectors that were published in files."""

    def __init__(
        self, pretrained_file_name: str, embedding_root: str, init_unknown_vec: Unknown, vocabulary: Vocabulary | None,
        **kwargs: Any,
    ):  # fmt: skip
        name = type(self).__name__.lower()
        if pretrained_file_name not in self.pretrained_file_name_sha1:
            hint = suggest(pretrained_file_name, self.pretrained_file_name_sha1)
            raise KeyError(f"{name}: pretrained_file_name={pretrained_file_name!r}: not a published file; {hint}")
        super().__init__(**kwargs)
        path = os.path.join(os.path.expanduser(embedding_root), name, pretrained_file_name)
        if not os.path.isfile(path):
            self._fetch(name, path)
        self._load(path, " ", init_unknown_vec, "utf8")
        if vocabulary is not None:
            self._keep_only(vocabulary)

    def _fetch(self, kind: str, path: str) -> None:
        """Download the archive that has the file, and keep those of its files that are known."""
        folder, name = os.path.split(path)
        known = self.pretrained_file_name_sha1
        archive = f"{self._archive_of(name)}.zip"

        def choose(member: str) -> str | None:
            file = member.rpartition("/")[2]
            return file if file in known else None

        try:
            fetch_unpacked(kind, f"embeddings/{kind}/{archive}", folder, choose, lambda: os.path.isfile(path))
        except DownloadError as e:
            raise DownloadError(f"{path!r} does not exist: {e}; embedding_root= names its folder") from None
        if not (os.path.isfile(path) and check_sha1(path, known[name])):
            if os.path.isfile(path):
                os.unlink(path)
            raise FormatError(f"{kind}: {archive} was fetched, but has no {name} with the SHA-1 {known[name]}")

    @staticmethod
    def _archive_of(name: str) -> str:
        return name.rpartition(".")[0]


ROOT = os.path.join(data_dir(), "embeddings")


@register
class GloVe(_PretrainedEmbedding):
    """GloVe vectors, read from `<embedding_root>/glove/<pretrained_file_name>`, downloaded if need be.

    Args:
        pretrained_file_name: one of `get_pretrained_file_names("glove")`.
        embedding_root: the folder.
        init_unknown_vec: makes the vector of unknown tokens from `shape=`.
        vocabulary: keep the vectors of its tokens only.

    Raises:
        KeyError: not one of the published files. DownloadError: the file is missing and cannot be downloaded.
    """

    pretrained_file_name_sha1 = GLOVE

    def __init__(
        self, pretrained_file_name: str = "glove.840B.300d.txt", embedding_root: str = ROOT,
        init_unknown_vec: Unknown = nd.zeros, vocabulary: Vocabulary | None = None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(pretrained_file_name, embedding_root, init_unknown_vec, vocabulary, **kwargs)

    @staticmethod
    def _archive_of(name: str) -> str:
        # Files of several lengths that come from the same texts are in one archive.
        return ".".join(name.split(".")[: 3 if name.startswith("glove.twitter.") else 2 if ".6B." in name else -1])


@register
class FastText(_PretrainedEmbedding):
    """fastText vectors, read from `<embedding_root>/fasttext/<pretrained_file_name>`; arguments as for `GloVe`."""

    pretrained_file_name_sha1 = FASTTEXT

    def __init__(
        self, pretrained_file_name: str = "wiki.simple.vec", embedding_root: str = ROOT,
        init_unknown_vec: Unknown = nd.zeros, vocabulary: Vocabulary | None = None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(pretrained_file_name, embedding_root, init_unknown_vec, vocabulary, **kwargs)


class CustomEmbedding(TokenEmbedding):
    """Vectors of a file with one token and its numbers per line.

    Args:
        pretrained_file_path: the file.
        elem_delim: what separates token and numbers.
        encoding: of the file.
        init_unknown_vec: makes the vector of unknown tokens from `shape=`, unless the file has one.
        vocabulary: keep the vectors of its tokens only.

    Raises:
        ArgumentError: no such file. FormatError: a line that is no token with numbers, or vectors of several lengths.
    """

    def __init__(
        self, pretrained_file_path: str, elem_delim: str = " ", encoding: str = "utf8",
        init_unknown_vec: Unknown = nd.zeros, vocabulary: Vocabulary | None = None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        self._load(pretrained_file_path, elem_delim, init_unknown_vec, encoding)
        if vocabulary is not None:
            self._keep_only(vocabulary)


class CompositeEmbedding(TokenEmbedding):
    """The vectors of several embeddings, joined, for the tokens of a vocabulary.

    Args:
        vocabulary: the tokens.
        token_embeddings: an embedding or a list of them.
    """

    def __init__(self, vocabulary: Vocabulary, token_embeddings: TokenEmbedding | Sequence[TokenEmbedding]):
        super().__init__()
        parts = [token_embeddings] if isinstance(token_embeddings, TokenEmbedding) else list(token_embeddings)
        tokens = vocabulary.idx_to_token
        self._take(vocabulary, nd.concat(*(part.get_vecs_by_tokens(tokens) for part in parts), dim=1))


__all__ = [
    "CompositeEmbedding", "CustomEmbedding", "FastText", "GloVe", "TokenEmbedding", "create",
    "get_pretrained_file_names", "register",
]  # fmt: skip
