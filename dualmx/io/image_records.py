"""`ImageRecordIter` and its kin: batches of images from record files, decoded and changed in threads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, ArgumentTypeError, FormatError, MXNetError
from ..ndarray import NDArray, array
from . import codec
from .batch import DataBatch, DataDesc
from .iterator import DataIter
from .records import check_part, part, read_record, unpack

_GRAY = np.array([0.299, 0.587, 0.114], np.float32)
# Accepted; they steer threads and memory, which are arranged otherwise here.
_WITHOUT_EFFECT = {
    "verbose", "device_id", "ctx", "prefetch_buffer", "shuffle_chunk_size", "shuffle_chunk_seed", "aug_seq",
}  # fmt: skip
_ALWAYS = {"max_img_size": 1e10, "min_img_size": 0.0, "max_random_contrast": 0.0, "max_random_illumination": 0.0}


@dataclass
class Changes:
    """What is done to each image; the names and defaults are MXNet's.

    Attributes:
        resize: length of the shorter edge, first of all.
        rand_crop, random_resized_crop: crop somewhere; crop at random area and shape and resize.
        max_aspect_ratio, min_aspect_ratio: of a random crop. max_random_area, min_random_area: its share of the area.
        max_crop_size, min_crop_size: edge of a random square crop. max_random_scale, min_random_scale: of the size.
        max_rotate_angle, rotate: degrees. max_shear_ratio: of rows against each other.
        fill_value: of what rotation, shearing and `pad` add. pad: rows and columns around.
        inter_method: 0 nearest, 1 bilinear, 2 bicubic, 3 area, 4 Lanczos, 9 by size, 10 random.
        mirror, rand_mirror: always, or every second time.
        brightness, contrast, saturation, pca_noise: strengths. random_h, random_s, random_l: shifts in HSL.
        mean_img: `.npy` or `.params` file with a mean. mean_r … std_a, scale: (x - mean) * scale / std, per channel.
    """

    resize: int = -1
    rand_crop: bool = False
    random_resized_crop: bool = False
    max_rotate_angle: int = 0
    rotate: int = -1
    max_aspect_ratio: float = 0.0
    min_aspect_ratio: float | None = None
    max_shear_ratio: float = 0.0
    max_crop_size: int = -1
    min_crop_size: int = -1
    max_random_scale: float = 1.0
    min_random_scale: float = 1.0
    max_random_area: float = 1.0
    min_random_area: float = 1.0
    fill_value: int = 255
    pad: int = 0
    inter_method: int = 1
    mirror: bool = False
    rand_mirror: bool = False
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    pca_noise: float = 0.0
    random_h: int = 0
    random_s: int = 0
    random_l: int = 0
    mean_r: float = 0.0
    mean_g: float = 0.0
    mean_b: float = 0.0
    mean_a: float = 0.0
    std_r: float = 1.0
    std_g: float = 1.0
    std_b: float = 1.0
    std_a: float = 1.0
    scale: float = 1.0

    def _interp(self, rng: np.random.RandomState, old: Sequence[int], new: Sequence[int]) -> int:
        if self.inter_method == 10:
            return int(rng.randint(0, 5))
        if self.inter_method == 9:
            if new[0] > old[0] and new[1] > old[1]:
                return 2
            return 3 if new[0] < old[0] and new[1] < old[1] else 1
        return self.inter_method

    def _resized(self, x: np.ndarray, h: int, w: int, rng: np.random.RandomState) -> np.ndarray:
        return x if x.shape[:2] == (h, w) else codec.resize(x, w, h, self._interp(rng, x.shape, (h, w)))

    def geometry(self, x: np.ndarray, height: int, width: int, rng: np.random.RandomState) -> np.ndarray:
        """Return the image resized, turned, cropped and mirrored to `height` by `width`."""
        if self.resize > 0:
            h, w = x.shape[:2]
            small = (int(h * self.resize / w), self.resize) if w < h else (self.resize, int(w * self.resize / h))
            x = self._resized(x, *small, rng)
        x = self._affine(x, rng)
        if self.pad > 0:
            x = codec.border(x, (self.pad,) * 4, 0, (self.fill_value,))
        if self.random_resized_crop:
            x = self._resized_crop(x, height, width, rng)
        else:
            x = self._crop(x, height, width, rng)
        flip = self.mirror or (self.rand_mirror and rng.random_sample() < 0.5)
        return x[:, ::-1] if flip else x

    def _affine(self, x: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        random = self.max_rotate_angle > 0
        angle = rng.randint(-self.max_rotate_angle, self.max_rotate_angle + 1) if random else 0
        angle = self.rotate if self.rotate > 0 else angle
        shear = rng.uniform(-self.max_shear_ratio, self.max_shear_ratio) if self.max_shear_ratio > 0 else 0.0
        scale = rng.uniform(self.min_random_scale, self.max_random_scale) if self.max_random_scale != 1.0 else 1.0
        h, w = x.shape[:2]
        if not angle and not shear:
            return self._resized(x, max(1, int(h * scale)), max(1, int(w * scale)), rng)
        a, b = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
        matrix = scale * np.array([[a - shear * b, b + shear * a], [-b, a]])
        size = max(1, int(w * scale)), max(1, int(h * scale))
        middle = np.array([w, h]) / 2
        shift = np.array(size) / 2 - matrix @ middle
        cv2 = codec.cv2()
        full = np.concatenate([matrix, shift[:, None]], 1)
        fill = (self.fill_value,) * x.shape[2]
        turned = cv2.warpAffine(np.ascontiguousarray(x), full, size, flags=cv2.INTER_LINEAR, borderValue=fill)
        return turned.reshape(size[1], size[0], x.shape[2])

    def _resized_crop(self, x: np.ndarray, height: int, width: int, rng: np.random.RandomState) -> np.ndarray:
        h, w = x.shape[:2]
        low, high = self._aspects()
        for _ in range(10):
            area = rng.uniform(self.min_random_area, self.max_random_area) * h * w
            ratio = rng.uniform(low, high)
            new_w, new_h = round(np.sqrt(area * ratio)), round(np.sqrt(area / ratio))
            if rng.random_sample() > 0.5:
                new_w, new_h = new_h, new_w
            if 0 < new_w <= w and 0 < new_h <= h:
                y0, x0 = rng.randint(0, h - new_h + 1), rng.randint(0, w - new_w + 1)
                return self._resized(x[y0 : y0 + new_h, x0 : x0 + new_w], height, width, rng)
        edge = min(h, w)
        y0, x0 = (h - edge) // 2, (w - edge) // 2
        return self._resized(x[y0 : y0 + edge, x0 : x0 + edge], height, width, rng)

    def _aspects(self) -> tuple[float, float]:
        if self.min_aspect_ratio is not None:
            return self.min_aspect_ratio, self.max_aspect_ratio
        return 1 - self.max_aspect_ratio, 1 + self.max_aspect_ratio

    def _crop(self, x: np.ndarray, height: int, width: int, rng: np.random.RandomState) -> np.ndarray:
        crop_h, crop_w = height, width
        if self.max_crop_size > 0 or self.min_crop_size > 0:
            crop_h = crop_w = int(rng.randint(max(self.min_crop_size, 1), max(self.max_crop_size, 1) + 1))
        h, w = x.shape[:2]
        if h < crop_h or w < crop_w:
            scale = max(crop_h / h, crop_w / w)
            x = self._resized(x, max(int(h * scale), crop_h), max(int(w * scale), crop_w), rng)
            h, w = x.shape[:2]
        if self.rand_crop:
            y0, x0 = rng.randint(0, h - crop_h + 1), rng.randint(0, w - crop_w + 1)
        else:
            y0, x0 = (h - crop_h) // 2, (w - crop_w) // 2
        return self._resized(x[y0 : y0 + crop_h, x0 : x0 + crop_w], height, width, rng)

    def colour(self, x: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Return the image with its colours changed: float32 if they were, else as it came."""
        if x.shape[2] == 3 and (self.random_h or self.random_s or self.random_l):
            cv2 = codec.cv2()
            hls = cv2.cvtColor(np.ascontiguousarray(x), cv2.COLOR_RGB2HLS).astype(np.int32)
            for channel, most, top in ((0, self.random_h, 180), (1, self.random_l, 255), (2, self.random_s, 255)):
                hls[..., channel] = np.clip(hls[..., channel] + rng.randint(-most, most + 1), 0, top)
            x = cv2.cvtColor(hls.astype(np.uint8), cv2.COLOR_HLS2RGB)
        if not (self.brightness or self.contrast or self.saturation or self.pca_noise):
            return x
        x = x.astype(np.float32)
        if self.brightness:
            x = x * np.float32(1 + rng.uniform(-self.brightness, self.brightness))
        if self.contrast and x.shape[2] == 3:
            alpha = 1 + rng.uniform(-self.contrast, self.contrast)
            x = x * np.float32(alpha) + np.float32((1 - alpha) * (x @ _GRAY).mean())
        if self.saturation and x.shape[2] == 3:
            alpha = 1 + rng.uniform(-self.saturation, self.saturation)
            x = x * np.float32(alpha) + (x @ _GRAY)[..., None] * np.float32(1 - alpha)
        if self.pca_noise and x.shape[2] == 3:
            values = np.array([55.46, 4.794, 1.148])
            vectors = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
            x = x + (vectors @ (values * rng.normal(0, self.pca_noise, 3))).astype(np.float32)
        return x

    def normal(self, x: np.ndarray, mean: np.ndarray | None) -> np.ndarray:
        """Return a float32 (C, H, W) image: (x - mean) * scale / std."""
        x = np.moveaxis(x, 2, 0).astype(np.float32)
        c = len(x)
        means = mean if mean is not None else self._each("mean", c)
        std = self._each("std", c) / np.float32(self.scale)
        return (x - means) / std

    def _each(self, what: str, channels: int) -> np.ndarray:
        values = [getattr(self, f"{what}_{c}") for c in "rgba"[:channels]]
        return np.array(values, np.float32).reshape(-1, 1, 1)


class _Records(DataIter):
    """What the iterators over image records share."""

    _who = "ImageRecordIter"
    _dtype: Any = "float32"

    def __init__(
        self,
        path_imgrec: str | os.PathLike[str],
        data_shape: Sequence[int],
        batch_size: int,
        path_imglist: str = "",
        path_imgidx: str = "",
        label_width: int = 1,
        num_parts: int = 1,
        part_index: int = 0,
        shuffle: bool = False,
        seed: int = 0,
        seed_aug: int | None = None,
        round_batch: bool = True,
        preprocess_threads: int = 4,
        mean_img: str = "",
        dtype: Any = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
        **changes: Any,
    ):
        super().__init__(int(batch_size))
        if self.batch_size < 1:
            raise ArgumentError(f"{self._who}: batch_size={batch_size}: expected 1 or more")
        self.data_shape = tuple(int(n) for n in data_shape)
        if len(self.data_shape) != 3 or self.data_shape[0] not in (1, 3, 4) or min(self.data_shape) < 1:
            raise ArgumentError(f"{self._who}: data_shape={data_shape}: expected (1, 3 or 4, height, width)")
        check_part(self._who, num_parts, part_index)
        self._changes = self._checked(changes)
        self._type = as_dtype(self._dtype if dtype is None else dtype)
        self._files = _files(path_imgrec, self._who)
        self._at = [(f, at) for f in self._files for at in part(f, num_parts, part_index)]
        if not self._at:
            raise ArgumentError(f"{self._who}: part {part_index} of {num_parts} of {path_imgrec!r} holds no record")
        self.label_width, self.round_batch, self._shuffle = int(label_width), round_batch, shuffle
        self._listed = _labels_of(path_imglist) if path_imglist else {}
        self._mean = _mean(mean_img) if mean_img else None
        self._names = (data_name, label_name)
        self._rng = np.random.RandomState(seed)
        self._seeds = np.random.RandomState(seed if seed_aug is None else seed_aug)
        self._threads = ThreadPoolExecutor(max(1, int(preprocess_threads)), "dualmx-images")
        self._start = 0  # images of this epoch that the last batch of the epoch before has used
        self._coming: list[Any] = []
        self._batch: DataBatch | None = None
        self._last: Any = None
        self._begin()

    def _checked(self, given: dict[str, Any]) -> Changes:
        known = {f.name for f in fields(Changes)}
        for name in list(given):
            if name in _WITHOUT_EFFECT:
                del given[name]
            elif name in _ALWAYS:
                if given.pop(name) != _ALWAYS[name]:
                    raise ArgumentError(f"{self._who}: {name}: only its default {_ALWAYS[name]} is supported")
            elif name not in known:
                raise ArgumentTypeError(
                    f"{self._who}: unexpected argument {name!r}; there are {', '.join(sorted(known))}"
                )
        return Changes(**given)

    def __del__(self) -> None:
        threads = getattr(self, "_threads", None)
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)

    @property
    def provide_data(self) -> list[DataDesc]:
        return [DataDesc(self._names[0], (self.batch_size, *self.data_shape), self._type.type)]

    @property
    def provide_label(self) -> list[DataDesc]:
        shape = (self.batch_size,) if self.label_width == 1 else (self.batch_size, self.label_width)
        return [DataDesc(self._names[1], shape)]

    def _begin(self) -> None:
        order = self._rng.permutation(len(self._at)) if self._shuffle else np.arange(len(self._at))
        self._order = order
        self._next = self._start
        self._coming = []
        self._ahead()

    def reset(self) -> None:
        self._begin()

    def _ahead(self) -> None:
        """Have the next batches decoded: two are under way while one is used."""
        while len(self._coming) < 2 and self._next < len(self._order):
            at, n = self._next, len(self._order)
            rows = [int(self._order[i]) for i in range(at, min(at + self.batch_size, n))]
            short = self.batch_size - len(rows)
            if short and self.round_batch:
                rows += [int(self._order[i % n]) for i in range(short)]
            seeds = self._seeds.randint(0, 1 << 31, len(rows))
            made = [self._threads.submit(self._make, r, int(s)) for r, s in zip(rows, seeds, strict=True)]
            self._coming.append((made, short))
            self._next += self.batch_size
            if self._next >= n:
                self._start = short % n if self.round_batch else 0

    def _make(self, row: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        path, at = self._at[row]
        rng = np.random.RandomState(seed)
        with open(path, "rb") as f:
            f.seek(at)
            header, data = unpack(read_record(f, path) or b"")
        try:
            image = codec.decode(data, 0 if self.data_shape[0] == 1 else 1 if self.data_shape[0] == 3 else -1)
        except FormatError as e:
            raise FormatError(f"{self._who}: record with id {header.id} at byte {at} of {path!r}: {e}") from None
        label = self._listed.get(header.id) if self._listed else np.atleast_1d(header.label)
        if label is None:
            raise FormatError(f"{self._who}: the id {header.id} of a record of {path!r} is not in path_imglist")
        return self._image(image, np.asarray(label, np.float32), rng)

    def _image(self, x: np.ndarray, label: np.ndarray, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        if label.size != self.label_width:
            raise FormatError(
                f"{self._who}: a record has {label.size} labels, label_width={self.label_width} are expected"
            )
        changed = self._changes.geometry(x, self.data_shape[1], self.data_shape[2], rng)
        return self._changes.normal(self._changes.colour(changed, rng), self._mean), label

    def iter_next(self) -> bool:
        if not self._coming:
            self._batch = None
            return False
        made, short = self._coming.pop(0)
        self._ahead()
        samples = [f.result() if isinstance(f, Future) else f for f in made]
        if len(samples) < self.batch_size:  # without round_batch what the batch before left there fills it up
            filling = self._last if self._last is not None else samples * self.batch_size
            samples += filling[len(samples) : self.batch_size]
            while len(samples) < self.batch_size:
                samples.append(samples[0])
        self._last = samples
        data = np.stack([x for x, _ in samples])
        if self._type.kind in "iu":
            info = np.iinfo(self._type)
            data = np.clip(np.rint(data), info.min, info.max)
        self._batch = DataBatch([array(data.astype(self._type), dtype=self._type)], [self._label(samples)], short)
        return True

    def _label(self, samples: list[Any]) -> NDArray:
        rows = np.stack([label for _, label in samples])
        return array(rows[:, 0] if self.label_width == 1 else rows, dtype="float32")

    def _now(self) -> DataBatch:
        if self._batch is None:
            raise MXNetError(f"{self._who}: no batch yet: call next() or iter_next() first")
        return self._batch

    def getdata(self) -> list[Any]:
        return list(self._now().data)

    def getlabel(self) -> list[Any]:
        return list(self._now().label or ())

    def getpad(self) -> int | None:
        return self._now().pad


class ImageRecordIter(_Records):
    """Batches of images from a record file: float32 (N, C, H, W), red first, 0 to 255 unless they are normalised.

    An incomplete last batch is filled from the beginning of the part, reported as `pad`, and the next epoch starts
    behind it; with `round_batch=False` what fills it is what the batch before left there.

    Args:
        path_imgrec: record file, or folder of `.rec` files.
        data_shape: (channels, height, width); larger images are cropped in the middle, smaller ones enlarged first.
        batch_size: images in a batch.
        path_imglist: list file with other labels for the records' ids.
        path_imgidx: accepted; the file is scanned.
        label_width: labels of an image.
        num_parts, part_index: this worker's share; every record is in one part.
        shuffle, seed: a new order for each epoch.
        seed_aug: seed of the random changes.
        round_batch: see above.
        preprocess_threads: threads that decode.
        mean_img: file of a mean image, made by `mx.nd.save` or `numpy.save`.
        dtype: of the data.
        data_name, label_name: names in the descriptions.
        changes: what else is done to the images; see `Changes`.

    Raises:
        ArgumentError: an unknown setting or wrong values. MXNetError: a file cannot be read. FormatError: it is
            damaged, or a record has another number of labels.

    Example:
        >>> train = mx.io.ImageRecordIter("train.rec", (3, 224, 224), 128, rand_crop=True)  # doctest: +SKIP
    """


class ImageRecordUInt8Iter(_Records):
    """`ImageRecordIter` with uint8 data, which is not normalised."""

    _who, _dtype = "ImageRecordUInt8Iter", "uint8"


class ImageRecordInt8Iter(_Records):
    """`ImageRecordIter` with int8 data."""

    _who, _dtype = "ImageRecordInt8Iter", "int8"


def _files(path: str | os.PathLike[str], who: str) -> list[str]:
    where = Path(path)
    found = sorted(where.glob("*.rec")) if where.is_dir() else [where]
    if not found or not all(f.is_file() for f in found):
        raise MXNetError(f"{who}: path_imgrec={os.fspath(path)!r}: there is no such record file")
    return [str(f) for f in found]


def _labels_of(path: str | os.PathLike[str]) -> dict[int, np.ndarray]:
    out = {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as e:
        raise MXNetError(f"cannot read {os.fspath(path)!r}: {e.strerror or e}") from None
    for number, line in enumerate(lines, 1):
        parts = line.strip().split("\t")
        try:
            if parts != [""]:
                out[int(parts[0])] = np.array(parts[1:-1], np.float32)
        except ValueError:
            raise FormatError(
                f"{os.fspath(path)!r}, line {number}: expected index, labels, path between tabs"
            ) from None
    return out


def _mean(path: str) -> np.ndarray:
    from ..ndarray import load

    if path.endswith(".npy"):
        return np.load(path, allow_pickle=False).astype(np.float32)
    saved = load(path)
    first = next(iter(saved.values())) if isinstance(saved, dict) else saved[0]  # type: ignore[union-attr]
    return first.asnumpy().astype(np.float32)


__all__ = ["Changes", "ImageRecordInt8Iter", "ImageRecordIter", "ImageRecordUInt8Iter"]
