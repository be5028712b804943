"""Images with boxes: augmenters, iterators, labels of a wrong form."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dualmx as mx

pytest.importorskip("cv2", reason="images need opencv-python-headless")

IMAGE = np.random.RandomState(0).randint(0, 255, (23, 31, 3)).astype("uint8")
BOXES = np.array([[0, 0.1, 0.2, 0.5, 0.6], [1, 0.2, 0.3, 0.9, 0.8]], np.float32)
LABELS = [
    [2, 5, 0, 0.1, 0.1, 0.5, 0.6, 1, 0.2, 0.3, 0.9, 0.8],
    [4, 5, 31, 23, 1, 0.1, 0.1, 0.5, 0.6],
    [2, 5, 0, 0.0, 0.0, 1, 1],
]


@pytest.fixture
def rec(tmp_path: Path) -> str:
    with mx.recordio.MXRecordIO(str(tmp_path / "d.rec"), "w") as out:
        for i, label in enumerate(LABELS):
            out.write(mx.recordio.pack_img((0, np.array(label, np.float32), i, 0), IMAGE, 9, ".png"))
    return str(tmp_path / "d.rec")


def test_detection_records_as_mxnet_lays_them_out(rec: str) -> None:
    it = mx.io.ImageDetRecordIter(path_imgrec=rec, data_shape=(3, 16, 20), batch_size=2)
    batches = [(b.label[0].asnumpy(), b.pad, b.data[0].shape) for b in it]
    assert [p for _, p, _ in batches] == [0, 1] and batches[0][2] == (2, 3, 16, 20)
    rows = [np.array([3, 16, 20, len(x), *x] + [-1] * (12 - len(x)), np.float32) for x in LABELS]
    assert np.array_equal(batches[0][0], rows[:2]) and np.array_equal(batches[1][0], [rows[2], rows[0]])
    wide = mx.io.ImageDetRecordIter(
        rec, (3, 16, 20), 3, label_pad_width=30, label_pad_value=-2.0, mean_r=1.0, std_r=2.0
    )
    assert wide.next().label[0].shape == (3, 34) and wide.provide_label[0].shape == (3, 34)
    mirrored = mx.io.ImageDetRecordIter(rec, (3, 23, 31), 3, mirror=True).next()
    assert np.allclose(mirrored.label[0].asnumpy()[1, 8:13], [1, 0.5, 0.1, 0.9, 0.6])
    assert np.array_equal(mirrored.data[0].asnumpy()[0].transpose(1, 2, 0), IMAGE[:, ::-1, ::-1])
    for wrong in (dict(rand_crop=True), dict(label_pad_width=3)):
        with pytest.raises(mx.MXNetError):
            mx.io.ImageDetRecordIter(rec, (3, 16, 20), 3, **wrong)


def test_image_det_iter(rec: str) -> None:
    it = mx.image.ImageDetIter(2, (3, 16, 20), path_imgrec=rec)
    assert it.label_shape == (2, 5) and it.provide_label[0].shape == (2, 2, 5)
    first, second = list(it)
    assert np.allclose(first.label[0].asnumpy()[1], [[1, 0.1, 0.1, 0.5, 0.6], [-1] * 5])
    assert second.pad == 1 and first.data[0].shape == (2, 3, 16, 20)
    with pytest.raises(ValueError, match="label_shape"):
        it.reshape(label_shape=(1, 5))
    it.reshape((3, 8, 8), (6, 5))
    assert it.provide_label[0].shape == (2, 6, 5) and it.provide_data[0].shape == (2, 3, 8, 8)
    other = mx.image.ImageDetIter(1, (3, 16, 20), path_imgrec=rec)
    assert it.sync_label_shape(other) is other and other.label_shape == (6, 5)
    changed = mx.image.ImageDetIter(
        3,
        (3, 16, 20),
        path_imgrec=rec,
        rand_crop=0.9,
        rand_pad=0.9,
        rand_mirror=True,
        rand_gray=0.5,
        mean=True,
        hue=0.1,
    ).next()
    labels = changed.label[0].asnumpy()
    assert changed.data[0].shape == (3, 3, 16, 20) and ((labels == -1) | (labels >= 0)).all() and labels.max() <= 1


def test_boxes_are_drawn(rec: str) -> None:
    it = mx.image.ImageDetIter(1, (3, 23, 31), path_imgrec=rec)
    drawn = list(it.draw_next(color=(1, 2, 3), thickness=1))
    assert [d.shape for d in drawn] == [(23, 31, 3)] * 3
    assert (drawn[1][2, 3:15] == (1, 2, 3)).all() and np.array_equal(drawn[1][20], IMAGE[20])


@pytest.mark.parametrize(
    "label", [[2, 5, 0, 0.5, 0.5, 0.1, 0.6], [2, 5, 1], [2, 4, 1, 2, 3, 4, 5], [2, 5, 0, 0.1, 0.1, 0.5]]
)
def test_wrong_labels(label: list[float], tmp_path: Path) -> None:
    from dualmx.io.codec import encode

    (tmp_path / "a.png").write_bytes(encode(IMAGE, 9, ".png"))
    with pytest.raises(mx.MXNetError, match="label"):
        mx.image.ImageDetIter(1, (3, 8, 8), imglist=[[np.array(label), "a.png"]], path_root=str(tmp_path))


def test_flip_crop_pad() -> None:
    for image in (IMAGE, mx.nd.array(IMAGE, dtype="uint8")):
        flipped, boxes = mx.image.DetHorizontalFlipAug(1.0)(image, BOXES)
        assert flipped.shape == IMAGE.shape
        assert np.allclose(boxes, [[0, 0.5, 0.2, 0.9, 0.6], [1, 0.1, 0.3, 0.8, 0.8]])
        padded, boxes = mx.image.DetRandomPadAug(area_range=(1.5, 3.0))(image, BOXES)
        h, w = padded.shape[:2]
        assert h >= 23 and w >= 31 and h * w > 23 * 31
        assert np.allclose((boxes[:, 3] - boxes[:, 1]) * w, (BOXES[:, 3] - BOXES[:, 1]) * 31, atol=1e-4)
        cropped, boxes = mx.image.DetRandomCropAug(min_object_covered=0.3, area_range=(0.3, 0.9))(image, BOXES)
        assert cropped.shape[0] <= 23 and len(boxes) and boxes[:, 1:].min() >= 0 and boxes[:, 1:].max() <= 1
        resized, boxes = mx.image.DetBorrowAug(mx.image.ForceResizeAug((10, 12)))(image, BOXES)
        assert resized.shape == (12, 10, 3) and boxes is BOXES


def test_a_crop_moves_boxes_with_their_pixels() -> None:
    image = np.zeros((40, 40, 3), np.uint8)
    image[10:20, 16:32] = 255
    label = np.array([[3, 0.4, 0.25, 0.8, 0.5]], np.float32)
    for _ in range(20):
        cropped, boxes = mx.image.DetRandomCropAug(min_object_covered=0.9, area_range=(0.2, 0.8))(image, label)
        h, w = cropped.shape[:2]
        rows, columns = np.nonzero(cropped[..., 0])
        seen = [columns.min() / w, rows.min() / h, (columns.max() + 1) / w, (rows.max() + 1) / h]
        assert np.allclose(boxes[0, 1:], seen, atol=1e-5)


def test_what_create_makes() -> None:
    augs = mx.image.CreateDetAugmenter((3, 24, 24), 30, 0.5, 0.5, 0, True, True, True, 0.1)
    assert [a.dumps()[0] if isinstance(a.dumps(), list) else json.loads(a.dumps())[0] for a in augs] == [
        "detborrowaug", "detrandomselectaug", "dethorizontalflipaug", "detrandomselectaug", "detborrowaug",
        "detborrowaug", "detborrowaug", "detborrowaug",
    ]  # fmt: skip
    several = mx.image.CreateMultiRandCropAugmenter(min_object_covered=[0.1, 0.5], skip_prob=0.2)
    assert [json.loads(a)[1]["min_object_covered"] for a in several.dumps()[1]] == [0.1, 0.5]
    with pytest.raises(ValueError, match="one length"):
        mx.image.CreateMultiRandCropAugmenter(min_object_covered=[0.1, 0.5], max_attempts=[1, 2, 3])
    with pytest.raises(ValueError, match="expected an Augmenter"):
        mx.image.DetBorrowAug(3)
