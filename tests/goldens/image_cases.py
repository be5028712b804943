"""What MXNet makes of small images, which are stored as well, so that the tests read the same bytes."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

SEED = 3
EIGENVALUES = np.array([55.46, 4.794, 1.148])
EIGENVECTORS = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
SETTINGS = {
    "larger": dict(data_shape=(3, 32, 32)),
    "tall": dict(data_shape=(3, 32, 20)),
    "middle": dict(data_shape=(3, 10, 12)),
    "resized": dict(data_shape=(3, 20, 20), resize=26),
    "mirrored": dict(data_shape=(3, 10, 12), mirror=True),
    "scaled": dict(data_shape=(3, 10, 12), mean_r=1, mean_g=2, mean_b=3, std_r=2, scale=0.5),
    "gray": dict(data_shape=(1, 10, 12)),
    "rescaled": dict(data_shape=(3, 10, 12), min_random_scale=0.7, max_random_scale=0.7),
    "squeezed": dict(data_shape=(3, 16, 16), min_aspect_ratio=1.5, max_aspect_ratio=1.5),
    "turned": dict(data_shape=(3, 16, 16), rotate=30, max_img_size=20),
    "wide": dict(data_shape=(3, 24, 36)),
}
DETECTION = {
    "forced": dict(mean_r=10.0, std_g=2.0),
    "shrunk": dict(resize_mode="shrink", mean_r=10.0),
    "fitted": dict(resize_mode="fit", data_shape=(3, 30, 40)),
    "mirrored": dict(rand_mirror_prob=1.0),
    "short": dict(resize=12),
}


def write_detections(mx: Any, path: str, picture: np.ndarray) -> None:
    """A file of records with boxes."""
    labels = [2, 5, 0, 0.1, 0.2, 0.5, 0.6], [2, 5, 1, 0.2, 0.3, 0.9, 0.8, 0, 0.1, 0.2, 0.5, 0.6]
    out = mx.recordio.MXRecordIO(path, "w")
    for i, label in enumerate(labels):
        header = mx.recordio.IRHeader(0, np.array(label), i, 0)
        out.write(mx.recordio.pack_img(header, picture[: 23 - 8 * i], 9, ".png"))
    out.close()


def record(mx: Any) -> Any:
    """Every image."""
    import cv2

    out: dict[str, np.ndarray] = {}
    rng = np.random.RandomState(0)
    picture = rng.randint(0, 255, (23, 31, 3)).astype("uint8")
    smooth = cv2.GaussianBlur(rng.randint(0, 255, (40, 50, 3)).astype("uint8"), (9, 9), 3)
    out["picture"] = picture
    png = cv2.imencode(".png", picture[..., ::-1])[1]
    jpg = cv2.imencode(".jpg", smooth)[1]
    out["png"], out["jpg"] = png, jpg
    for name, data in (("png", png), ("jpg", jpg)):
        for flag in (0, 1):
            out[f"decoded_{name}_{flag}"] = mx.image.imdecode(data.tobytes(), flag=flag).asnumpy()
        out[f"decoded_{name}_bgr"] = mx.image.imdecode(data.tobytes(), to_rgb=False).asnumpy()

    def fresh(dtype: str = "uint8") -> Any:
        return mx.nd.array(picture.astype(dtype), dtype=dtype)

    for i in range(5):
        out[f"smaller_{i}"] = mx.image.imresize(fresh(), 10, 12, interp=i).asnumpy()
        out[f"larger_{i}"] = mx.image.imresize(fresh(), 50, 45, interp=i).asnumpy()
    out["smaller_float"] = mx.image.imresize(fresh("float32"), 10, 12).asnumpy()
    out["short"] = mx.image.resize_short(fresh(), 10).asnumpy()
    out["fixed"] = mx.image.fixed_crop(fresh(), 2, 3, 10, 8, (5, 6)).asnumpy()
    for name, size in (("inside", (10, 8)), ("wide", (100, 8)), ("outside", (100, 80))):
        image, window = mx.image.center_crop(fresh(), size)
        out[f"center_{name}"], out[f"center_{name}_window"] = image.asnumpy(), np.array(window)
    out["border"] = mx.image.copyMakeBorder(fresh(), 1, 2, 3, 4, values=(1, 2, 3)).asnumpy()
    for kind in (1, 2, 3, 4):
        out[f"border_{kind}"] = mx.image.copyMakeBorder(fresh(), 1, 2, 3, 4, type=kind).asnumpy()

    planes = mx.nd.array(np.moveaxis(picture, 2, 0).astype("float32"))
    for angle in (30, -100, 90):
        for name, kwargs in (("", {}), ("_in", {"zoom_in": True}), ("_out", {"zoom_out": True})):
            out[f"rotated_{angle}{name}"] = mx.image.imrotate(planes, angle, **kwargs).asnumpy()
    out["rotated_two"] = mx.image.imrotate(mx.nd.stack(planes, planes), mx.nd.array([10, -20])).asnumpy()

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
        "normalized": lambda: mx.image.ColorNormalizeAug(mx.nd.array([1, 2, 3]), mx.nd.array([4, 5, 6]))(
            fresh("float32")
        ),
    }
    for name, made in SEEDED.items():
        random.seed(SEED)
        np.random.seed(SEED)
        out[f"seeded_{name}"] = made().asnumpy()

    with tempfile.TemporaryDirectory() as folder:
        rec, idx = os.path.join(folder, "a.rec"), os.path.join(folder, "a.idx")
        writer = mx.recordio.MXIndexedRecordIO(idx, rec, "w")
        for i in range(5):
            header = mx.recordio.IRHeader(0, float(i), i, 0) if i < 4 else mx.recordio.IRHeader(0, [4.0], i, 0)
            writer.write_idx(i, mx.recordio.pack_img(header, np.roll(picture, i, 0)[..., ::-1], 9, ".png"))
        writer.close()
        out["rec"], out["idx"] = (np.frombuffer(Path(p).read_bytes(), np.uint8) for p in (rec, idx))
        for name, settings in SETTINGS.items():
            it = mx.io.ImageRecordIter(path_imgrec=rec, batch_size=2, preprocess_threads=1, **settings)
            out[f"iter_{name}"] = it.next().data[0].asnumpy()
        write_detections(mx, path := os.path.join(folder, "d.rec"), picture)
        for name, settings in DETECTION.items():
            given = {"data_shape": (3, 16, 16), **settings}
            it = mx.io.ImageDetRecordIter(path_imgrec=path, batch_size=2, preprocess_threads=1, **given)
            batch = it.next()
            out[f"det_{name}"], out[f"det_{name}_label"] = batch.data[0].asnumpy(), batch.label[0].asnumpy()
    return out
