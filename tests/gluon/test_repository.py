"""Data sets, models and word vectors, downloaded from a repository on this host."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

import dualmx as mx
from dualmx.core import transfer
from dualmx.core.errors import DownloadError, FormatError
from dualmx.gluon.contrib.data import text as wikitext
from dualmx.gluon.data import vision
from dualmx.gluon.model_zoo import model_store
from dualmx.gluon.model_zoo import vision as zoo
from dualmx.text import embedding
from tests.core.web import WebServer


def sha1(content):
    return hashlib.sha1(content).hexdigest()


def zipped(**members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, content in members.items():
            z.writestr(name, content)
    return out.getvalue()


@pytest.fixture
def web(monkeypatch, tmp_path):
    server = WebServer()
    monkeypatch.setenv("MXNET_GLUON_REPO", f"{server.url}/base/")
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(transfer, "_FIRST_PAUSE_SECONDS", 0.001)
    server.add = lambda path, content: server.answers.update({f"/base/gluon/{path}": lambda h: h.serve(content)})
    yield server
    server.close()


def add_mnist(web, monkeypatch, kind=vision.MNIST):
    digests = {}
    for part, count in (("train", 6), ("t10k", 4)):
        images = np.array([2051, count, 28, 28], ">i4").tobytes() + bytes(range(196)) * 4 * count
        labels = np.array([2049, count], ">i4").tobytes() + bytes(range(count))
        for name, raw in (("images-idx3", images), ("labels-idx1", labels)):
            file = f"{part}-{name}-ubyte.gz"
            content = gzip.compress(raw)
            digests[file] = sha1(content)
            web.add(f"dataset/{kind._folder}/{file}", content)
    monkeypatch.setattr(kind, "_checksums", digests)


@pytest.mark.parametrize("kind", [vision.MNIST, vision.FashionMNIST])
def test_mnist(web, tmp_path, monkeypatch, kind):
    add_mnist(web, monkeypatch, kind)
    assert len(kind()) == 6 and len(kind(train=False)) == 4
    assert len(web.requests) == 4
    image, label = kind()[3]
    assert image.shape == (28, 28, 1) and label == 3 and len(web.requests) == 4
    folder = tmp_path / "home" / "datasets" / kind._folder
    assert sorted(os.listdir(folder)) == sorted(kind._checksums)


def test_a_damaged_copy_in_the_repository_is_not_taken(web, tmp_path):
    web.add("dataset/mnist/train-images-idx3-ubyte.gz", b"damaged")
    with pytest.raises(DownloadError, match=r"MNIST: .*SHA-1 is .*, not 6c95f4b0.*MXNET_GLUON_REPO"):
        vision.MNIST(root=tmp_path)
    assert os.listdir(tmp_path) == []


def test_mnist_of_the_test_functions(web, tmp_path, monkeypatch):
    add_mnist(web, monkeypatch)
    monkeypatch.chdir(tmp_path)
    digits = mx.test_utils.get_mnist()
    assert digits["train_data"].shape == (6, 1, 28, 28) and digits["test_label"].tolist() == [0, 1, 2, 3]
    train, _ = mx.test_utils.get_mnist_iterator(2, (784,))
    assert next(iter(train)).data[0].shape == (2, 784) and len(web.requests) == 4
    assert len(os.listdir("data")) == 4


@pytest.mark.parametrize("inside", ["", "cifar-10-batches-bin/"])
def test_cifar(web, tmp_path, monkeypatch, inside):
    for kind, names, width in (
        (vision.CIFAR10, [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"], 3073),
        (vision.CIFAR100, ["train.bin", "test.bin"], 3074),
    ):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as tar:
            for name in [*names, "readme.html"]:
                member = tarfile.TarInfo(inside + name)
                member.size = 2 * width
                tar.addfile(member, io.BytesIO(bytes([1, 7]) * width))
        archive = kind._archive[0]
        monkeypatch.setattr(kind, "_archive", (archive, sha1(out.getvalue())))
        web.add(f"dataset/{kind._folder}/{archive}", out.getvalue())
        assert len(kind()) == 2 * (len(names) - 1) and len(kind(train=False)) == 2
        assert sorted(os.listdir(tmp_path / "home" / "datasets" / kind._folder)) == sorted(names)
    assert len(web.requests) == 2


def test_pretrained_parameters(web, tmp_path, monkeypatch):
    data = b"parameters"
    monkeypatch.setitem(model_store.CHECKSUMS, "mobilenetv2_0.25", sha1(data))
    file = f"mobilenetv2_0.25-{sha1(data)[:8]}.params"
    web.add(f"models/{file.replace('.params', '.zip')}", zipped(**{file: data, "../other": b"x"}))
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / file).write_bytes(b"damaged")
    for _ in range(2):
        assert model_store.get_model_file("mobilenetv2_0.25", str(folder)) == str(folder / file)
    assert os.listdir(folder) == [file] and (folder / file).read_bytes() == data
    assert len(web.requests) == 1
    monkeypatch.setitem(model_store.CHECKSUMS, "mobilenetv2_0.25", sha1(data)[:-1] + "x")
    with pytest.raises(FormatError, match="was fetched, but its SHA-1 is not"):
        model_store.get_model_file("mobilenetv2_0.25", str(folder))
    web.add(f"models/{file.replace('.params', '.zip')}", b"no zip")
    with pytest.raises(DownloadError, match="no zip or tar file"):
        model_store.get_model_file("mobilenetv2_0.25", str(folder))
    assert os.listdir(folder) == [file]
    with pytest.raises(DownloadError, match=r"alexnet-44335d1f\.zip: HTTP 404.*MXNET_GLUON_REPO.*model store"):
        zoo.alexnet(pretrained=True, root=str(folder))


@pytest.mark.parametrize(
    "kind, name, archive",
    [
        ("glove", "glove.6B.100d.txt", "glove.6B"),
        ("glove", "glove.twitter.27B.25d.txt", "glove.twitter.27B"),
        ("glove", "glove.840B.300d.txt", "glove.840B.300d"),
        ("fasttext", "wiki.simple.vec", "wiki.simple"),
        ("fasttext", "crawl-300d-2M.vec", "crawl-300d-2M"),
    ],
)
def test_word_vectors(web, tmp_path, monkeypatch, kind, name, archive):
    content = b"hello 1 2 3\nworld 4 5 6\n"
    table = embedding.REGISTRY[kind].pretrained_file_name_sha1
    monkeypatch.setitem(table, name, sha1(content))
    web.add(f"embeddings/{kind}/{archive}.zip", zipped(**{name: content, "readme": b""}))
    vectors = embedding.create(kind, pretrained_file_name=name, embedding_root=str(tmp_path))
    assert vectors.get_vecs_by_tokens("world").asnumpy().tolist() == [4, 5, 6]
    assert os.listdir(tmp_path / kind) == [name]
    os.unlink(tmp_path / kind / name)
    monkeypatch.setitem(table, name, sha1(b"other"))
    with pytest.raises(FormatError, match=f"has no {name} with the SHA-1"):
        embedding.create(kind, pretrained_file_name=name, embedding_root=str(tmp_path))


def test_wikitext(web, tmp_path, monkeypatch):
    content = b" \n = A title = \n \n the cat sat on the mat\n a dog\n \n"
    packed = zipped(**{f"wikitext-2/wiki.{part}.tokens": content for part in ("train", "valid", "test")})
    names = {"train": "wiki.train.tokens", "validation": "wiki.valid.tokens"}
    monkeypatch.setattr(wikitext.WikiText2, "_files", {part: (name, sha1(content)) for part, name in names.items()})
    monkeypatch.setattr(wikitext.WikiText2, "_archive", ("wikitext-2-v1.zip", sha1(packed)))
    web.add("dataset/wikitext-2/wikitext-2-v1.zip", packed)
    for segment in names:
        assert len(wikitext.WikiText2(root=str(tmp_path), segment=segment, seq_len=4)) == 3
    assert len(web.requests) == 1


def test_archives_of_the_test_functions(web, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    records = zipped(**{"cifar/train.rec": b"1", "cifar/test.rec": b"2"})
    monkeypatch.setenv("DUALMX_MIRRORS", f"http://data.mxnet.io/={web.url}/mxnet/")
    web.answers["/mxnet/mxnet/data/cifar10.zip"] = lambda h: h.serve(records)
    mx.test_utils.get_cifar10()
    mx.test_utils.get_cifar10()
    assert Path("data/cifar/test.rec").read_bytes() == b"2" and len(web.requests) == 1


def test_a_mirror_takes_the_place_of_the_repository(web, tmp_path, monkeypatch):
    add_mnist(web, monkeypatch)
    monkeypatch.delenv("MXNET_GLUON_REPO")
    monkeypatch.setenv("DUALMX_MIRRORS", f"{web.url}/base")
    assert len(vision.MNIST(root=tmp_path)) == 6
