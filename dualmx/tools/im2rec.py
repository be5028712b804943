"""`dualmx im2rec`: write image lists and record files. `dualmx rec2idx`: write the index of a record file."""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from ..core.errors import MXNetError
from ..image.iterator import read_list
from ..io import image_codec
from ..io.recordio import MXIndexedRecordIO, offsets, pack

Entry = tuple[int, np.ndarray, str]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(prog="dualmx im2rec", description="Make image lists, or record files from them.")
    p.add_argument("prefix", help="of the files made: PREFIX.lst, PREFIX.rec, PREFIX.idx; or the list files to read")
    p.add_argument("root", help="folder of the images")
    lists = p.add_argument_group("making lists")
    lists.add_argument("--list", action="store_true", help="make list files, no record files")
    lists.add_argument("--exts", nargs="+", default=[".jpeg", ".jpg", ".png"], help="endings of image files")
    lists.add_argument("--chunks", type=int, default=1, help="number of list files")
    lists.add_argument("--train-ratio", type=float, default=1.0, help="share of the images in PREFIX_train.lst")
    lists.add_argument("--test-ratio", type=float, default=0.0, help="share of the images in PREFIX_test.lst")
    lists.add_argument("--recursive", action="store_true", help="go into folders, each of which is a class")
    lists.add_argument("--no-shuffle", dest="shuffle", action="store_false", help="keep the order of the names")
    recs = p.add_argument_group("making record files")
    recs.add_argument("--pass-through", action="store_true", help="keep the files as they are")
    recs.add_argument("--resize", type=int, default=0, help="length of the shorter edge")
    recs.add_argument("--center-crop", action="store_true", help="make the image a square")
    recs.add_argument("--quality", type=int, default=95, help="of JPEG (1 to 100); compression of PNG (0 to 9)")
    recs.add_argument("--num-thread", type=int, default=1, help="threads that read and encode")
    recs.add_argument("--color", type=int, default=1, choices=[-1, 0, 1], help="1 colour, 0 grey, -1 as it is")
    recs.add_argument("--encoding", default=".jpg", choices=[".jpg", ".png"], help="of the images")
    recs.add_argument("--pack-label", action="store_true", help="keep all labels, not only the first one")
    return p


def images(root: str, recursive: bool, endings: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield (relative path, label) of the image files under `root`; with `recursive` a folder is a class."""
    classes: dict[str, int] = {}
    ends = tuple(e.lower() for e in endings)
    if not recursive:
        for name in sorted(os.listdir(root)):
            if name.lower().endswith(ends) and os.path.isfile(os.path.join(root, name)):
                yield name, 0
        return
    for folder, folders, names in os.walk(root, followlinks=True):
        folders.sort()
        for name in sorted(names):
            if name.lower().endswith(ends):
                label = classes.setdefault(folder, len(classes))
                yield os.path.relpath(os.path.join(folder, name), root), label


def make_lists(o: argparse.Namespace) -> list[Path]:
    """Write the list files; returns their paths."""
    found = [(i, path, label) for i, (path, label) in enumerate(images(o.root, o.recursive, o.exts))]
    if not found:
        raise MXNetError(f"im2rec: no files with the endings {', '.join(o.exts)} in {o.root!r} (--recursive?)")
    if o.shuffle:
        random.Random(100).shuffle(found)
    written = []
    size = -(-len(found) // max(o.chunks, 1))
    for c in range(max(o.chunks, 1)):
        chunk = found[c * size : (c + 1) * size]
        end = f"_{c}" if o.chunks > 1 else ""
        test, train = int(len(chunk) * o.test_ratio), int(len(chunk) * o.train_ratio)
        if o.train_ratio == 1.0:
            groups = [("", chunk)]
        else:
            groups = [("_test", chunk[:test]), ("_train", chunk[test : test + train])]
            groups += [("_val", chunk[test + train :])] if o.test_ratio + o.train_ratio < 1.0 else []
        for name, group in groups:
            if group:
                path = Path(f"{o.prefix}{end}{name}.lst")
                path.write_text("".join(f"{i}\t{float(label):f}\t{file}\n" for i, file, label in group), "utf-8")
                written.append(path)
    return written


def record(entry: Entry, o: argparse.Namespace) -> bytes:
    """Return the record of one line of a list.

    Raises:
        MXNetError: the file cannot be read or holds no image.
    """
    index, labels, file = entry
    path = os.path.join(o.root, file)
    try:
        content = Path(path).read_bytes()
    except OSError as e:
        raise MXNetError(f"im2rec: cannot read {path!r}: {e.strerror or e}") from None
    header = (0, labels if o.pack_label and labels.size > 1 else float(labels[0]), index, 0)
    if o.pass_through:
        return pack(header, content)
    try:
        image = image_codec.decode(content, o.color, rgb=False)
    except MXNetError as e:
        raise MXNetError(f"im2rec: {path!r}: {e}") from None
    h, w = image.shape[:2]
    if o.center_crop and h != w:
        edge = min(h, w)
        y, x = (h - edge) // 2, (w - edge) // 2
        image = image[y : y + edge, x : x + edge]
        h = w = edge
    if o.resize:
        size = (w * o.resize // h, o.resize) if h < w else (o.resize, h * o.resize // w)
        image = image_codec.resize(image, *size)
    return pack(header, image_codec.encode(image, o.quality, o.encoding))


def make_records(lists: Path, o: argparse.Namespace) -> int:
    """Write the record file and the index of a list file; returns how many images were left out as broken."""
    entries = read_list(lists)
    base = str(lists.with_suffix(""))
    broken = 0

    def attempt(entry: Entry) -> bytes | MXNetError:
        try:
            return record(entry, o)
        except MXNetError as e:
            return e

    with MXIndexedRecordIO(base + ".idx", base + ".rec", "w") as out, ThreadPoolExecutor(max(1, o.num_thread)) as pool:
        writer: MXIndexedRecordIO = out  # type: ignore[assignment]
        for begin in range(0, len(entries), 256):  # what is encoded ahead stays small
            part = entries[begin : begin + 256]
            for entry, made in zip(part, pool.map(attempt, part), strict=True):
                if isinstance(made, MXNetError):
                    broken += 1
                    print(f"left out: {made}", file=sys.stderr)
                else:
                    writer.write_idx(entry[0], made)
    print(f"{base}.rec: {len(entries) - broken} images" + (f", {broken} left out" if broken else ""))
    return broken


def main(argv: Sequence[str]) -> int:
    """Run the command line; returns 1 if images were left out."""
    o = parser().parse_args(argv)
    try:
        if o.list:
            for path in make_lists(o):
                print(path)
            return 0
        here = Path(o.prefix)
        lists = [here] if here.is_file() else sorted(here.parent.glob(f"{here.name}*.lst"))
        if not lists:
            print(f"im2rec: there is no list {o.prefix}*.lst; make one by --list", file=sys.stderr)
            return 2
        return int(any([make_records(path, o) for path in lists]))
    except (MXNetError, OSError) as e:
        print(f"im2rec: {e}", file=sys.stderr)
        return 2


def rec2idx(argv: Sequence[str]) -> int:
    """`dualmx rec2idx FILE.rec FILE.idx`: write the index of a record file; the keys count the records."""
    p = argparse.ArgumentParser(prog="dualmx rec2idx", description="Write the index of a record file.")
    p.add_argument("record")
    p.add_argument("index")
    o = p.parse_args(argv)
    try:
        text = "".join(f"{number}\t{at}\n" for number, at in enumerate(offsets(o.record)))
        Path(o.index).write_text(text, "utf-8")
    except (MXNetError, OSError) as e:
        print(f"rec2idx: {e}", file=sys.stderr)
        return 2
    return 0
