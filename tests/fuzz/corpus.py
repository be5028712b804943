"""Good files and messages of each format, made by the package's own writers, and damage that keeps their checksums."""

from __future__ import annotations

import functools
import gzip
import io
import json
import os
import pickletools
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import cv2
import numpy as np

import dualmx as mx
from dualmx import nd, sym
from dualmx.contrib import safetensors, stablehlo
from dualmx.io.recordio import encode_record
from dualmx.lightning import checkpoint
from dualmx.ndarray import serialize
from dualmx.optimizer.state_file import dump_states
from dualmx.parallel.object_codec import encode as encode_object
from dualmx.ps.van.frame import NOTICE, PING, REPLY, REQUEST, Message, encode

from . import mutate

PICTURE = cv2.resize(np.random.default_rng(0).integers(0, 255, (4, 5, 3), np.uint8), (20, 16))


def _written(folder: Path, write: Any) -> bytes:
    path = folder / "made"
    write(path)
    content = path.read_bytes()
    path.unlink()
    return content


def params(folder: Path) -> list[bytes]:
    """`.params` of dense and sparse arrays of each generation."""
    dense = nd.array([[1.5, 2.5], [3.5, 4.5]])
    some = [
        {"arg:w": dense, "aux:m": nd.ones((3,), dtype="int64"), "s": nd.ones((1,), dtype="bool")},
        [dense, nd.ones((2, 1, 3), dtype="float16")],
        {"r": dense.tostype("row_sparse"), "c": dense.tostype("csr")},
        {"e": nd.array(np.zeros((0, 3))), "c": nd.zeros((2, 3)).tostype("csr")},
        [],
    ]
    old = [bytes.fromhex(h) for h in (
        "c8fa93f9 02000000 0100000000000000 0200000000000000 01000000 00000000 00000000 0000c03f 00002040",
        "02000000 01000000 02000000 01000000 00000000 00000000 0000c03f 00002040",
    )]  # fmt: skip
    head = (0x112).to_bytes(8, "little") + bytes(8) + (1).to_bytes(8, "little")
    return [*map(serialize.dumps, some), *(head + body + bytes(8) for body in old)]


def records(folder: Path) -> list[bytes]:
    """Record files, of text and of images, some of them in parts."""
    magic = bytes.fromhex("0a23d7ce")
    return [
        b"".join(map(encode_record, (b"hello", b"", b"world" * 9))),
        encode_record(magic * 3 + b"xy") + encode_record(b"tail") + encode_record(b"12" + magic),
        encode_record(bytes(5000)) + encode_record(b"z"),
        b"",
    ]


def images(folder: Path) -> list[bytes]:
    """Images in all formats that OpenCV writes here."""
    found = []
    for form, options in (
        (".jpg", []), (".jpg", [cv2.IMWRITE_JPEG_PROGRESSIVE, 1]), (".png", []), (".bmp", []), (".gif", []),
        (".webp", []), (".webp", [cv2.IMWRITE_WEBP_QUALITY, 101]), (".tiff", []), (".jp2", []), (".ppm", []), (".pam", []),
        (".ras", []),
    ):  # fmt: skip
        for picture in (PICTURE, PICTURE[..., 0]):
            try:
                good, made = cv2.imencode(form, picture, options)
            except cv2.error:
                continue
            if good and len(made):
                found.append(made.tobytes())
    return [*found, cv2.imencode(".png", PICTURE.astype(np.uint16) * 200)[1].tobytes()]


@functools.cache
def one_colour() -> bytes:
    """A small file of a large image, all of which is there."""
    return cv2.imencode(".png", np.zeros((7500, 7500, 3), np.uint8))[1].tobytes()


def resized(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """An image whose header tells of another size, with the checksum that belongs to it; a damaged one; or a large one."""
    if rng.random() < 0.01:
        return one_colour()
    size = [rng.choice((0, 1, 255, 4000, 9000, 30000, 65535, 1 << 20, (1 << 31) - 1)) for _ in range(2)]
    out = bytearray(data)
    if rng.random() < 0.8:
        return mutate.damaged(rng, data, others)
    if data[:4] == b"\x89PNG":
        out[16:24] = b"".join(n.to_bytes(4, "big") for n in size)
        out[29:33] = zlib.crc32(out[12:29]).to_bytes(4, "big")
    elif data[:2] == b"\xff\xd8":
        at = max(data.find(b"\xff\xc0"), data.find(b"\xff\xc2"))
        out[at + 5 : at + 9] = b"".join(min(n, 65535).to_bytes(2, "big") for n in size)
    elif data[:2] == b"BM":
        out[18:26] = b"".join(n.to_bytes(4, "little") for n in size)
    return bytes(out)


def image_records(folder: Path) -> list[bytes]:
    """Records of images: with a label, with several, with boxes."""
    jpeg, png = (cv2.imencode(form, PICTURE)[1].tobytes() for form in (".jpg", ".png"))
    boxes = [2.0, 5.0, 0.0, 0.1, 0.1, 0.6, 0.7, 1.0, 0.2, 0.3, 0.9, 0.8]
    return [
        mx.recordio.pack((0, 4.0, 7, 0), jpeg),
        mx.recordio.pack((0, 1.0, 8, 0), png),
        mx.recordio.pack((0, [1.0, 2.0], 7, 0), png),
        mx.recordio.pack((0, boxes, 9, 0), jpeg),
    ]


def image_files(folder: Path) -> list[bytes]:
    """Record files of images."""
    plain, other, *_ = image_records(folder)
    return [encode_record(plain) + encode_record(other), encode_record(other)]


def image_files_with_boxes(folder: Path) -> list[bytes]:
    """Record files of images with boxes."""
    boxes = encode_record(image_records(folder)[3])
    return [boxes, boxes * 2]


def rerecorded(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A record file of which one record is damaged inside, or the file itself."""
    if rng.random() < 0.4:
        return mutate.damaged(rng, data, others)
    parts = image_records(Path())
    bad = mutate.damaged(rng, rng.choice(parts), parts)
    return b"".join(map(encode_record, rng.choice(([bad], [parts[0], bad], [bad, parts[1]], [bad, parts[3]]))))


def idx(folder: Path) -> list[bytes]:
    """Files of MNIST, plain and gzipped."""
    pictures = b"\0\0\x08\x03" + np.array([2, 3, 4], ">u4").tobytes() + bytes(range(24))
    labels = b"\0\0\x08\x01" + np.array([5], ">u4").tobytes() + bytes(5)
    return [pictures, labels, gzip.compress(pictures), gzip.compress(labels)]


def pictures(folder: Path) -> list[bytes]:
    """Those of two pictures."""
    return idx(folder)[::2]


def repacked(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A damaged idx file, gzipped where it was; or damaged gzip data, at times of very many zeros."""
    if data[:2] != b"\x1f\x8b" or rng.random() < 0.4:
        return mutate.damaged(rng, data, others)
    if rng.random() < 0.01:
        return gzip.compress(b"\0\0\x08\x01\x10\0\0\0" + bytes(1 << 28))
    return gzip.compress(
        mutate.damaged(rng, gzip.decompress(data), [gzip.decompress(o) for o in others if o[:2] == data[:2]]), 1
    )


def cifar(folder: Path) -> list[bytes]:
    """A file of CIFAR10 with two pictures."""
    return [bytes(range(250)) * 24 + bytes(146)]


def csv(folder: Path) -> list[bytes]:
    """Rows of four numbers."""
    return [b"1,2,3,4\n5,6,7,8\n", b"1.5,-2e3,nan,0\n\n# no\n1,2,3,4\n", b" 1, 2,3 ,4\r\n" * 9]


def libsvm(folder: Path) -> list[bytes]:
    """Lines of a label and pairs."""
    return [b"1 0:1.5 3:2\n0 1:1\n", b"-1.5\n2 0:1 1:2 2:3 3:4 # all\n", b"1 3:1e-3\n" * 20]


def lists(folder: Path) -> list[bytes]:
    """Lists of images."""
    return [b"0\t1.0\ta.jpg\n1\t2\tb/c.png\n", b"5\t1\t2\t3.5\td.jpg\n", "7\t0\tü.jpg\n".encode() * 9]


def index(folder: Path) -> list[bytes]:
    """Indices of the records that the reader has."""
    return [b"0\t0\n1\t16\n2\t24\n", b"9\t24\n8\t0\n"]


def symbols(folder: Path) -> list[bytes]:
    """Networks as JSON: layers, states, loops, several outputs, and one of an old version."""
    x = sym.var("data", shape=(2, 3, 8, 8))
    y = sym.Convolution(x, kernel=(3, 3), num_filter=4, name="conv")
    y = sym.Activation(sym.BatchNorm(y, name="bn"), act_type="relu")
    y = sym.FullyConnected(sym.Pooling(y, kernel=(2, 2), pool_type="max", stride=(2, 2)), num_hidden=3, name="fc")
    both = sym.Group([sym.SoftmaxOutput(y, name="softmax"), sym.sum(y, axis=(0, 1)) * 2])
    states = sym.contrib.foreach(lambda a, s: (a + s, s * 2), sym.var("a"), sym.var("s"))
    loop = sym.Group([states[0], states[1]])
    small = sym.FullyConnected(sym.var("data"), num_hidden=1, no_bias=True, name="fc")
    old = {"nodes": [{"op": "null", "name": "d", "inputs": []}, {"op": "null", "name": "w", "inputs": []},
                     {"op": "FullyConnected", "name": "f", "param": {"num_hidden": "2", "no_bias": "True"},
                      "attr": {"lr_mult": "2"}, "inputs": [[0, 0], [1, 0]]}],
           "arg_nodes": [0, 1], "heads": [[2, 0]]}  # fmt: skip
    return [*(s.tojson().encode() for s in (both, loop, small)), json.dumps(old).encode()]


def small_symbol(folder: Path) -> list[bytes]:
    """The network of `predictor`."""
    return [sym.FullyConnected(sym.var("data"), num_hidden=1, no_bias=True, name="fc").tojson().encode()]


def plain_arrays(folder: Path) -> list[bytes]:
    """`.npy` files of one array."""
    return arrays(folder)[:-1]


def parameters(folder: Path) -> list[bytes]:
    """Parameters of the block that the reader has, by structure and by name."""
    some = {"weight": nd.ones((1, 2)), "bias": nd.ones((1,))}
    return [nd.save_tobuffer(some)]


def small_params(folder: Path) -> list[bytes]:
    """Parameters of the network of `predictor`, and others."""
    return [nd.save_tobuffer({"arg:fc_weight": nd.array([[1, 2]])}), nd.save_tobuffer({"fc_weight": nd.ones((1, 2))})]


def questions(folder: Path) -> list[bytes]:
    """Requests to a served network, as JSON."""
    return [b'{"data": [[1, 2]]}', b'{"data": [[1, 2], [3.5, -4e3], [0, 0]]}']


def archives(folder: Path) -> list[bytes]:
    """Requests to a served network, as `.npz`."""
    return [_npz(data=np.ones((n, 2), dtype)) for n, dtype in ((1, "f4"), (3, "f8"), (2, "i4"))]


def _npz(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def rezipped(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A zip archive of which a member is damaged, missing, added or of very many zeros; or the archive itself."""
    if rng.random() < 0.4:
        return mutate.damaged(rng, data, others)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    kind = rng.random()
    if kind < 0.6:
        members[name] = mutate.damaged(rng, members[name], list(members.values()))
    elif kind < 0.7:
        del members[name]
    elif kind < 0.8:
        members[rng.choice(mutate.TEXTS).encode("utf-8", "replace").decode()] = members[name]
    elif kind < 0.81:
        members[name] += bytes(1 << 28)
    elif name == "meta.npy" or len(members[name]) > 300:
        start = 10 + int.from_bytes(members[name][8:10], "little")
        text = mutate.rejsoned(rng, members[name][start:], [b"{}"])
        out = io.BytesIO()
        np.save(out, np.frombuffer(text, np.uint8))
        members[name] = out.getvalue()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for member, content in members.items():
            archive.writestr(member.replace("\0", "") or "x", content)
    return out.getvalue()


def arrays(folder: Path) -> list[bytes]:
    """`.npy` and `.npz` files of one array, as Petastorm stores them in columns."""
    found = []
    for value in (np.ones((2, 3), np.float32), np.arange(5), np.asfortranarray(np.ones((2, 2))), np.array(1.5)):
        out = io.BytesIO()
        np.save(out, value)
        found.append(out.getvalue())
    return [*found, _npz(a=np.ones((3, 4)))]


def tensors(folder: Path) -> list[bytes]:
    """`.safetensors` files."""
    data = {"w": nd.ones((2, 3)), "i": nd.ones((4,), dtype="int64"), "b": nd.ones((1, 1), dtype="float16")}
    return [_written(folder, lambda p: safetensors.save(p, data, {"format": "pt"}))]


def retensored(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A `.safetensors` file with another header, or one that is damaged."""
    size = int.from_bytes(data[:8], "little")
    if rng.random() < 0.5:
        return mutate.damaged(rng, data, others)
    head = mutate.rejsoned(rng, data[8 : 8 + size], others)
    return len(head).to_bytes(8, "little") + head + data[8 + size :]


def programs(folder: Path) -> list[bytes]:
    """A StableHLO program."""
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize()
    return [_written(folder, lambda p: stablehlo.export_model(p, net, nd.ones((1, 3))))]


def onnx_models(folder: Path) -> list[bytes]:
    """ONNX models: a convolutional network and one with recurrent layers."""
    from dualmx.contrib import onnx as onnx_files

    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(2, 3), mx.gluon.nn.BatchNorm(), mx.gluon.nn.MaxPool2D(), mx.gluon.nn.Dense(2))
    found = []
    for block, shape in ((net, (1, 3, 8, 8)), (mx.gluon.rnn.LSTM(3, input_size=2), (2, 1, 2))):
        block.initialize()
        block.hybridize()
        block(nd.ones(shape))
        prefix = str(folder / "net")
        block.export(prefix)
        made = folder / "net.onnx"
        try:
            onnx_files.export_model(f"{prefix}-symbol.json", f"{prefix}-0000.params", [shape], onnx_file_path=str(made))
        except mx.MXNetError:
            continue
        found.append(made.read_bytes())
    return found


def remodelled(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """An ONNX model some fields of which are others, missing or repeated; or bytes that are damaged."""
    import onnx

    if rng.random() < 0.3:
        return mutate.damaged(rng, data, others)
    model = onnx.load_model_from_string(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        fields = _fields(model.graph if rng.random() < 0.9 else model)
        if fields:  # an earlier change may have emptied the graph
            _change(rng, *rng.choice(fields))
    return model.SerializeToString()


def _fields(message: Any) -> list[tuple[Any, Any]]:
    found, rest = [], [message]
    while rest and len(found) < 3000:
        one = rest.pop()
        for field, value in one.ListFields():
            found.append((one, field))
            if field.type == field.TYPE_MESSAGE:
                rest += list(value) if field.is_repeated else [value]
    return found


def _change(rng: Random, message: Any, field: Any) -> None:
    value, kind = getattr(message, field.name), rng.random()
    if kind < 0.2:
        message.ClearField(field.name)
        return
    if field.is_repeated:
        at = rng.randrange(len(value)) if len(value) else 0
        if kind < 0.4 and len(value):
            del value[at]
        elif field.type == field.TYPE_MESSAGE:
            value.add().CopyFrom(value[at]) if len(value) else None
        elif len(value):
            value[at] = _odd(rng, field, value[at])
        return
    if field.type != field.TYPE_MESSAGE:
        setattr(message, field.name, _odd(rng, field, value))


def _odd(rng: Random, field: Any, value: Any) -> Any:
    if field.type == field.TYPE_ENUM:
        return rng.choice(field.enum_type.values).number
    if isinstance(value, str):
        return rng.choice((*mutate.TEXTS, value + "x", "Conv", "Reshape")).encode("utf-8", "replace").decode()
    if isinstance(value, bytes):
        return mutate.damaged(rng, value, [value])
    if isinstance(value, float):
        return rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf")))
    bits = 31 if field.type == field.TYPE_INT32 else 63
    return max(-(1 << bits), min(rng.choice((*mutate.ODD, value + 1, value - 1)), (1 << bits) - 1))


def tables(folder: Path) -> list[bytes]:
    """Parquet files: numbers, lists, text, arrays in bytes, vectors of Spark; of several codecs and row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    npy = arrays(folder)[0]
    vector = {"type": 0, "size": 9, "indices": [1, 4], "values": [0.5, 2.0]}
    many = pa.table({
        "x": [[float(i), 1.0] for i in range(6)], "y": list(range(6)), "t": ["ab", "c"] * 3, "b": [npy] * 6,
        "v": pa.array([vector] * 6), "f": pa.array([0.5, None] * 3),
    })  # fmt: skip
    plain = pa.table({"y": np.arange(8), "z": np.ones(8, np.float32)})
    ragged = pa.table({"r": [[1], [], [2, 3]], "s": ["x" * 200] * 3})
    found = []
    for table, options in (
        (many, {"row_group_size": 3}), (many, {"compression": "none", "use_dictionary": False}),
        (plain, {"compression": "gzip"}), (plain, {"version": "1.0", "data_page_version": "2.0"}),
        (ragged, {"compression": "zstd", "write_statistics": False}),
        (ragged, {"use_dictionary": False, "column_encoding": {"s": "DELTA_BYTE_ARRAY"}}),
    ):  # fmt: skip
        found.append(_written(folder, lambda p, t=table, o=options: pq.write_table(t, p, **o)))
    return found


def retabled(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A damaged Parquet file; more often in its footer, or one with odd vectors and arrays in its columns."""
    if rng.random() < 0.1:
        return _odd_table(rng)
    size = int.from_bytes(data[-8:-4], "little")
    if rng.random() < 0.5:
        start = len(data) - 8 - size
        footer = mutate.damaged(rng, data[start:-8], [o[-1000:-8] for o in others])
        return data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    return mutate.damaged(rng, data, others)


def _odd_table(rng: Random) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    ints = [n for n in mutate.ODD if -(1 << 31) <= n < 1 << 31]
    vector = {"type": rng.choice((0, 1)), "size": rng.choice(ints), "indices": rng.choices(ints, k=rng.randrange(3)),
              "values": [1.5] * rng.randrange(3)}  # fmt: skip
    kind = pa.struct([("type", pa.int8()), ("size", pa.int32()), ("indices", pa.list_(pa.int32())),
                      ("values", pa.list_(pa.float64()))])  # fmt: skip
    some = arrays(Path())
    raw = mutate.damaged(rng, rng.choice(some), some)
    long = ["x" * rng.choice((1, 100, 100_000))] * rng.choice((1, 10, 5000))
    table = rng.choice((
        pa.table({"v": pa.array([vector], kind)}), pa.table({"b": pa.array([raw, some[0]])}), pa.table({"t": pa.array(long)}),
        pa.table({"t": pa.array([[t] for t in long])}),
    ))  # fmt: skip
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def states(folder: Path) -> list[bytes]:
    """Optimizer states, with and without their optimizer."""
    some = {
        0: nd.ones((2, 3)),
        1: (nd.zeros((2,)), None),
        "w": None,
        3: (nd.ones((1,)), (nd.ones((2,)), nd.ones((1,)))),
    }
    adam = mx.optimizer.Adam(lr_scheduler=mx.lr_scheduler.FactorScheduler(10))
    return [
        dump_states(some),
        dump_states(some, adam),
        dump_states({}, mx.optimizer.SGD(momentum=0.9)),
        dump_states({}),
    ]


def repickled(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A pickle some of whose opcodes are others, missing, repeated or moved; or bytes that are damaged."""
    if rng.random() < 0.4:
        return mutate.damaged(rng, data, others)
    starts = [at for _, _, at in pickletools.genops(data)]
    pieces = [data[a:b] for a, b in zip(starts, [*starts[1:], len(data)], strict=True)]
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, other = rng.randrange(len(pieces)), rng.randrange(len(pieces))
        kind = rng.randrange(6)
        if kind == 0:
            del pieces[at]
            pieces = pieces or [b"."]
        elif kind == 1:
            pieces.insert(at, pieces[other])
        elif kind == 2:
            pieces[at], pieces[other] = pieces[other], pieces[at]
        elif kind == 3:
            pieces[at] = mutate.damaged(rng, pieces[at], pieces)
        elif kind == 4:
            pieces.insert(at, rng.choice((b"N", b"]", b"}", b")", b"(", b"t", b"\x85", b"\x86", b"0", b"K\x05", b"h\0", b"\x94",
                                          b"b", b"R", b"\x81", b"X\x01\0\0\0a", b"J\xff\xff\xff\xff")))  # fmt: skip
        else:
            pieces.insert(at, b"".join([b")\x94", *[b"h\0h\0\x86\x94"] * rng.choice((3, 30))]))
    return b"".join(pieces)


def descriptions(folder: Path) -> list[bytes]:
    """`-model.json` of the block that the reader has."""
    block = model_block()
    prefix = str(folder / "block")
    block.save(prefix)
    return [Path(f"{prefix}-model.json").read_bytes()]


def model_block() -> Any:
    """A block whose structure is saved."""
    net = mx.gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(mx.gluon.nn.Dense(2, in_units=3), mx.gluon.nn.Dense(1, in_units=2))
    net.initialize()
    net.hybridize()
    net(nd.ones((1, 3)))
    return net


def vectors(folder: Path) -> list[bytes]:
    """Word vectors."""
    return [b"a 1 2 3\nb 4 5 6\n", b"3 2\n<unk> 0 0\nx 1.5 -2\ny 1e-3 2\n", "ü 1 2\n".encode() * 5]


def saved(folder: Path) -> list[bytes]:
    """Checkpoints of a lightning Trainer."""
    net = mx.gluon.nn.Dense(1, in_units=2)
    net.initialize()
    return [_written(folder, lambda p: checkpoint.write(str(p), net, None, {"epoch": 3, "step": 7, "history": {}}))]


def resaved(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A checkpoint whose JSON is another, or that is damaged."""
    if rng.random() < 0.5:
        return mutate.damaged(rng, data, others)
    bodies, names = serialize.decode(data)
    at = rng.choice([i for i, name in enumerate(names) if not name.startswith("param:")])
    body = bodies[at]
    assert isinstance(body, np.ndarray)
    bodies[at] = np.frombuffer(mutate.rejsoned(rng, body.tobytes(), [b"{}"]) or b" ", np.uint8)
    return serialize.encode(bodies, names)


def objects(folder: Path) -> list[bytes]:
    """Values that processes send each other."""
    value = {"lr": 0.1, 3: (None, b"x", {1, 2}), "a": np.ones((2, 2)), "n": nd.ones((3,)), "c": 1j, "s": np.float32(2)}
    return [encode_object(v, "corpus").tobytes() for v in (value, [1, [2]], "text", np.arange(4))]


def reobjected(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Such a value with other JSON, or damaged bytes."""
    size = int.from_bytes(data[:8], "little")
    if rng.random() < 0.3:
        return mutate.damaged(rng, data, others)
    text = mutate.rejsoned(rng, data[8 : 8 + size], others)
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


def stored(folder: Path) -> list[bytes]:
    """Files of a `FileStore`."""
    return [b'["a", "eA=="]\n["b", null]\n["a", "enk="]\n', b'["k", ""]\n' * 5]


def hosts(folder: Path) -> list[bytes]:
    """Host files."""
    return [b"a\nb:22 slots=2\n# c\nuser@host slots=1\n[::1]:2222\n"]


def running(folder: Path) -> list[bytes]:
    """What a launcher notes of its job."""
    job = {"uri": "127.0.0.1", "port": 9000, "secret": "0123456789abcdef", "command": "python a.py"}
    return [json.dumps(job).encode()]


REQUESTS: tuple[tuple[dict[str, Any], bytes], ...] = (
    ({"op": "open", "store": 0, "sync": True, "slack": None, "step": 1}, b""),
    ({"op": "put", "store": 0, "parts": [["w", 0, "float32", 4, [2, 2]]], "step": 2}, np.ones(4, np.float32).tobytes()),
    ({"op": "put", "store": 0, "parts": [[1, 0, "float32", 6, [3, 2]]], "mode": "init", "tables": [1]},
     np.ones(6, np.float32).tobytes()),
    ({"op": "push", "store": 0, "parts": [["w", 0, 1]]}, np.ones(4, np.float32).tobytes()),
    ({"op": "pushpull", "store": 0, "parts": [["w", 0, 2]]}, np.ones(4, np.float32).tobytes()),
    ({"op": "push", "store": 0, "parts": [["w", 0, 3]], "code": ["2bit", 0.5]}, bytes(4)),
    ({"op": "pull", "store": 0, "parts": [["w", 0, 0]]}, b""),
    ({"op": "push rows", "store": 0, "parts": [[1, 0, 1, 1]]}, np.array([1], "i8").tobytes() + bytes(8)),
    ({"op": "pull rows", "store": 0, "parts": [[1, 0, 0, 1]]}, np.array([1], "i8").tobytes()),
    ({"op": "optimizer", "store": 0, "config": {"name": "sgd", "settings": {"lr": 0.5}, "schedule": None}, "factors": [],
      "order": ["w"]}, b""),
    ({"op": "states", "store": 0}, b""),
    ({"op": "load", "store": 0, "states": [["w", 0, 1, {"dtype": "float32", "shape": [4]}]], "num_update": 3},
     np.ones(4, np.float32).tobytes()),
    ({"op": "drop", "store": 0, "parts": [["w", 0]]}, b""),
    ({"op": "status"}, b""),
    ({"op": "hello", "rank": 0, "life": 5}, b""),
)  # fmt: skip


def _packed(kind: int, number: int, meta: Any, payload: bytes, fast: bool = True) -> bytes:
    return b"".join(bytes(b) for b in encode(Message(kind, number, meta, [payload] if payload else []), fast))


def frames(folder: Path) -> list[bytes]:
    """Frames of requests and replies, with either checksum, alone and one behind the other."""
    found = [_packed(REQUEST, i, meta, payload, i % 2 == 0) for i, (meta, payload) in enumerate(REQUESTS)]
    large = [Message(REPLY, 9, {"x": 1}, [np.ones(9001, np.float32), np.ones(5000, np.uint8)])]
    return [
        *found,
        found[0] + found[3],
        b"".join(bytes(b) for m in large for b in encode(m, True)),
        _packed(PING, 0, {}, b""),
    ]


def reframed(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A frame with a right checksum that says something else; or damaged bytes."""
    if rng.random() < 0.5:
        return mutate.damaged(rng, data, others)
    meta, payload = rng.choice(REQUESTS)
    told = mutate.restructured(rng, meta)
    if not isinstance(told, dict) or rng.random() < 0.1:
        told = {"~": rng.choice(([64] * rng.choice((1, 3, 30_000)), [-1], [[0, 1, 2]], "a", [1 << 62])), "op": "push"}
    try:
        return _packed(rng.choice((REQUEST, NOTICE)), rng.choice((0, 1, (1 << 64) - 1)), told, _part(rng, payload))
    except (ValueError, UnicodeError):  # what JSON cannot hold
        return mutate.damaged(rng, data, others)


def _part(rng: Random, payload: bytes) -> bytes:
    return mutate.damaged(rng, payload, [payload, bytes(64)]) if rng.random() < 0.3 else payload


def requests(folder: Path) -> list[bytes]:
    """Series of requests to a server, as JSON; their payloads stand beside them in hexadecimal digits."""
    told = [[meta, payload.hex()] for meta, payload in REQUESTS]
    return [
        json.dumps(told).encode(),
        json.dumps(told[:5]).encode(),
        json.dumps([told[0], told[2], *told[7:9]]).encode(),
    ]


def reasked(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Such a series, changed in what a request says, in its numbers, or in its order."""
    series = json.loads(data)
    at = rng.randrange(len(series))
    if rng.random() < 0.7:
        series[at][0] = mutate.restructured(rng, series[at][0])
    else:
        series[at][1] = _part(rng, bytes.fromhex(series[at][1])).hex()
    if rng.random() < 0.2:
        series.insert(rng.randrange(len(series) + 1), series.pop(at))
    return json.dumps(series).encode()


def journals(folder: Path) -> list[bytes]:
    """What a server writes down."""
    by = {"by": [0, 5, 1]}
    changes = [_packed(NOTICE, 0, {**meta, **by}, payload) for meta, payload in REQUESTS[:3]]
    closed = {"op": "closed", "store": 0, "parts": []}
    return [b"".join(changes), b"".join([*changes, _packed(NOTICE, 0, closed, b"")]), changes[0],
            changes[0] + _packed(NOTICE, 0, {"op": "answered", "rank": 0, "life": 1, "numbers": [1, 2]}, b"")]  # fmt: skip


def rejournaled(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A journal with another record, or a damaged one."""
    if rng.random() < 0.4:
        return mutate.damaged(rng, data, others)
    start = _packed(NOTICE, 0, {**REQUESTS[0][0], "by": [0, 5, 1]}, b"")
    some = [*((dict(m, by=[0, 5, 2]), p) for m, p in REQUESTS[:12]), ({"op": "answered", "rank": 0, "life": 1, "numbers": [3]}, b""),
            ({"op": "exclude", "rank": 0, "text": "gone"}, b""),
            ({"op": "prepared", "store": 0, "is_unsliced": True, "steps": [[0, 1]], "batch": 0}, b"")]  # fmt: skip
    meta, payload = rng.choice(some)
    told = mutate.restructured(rng, meta)
    try:
        return start + _packed(NOTICE, 0, told if isinstance(told, dict) else meta, _part(rng, payload))
    except (ValueError, UnicodeError):
        return mutate.damaged(rng, data, others)


LEDGER = [
    {"op": "job", "wanted": {"worker": 1, "server": 1}},
    {"op": "begin", "members": [{"role": "worker", "rank": 0, "life": 1, "address": {}, "state": "alive", "end": "",
                                 "back": False, "past": -1, "early": False, "skipped": -1}]},
    {"op": "barriers", "passed": ["a"], "last": [0, 1]},
    {"op": "batch", "members": [0], "used": [], "marks": [["train", 0, 1]]},
    {"op": "attendance", "number": 2, "members": [0, 1], "used": [0], "changes": [[2, [1], [], []]], "next": 0,
     "since": 1, "before": [0], "marks": [["train", 0, 1]]},
]  # fmt: skip


def ledgers(folder: Path) -> list[bytes]:
    """What a scheduler writes down."""
    packed = [_packed(NOTICE, 0, meta, b"") for meta in LEDGER]
    return [b"".join(packed), b"".join(packed[:3]), packed[0]]


def reledgered(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A scheduler's journal with another record, or a damaged one."""
    meta = rng.choice([*LEDGER, {"op": "member", **LEDGER[1]["members"][0]}])  # type: ignore[index]
    told = mutate.restructured(rng, meta)
    if rng.random() < 0.4 or not isinstance(told, dict):
        return mutate.damaged(rng, data, others)
    try:
        return _packed(NOTICE, 0, LEDGER[0], b"") + _packed(NOTICE, 0, told, b"")
    except (ValueError, UnicodeError):
        return mutate.damaged(rng, data, others)


def configs(folder: Path) -> list[bytes]:
    """Optimizers as workers describe them to servers."""
    from dualmx.kvstore.optimizer_config import to_config

    schedule = mx.lr_scheduler.FactorScheduler(10)
    made = [mx.optimizer.SGD(momentum=0.9), mx.optimizer.Adam(lr_scheduler=schedule), mx.optimizer.RMSProp()]
    return [json.dumps(to_config(o)).encode() for o in made]


def pulses(folder: Path) -> list[bytes]:
    """What workers tell of themselves."""
    told = {"op": "pulse", "at": 1.5, "rounds": 3, "sent": 10, "received": 9, "figures": {"loss": 0.5},
            "wait": {"seconds": 1.0, "in": "push", "for": [1]}}  # fmt: skip
    return [json.dumps(told).encode()]


def batches(folder: Path) -> list[bytes]:
    """What the scheduler of an elastic job answers: the batch, and two pages of what was before."""
    now = {"batch": 4, "members": [0, 1], "used": [0]}
    first = {"since": 1, "before": [0], "marks": [["train", 0, 1]], "changes": [[1, [], [], [0]]], "next": 2}
    second = {"changes": [[2, [1], [], []], [3, [], [1], []]], "next": 0}
    return [json.dumps([now, first, second]).encode()]


def jobs(folder: Path) -> list[bytes]:
    """What schedulers and servers answer to `dualmx status`."""
    member = {"role": "server", "rank": 0, "state": "alive", "address": {"host": "a", "port": 1}, "end": "", "since": 0.0,
              "pulse": {}}  # fmt: skip
    worker = {**member, "role": "worker", "pulse": {"rounds": 1, "rounds_per_s": 1.0, "sent": 1, "sent_per_s": 0.0,
              "received": 2, "received_per_s": 0.0, "age": 0.5, "wait": None, "figures": {"loss": 1.0}}}  # fmt: skip
    server = {
        "stores": 1,
        "keys": 1,
        "rounds": 4,
        "received": 8,
        "sent": 9,
        "memory": 16,
        "pushed": {"0": 4},
        "late": {"0": 0.0},
    }
    job = {
        "members": [member, worker],
        "complete": True,
        "wanted": {"server": 1, "worker": 1},
        "barriers": [],
        "batch": {"number": 1, "members": [0]},
    }
    return [json.dumps([job, {"0": server}]).encode()]


def initializers(folder: Path) -> list[bytes]:
    """Initializers as symbols keep them."""
    return [
        b'["xavier", {"rnd_type": "uniform", "factor_type": "avg", "magnitude": 3}]',
        b'["zeros", {}]',
        b'{"initializer": "zeros"}',
    ]


def seed_of(name: str, seed: int, number: int) -> str:
    """Seed of the damage to one input."""
    return f"{seed}/{name}/{number}"


def scratch() -> str:
    """Where files are written: in memory, if the system has such a folder."""
    return (
        "/dev/shm" if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK) else os.environ.get("TMPDIR", "/tmp")
    )


def damage_of_array(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A damaged array; an archive is damaged inside too."""
    if data[:2] == b"PK":
        return rezipped(rng, data, others)
    if rng.random() < 0.5:
        start = 10 + int.from_bytes(data[8:10], "little")
        head = mutate.reworded(rng, data[10:start], others)[:60000]
        return data[:8] + len(head).to_bytes(2, "little") + head + data[start:]
    return mutate.damaged(rng, data, others)


def snapshots(folder: Path) -> list[bytes]:
    """Snapshots of a store, with and without an optimizer."""
    from dualmx.core.rng import rng_streams
    from dualmx.kvstore.states import FORMAT

    nd.random.uniform(shape=(1,)).asnumpy()
    meta = {"format": FORMAT, "rounds": 3, "random": rng_streams.state(), "extra": {"epoch": 1},
            "keys": [["w", "float32", [2, 2], "default"], [1, "float32", [3, 2], "row_sparse"]]}  # fmt: skip
    parts = {"value0": np.ones(16, np.uint8), "value1": np.zeros(24, np.uint8),
             "meta": np.frombuffer(json.dumps(meta).encode(), np.uint8)}  # fmt: skip
    with_states = {**parts, "states": np.frombuffer(states(folder)[1], np.uint8)}
    found = []
    for one in (parts, with_states):
        out = io.BytesIO()
        np.savez(out, **one)
        found.append(out.getvalue())
    return found
