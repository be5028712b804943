"""Iterators, datasets and transformations over image files and records; bad files."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import dualmx as mx
from dualmx.gluon.data import DataLoader, RecordFileDataset
from dualmx.gluon.data.vision import ImageFolderDataset, ImageListDataset, ImageRecordDataset, transforms
from dualmx.io.image_codec import encode

pytest.importorskip("cv2", reason="images need opencv-python-headless")


def picture(i: int, height: int = 12, width: int = 14) -> np.ndarray:
    return np.full((height, width, 3), i * 10, np.uint8) + np.arange(3, dtype=np.uint8)


@pytest.fixture
def rec(tmp_path: Path) -> str:
    """Five pictures with labels 0 to 4."""
    writer = mx.recordio.MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "w")
    for i in range(5):
        writer.write_idx(i, mx.recordio.pack_img((0, float(i), i, 0), picture(i), 9, ".png"))
    writer.close()
    return str(tmp_path / "a.rec")


def epochs(it: mx.io.DataIter, count: int = 2) -> list[list[tuple[list[float], int | None]]]:
    out = []
    for _ in range(count):
        out.append([(b.label[0].asnumpy().tolist(), b.pad) for b in it])
        it.reset()
    return out


def test_image_record_iter_rounds_as_mxnet_does(rec: str) -> None:
    it = mx.io.ImageRecordIter(path_imgrec=rec, data_shape=(3, 8, 8), batch_size=2)
    assert epochs(it) == [[([0, 1], 0), ([2, 3], 0), ([4, 0], 1)], [([1, 2], 0), ([3, 4], 0)]]
    it = mx.io.ImageRecordIter(path_imgrec=rec, data_shape=(3, 8, 8), batch_size=2, round_batch=False)
    assert [b[0] for b in epochs(it, 1)[0]][:2] == [[0, 1], [2, 3]] and len(epochs(it, 1)[0]) == 3
    assert it.provide_data[0].shape == (2, 3, 8, 8) and it.provide_label[0].shape == (2,)
    parts = [mx.io.ImageRecordIter(rec, (3, 8, 8), 1, num_parts=2, part_index=i) for i in (0, 1)]
    assert [[b[0] for b in epochs(p, 1)[0]] for p in parts] == [[[0], [1], [2]], [[3], [4]]]


def test_image_record_iter_shuffles_and_changes(rec: str) -> None:
    it = mx.io.ImageRecordIter(rec, (3, 8, 8), 5, shuffle=True, seed=1, rand_crop=True, rand_mirror=True)
    first, second = ([x for labels, _ in epoch for x in labels] for epoch in epochs(it))
    assert sorted(first) == sorted(second) == [0, 1, 2, 3, 4] and first != second
    changed = mx.io.ImageRecordIter(
        rec, (3, 8, 8), 5, random_resized_crop=True, min_random_area=0.3, max_aspect_ratio=0.3, brightness=0.2,
        contrast=0.2, saturation=0.2, pca_noise=0.1, max_rotate_angle=20, max_shear_ratio=0.1, random_h=10, pad=2,
        dtype="float16",
    ).next()  # fmt: skip
    assert changed.data[0].shape == (5, 3, 8, 8) and changed.data[0].dtype == np.float16
    assert mx.io.ImageRecordUInt8Iter(rec, (3, 8, 8), 2).next().data[0].asnumpy()[1, :, 0, 0].tolist() == [12, 11, 10]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (dict(batch_size=0), "batch_size=0"),
        (dict(data_shape=(8, 8)), "data_shape"),
        (dict(part_index=2, num_parts=2), "part_index=2"),
        (dict(part_index=8, num_parts=900), "holds no record"),
        (dict(resize="large"), "resize='large'"),
        (dict(data_shape="8, x"), "data_shape='8, x'"),
        (dict(path_imgrec="absent.rec"), "no such record file"),
    ],
)
def test_wrong_settings(settings: dict, said: str, rec: str) -> None:
    with pytest.raises((mx.MXNetError, TypeError), match=said):
        mx.io.ImageRecordIter(**{"path_imgrec": rec, "data_shape": (3, 8, 8), "batch_size": 2, **settings})


def test_a_crop_that_never_fits_is_one_of_the_middle(rec: str) -> None:
    settings = dict(path_imgrec=rec, data_shape=(3, 8, 8), batch_size=5)
    never = mx.io.ImageRecordIter(**settings, random_resized_crop=True, max_aspect_ratio=3.0, min_aspect_ratio=2.9)
    plain = mx.io.ImageRecordIter(**settings)
    assert np.array_equal(never.next().data[0].asnumpy(), plain.next().data[0].asnumpy())


def test_labels_of_lists_have_the_type_images_stay_floats(rec: str) -> None:
    listed = mx.image.ImageIter(2, (3, 8, 8), imglist=[[1, "a.png"]] * 2, path_root="", dtype="int64")
    assert listed.imglist[0][0].dtype == np.int64
    batch = mx.image.ImageIter(2, (3, 8, 8), path_imgrec=rec, dtype="int32").next()
    assert batch.data[0].dtype == np.float32 and batch.label[0].dtype == np.float32
    with pytest.raises(AssertionError, match="float16"):
        mx.image.ImageIter(2, (3, 8, 8), path_imgrec=rec, dtype="float16")


def test_settings_may_be_texts(rec: str) -> None:
    texts = dict(data_shape="(3, 8, 8)", batch_size="2", resize="10", mirror="True", scale="0.5", shuffle="0")
    values = dict(data_shape=(3, 8, 8), batch_size=2, resize=10, mirror=True, scale=0.5)
    both = [mx.io.ImageRecordIter(rec, **settings).next().data[0].asnumpy() for settings in (texts, values)]
    assert np.array_equal(*both)


def test_ids_and_equal_parts_with_an_index(tmp_path: Path) -> None:
    path = str(tmp_path / "a.rec")
    with mx.recordio.MXIndexedRecordIO(str(tmp_path / "a.idx"), path, "w") as out:
        for i in range(6):  # the last three are much larger, so that parts by bytes would not be equal
            noise = np.random.RandomState(i).randint(0, 255, (8 if i < 3 else 60, 9, 3)).astype(np.uint8)
            out.write_idx(i, mx.recordio.pack_img((0, float(i), i + 10, 0), noise, 9, ".png"))
    settings = dict(path_imgrec=path, data_shape=(3, 8, 8), batch_size=3, path_imgidx=str(tmp_path / "a.idx"))
    parts = [list(mx.io.ImageRecordIter(**settings, num_parts=2, part_index=i)) for i in (0, 1)]
    assert [[b.index.tolist() for b in p] for p in parts] == [[[10, 11, 12]], [[13, 14, 15]]]


@pytest.mark.parametrize("name", ["mean.bin", "mean.npy"])
def test_a_mean_image_that_is_not_there_is_made(name: str, rec: str, tmp_path: Path) -> None:
    path = str(tmp_path / name)
    settings = dict(path_imgrec=rec, data_shape=(3, 8, 8), batch_size=5, mean_img=path)
    made = mx.io.ImageRecordIter(**settings).next().data[0].asnumpy()
    mean = np.load(path) if name.endswith("npy") else mx.nd.load(path)["mean_img"].asnumpy()
    assert mean.shape == (3, 8, 8) and mean[:, 0, 0].tolist() == [22, 21, 20]
    assert np.array_equal(mx.io.ImageRecordIter(**settings).next().data[0].asnumpy(), made)
    assert made[:, 1, 2, 3].tolist() == [-20, -10, 0, 10, 20]


def test_contrast_and_illumination_are_drawn_for_each_image(rec: str) -> None:
    settings = dict(path_imgrec=rec, data_shape=(3, 8, 8), batch_size=5, mean_r=1, mean_g=1, mean_b=1, std_r=2)
    plain = mx.io.ImageRecordIter(**settings).next().data[0].asnumpy()
    both = mx.io.ImageRecordIter(**settings, max_random_contrast=0.5, max_random_illumination=20)
    for x, y in zip(plain, both.next().data[0].asnumpy(), strict=True):
        factor = (y[1] - y[2]).mean()  # green and blue are 1 apart
        assert 0.5 <= factor <= 1.5
        assert np.abs(y[1] - x[1] * factor).max() <= 20 and np.allclose(y[1] - x[1] * factor, y[2] - x[2] * factor)


def test_an_argument_that_means_nothing_is_warned_of(rec: str) -> None:
    with pytest.warns(UserWarning, match="there is no argument random_crop: ignored"):
        mx.io.ImageRecordIter(rec, (3, 8, 8), 2, random_crop=True)


def test_a_wrong_number_of_labels_is_an_error(rec: str) -> None:
    with pytest.raises(mx.MXNetError, match="has 1 labels, label_width=2"):
        mx.io.ImageRecordIter(rec, (3, 8, 8), 2, label_width=2).next()


@pytest.mark.parametrize(
    ("handle", "expected"),
    [
        ("pad", [[([0, 1, 2], 0), ([3, 4, 0], 1)]] * 2),
        ("discard", [[([0, 1, 2], 0)]] * 2),
        ("roll_over", [[([0, 1, 2], 0)], [([3, 4, 0], 1), ([1, 2, 3], 0)], [([4, 0, 1], 2), ([2, 3, 4], 0)]]),
    ],
)
def test_image_iter_ends_as_mxnet_does(handle: str, expected: list, rec: str) -> None:
    it = mx.image.ImageIter(3, (3, 8, 8), path_imgrec=rec, last_batch_handle=handle)
    assert epochs(it, len(expected)) == expected


def test_image_iter_from_lists(tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"{i}.png").write_bytes(encode(picture(i), 9, ".png"))
    it = mx.image.ImageIter(
        2, (3, 8, 8), label_width=2, imglist=[[1, 2, "0.png"], [[3, 4], "1.png"]], path_root=tmp_path
    )
    batch = it.next()
    assert batch.label[0].asnumpy().tolist() == [[1, 2], [3, 4]] and it.provide_label[0].shape == (2, 2)
    assert batch.data[0].asnumpy()[:, :, 0, 0].tolist() == [[2, 1, 0], [12, 11, 10]]
    (tmp_path / "a.lst").write_text("0\t7\t0.png\n1\t8\t1.png\n2\t9\t2.png\n")
    parts = [
        mx.image.ImageIter(
            1, (3, 8, 8), path_imglist=str(tmp_path / "a.lst"), path_root=tmp_path, num_parts=2, part_index=i
        )
        for i in (0, 1)
    ]
    assert [[x for labels, _ in epochs(p, 1)[0] for x in labels] for p in parts] == [[7, 8], [9]]

    class Inverse(mx.image.Augmenter):
        def __call__(self, src: mx.nd.NDArray) -> mx.nd.NDArray:
            assert isinstance(src, mx.nd.NDArray)
            return mx.nd.flip(src, axis=1)

    it = mx.image.ImageIter(1, (3, 12, 14), imglist=[[1, "0.png"]], path_root=tmp_path, aug_list=[Inverse()])
    assert it.next().data[0].shape == (1, 3, 12, 14)
    it = mx.image.ImageIter(1, (3, 8, 8), imglist=[[1, "0.png"]], path_root=tmp_path, aug_list=[])
    with pytest.raises(mx.MXNetError, match=r"shape \(3, 12, 14\): expected data_shape \(3, 8, 8\)"):
        it.next()
    with pytest.raises(mx.MXNetError, match="absent.png"):
        mx.image.ImageIter(1, (3, 8, 8), imglist=[[1, "absent.png"]], path_root=tmp_path).next()


def test_image_iter_refuses() -> None:
    one = [[1, "a.png"]]
    for kwargs, said in (
        ({}, "expected path_imgrec, path_imglist or imglist"),
        ({"imglist": [], "data_shape": (1, 8, 8)}, r"data_shape=\(1, 8, 8\): expected \(3, height, width\)"),
        ({"imglist": []}, "part 0 of 1: no images"),
        ({"imglist": one, "num_parts": 2, "part_index": 2}, "part_index=2"),
        ({"imglist": one, "aug_list": [], "resize": 3}, "resize: not together with aug_list"),
    ):
        with pytest.raises(mx.MXNetError, match=said):
            mx.image.ImageIter(**{"batch_size": 1, "data_shape": (3, 8, 8), **kwargs})


def test_broken_images_are_named(tmp_path: Path) -> None:
    writer = mx.recordio.MXRecordIO(str(tmp_path / "b.rec"), "w")
    writer.write(mx.recordio.pack((0, 1.0, 77, 0), b"not an image"))
    writer.close()
    with pytest.raises(mx.MXNetError, match="record with id 77 at byte 0 .*not a readable image"):
        mx.io.ImageRecordIter(str(tmp_path / "b.rec"), (3, 8, 8), 1).next()
    with pytest.raises(mx.MXNetError, match="image 0 of this epoch"):
        mx.image.ImageIter(1, (3, 8, 8), path_imgrec=str(tmp_path / "b.rec")).next()
    for wrong, said in ((b"", "empty"), (b"junk", "not a readable image")):
        with pytest.raises(mx.MXNetError, match=said):
            mx.image.imdecode(wrong)
    with pytest.raises(ValueError, match="got str"):
        mx.image.imdecode("x.png")
    with pytest.raises(mx.MXNetError, match="No such file"):
        mx.image.imread(str(tmp_path / "absent.png"))


def test_datasets(tmp_path: Path, rec: str) -> None:
    records = RecordFileDataset(rec)
    assert len(records) == 5 and mx.recordio.unpack(records[3])[0].label == 3.0
    pairs = ImageRecordDataset(rec)
    image, label = pairs[2]
    assert isinstance(image, mx.nd.NDArray) and image.shape == (12, 14, 3) and label == 2.0
    for name in ("cat", "dog"):
        (tmp_path / "tree" / name).mkdir(parents=True)
        (tmp_path / "tree" / name / "x.png").write_bytes(encode(picture(len(name)), 9, ".png"))
    (tmp_path / "tree" / "cat" / "y.txt").write_text("")
    with pytest.warns(UserWarning, match="no image"):
        folder = ImageFolderDataset(str(tmp_path / "tree"))
    assert folder.synsets == ["cat", "dog"] and [label for _, label in folder.items] == [0, 1]
    assert folder[1][0].shape == (12, 14, 3) and folder[1][1] == 1
    listed = ImageListDataset(str(tmp_path / "tree"), [[0, "cat/x.png"], [1, "dog/x.png"]])
    assert len(listed) == 2 and listed[1][1] == 1
    with pytest.raises(mx.MXNetError, match="cannot read"):
        ImageFolderDataset(str(tmp_path / "absent"))


@pytest.mark.parametrize("workers", [0, 2])
def test_records_through_the_loader(workers: int, rec: str) -> None:
    """Workers open the file for themselves, and decode without touching a device."""
    steps = transforms.Compose(
        [transforms.RandomResizedCrop(8), transforms.RandomFlipLeftRight(), transforms.ToTensor()]
    )
    data = ImageRecordDataset(rec).transform_first(steps)
    batches = list(DataLoader(data, 2, num_workers=workers))
    assert [x.shape for x, _ in batches] == [(2, 3, 8, 8), (2, 3, 8, 8), (1, 3, 8, 8)]
    assert np.concatenate([y.asnumpy() for _, y in batches]).tolist() == [0, 1, 2, 3, 4]


IMAGE = np.random.RandomState(0).randint(0, 255, (12, 14, 3)).astype(np.uint8)
KEEPING = {
    "RandomBrightness": lambda: transforms.RandomBrightness(0.5),
    "RandomContrast": lambda: transforms.RandomContrast(0.5),
    "RandomSaturation": lambda: transforms.RandomSaturation(0.5),
    "RandomHue": lambda: transforms.RandomHue(0.5),
    "RandomColorJitter": lambda: transforms.RandomColorJitter(0.1, 0.2, 0.3, 0.4),
    "RandomLighting": lambda: transforms.RandomLighting(0.5),
    "RandomGray": lambda: transforms.RandomGray(1.0),
}


@pytest.mark.parametrize("name", list(KEEPING))
def test_colours_keep_shape_and_type(name: str) -> None:
    block = KEEPING[name]()
    for dtype in ("uint8", "float32"):
        for value in (IMAGE.astype(dtype), mx.nd.array(IMAGE, dtype=dtype)):
            got = block(value)
            assert type(got) is type(value) and got.shape == IMAGE.shape and np.dtype(got.dtype) == dtype


def test_strength_zero_changes_nothing() -> None:
    for block in (transforms.RandomBrightness(0), transforms.RandomContrast(0), transforms.RandomLighting(0)):
        assert np.abs(block(IMAGE).astype(int) - IMAGE).max() <= 1
    assert np.array_equal(transforms.RandomColorJitter()(IMAGE), IMAGE)


@pytest.mark.parametrize("window", [(1, 2, 0, 3), (-1, 2, 4, 3), (14, 0, 2, 2)])
def test_windows_without_pixels_are_refused(window: tuple[int, ...]) -> None:
    with pytest.raises(mx.MXNetError, match="fixed_crop: x0="):
        mx.image.fixed_crop(mx.nd.array(picture(1), dtype="uint8"), *window)
    with pytest.raises(mx.MXNetError, match="interp=2.0"):
        mx.image.imresize(mx.nd.array(picture(1), dtype="uint8"), 4, 4, interp=2.0)


@pytest.mark.parametrize("size", [(0, 4), (4, 0), (-1, 4), (1 << 20, 1 << 20)])
def test_sizes_without_pixels_and_beyond_memory_are_refused(size: tuple[int, int]) -> None:
    for image in (picture(1), mx.nd.array(picture(1), dtype="uint8")):
        with pytest.raises(mx.MXNetError, match=f"w={size[0]}, h={size[1]}: expected 1 or more, at most"):
            mx.image.imresize(image, *size)


@pytest.mark.parametrize("size", [(1, 1), (1, 3), (3, 1)])
def test_images_of_one_pixel_and_of_one_line(size: tuple[int, int]) -> None:
    for interp in range(5):
        made = mx.image.imresize(mx.nd.full((5, 4, 3), 7, dtype="uint8"), *size, interp=interp).asnumpy()
        assert made.shape == (size[1], size[0], 3) and (made == 7).all()


@pytest.mark.parametrize("mean", [None, False])
def test_no_mean_is_no_normalization(mean: bool | None) -> None:
    made = mx.image.CreateAugmenter((3, 8, 8), mean=mean, std=mean)
    assert not any(isinstance(a, mx.image.ColorNormalizeAug) for a in made)
    both = mx.image.CreateDetAugmenter((3, 8, 8), mean=mean, std=mean)
    assert not any("colornormalizeaug" in str(a.dumps()).lower() for a in both)


def test_one_mean_is_that_of_all_channels() -> None:
    for wrong in ([1, 2], [[1, 2, 3]], 3):
        with pytest.raises(mx.MXNetError, match="mean: got shape .*: expected one number or three"):
            mx.image.CreateAugmenter((3, 8, 8), mean=np.array(wrong))
    aug = mx.image.CreateAugmenter((3, 8, 8), mean=np.array([5.0]), std=np.array([2.0]))[-1]
    assert (aug(mx.nd.full((8, 8, 3), 7)).asnumpy() == 1).all()


def test_crops() -> None:
    for value in (IMAGE, mx.nd.array(IMAGE, dtype="uint8")):
        assert transforms.RandomResizedCrop((4, 6))(value).shape == (6, 4, 3)
        assert transforms.RandomResizedCrop(5, scale=(0.5, 1), interpolation=2)(value).shape == (5, 5, 3)
        assert transforms.RandomCrop((4, 6))(value).shape == (6, 4, 3)
        assert transforms.RandomCrop(16, pad=4)(value).shape == (16, 16, 3)
        assert transforms.Resize((6, 5), interpolation=3)(value).shape == (5, 6, 3)
        assert transforms.CenterCrop((40, 8), interpolation=2)(value).shape == (8, 40, 3)
    random.seed(0)
    once = transforms.RandomResizedCrop(6)(IMAGE)
    random.seed(0)
    again = transforms.RandomResizedCrop(6)(mx.nd.array(IMAGE, dtype="uint8")).asnumpy()
    assert np.abs(once.astype(int) - again).max() <= 1


def test_rotation_and_chance() -> None:
    planes = mx.nd.array(np.moveaxis(IMAGE, 2, 0).astype("float32"))
    assert np.array_equal(transforms.Rotate(30)(planes).asnumpy(), mx.image.imrotate(planes, 30).asnumpy())
    assert transforms.RandomRotation((-5, 5))(planes).shape == planes.shape
    assert transforms.RandomRotation((-5, 5), rotate_with_proba=0)(planes) is planes
    for wrong in (lambda: transforms.RandomRotation((5, -5)), lambda: transforms.RandomRotation((0, 5), True, True)):
        with pytest.raises(ValueError, match=r"\(5, -5\): expected \(least, most\)|zoom_in and zoom_out cannot both"):
            wrong()
    with pytest.raises(ValueError, match="probability"):
        transforms.RandomRotation((0, 5), rotate_with_proba=2)
    with pytest.raises(TypeError, match="float32"):
        transforms.Rotate(30)(mx.nd.array(IMAGE, dtype="uint8"))
    cast = transforms.Cast("float64")
    assert transforms.RandomApply(cast, 1.0)(planes).dtype == np.float64
    assert transforms.RandomApply(cast, 0.0)(planes).dtype == np.float32
    bright = transforms.RandomBrightness(0.5)
    for p, changed in ((1.0, True), (0.0, False)):
        block = transforms.HybridRandomApply(bright, p)
        block.hybridize()
        got = block(mx.nd.array(IMAGE, dtype="float32")).asnumpy()
        assert (np.abs(got - IMAGE).max() > 0) == changed


def test_augmenters_describe_themselves() -> None:
    augs = mx.image.CreateAugmenter((3, 24, 24), 30, True, True, True, True, True, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2)
    assert augs[0].dumps() == '["resizeaug", {"size": 30, "interp": 2}]'
    assert augs[1].dumps().startswith('["randomsizedcropaug", {"size": [24, 24], "area": 0.08')
    assert augs[4].dumps()[0] == "colorjitteraug"
    image: object = mx.nd.array(IMAGE, dtype="uint8")
    for aug in augs:
        image = aug(image)
    assert image.shape == (24, 24, 3) and image.dtype == np.float32  # type: ignore[attr-defined]
    with pytest.raises(mx.MXNetError, match="rand_crop=True"):
        mx.image.CreateAugmenter((3, 8, 8), rand_resize=True)
    with pytest.raises(mx.MXNetError, match="mean"):
        mx.image.CreateAugmenter((3, 8, 8), mean=np.ones(2))
