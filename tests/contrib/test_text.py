"""Vocabularies and token embeddings, against values of MXNet."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import dualmx as mx
from dualmx.contrib import text

COUNTS = Counter(["b", "a", "c", "c", "b", "c", "d"])


def test_counting() -> None:
    found = text.utils.count_tokens_from_str(" Life is great ! \n life is good . \n", to_lower=True)
    assert found == {"life": 2, "is": 2, "great": 1, "!": 1, "good": 1, ".": 1}
    counter = Counter({"a": 3})
    assert text.utils.count_tokens_from_str("a  b\nc", counter_to_update=counter) is counter
    assert counter == {"a": 4, "b": 1, "c": 1}


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ({}, ["<unk>", "c", "b", "a", "d"]),
        ({"most_freq_count": 2, "reserved_tokens": ["<pad>"]}, ["<unk>", "<pad>", "c", "b"]),
        ({"min_freq": 2, "unknown_token": "U"}, ["U", "c", "b"]),
        ({"reserved_tokens": ["a"]}, ["<unk>", "a", "c", "b", "d"]),
        ({"most_freq_count": 0}, ["<unk>"]),
    ],
)
def test_order_of_tokens(options: dict, tokens: list[str]) -> None:
    vocabulary = text.vocab.Vocabulary(COUNTS, **options)
    assert vocabulary.idx_to_token == tokens and len(vocabulary) == len(tokens)
    assert vocabulary.to_tokens(vocabulary.to_indices(tokens)) == tokens
    assert vocabulary.to_indices("never seen") == 0


def test_wrong_vocabularies() -> None:
    for options in ({"min_freq": 0}, {"reserved_tokens": ["<unk>"]}, {"reserved_tokens": ["a", "a"]}):
        with pytest.raises(ValueError, match="Vocabulary"):
            text.vocab.Vocabulary(COUNTS, **options)
    vocabulary = text.vocab.Vocabulary(COUNTS)
    with pytest.raises(ValueError, match="index 10"):
        vocabulary.to_tokens(10)
    with pytest.raises(TypeError, match="'a'"):
        vocabulary.to_tokens(["a"])


@pytest.fixture
def embedding(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("a 0.1 0.2\nb 0.3 0.4\n<unk> 9 9\nc 1 2\n")
    return text.embedding.CustomEmbedding(str(path))


def test_custom_embedding(embedding) -> None:
    assert embedding.idx_to_token == ["<unk>", "a", "b", "c"] and embedding.vec_len == 2
    np.testing.assert_allclose(embedding.idx_to_vec.asnumpy(), [[9, 9], [0.1, 0.2], [0.3, 0.4], [1, 2]], rtol=1e-6)
    np.testing.assert_allclose(embedding.get_vecs_by_tokens("a").asnumpy(), [0.1, 0.2], rtol=1e-6)
    found = embedding.get_vecs_by_tokens(["A", "zz"])
    np.testing.assert_allclose(found.asnumpy(), [[9, 9], [9, 9]])
    found = embedding.get_vecs_by_tokens(["A"], lower_case_backup=True)
    np.testing.assert_allclose(found.asnumpy(), [[0.1, 0.2]], rtol=1e-6)


def test_vectors_can_be_replaced(embedding) -> None:
    embedding.update_token_vectors(["a", "<unk>"], mx.nd.array([[5, 6], [7, 8]]))
    np.testing.assert_allclose(embedding.idx_to_vec.asnumpy()[:2], [[7, 8], [5, 6]])
    with pytest.raises(ValueError, match="'zz' is unknown"):
        embedding.update_token_vectors("zz", mx.nd.array([1, 2]))
    with pytest.raises(ValueError, match="expected"):
        embedding.update_token_vectors(["a", "b"], mx.nd.array([1, 2]))


def test_embedding_of_a_vocabulary(embedding, tmp_path) -> None:
    path = tmp_path / "more.txt"
    path.write_text("3 2\na 0.1 0.2\nb 0.3 0.4\nb 0.5 0.6\n")
    with pytest.warns(UserWarning):
        more = text.embedding.CustomEmbedding(str(path))
    assert more.idx_to_token == ["<unk>", "a", "b"]
    both = text.embedding.CompositeEmbedding(text.vocab.Vocabulary(COUNTS), [embedding, more])
    expected = [[9, 9, 0, 0], [1, 2, 0, 0], [0.3, 0.4, 0.3, 0.4], [0.1, 0.2, 0.1, 0.2], [9, 9, 0, 0]]
    np.testing.assert_allclose(both.idx_to_vec.asnumpy(), expected, rtol=1e-6)
    assert both.idx_to_token == ["<unk>", "c", "b", "a", "d"] and both.vec_len == 4


@pytest.mark.parametrize("content", ["a 0.1\nb 0.2 x\n", "a\n", "", "a 1 2\nb 1 2 3\n"])
def test_malformed_files(content: str, tmp_path) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(content)
    with (
        pytest.warns(UserWarning) if content.startswith("a 0.1") else _nothing(),
        pytest.raises(mx.MXNetError, match="bad.txt|embedding|zeros|vector"),
    ):
        text.embedding.CustomEmbedding(str(path))


class _nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_GLUON_REPO", "file:///none")
    assert set(text.embedding.get_pretrained_file_names()) == {"glove", "fasttext"}
    with pytest.raises(KeyError, match="embedding_name='zz'; known: fasttext, glove"):
        text.embedding.get_pretrained_file_names("zz")
    with pytest.raises(KeyError, match="pretrained_file_name='zz': not a published file; known: glove.42B"):
        text.embedding.create("glove", pretrained_file_name="zz")
    with pytest.raises(mx.MXNetError, match="does not exist"):
        text.embedding.create("glove", embedding_root=str(tmp_path))
    with pytest.raises(ValueError, match="foo"):
        text.embedding.create("foo")
