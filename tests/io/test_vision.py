"""Image datasets and transformations, on NDArrays and on NumPy arrays."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import FormatError, MXNetError
from dualmx.gluon.data import ArrayDataset, DataLoader
from dualmx.gluon.data.vision import CIFAR10, CIFAR100, MNIST, FashionMNIST, transforms

IMAGE = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)


def both(transform, image):
    """The result on an NDArray, checked to be that on the NumPy array."""
    out = transform(mx.nd.array(image, dtype=image.dtype))
    host = transform(image)
    assert isinstance(out, mx.nd.NDArray) and isinstance(host, np.ndarray)
    assert out.dtype == host.dtype
    np.testing.assert_allclose(out.asnumpy(), host, rtol=1e-6, atol=1e-6)
    return host


def test_to_tensor_and_normalize():
    x = both(transforms.ToTensor(), IMAGE)
    assert x.shape == (3, 2, 4) and x.dtype == np.float32 and x[0, 0, 1] == np.float32(3) / np.float32(255)
    assert both(transforms.ToTensor(), IMAGE[None]).shape == (1, 3, 2, 4)
    y = both(transforms.Normalize(0.5, 0.5), x)
    np.testing.assert_allclose(y[0, 0], [-1, -0.9764706, -0.9529412, -0.92941177], rtol=1e-5)
    z = both(transforms.Normalize((0.1, 0.2, 0.3), (1, 2, 3)), x)
    np.testing.assert_allclose(z[:, 0, 0], [-0.1, -0.09803922, -0.09738562], rtol=1e-5)
    assert both(transforms.Normalize(0.5, 0.5), x[None]).shape == (1, 3, 2, 4)
    with pytest.raises(ValueError, match="height, width, channels"):
        transforms.ToTensor()(x[0])
    with pytest.raises(ValueError, match="height, width, channels"):
        transforms.ToTensor()(mx.nd.array(x[0]))


def test_cast_crop_and_resize():
    assert both(transforms.Cast("float16"), IMAGE).dtype == np.float16
    assert both(transforms.CenterCrop((3, 2)), IMAGE)[..., 0].tolist() == [[0, 3, 6], [12, 15, 18]]
    assert both(transforms.CropResize(1, 0, 2, 2), IMAGE)[..., 0].tolist() == [[3, 6], [15, 18]]
    assert both(transforms.CropResize(1, 0, 2, 2, (4, 3)), IMAGE).shape == (3, 4, 3)
    x = both(transforms.Resize((3, 3)), IMAGE.astype(np.float32))
    np.testing.assert_allclose(x[..., 0], [[0.5, 4.5, 8.5], [6.5, 10.5, 14.5], [12.5, 16.5, 20.5]], rtol=1e-6)
    assert both(transforms.Resize(4, keep_ratio=True), IMAGE).shape == (4, 8, 3)
    assert both(transforms.Resize(3, interpolation=0), IMAGE).shape == (3, 3, 3)
    assert both(transforms.CenterCrop(8), IMAGE).shape == (8, 8, 3)
    with pytest.raises(ValueError, match="leaves the image"):
        transforms.CropResize(3, 0, 2, 2)(IMAGE)


def test_random_flips():
    for kind, axis in ((transforms.RandomFlipLeftRight, 1), (transforms.RandomFlipTopBottom, 0)):
        assert np.array_equal(both(kind(1), IMAGE), np.flip(IMAGE, axis))
        assert np.array_equal(both(kind(0), IMAGE), IMAGE)
        assert {kind()(IMAGE)[0, 0, 0].item() for _ in range(50)} == {0, np.flip(IMAGE, axis)[0, 0, 0]}
    with pytest.raises(ValueError, match="p="):
        transforms.RandomFlipLeftRight(2)


def test_only_images_of_three_channels_become_grey():
    image = np.zeros((2, 2, 1), np.uint8)
    assert transforms.RandomGray(0)(image) is image
    with pytest.raises(ValueError, match=r"RandomGray: an image of shape \(2, 2, 1\)"):
        transforms.RandomGray(1)(image)


def test_compose():
    steps = [transforms.Resize((3, 2)), transforms.ToTensor(), transforms.Normalize(0.1, 0.2)]
    x = both_composed(transforms.Compose(steps))
    assert x.shape == (3, 2, 3)
    np.testing.assert_allclose(both_composed(transforms.HybridCompose(steps[1:])), steps[2](steps[1](IMAGE)), rtol=1e-5)
    assert transforms.Compose(steps[1:]).batched and not transforms.Compose(steps).batched


def both_composed(transform):
    out = transform(mx.nd.array(IMAGE, dtype="uint8")).asnumpy()
    np.testing.assert_allclose(out, transform.host(IMAGE), rtol=1e-5, atol=1e-6)
    return out


def test_own_blocks_and_functions_in_compose():
    class Twice(mx.gluon.Block):
        def forward(self, x):
            return x * 2

    data = ArrayDataset(np.stack([IMAGE] * 4), np.arange(4))
    chain = transforms.Compose([transforms.ToTensor(), Twice()])
    for way in ({}, {"num_workers": 1}):
        x, y = next(iter(DataLoader(data.transform_first(chain), 2, **way)))
        np.testing.assert_allclose(x.asnumpy()[0], transforms.ToTensor()(IMAGE) * 2, rtol=1e-6)
        assert y.asnumpy().tolist() == [0, 1]


def test_functions_are_transformations():
    data = ArrayDataset(np.stack([IMAGE] * 4), np.arange(4))
    chain = transforms.Compose([lambda x: x[:2, :3], transforms.ToTensor(), lambda x: x * 2])
    for way in ({}, {"num_workers": 1}):
        x, _ = next(iter(DataLoader(data.transform_first(chain), 2, **way)))
        np.testing.assert_allclose(x.asnumpy()[0], transforms.ToTensor()(IMAGE[:2, :3]) * 2, rtol=1e-6)
    image = mx.nd.array(IMAGE, dtype="uint8")
    assert transforms.RandomApply(lambda x: x[:2], 1.0)(image).shape[0] == 2


@pytest.mark.parametrize("way", [{}, {"num_workers": 2}, {"num_workers": 2, "thread_pool": True}], ids=str)
def test_whole_batches_equal_single_items(way):
    images = np.random.RandomState(0).randint(0, 255, (6, 5, 4, 3)).astype(np.uint8)
    chain = transforms.Compose([transforms.ToTensor(), transforms.Normalize(0.13, 0.31)])
    data = ArrayDataset(images, np.arange(6)).transform_first(chain)
    batches = list(DataLoader(data, 4, **way))
    got = np.concatenate([x.asnumpy() for x, _ in batches])
    np.testing.assert_allclose(got, [data.host_item(i)[0] for i in range(6)], rtol=1e-6)
    np.testing.assert_allclose(got[3], chain(mx.nd.array(images[3], dtype="uint8")).asnumpy(), rtol=1e-5)
    assert [y.dtype for _, y in batches] == [np.int64] * 2


# ---- datasets


@pytest.fixture
def root(tmp_path):
    n = 5
    images = np.random.RandomState(0).randint(0, 255, (n, 28, 28)).astype(np.uint8)
    for part in ("train", "t10k"):
        content = struct.pack(">4i", 2051, n, 28, 28) + images.tobytes()
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(content))
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, n) + bytes(range(n)))
    return tmp_path, images


@pytest.mark.parametrize("kind", [MNIST, FashionMNIST])
def test_mnist(root, kind):
    folder, images = root
    for train in (True, False):
        data = kind(root=folder, train=train)
        image, label = data[3]
        assert len(data) == 5 and image.shape == (28, 28, 1) and image.dtype is np.uint8
        assert isinstance(image, mx.nd.NDArray) and np.array_equal(image.asnumpy()[..., 0], images[3])
        assert label == 3 and label.dtype == np.int32
    data = kind(str(folder), transform=lambda image, label: (image.astype("float32") / 255, label + 1))
    assert data[0][0].dtype is np.float32 and data[0][1] == 1
    x, y = next(iter(DataLoader(kind(folder), 5)))
    assert x.shape == (5, 28, 28, 1) and y.dtype is np.int32


def test_missing_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("MXNET_GLUON_REPO", "file:///none")
    with pytest.raises(MXNetError, match=r"train-images-idx3-ubyte\.gz.*MXNET_GLUON_REPO"):
        MNIST(root=tmp_path)
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "home"))
    with pytest.raises(MXNetError, match=r"home/datasets/fashion-mnist/t10k-images"):
        FashionMNIST(train=False)


def test_damaged_file_is_named(root):
    folder, _ = root
    path = folder / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(MXNetError, match="train-images-idx3-ubyte"):
        MNIST(root=folder)


def test_cifar(tmp_path):
    pixels = np.random.RandomState(0).randint(0, 255, (4, 3, 32, 32)).astype(np.uint8)
    rows = [bytes([i]) + p.tobytes() for i, p in enumerate(pixels)]
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        (tmp_path / name).write_bytes(b"".join(rows))
    assert len(CIFAR10(tmp_path)) == 20
    image, label = CIFAR10(tmp_path, train=False)[2]
    assert label == 2 and np.array_equal(image.asnumpy(), pixels[2].transpose(1, 2, 0))
    (tmp_path / "test.bin").write_bytes(b"".join(bytes([7]) + r for r in rows))
    assert CIFAR100(tmp_path, train=False)[1][1] == 7
    assert CIFAR100(tmp_path, fine_label=True, train=False)[1][1] == 1
    (tmp_path / "test_batch.bin").write_bytes(rows[0][:-1])
    with pytest.raises(FormatError, match=r"test_batch\.bin"):
        CIFAR10(tmp_path, train=False)
