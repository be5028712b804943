"""Images against what MXNet 1.9.1 made of them; its OpenCV is older, so resampled values may differ by one."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import dualmx as mx
from tests.goldens.image_cases import DETECTION, SETTINGS, write_detections
from tests.goldens.store import load

cv2 = pytest.importorskip("cv2", reason="images need opencv-python-headless")

SAVED = load("image")
PICTURE = SAVED["picture"]
PLANES = np.moveaxis(PICTURE, 2, 0).astype("float32")
EIGENVALUES = np.array([55.46, 4.794, 1.148])
EIGENVECTORS = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])


def fresh(dtype: str = "uint8") -> mx.nd.NDArray:
    return mx.nd.array(PICTURE.astype(dtype), dtype=dtype)


def same(got: object, name: str, most: float = 0.0) -> None:
    got = got.asnumpy() if isinstance(got, mx.nd.NDArray) else np.asarray(got)
    assert got.dtype == SAVED[name].dtype and got.shape == SAVED[name].shape
    assert np.abs(got.astype(float) - SAVED[name].astype(float)).max() <= most


@pytest.mark.parametrize("name", ["png", "jpg"])
def test_decoding(name: str) -> None:
    data = SAVED[name].tobytes()
    most = 0 if name == "png" else 3  # JPEG decoders round their own way
    for flag in (0, 1):
        same(mx.image.imdecode(data, flag=flag), f"decoded_{name}_{flag}", most)
    same(mx.image.imdecode(bytearray(data), to_rgb=False), f"decoded_{name}_bgr", most)
    same(mx.image.imdecode(SAVED[name]), f"decoded_{name}_1", most)
    same(mx.image.imdecode(mx.nd.array(SAVED[name], dtype="uint8")), f"decoded_{name}_1", most)


@pytest.mark.parametrize("interp", range(5))
def test_resizing(interp: int) -> None:
    same(mx.image.imresize(fresh(), 10, 12, interp=interp), f"smaller_{interp}", 1)
    same(mx.image.imresize(fresh(), 50, 45, interp=interp), f"larger_{interp}", 1)
    same(mx.image.imresize(PICTURE, 50, 45, interp), f"larger_{interp}", 1)


def test_the_resize_operator_gives_the_bytes_of_opencv() -> None:
    rng = np.random.RandomState(0)
    for before, (height, width) in (((4, 6), (2, 3)), ((2, 2), (3, 3)), ((7, 5), (3, 9)), ((3, 4), (30, 20))):
        image = rng.randint(0, 256, (*before, 3)).astype("uint8")
        got = mx.nd.image.resize(mx.nd.array(image, dtype="uint8"), size=(width, height)).asnumpy()
        assert (got == cv2.resize(image, (width, height))).all()


@pytest.mark.parametrize("interp", [2, 3, 4])
@pytest.mark.parametrize(("width", "height"), [(7, 5), (3, 9), (12, 3), (6, 4), (20, 17)])
def test_the_resize_operator_has_the_other_filters_of_opencv(interp: int, width: int, height: int) -> None:
    image = np.random.RandomState(3).uniform(0, 255, (8, 12, 3)).astype(np.float32)
    want = cv2.resize(image, (width, height), interpolation=interp)
    got = mx.nd.image.resize(mx.nd.array(image), size=(width, height), interp=interp).asnumpy()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-2)
    whole = mx.nd.image.resize(mx.nd.array(image, dtype="uint8"), size=(width, height), interp=interp).asnumpy()
    exact = cv2.resize(image.astype(np.uint8), (width, height), interpolation=interp)
    assert np.abs(whole.astype(int) - exact).max() <= 1


def test_resizing_otherwise() -> None:
    same(mx.image.imresize(fresh("float32"), 10, 12), "smaller_float", 1e-3)
    same(mx.image.resize_short(fresh(), 10), "short", 1)
    same(mx.image.fixed_crop(fresh(), 2, 3, 10, 8, (5, 6)), "fixed", 1)
    out = mx.nd.zeros((12, 10, 3), dtype="uint8")
    assert mx.image.imresize(fresh(), 10, 12, out=out) is out
    same(out, "smaller_1", 1)
    assert mx.image.imresize(fresh(), 10, 12, interp=10).shape == (12, 10, 3)
    same(mx.image.imresize(fresh(), 10, 12, interp=9), "smaller_3", 1)


@pytest.mark.parametrize(("name", "size"), [("inside", (10, 8)), ("wide", (100, 8)), ("outside", (100, 80))])
def test_middle(name: str, size: tuple[int, int]) -> None:
    image, window = mx.image.center_crop(fresh(), size)
    same(image, f"center_{name}", 1)
    assert list(window) == SAVED[f"center_{name}_window"].tolist()


def test_borders() -> None:
    same(mx.image.copyMakeBorder(fresh(), 1, 2, 3, 4, values=(1, 2, 3)), "border")
    for kind in (1, 2, 3, 4):
        same(mx.image.copyMakeBorder(fresh(), 1, 2, 3, 4, type=kind), f"border_{kind}")


@pytest.mark.parametrize("angle", [30, -100, 90])
def test_rotation(angle: int) -> None:
    planes = mx.nd.array(PLANES)
    same(mx.image.imrotate(planes, angle), f"rotated_{angle}", 0.2)
    same(mx.image.imrotate(planes, angle, zoom_in=True), f"rotated_{angle}_in", 0.2)
    same(mx.image.imrotate(planes, angle, zoom_out=True), f"rotated_{angle}_out", 0.2)


def test_rotation_of_a_batch() -> None:
    planes = mx.nd.array(PLANES)
    same(mx.image.imrotate(mx.nd.stack(planes, planes), mx.nd.array([10, -20])), "rotated_two", 0.2)
    assert mx.image.random_rotate(mx.nd.stack(planes, planes), (-5, 5)).shape == (2, 3, 23, 31)


SEEDED = {
    "random_crop": lambda: mx.image.random_crop(fresh(), (10, 8))[0],
    "random_size_crop": lambda: mx.image.random_size_crop(fresh(), (10, 8), (0.2, 1), (0.75, 1.33))[0],
    "brightness": lambda: mx.image.BrightnessJitterAug(0.5)(fresh("float32")),
    "contrast": lambda: mx.image.ContrastJitterAug(0.5)(fresh("float32")),
    "saturation": lambda: mx.image.SaturationJitterAug(0.5)(fresh("float32")),
    "hue": lambda: mx.image.HueJitterAug(0.5)(fresh("float32")),
    "jitter": lambda: mx.image.ColorJitterAug(0.5, 0.4, 0.3)(fresh("float32")),
    "lighting": lambda: mx.image.LightingAug(0.5, EIGENVALUES, EIGENVECTORS)(fresh("float32")),
    "gray": lambda: mx.image.RandomGrayAug(1.0)(fresh("float32")),
    "flip": lambda: mx.image.HorizontalFlipAug(0.9)(fresh()),
    "normalized": lambda: mx.image.ColorNormalizeAug(mx.nd.array([1, 2, 3]), mx.nd.array([4, 5, 6]))(fresh("float32")),
}


@pytest.mark.parametrize("name", list(SEEDED))
def test_the_same_seed_draws_the_same(name: str) -> None:
    random.seed(3)
    np.random.seed(3)
    same(SEEDED[name](), f"seeded_{name}", 1 if "crop" in name else 1e-2)


def test_record_files_are_byte_equal(tmp_path: Path) -> None:
    (tmp_path / "a.rec").write_bytes(SAVED["rec"].tobytes())
    (tmp_path / "a.idx").write_bytes(SAVED["idx"].tobytes())
    reader = mx.recordio.MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "r")
    writer = mx.recordio.MXIndexedRecordIO(str(tmp_path / "b.idx"), str(tmp_path / "b.rec"), "w")
    for key in reader.keys:
        record = reader.read_idx(key)
        header, image = mx.recordio.unpack_img(record)
        assert header.id == key and float(np.asarray(header.label).item()) == key
        assert np.array_equal(image[..., ::-1], np.roll(PICTURE, key, 0))
        writer.write_idx(key, mx.recordio.pack(header, mx.recordio.unpack(record)[1]))
    writer.close()
    for end in ("rec", "idx"):
        assert (tmp_path / f"b.{end}").read_bytes() == (tmp_path / f"a.{end}").read_bytes()


# The older OpenCV turns images with weights of 5 bits.
APART = dict(larger=1, tall=1, resized=1, wide=1, rescaled=5, squeezed=5, turned=5)


@pytest.mark.parametrize("name", list(SETTINGS))
def test_image_record_iter(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.rec").write_bytes(SAVED["rec"].tobytes())
    it = mx.io.ImageRecordIter(path_imgrec=str(tmp_path / "a.rec"), batch_size=2, **SETTINGS[name])
    same(it.next().data[0], f"iter_{name}", APART.get(name, 1e-4))


@pytest.mark.parametrize("name", list(DETECTION))
def test_image_det_record_iter(name: str, tmp_path: Path) -> None:
    path = str(tmp_path / "d.rec")
    write_detections(mx, path, PICTURE)
    batch = mx.io.ImageDetRecordIter(path, batch_size=2, **{"data_shape": (3, 16, 16), **DETECTION[name]}).next()
    same(batch.data[0], f"det_{name}", 2)
    same(batch.label[0], f"det_{name}_label", 1e-6)
    assert batch.index is not None and batch.index.tolist() == [0, 1]
