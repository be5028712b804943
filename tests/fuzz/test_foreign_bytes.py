"""Files and messages of others: `FormatError` with place, expectation and remedy, and memory within bounds."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

import dualmx as mx
from dualmx import nd
from dualmx.core.errors import FormatError
from dualmx.core.reader import Content
from dualmx.io.mnist import read_idx
from dualmx.io.recordio import offsets
from dualmx.kvstore.states import FORMAT, read_snapshot
from dualmx.ndarray import serialize
from dualmx.optimizer.state_file import load_states
from dualmx.parallel.object_codec import decode
from dualmx.predictor import Predictor
from dualmx.ps.elastic_worker import ElasticWorker
from dualmx.ps.heartbeat import WorkerStatus
from dualmx.ps.van.frame import NOTICE, Message
from dualmx.text.embedding import CustomEmbedding
from dualmx.tools import serve

LIMIT = 64 << 20


def png(width: int, height: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG of one colour, with a header of its own."""
    rows = zlib.compress(bytes((width * 3 + 1) * min(height, 64)))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), *chunks, (b"IDAT", rows), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts
    )


def npz(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def refused(call, content: bytes = b"") -> FormatError:
    """The error of a call, which takes no more memory than may be."""
    tracemalloc.start()
    try:
        with pytest.raises(FormatError) as caught:  # noqa: PT011 (the text is looked at below)
            call()
        assert tracemalloc.get_traced_memory()[1] < 8 * len(content) + LIMIT
    finally:
        tracemalloc.stop()
    error = caught.value
    assert error.source and error.expected and error.remedy
    assert error.source in str(error) and error.remedy in str(error)
    assert isinstance(error, (mx.MXNetError, ValueError))
    return error


def written(tmp_path: Path, content: bytes | str, name: str = "file") -> str:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


class TestRecords:
    def test_an_index_is_text_of_positions(self, tmp_path) -> None:
        rec = written(tmp_path, b"", "a.rec")
        for content in (b"0\t\xff\n", b"0\t" + b"9" * 30 + b"\n", b"0\t-1\n", b"0\n"):
            idx = written(tmp_path, content, "a.idx")
            assert "a.idx" in str(refused(lambda i=idx: mx.recordio.MXIndexedRecordIO(i, rec, "r")))

    def test_an_index_points_into_its_records(self, tmp_path) -> None:
        idx, rec = written(tmp_path, "7\t40\n", "a.idx"), written(tmp_path, b"", "a.rec")
        reader = mx.recordio.MXIndexedRecordIO(idx, rec, "r")
        assert refused(lambda: reader.read_idx(7)).offset == 40

    def test_a_length_takes_no_memory_before_the_bytes_are_there(self, tmp_path) -> None:
        content = struct.pack("<II", 0xCED7230A, (1 << 29) - 1) + bytes(7600)
        path = written(tmp_path, content)
        assert refused(mx.recordio.MXRecordIO(path, "r").read, content).offset == 0
        refused(lambda: offsets(path), content)


class TestArrays:
    def test_rows_of_a_csr_array_are_not_made_up(self) -> None:
        body = struct.pack("<Iiiqiqqiii", 0xF993FAC9, 2, 1, 0, 2, 1 << 30, 4, 1, 0, 0)
        body += struct.pack("<iiqiiq", 6, 1, 0, 6, 1, 0)
        content = struct.pack("<QQQ", 0x112, 0, 1) + body + bytes(8)
        refused(lambda: nd.load_frombuffer(content), content)

    def test_states_that_are_sparse_are_not_made_whole(self) -> None:
        from dualmx.optimizer.safe_pickle import Record, write

        body = serialize.SparseBody("row_sparse", (1 << 30, 2), np.ones((1, 2), np.float32), (np.array([5]),))
        raw = bytearray(b"".join(serialize.encode_body(body)))
        content = write({0: Record("mxnet.ndarray.ndarray", "NDArray", (None,), {"handle": raw})})
        refused(lambda: load_states(content), content)

    def test_states_that_name_themselves_over_and_over(self) -> None:
        laughs = (
            b"\x80\x04}K\x00)\x94" + b"h\x00h\x00\x86\x94" + b"".join(b"h%ch%c\x86\x94" % (i, i) for i in range(1, 40))
        )
        refused(lambda: load_states(laughs + b"s."))

    def test_numpy_files(self, tmp_path) -> None:
        for shape in ("(99999999999, 9)", "(" + "1" * 40 + "!,)", "(-1,)"):
            head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
            raw = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(8)
            refused(Content(raw, "'a.npy'", "an array").npy)

    @pytest.mark.slow
    def test_archives_of_zeros(self) -> None:
        content = npz(data=np.zeros(1 << 27, np.uint8))
        error = refused(lambda: serve._arrays(content, 1 << 30), content)
        assert "DUALMX_READ_LIMIT_MB" in str(error)

    @pytest.mark.slow
    def test_gzipped_zeros(self, tmp_path) -> None:
        content = gzip.compress(b"\0\0\x08\x01" + struct.pack(">I", 1 << 27) + bytes(1 << 27))
        path = written(tmp_path, content)
        refused(lambda: read_idx(path), content)

    def test_objects_of_other_processes(self) -> None:
        for told in ({"~": "scalar", "d": "1,f4", "b": ""}, {"~": "ndarray", "d": "O", "s": [1], "n": 8}, {"~": "a"}):
            text = json.dumps(told).encode()
            raw = len(text).to_bytes(8, "little") + text + bytes(8)
            refused(lambda r=raw: decode(np.frombuffer(r, np.uint8)))


class TestImages:
    def test_small_files_of_large_images(self, monkeypatch) -> None:
        content = png(20000, 20000)
        error = refused(lambda: mx.image.imdecode(content), content)
        assert "DUALMX_READ_LIMIT_MB" in error.remedy
        assert mx.image.imdecode(png(64, 64)).shape == (64, 64, 3)
        small = png(4000, 4000)  # 96 MB while it is decoded
        refused(lambda: mx.image.imdecode(small), small)
        monkeypatch.setenv("DUALMX_READ_LIMIT_MB", "100")
        with pytest.raises(FormatError, match="not a readable image"):  # it has 64 rows
            mx.image.imdecode(small)

    def test_pictures_of_an_animation_count(self) -> None:
        large = (b"fcTL", struct.pack(">IIIIIHHBB", 0, 20000, 20000, 0, 0, 1, 1, 0, 0))
        refused(lambda: mx.image.imdecode(png(8, 8, large)))

    def test_many_passes_over_an_image(self) -> None:
        import cv2

        picture = cv2.imencode(".jpg", np.zeros((64, 64, 3), np.uint8), [cv2.IMWRITE_JPEG_PROGRESSIVE, 1])[1].tobytes()
        assert mx.image.imdecode(picture).shape == (64, 64, 3)
        scan = picture[picture.rindex(b"\xff\xda") : -2]
        refused(lambda: mx.image.imdecode(picture[:-2] + scan * 1000 + picture[-2:]))

    def test_red_comes_first_in_all_formats(self) -> None:
        import cv2

        blue_first = np.random.default_rng(0).integers(0, 255, (9, 7, 3), np.uint8)
        for form in (".png", ".bmp", ".ppm", ".pam", ".tiff"):
            content = cv2.imencode(form, blue_first)[1].tobytes()
            assert np.array_equal(mx.image.imdecode(content).asnumpy(), blue_first[..., ::-1])


class TestText:
    def test_rows_of_libsvm(self, tmp_path) -> None:
        for content in ("1 99999999999999999999999:1\n", "1 5:1\n", "1 -1:2\n", "1 0:a\n", "1 0\n"):
            path = written(tmp_path, content)
            assert "line 1" in str(refused(lambda p=path: mx.io.LibSVMIter(data_libsvm=p, data_shape=(5,))))
        refused(lambda: mx.io.LibSVMIter(data_libsvm=written(tmp_path, b"1 0:1\n\xff"), data_shape=(5,)))

    def test_lists_of_images(self, tmp_path) -> None:
        from dualmx.image.iterator import read_list

        for content in ("inf\t1\ta\n", "0\ta\n", b"0\t1\t\xff\n"):
            path = written(tmp_path, content)
            refused(lambda p=path: read_list(p))

    def test_a_line_of_two_megabytes_in_a_list_of_images(self, tmp_path) -> None:
        from dualmx.image.iterator import read_list

        path = written(tmp_path, b"0\t1\ta\n1\t1\t" + b"[" * (2 << 20))
        error = refused(lambda: read_list(path))
        assert error.offset == 6 and "line 2 has 2,097,156 bytes: expected at most 1,048,576" in str(error)

    def test_word_vectors(self, tmp_path) -> None:
        for content in (b"a 1 2\n\xff 1 2\n", b"a 1 x\n", b"a 1 2\nb 1 2 3\n", b"<unk> 1 2 3\na 1 2\n"):
            path = written(tmp_path, content)
            refused(lambda p=path: CustomEmbedding(p))

    def test_json(self) -> None:
        assert refused(Content(b'{"a": }', "'a'", "JSON").json).offset == 6
        assert refused(Content("{é: 1".encode(), "'a'", "JSON").json).offset == 1
        for text in (b"[" * 100_000, b'"\\ud800"', b"9" * 5000, b"\xff", b""):
            refused(Content(text, "'a'", "JSON").json)
        many = b"[" + b"[]," * (1 << 21) + b"1]"
        refused(Content(many, "'a'", "JSON").json, many)


class TestModels:
    def test_an_array_of_a_hundred_axes_in_a_safetensors_file(self, tmp_path) -> None:
        head = json.dumps({"a": {"dtype": "F32", "shape": [1] * 100, "data_offsets": [0, 4]}}).encode()
        path = written(tmp_path, len(head).to_bytes(8, "little") + head + bytes(4))
        pytest.importorskip("safetensors")
        refused(lambda: mx.contrib.safetensors.load(path))

    def test_an_operator_with_a_name_of_megabytes(self) -> None:
        text = mx.sym.sin(mx.sym.var("x"), name="y").tojson()
        assert '"sin"' in text
        long = text.replace('"sin"', '"' + "sin" * (1 << 20) + '"')
        tracemalloc.start()
        with pytest.raises(mx.MXNetError, match="'sinsin"):
            mx.sym.load_json(long)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 * len(long) + LIMIT

    def test_a_predictor_names_its_files(self, tmp_path) -> None:
        good = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc").tojson()
        for symbol, params, name in ((b"\xff{}", b"", "s.json"), (good.encode(), b"\x12\x01", "p.params")):
            files = [written(tmp_path, symbol, "s.json"), written(tmp_path, params, "p.params")]
            assert name in str(refused(lambda f=files: Predictor(f[0], Path(f[1]), {"data": (1, 2)})))

    def test_onnx_nodes_that_lack_something(self, tmp_path) -> None:
        onnx = pytest.importorskip("onnx")
        for node in (
            onnx.helper.make_node("Relu", [], ["y"]),
            onnx.helper.make_node("MaxPool", ["x"], ["y"]),
            onnx.helper.make_node("Cast", ["x"], ["y"], to=9999),
            onnx.helper.make_node("Constant", [], [], value=onnx.helper.make_tensor("t", 1, [1], [0.0])),
        ):
            graph = onnx.helper.make_graph([node], "g", [], [onnx.helper.make_tensor_value_info("y", 1, [1])])
            path = written(tmp_path, onnx.helper.make_model(graph).SerializeToString(), "a.onnx")
            assert "a.onnx" in str(refused(lambda p=path: mx.contrib.onnx.import_model(p)))

    def test_a_damaged_program_is_not_run(self, tmp_path) -> None:
        pytest.importorskip("flatbuffers")
        from jax import export

        net = mx.gluon.nn.Dense(2, in_units=3)
        net.initialize()
        path = tmp_path / "a.stablehlo"
        mx.contrib.stablehlo.export_model(path, net, nd.ones((1, 3)))
        content = path.read_bytes()
        export.deserialize(bytearray(content))  # which does not look at the checksum
        for at in (4, 100, 600, 1500, len(content) - 1):
            path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            refused(lambda: mx.contrib.stablehlo.import_model(path))
        path.write_bytes(content[: content.index(b"dualmx sha256 ")])
        assert "checked=False" in refused(lambda: mx.contrib.stablehlo.import_model(path)).remedy
        assert mx.contrib.stablehlo.import_model(path, checked=False)(nd.ones((1, 3))).shape == (1, 2)

    def test_snapshots(self, tmp_path) -> None:
        from dualmx.core.rng import rng_streams

        meta = {"format": FORMAT, "rounds": 1, "random": rng_streams.state(), "extra": None, "keys": []}
        for change in (
            {"rounds": "a"}, {"random": 5}, {"random": {"seed": 1, "streams": {"cpu": [1, 2]}}},
            {"keys": [[[], "int8"]]}, {"keys": {"a": 1}}, {"keys": [[{}, "int8", [0], "default"]]},
        ):  # fmt: skip
            text = np.frombuffer(json.dumps({**meta, **change}).encode(), np.uint8)
            path = written(tmp_path, npz(meta=text))
            refused(lambda p=path: read_snapshot(p))
        text = np.frombuffer(json.dumps(meta).encode(), np.uint8)
        path = written(tmp_path, npz(meta=text, states=np.zeros(3, np.uint8)))
        refused(lambda: read_snapshot(path))

    def test_locked_archives(self, tmp_path) -> None:
        content = bytearray(npz(meta=np.zeros(3, np.uint8)))
        for mark in (b"PK\x03\x04", b"PK\x01\x02"):
            content[content.index(mark) + (6 if mark[2] == 3 else 8)] |= 1  # "encrypted"
        assert zipfile.is_zipfile(io.BytesIO(content))
        refused(lambda: read_snapshot(written(tmp_path, bytes(content))))


class TestTables:
    def test_names_of_columns_that_are_no_text(self, tmp_path) -> None:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({"abcd": [1.0, 2.0]}), tmp_path / "a.parquet", store_schema=False)
        data = (tmp_path / "a.parquet").read_bytes()
        (tmp_path / "a.parquet").write_bytes(data.replace(b"abcd", b"\xf3bcd"))
        refused(lambda: mx.io.ParquetReader(tmp_path / "a.parquet"))

    def test_vectors_of_spark(self, tmp_path) -> None:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        for size, indices in ((1 << 30, [1]), (-1, []), (4, [9]), (4, [1, 2])):
            vector = {"type": 0, "size": size, "indices": indices, "values": [0.5]}
            pq.write_table(pa.table({"v": pa.array([vector])}), tmp_path / "a.parquet")
            error = refused(lambda: list(mx.io.ParquetReader(tmp_path / "a.parquet").blocks()))
            assert "a.parquet" in str(error)

    def test_columns_that_would_fill_the_memory(self, tmp_path) -> None:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        texts = ["x" * 100_000] * 1200
        for column in (np.zeros(1 << 24), texts, [texts]):
            pq.write_table(pa.table({"c": column}), tmp_path / "a.parquet", row_group_size=1 << 24)
            error = refused(lambda: list(mx.io.ParquetReader(tmp_path / "a.parquet").blocks()))
            assert "DUALMX_READ_LIMIT_MB" in str(error)

    def test_statistics_that_end_the_process(self, tmp_path) -> None:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({"x": [[1.0, 2.0], [3.0]]}), tmp_path / "a.parquet")
        content = bytearray((tmp_path / "a.parquet").read_bytes())
        size = int.from_bytes(content[-8:-4], "little")
        found = 0
        for at in range(len(content) - 8 - size, len(content) - 8):
            kept, content[at] = content[at], content[at] ^ 1
            (tmp_path / "a.parquet").write_bytes(content)
            try:
                list(mx.io.ParquetReader(tmp_path / "a.parquet").blocks())
            except FormatError as e:
                found += 1
                assert "a.parquet" in str(e)
            except mx.MXNetError:
                found += 1
            content[at] = kept
        assert found > 20


class TestMessages:
    def test_true_and_false_are_no_numbers(self) -> None:
        from dualmx.ps.protocol import SERVER_REQUESTS
        from dualmx.ps.server import serve_put
        from dualmx.ps.store import Store
        from dualmx.ps.van.frame import REQUEST, Message

        for part in (["w", 0, False], ["w", True, 0], [True, 0, 0]):
            with pytest.raises(FormatError, match="not as expected"):
                SERVER_REQUESTS.read(Message(REQUEST, 0, {"op": "push", "store": 0, "parts": [part]}))
        with pytest.raises(FormatError, match="key=True: not as expected"):
            Message(REQUEST, 0, {"key": True}).field("key", (str, int))
        meta = {"op": "put", "store": 0, "parts": [["w", 0, "float32", 3, [True, 3]]]}
        message = Message(REQUEST, 0, meta, [bytes(12)], size=12)
        store, put = Store([0], True, print, print), SERVER_REQUESTS.read(message)
        with pytest.raises(FormatError, match="no array"):
            serve_put(store, put, message.pieces(), lambda nbytes: np.empty(nbytes, np.uint8))

    def test_a_job_of_very_many_batches(self) -> None:
        told = {"batch": 1 << 60, "members": [0], "used": []}
        first = {"since": 1, "before": [0], "marks": [], "changes": [], "next": 0}
        batches = ElasticWorker(
            0, 1, True, lambda *_: Message(NOTICE, 0, told), lambda start: Message(NOTICE, 0, first), lambda *_: None
        )
        with pytest.raises(FormatError, match="batch"):
            batches.begin()

    def test_a_history_that_never_ends(self) -> None:
        told, page = {"batch": 3, "members": [0], "used": []}, {"changes": [], "next": 2}
        batches = ElasticWorker(
            0, 1, True, lambda *_: Message(NOTICE, 0, told), lambda start: Message(NOTICE, 0, page), lambda *_: None
        )
        with pytest.raises(FormatError, match="next=2: expected a batch after 2"):
            batches.begin()

    def test_numbers_that_are_none(self) -> None:
        good = {"op": "pulse", "at": 1.0, "rounds": 1, "sent": 1, "received": 1}
        wait = {"seconds": 10**400, "in": "", "for": []}
        for change in ({"at": 10**400}, {"figures": {"loss": 10**400}}, {"wait": wait}):
            with pytest.raises(FormatError, match=f"{next(iter(change))}|seconds"):
                WorkerStatus().update(Message(NOTICE, 0, {**good, **change}))

    def test_many_small_parts_are_taken_in_order(self) -> None:
        parts = [bytes([i % 251]) * (1 + i % 3) for i in range(500)]
        pieces, whole = Message(NOTICE, payload=parts).pieces(), b"".join(parts)
        at = 0
        for size in (1, 7, 2, 300, 1, 0, 50):
            assert pieces.left == len(whole) - at
            assert bytes(pieces.read(size)) == whole[at : at + size]
            at += size
        assert bytes(pieces.read(10**6)) == whole[at:] and pieces.left == 0 and bytes(pieces.read(5)) == b""
