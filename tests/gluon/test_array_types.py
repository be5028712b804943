"""Data sets, transformations and loaders give arrays of the kind that `npx.set_np()` chooses (asked of MXNet 1.9.1)."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import nd, npx
from dualmx.gluon import data
from dualmx.gluon.data import vision
from dualmx.gluon.data.vision import transforms

SETS = ("MNIST", "FashionMNIST", "CIFAR10", "CIFAR100")


@pytest.fixture(params=[False, True], ids=["classic", "numpy"])
def numpy_mode(request: pytest.FixtureRequest) -> Iterator[bool]:
    if request.param:
        npx.set_np()
    yield request.param
    npx.reset_np()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sets")
    pixels = bytes(range(256)) * 60
    with gzip.open(root / "train-images-idx3-ubyte.gz", "wb") as f:
        f.write(struct.pack(">IIII", 2051, 4, 28, 28) + pixels[: 4 * 28 * 28])
    with gzip.open(root / "train-labels-idx1-ubyte.gz", "wb") as f:
        f.write(struct.pack(">II", 2049, 4) + bytes(range(4)))
    for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "train.bin"):
        (root / name).write_bytes(pixels[: 4 * (3073 + (name == "train.bin"))])
    return root


def kind(value: Any) -> Any:
    """Type and shape of an array, in tuples and lists."""
    if isinstance(value, (tuple, list)):
        return type(value)(kind(v) for v in value)
    return type(value), value.shape


@pytest.mark.parametrize("name", SETS)
def test_items_of_vision_data_sets(name: str, numpy_mode: bool, folder: Path) -> None:
    made = getattr(vision, name)(folder)
    array, shape = (mx.np.ndarray if numpy_mode else nd.NDArray), ((28, 28, 1) if "MNIST" in name else (32, 32, 3))
    label = mx.np.ndarray if numpy_mode else np.int32
    assert kind(made[1]) == ((array, shape), (label, ()))
    assert kind(made[0:2]) == ((array, (2, *shape)), (mx.np.ndarray if numpy_mode else np.ndarray, (2,)))
    assert isinstance(made._data, array) and isinstance(made._label, mx.np.ndarray if numpy_mode else np.ndarray)
    assert made[1][1] == made._label[1] and (made[1][0] == made._data[1]).asnumpy().all()
    seen = []
    changed = made.transform(lambda x, y: seen.append(kind((x, y))) or (x, y))
    for source in (made, changed):
        assert kind(next(iter(data.DataLoader(source, 2)))) == [(array, (2, *shape)), (array, (2,))]
    assert seen[0] == ((array, shape), (label, ()))


@pytest.mark.parametrize("make", [
    transforms.ToTensor, transforms.Cast, lambda: transforms.Resize(4), lambda: transforms.CenterCrop(3),
    lambda: transforms.CenterCrop(9), lambda: transforms.CropResize(0, 0, 2, 2, (4, 4), 1),
    lambda: transforms.RandomResizedCrop(4), lambda: transforms.RandomCrop(3), transforms.RandomFlipLeftRight,
    lambda: transforms.RandomBrightness(0.5), lambda: transforms.RandomHue(0.2), lambda: transforms.RandomLighting(0.1),
    lambda: transforms.RandomColorJitter(0.1, 0.1, 0.1, 0.1), lambda: transforms.RandomGray(1.0),
    lambda: transforms.Compose([transforms.Resize(4), transforms.ToTensor(), transforms.Normalize(0.5, 0.5)]),
    lambda: transforms.Compose([]),
])  # fmt: skip
def test_results_of_transformations(make: Any, numpy_mode: bool) -> None:
    image = (mx.np if numpy_mode else nd).ones((6, 5, 3), dtype="uint8")
    assert type(make()(image)) is type(image)


def test_arrays_made_for_contexts(numpy_mode: bool) -> None:
    """After `set_np` NumPy's dtype is kept."""
    for contexts in ([mx.cpu(0)], [mx.cpu(0), mx.cpu(1)]):
        parts = mx.gluon.utils.split_and_load(np.ones((4, 2), np.int64), contexts)
        assert {(type(p), np.dtype(p.dtype).name) for p in parts} == (
            {(mx.np.ndarray, "int64")} if numpy_mode else {(nd.NDArray, "float32")}
        )


def test_a_subclass_may_read_its_own_images(numpy_mode: bool, tmp_path: Path) -> None:
    class Own(vision.MNIST):
        def _get_data(self) -> None:
            self._data = nd.ones((3, 2, 2, 1), dtype="uint8")
            self._label = np.arange(3, dtype=np.int32)

    made = Own(tmp_path)
    assert len(made) == 3 and made[2][0].shape == (2, 2, 1) and int(made[2][1]) == 2
    batch, labels = next(iter(data.DataLoader(made, 3)))
    assert batch.shape == (3, 2, 2, 1) and labels.asnumpy().tolist() == [0, 1, 2]


def test_what_is_joined_is_of_the_kind_of_its_parts(numpy_mode: bool) -> None:
    room = mx.np if numpy_mode else nd
    nn, parallel = mx.gluon.nn, mx.gluon.parallel
    joined = nn.Concatenate(axis=1)
    joined.add(nn.Dense(2), nn.Dense(3))
    shared = parallel.DataParallel(nn.Dense(2, in_units=3), [mx.cpu(0), mx.cpu(1)])
    stages = parallel.Pipeline([nn.Dense(4, in_units=3), nn.Dense(2, in_units=4)], [mx.cpu(0), mx.cpu(1)], 2)
    for net in (joined, shared, stages):
        net.initialize()
    x = room.ones((4, 3))
    loss = stages.forward_backward(x, room.ones((4, 2)), mx.gluon.loss.L2Loss())
    assert [(type(a), a.shape) for a in (joined(x), shared(x), loss)] == [
        (type(x), (4, 5)), (type(x), (4, 2)), (type(x), (4,)),
    ]  # fmt: skip
