"""Vocabularies, word vectors and text datasets from local files, as MXNet reads them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import ArgumentError, ArgumentTypeError, FormatError
from dualmx.gluon.contrib.data import IntervalSampler
from dualmx.gluon.contrib.data import text as datasets

text = mx.contrib.text
COUNTS = Counter(["c", "b", "b", "a", "a", "a", "<pad>"])


def test_vocabulary():
    v = text.vocab.Vocabulary(COUNTS, reserved_tokens=["<pad>"])
    assert v.idx_to_token == ["<unk>", "<pad>", "a", "b", "c"] and len(v) == 5
    assert v.to_indices(["a", "zz"]) == [2, 0] and v.to_indices("b") == 3
    assert v.to_tokens([0, 2]) == ["<unk>", "a"] and v.to_tokens(1) == "<pad>"
    assert text.Vocabulary(COUNTS, most_freq_count=2).idx_to_token == ["<unk>", "a", "b"]
    assert text.Vocabulary(COUNTS, min_freq=2).idx_to_token == ["<unk>", "a", "b"]
    assert text.Vocabulary().idx_to_token == ["<unk>"]
    for call, error, said in (
        (lambda: v.to_tokens(99), ArgumentError, "index 99: expected 0 to 4"),
        (lambda: v.to_tokens("a"), ArgumentTypeError, "'a' is no integer"),
        (lambda: text.Vocabulary(COUNTS, min_freq=0), ArgumentError, "min_freq=0: expected at least 1"),
        (
            lambda: text.Vocabulary(COUNTS, reserved_tokens=["<unk>"]),
            ArgumentError,
            "reserved_tokens has the unknown token",
        ),
        (lambda: text.Vocabulary(COUNTS, reserved_tokens=["x", "x"]), ArgumentError, "expected each token once"),
        (lambda: text.Vocabulary(3), ArgumentTypeError, "counter of type int: expected a collections.Counter"),
    ):
        with pytest.raises(error, match=said):
            call()


def test_counts():
    count = text.utils.count_tokens_from_str
    assert count(" a b\n b A ", to_lower=True) == {"a": 2, "b": 2}
    counter = Counter({"a": 2})
    assert count("a b", counter_to_update=counter) is counter and counter == {"a": 3, "b": 1}


def written(path, content):
    path.write_text(content)
    return str(path)


@pytest.mark.slow
def test_embeddings(tmp_path):
    embedding = text.embedding
    path = written(tmp_path / "a.txt", "a 0.5 2 3\nb 1 2 3\nb 9 9 9\n<unk> 7 7 7\nc 4 5 6\n")
    with pytest.warns(UserWarning, match="'b' again"):
        e = embedding.CustomEmbedding(path)
    assert e.idx_to_token == ["<unk>", "a", "b", "c"] and e.vec_len == 3
    assert e.idx_to_vec.asnumpy().tolist() == [[7, 7, 7], [0.5, 2, 3], [1, 2, 3], [4, 5, 6]]
    path = written(tmp_path / "b.txt", "a 0.5 2\nb 1 2\n")
    e = embedding.CustomEmbedding(path, init_unknown_vec=mx.nd.ones)
    assert e.get_vecs_by_tokens("a").asnumpy().tolist() == [0.5, 2]
    assert e.get_vecs_by_tokens(["A", "B"]).asnumpy().tolist() == [[1, 1], [1, 1]]
    assert e.get_vecs_by_tokens(["A", "B"], lower_case_backup=True).asnumpy().tolist() == [[0.5, 2], [1, 2]]
    e.update_token_vectors(["a", "b"], mx.nd.array([[1, 1], [2, 2]]))
    e.update_token_vectors("<unk>", mx.nd.array([3, 3]))
    assert e.idx_to_vec.asnumpy().tolist() == [[3, 3], [1, 1], [2, 2]]
    with pytest.raises(ArgumentError, match="zz"):
        e.update_token_vectors("zz", mx.nd.array([3, 3]))
    with pytest.raises(ArgumentError, match="shape|2-D"):
        e.update_token_vectors(["a", "b"], mx.nd.array([3, 3]))
    v = text.Vocabulary(COUNTS, reserved_tokens=["<pad>"])
    both = embedding.CompositeEmbedding(v, [e, e])
    assert both.idx_to_vec.shape == (5, 4) and both.to_indices("a") == 2
    assert both.get_vecs_by_tokens("b").asnumpy().tolist() == [2, 2, 2, 2]


def test_published_embeddings(tmp_path, monkeypatch):
    monkeypatch.setenv("MXNET_GLUON_REPO", "file:///none")
    embedding = text.embedding
    (tmp_path / "glove").mkdir()
    written(tmp_path / "glove" / "glove.6B.50d.txt", "a 1 2\nb 3 4\n")
    made = embedding.create("glove", pretrained_file_name="glove.6B.50d.txt", embedding_root=str(tmp_path))
    assert isinstance(made, embedding.GloVe) and made.idx_to_vec.shape == (3, 2)
    names = embedding.get_pretrained_file_names()
    assert len(names["glove"]) == 10 and len(names["fasttext"]) == 327
    with pytest.raises(KeyError, match="glove.42B.300d.txt"):
        embedding.create("glove", pretrained_file_name="x")
    with pytest.raises(mx.MXNetError, match="does not exist"):
        embedding.FastText(embedding_root=str(tmp_path))
    with pytest.raises(ArgumentError, match="nope"):
        embedding.create("nope")
    with pytest.raises(KeyError, match="embedding_name='nope'; known: fasttext, glove"):
        embedding.get_pretrained_file_names("nope")
    for content in ("a x 2\n", "a 1 2\nb 1 2 3\n", "a 1 2\n\n"):
        with pytest.raises(FormatError, match="line"):
            embedding.CustomEmbedding(written(tmp_path / "bad.txt", content))
    with pytest.raises(ArgumentError, match="nope"):
        embedding.CustomEmbedding(str(tmp_path / "nope"))


def test_interval_sampler():
    assert list(IntervalSampler(13, 3)) == [0, 3, 6, 9, 12, 1, 4, 7, 10, 2, 5, 8, 11]
    assert len(IntervalSampler(13, 3)) == 13
    assert list(IntervalSampler(13, 3, rollover=False)) == [0, 3, 6, 9, 12]
    with pytest.raises(ArgumentError, match="smaller than"):
        IntervalSampler(3, 5)


def test_wikitext_from_local_files(tmp_path, monkeypatch):
    written(tmp_path / "wiki.train.tokens", " \n = A title = \n \n the cat sat on the mat\n a dog\n \n")
    monkeypatch.setattr(datasets, "check_sha1", lambda path, digest: True)
    data = datasets.WikiText2(root=str(tmp_path), seq_len=4)
    assert len(data) == 3 and data.vocabulary.idx_to_token[:3] == ["<unk>", "<eos>", "="]
    assert data.frequencies["the"] == 2 and data[0][0].dtype == np.int32
    assert [a.asnumpy().tolist() for a in data[0]] == [[2, 4, 11, 2], [4, 11, 2, 1]]
    monkeypatch.setenv("MXNET_GLUON_REPO", "file:///none/")
    with pytest.raises(mx.MXNetError, match=r"wiki\.valid\.tokens or wikitext-2-v1\.zip"):
        datasets.WikiText2(root=str(tmp_path), segment="validation")
    with pytest.raises(ArgumentError, match="segment"):
        datasets.WikiText103(segment="all")
