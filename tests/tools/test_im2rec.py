"""Lists and record files of images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dualmx as mx
from dualmx.cli import main

pytest.importorskip("cv2", reason="images need opencv-python-headless")
from dualmx.io.image_codec import encode  # noqa: E402


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i, name in enumerate(("cat/a.png", "cat/b.jpg", "dog/c.png")):
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode(np.full((10, 14, 3), 40 * i, np.uint8), 9, path.suffix))
    (tmp_path / "images" / "cat" / "notes.txt").write_text("")
    return tmp_path


def test_lists_then_records(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prefix, images = str(folder / "set"), str(folder / "images")
    assert main(["im2rec", prefix, images, "--list", "--recursive", "--no-shuffle"]) == 0
    text = (folder / "set.lst").read_text()
    assert text == "0\t0.000000\tcat/a.png\n1\t0.000000\tcat/b.jpg\n2\t1.000000\tdog/c.png\n"
    assert (
        main(["im2rec", prefix, images, "--resize", "5", "--center-crop", "--encoding", ".png", "--quality", "9"]) == 0
    )
    reader = mx.recordio.MXIndexedRecordIO(prefix + ".idx", prefix + ".rec", "r")
    header, image = mx.recordio.unpack_img(reader.read_idx(2))
    assert header.label == 1.0 and header.id == 2 and image.shape == (5, 5, 3) and (image == 80).all()
    assert main(["im2rec", prefix, images, "--pass-through", "--num-thread", "2"]) == 0
    reader = mx.recordio.MXIndexedRecordIO(prefix + ".idx", prefix + ".rec", "r")
    assert mx.recordio.unpack(reader.read_idx(0))[1] == (folder / "images/cat/a.png").read_bytes()
    assert main(["rec2idx", prefix + ".rec", prefix + ".again"]) == 0
    assert (folder / "set.again").read_text() == (folder / "set.idx").read_text()
    batch = mx.io.ImageRecordIter(prefix + ".rec", (3, 8, 8), 3).next()
    assert batch.label[0].asnumpy().tolist() == [0, 0, 1]


def test_parts_of_lists_and_several_labels(folder: Path) -> None:
    prefix, images = str(folder / "set"), str(folder / "images")
    assert (
        main(["im2rec", prefix, images, "--list", "--recursive", "--train-ratio", "0.67", "--test-ratio", "0.33"]) == 0
    )
    assert sorted(p.name for p in folder.glob("set*.lst")) == ["set_train.lst"] or (folder / "set_test.lst").exists()
    (folder / "many.lst").write_text("7\t1\t2\t3\tcat/a.png\n")
    assert main(["im2rec", str(folder / "many.lst"), images, "--pack-label"]) == 0
    header, _ = mx.recordio.unpack(mx.recordio.MXRecordIO(str(folder / "many.rec"), "r").read() or b"")
    assert header.label.tolist() == [1, 2, 3] and header.id == 7


def test_what_is_wrong_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = str(folder / "images")
    assert main(["im2rec", str(folder / "absent"), images]) == 2 and "--list" in capsys.readouterr().err
    assert main(["im2rec", str(folder / "x"), images, "--list"]) == 2 and "--recursive" in capsys.readouterr().err
    (folder / "bad.lst").write_text("0\t1\tcat/a.png\n1\t1\tcat/notes.txt\n2\t1\tabsent.png\n")
    assert main(["im2rec", str(folder / "bad.lst"), images]) == 1
    said = capsys.readouterr()
    assert "notes.txt" in said.err and "absent.png" in said.err and "1 images, 2 left out" in said.out
    (folder / "bad.lst").write_text("no list\n")
    assert main(["im2rec", str(folder / "bad.lst"), images]) == 2 and "line 1" in capsys.readouterr().err
