"""Images with boxes: augmenters, iterators, labels of a wrong form."""

from __future__ import annotations

import json
import random
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
    for wrong, said in (
        (dict(rand_crop=True), "rand_crop would move the boxes; use rand_crop_prob"),
        (dict(label_pad_width=3), "label_pad_width=3: a label has 12 numbers"),
    ):
        with pytest.raises(mx.MXNetError, match=said):
            mx.io.ImageDetRecordIter(rec, (3, 16, 20), 3, **wrong)


def boxes_of(label: np.ndarray) -> np.ndarray:
    """The boxes of a row of `ImageDetRecordIter`'s labels."""
    return label[4 : 4 + int(label[3])][2:].reshape(-1, 5)


def found(image: np.ndarray) -> np.ndarray:
    """Left, top, right, bottom of the white rectangle in a (C, H, W) image, in shares."""
    rows, columns = (np.nonzero(image[0].max(axis) > 150)[0] for axis in (1, 0))
    h, w = image.shape[1:]
    return np.array([columns[0] / w, rows[0] / h, (columns[-1] + 1) / w, (rows[-1] + 1) / h])


@pytest.mark.parametrize(
    "settings",
    [
        dict(rand_pad_prob=1.0, max_pad_scale=3.0, fill_value=0),
        dict(rand_crop_prob=1.0, min_crop_scales=(0.5,), min_crop_object_coverages="(0.5,)", max_crop_trials=(100,)),
        dict(rand_crop_prob=1.0, num_crop_sampler=2, min_crop_scales=(0.5, 0.8), min_crop_overlaps=(0.05, 0.1)),
        dict(rand_crop_prob=1.0, min_crop_scales=(0.4,), max_crop_aspect_ratios=(2.0,), crop_emit_mode="overlap"),
        dict(rand_mirror_prob=0.5, rand_pad_prob=0.5, max_pad_scale=2.0, fill_value=0, rand_crop_prob=0.5),
    ],
    ids=str,
)
def test_boxes_follow_their_pixels(settings: dict, tmp_path: Path) -> None:
    image = np.zeros((80, 100, 3), np.uint8)
    image[20:60, 30:80] = 255
    path = str(tmp_path / "d.rec")
    with mx.recordio.MXRecordIO(path, "w") as out:
        for i in range(20):
            out.write(mx.recordio.pack_img((0, np.array([2, 5, 1, 0.3, 0.25, 0.8, 0.75]), i, 0), image, 9, ".png"))
    batch = mx.io.ImageDetRecordIter(path, (3, 120, 120), 20, seed=3, **settings).next()
    everything = [boxes_of(row) for row in batch.label[0].asnumpy()]
    for pixels, boxes in zip(batch.data[0].asnumpy(), everything, strict=True):
        assert boxes.shape == (1, 5) and boxes[0, 0] == 1
        assert np.abs(found(pixels) - boxes[0, 1:]).max() < 0.03
    assert len({boxes[0, 1] for boxes in everything}) > 2


def test_a_crop_covers_as_much_as_was_asked_for(tmp_path: Path) -> None:
    path = str(tmp_path / "d.rec")
    with mx.recordio.MXRecordIO(path, "w") as out:
        label = np.array([2, 5, 0, 0.0, 0.0, 0.2, 0.2, 1, 0.3, 0.3, 0.9, 0.9])
        out.write(mx.recordio.pack_img((0, label, 0, 0), IMAGE, 9, ".png"))
    it = mx.io.ImageDetRecordIter(
        path, (3, 16, 16), 1, rand_crop_prob=1.0, min_crop_scales=(0.6,), max_crop_scales=(0.7,),
        min_crop_object_coverages=(0.8,), max_crop_trials=(200,),
    )  # fmt: skip
    seen = set()
    for _ in range(30):
        row = it.next().label[0].asnumpy()[0]
        seen.add(tuple(boxes_of(row)[:, 0]))
        assert (row[4 + int(row[3]) :] == -1).all()
        it.reset()
    assert (1.0,) in seen and () not in seen


@pytest.mark.parametrize(
    "settings",
    [
        dict(random_hue_prob=1.0, max_random_hue=30),
        dict(random_saturation_prob=1.0, max_random_saturation=60),
        dict(random_illumination_prob=1.0, max_random_illumination=60),
        dict(random_contrast_prob=1.0, max_random_contrast=0.5),
    ],
    ids=str,
)
def test_colours_of_images_with_boxes(settings: dict, rec: str) -> None:
    plain = mx.io.ImageDetRecordIter(rec, (3, 16, 20), 3).next()
    changed = mx.io.ImageDetRecordIter(rec, (3, 16, 20), 3, **settings).next()
    assert np.array_equal(changed.label[0].asnumpy(), plain.label[0].asnumpy())
    x, y = plain.data[0].asnumpy(), changed.data[0].asnumpy()
    assert not np.array_equal(x, y) and y.min() >= 0 and y.max() <= 255
    (name,) = (n for n in settings if n.endswith("prob"))
    assert np.array_equal(mx.io.ImageDetRecordIter(rec, (3, 16, 20), 3, **{**settings, name: 0}).next().data[0], x)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (dict(resize_mode="wide"), "resize_mode='wide'"),
        (dict(num_crop_sampler=2, min_crop_scales=(0.1, 0.2, 0.3)), "one for each of 2"),
        (dict(min_crop_scales=(0.9,), max_crop_scales=(0.5,)), "min_crop_scales=0.9"),
        (dict(max_crop_scales=(2.0,)), "max_crop_scales=2.0"),
        (dict(label_width=7), "label_width=7"),
    ],
)
def test_wrong_settings_of_detection(settings: dict, said: str, rec: str) -> None:
    with pytest.raises(mx.MXNetError, match=said):
        mx.io.ImageDetRecordIter(rec, (3, 16, 20), 3, **settings).next()


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
    from dualmx.io.image_codec import encode

    (tmp_path / "a.png").write_bytes(encode(IMAGE, 9, ".png"))
    with pytest.raises(mx.MXNetError, match="label"):
        mx.image.ImageDetIter(1, (3, 8, 8), imglist=[[np.array(label), "a.png"]], path_root=str(tmp_path))


DRAWN = {  # by MXNet 1.9.1 from the seeds 1, 2, 3: height and width, and the last box
    "crop": (
        lambda: mx.image.DetRandomCropAug(0.3, (0.7, 1.4), (0.2, 0.9), 0.3, 50),
        [(14, 11, 0.291, 0.207, 1, 1), (14, 13, 0, 0.207, 1, 1), (21, 18, 0.067, 0.329, 1, 0.876)],
    ),
    "pad": (
        lambda: mx.image.DetRandomPadAug((0.7, 1.4), (1.0, 3.0), 50),
        [
            (52, 41, 0.176, 0.613, 0.705, 0.835),
            (46, 35, 0.234, 0.259, 0.854, 0.509),
            (44, 38, 0.295, 0.248, 0.866, 0.509),
        ],
    ),
    "choice": (
        lambda: mx.image.CreateMultiRandCropAugmenter([0.1, 0.5, 0.9], skip_prob=0.4),
        [(23, 31, 0.2, 0.3, 0.9, 0.8), (21, 26, 0.085, 0.281, 0.919, 0.829), (23, 31, 0.2, 0.3, 0.9, 0.8)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(DRAWN))
def test_the_same_seed_draws_the_same_windows(name: str) -> None:
    make, expected = DRAWN[name]
    augmenter = make()
    for seed, want in zip((1, 2, 3), expected, strict=True):
        random.seed(seed)
        image, boxes = augmenter(mx.nd.array(IMAGE, dtype="uint8"), BOXES.copy())
        assert image.shape[:2] == want[:2] and np.allclose(boxes[-1, 1:], want[2:], atol=1e-3)


def test_a_number_is_both_ends_of_a_range() -> None:
    settings = json.loads(mx.image.DetRandomCropAug(0.5, 2, 0.5).dumps())[1]
    assert settings["aspect_ratio_range"] == [2, 2] and settings["area_range"] == [0.5, 0.5]


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


@pytest.mark.parametrize("wrong", [[3], [mx.image.HorizontalFlipAug(0.5)], mx.image.HorizontalFlipAug(0.5)])
def test_one_of_several_changes_must_know_boxes(wrong: object) -> None:
    with pytest.raises(ValueError, match="aug_list: expected DetAugmenters"):
        mx.image.DetRandomSelectAug(wrong)


def test_of_no_changes_none_is_chosen() -> None:
    image = mx.nd.array(IMAGE, dtype="uint8")
    assert mx.image.DetRandomSelectAug([])(image, BOXES)[0] is image
