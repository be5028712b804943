"""Rows of Parquet files: every type that becomes an array, shares of workers, orders, conditions, batches."""

from __future__ import annotations

import datetime
import io
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualmx as mx
from dualmx.io import ParquetIter, ParquetReader
from dualmx.io.image_codec import encode
from tests import jobs

ROOT = Path(__file__).parents[2]


def npy(a: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, a)
    return out.getvalue()


def npz(a: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, arr=a)
    return out.getvalue()


def numbered(path: Path, n: int, group: int = 10, files: int = 1) -> Path:
    """Rows with their number in `x`, its square in `y`."""
    path.mkdir(exist_ok=True)
    for i, mine in enumerate(np.array_split(np.arange(n), files)):
        table = pa.table({"x": mine, "y": mine.astype(np.float64) ** 2})
        pq.write_table(table, path / f"part-{i:05d}.parquet", row_group_size=group)
    return path


def column(tmp_path: Path, values, **more) -> np.ndarray:
    """A column as it comes back."""
    pq.write_table(pa.table({"c": values}), tmp_path / "c.parquet")
    (batch,) = ParquetReader(tmp_path / "c.parquet", **more).batches(1000)
    return batch["c"]


IMAGE = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
TENSOR = np.arange(12, dtype=np.float32).reshape(2, 3, 2)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([1, 2], pa.int8()), np.array([1, 2], np.int8)),
        (pa.array([1, 2], pa.uint64()), np.array([1, 2], np.uint64)),
        (pa.array(np.array([1.5, 2], np.float16)), np.array([1.5, 2], np.float16)),
        (pa.array([1.5, None], pa.float32()), np.array([1.5, np.nan], np.float32)),
        (pa.array([True, False]), np.array([True, False])),
        (pa.array([1, 2], pa.decimal128(5, 2)), np.array([1.0, 2.0])),
        (pa.array([[1, 2], [3, 4]]), np.array([[1, 2], [3, 4]])),
        (pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2)), np.array([[1, 2], [3, 4]], np.float32)),
        (pa.array([[[1], [2]], [[3], [4]]]), np.array([[[1], [2]], [[3], [4]]])),
        (pa.array(["a", "b", "a"]).dictionary_encode(), np.array(["a", "b", "a"], object)),
        (pa.array([3, 4, 3]).dictionary_encode(), np.array([3, 4, 3])),
        (pa.FixedShapeTensorArray.from_numpy_ndarray(TENSOR), TENSOR),
        (pa.array([npy(TENSOR), npy(TENSOR + 1)]), np.stack([TENSOR, TENSOR + 1])),
        (pa.array([npz(TENSOR), npz(TENSOR + 1)]), np.stack([TENSOR, TENSOR + 1])),
        (pa.array([encode(IMAGE[:, :, ::-1], 3, ".png")] * 2), np.stack([IMAGE, IMAGE])),
        (
            pa.array(
                [
                    {"type": 1, "size": None, "indices": None, "values": [1.0, 0.0, 2.0]},
                    {"type": 0, "size": 3, "indices": [1], "values": [5.0]},
                ]
            ),
            np.array([[1.0, 0, 2], [0, 5, 0]]),
        ),
        (pa.array([datetime.date(2020, 1, 2)]), np.array(["2020-01-02"], "datetime64[D]")),
    ],
    ids=lambda v: str(v.type) if isinstance(v, pa.Array) else "",
)
def test_types(tmp_path, values, expected) -> None:
    found = column(tmp_path, values)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert np.array_equal(found, expected, equal_nan=expected.dtype.kind == "f")


def test_rows_of_different_shapes_are_objects(tmp_path) -> None:
    ragged = column(tmp_path, pa.array([[1, 2], [3], []]))
    assert ragged.dtype == object and [r.tolist() for r in ragged] == [[1, 2], [3], []]
    mixed = column(tmp_path, pa.array([npy(TENSOR), npy(TENSOR[0])]))
    assert [r.shape for r in mixed] == [TENSOR.shape, TENSOR[0].shape]
    assert column(tmp_path, pa.array([b"abc", npy(TENSOR)])).tolist() == [b"abc", npy(TENSOR)]
    assert column(tmp_path, pa.array([npy(TENSOR)]), decode=False).tolist() == [npy(TENSOR)]


def test_groups_of_different_lengths_come_together(tmp_path) -> None:
    lists = [[i] * (1 + i // 2) for i in range(4)]  # of one length in each row group
    pq.write_table(pa.table({"c": lists}), tmp_path / "c.parquet", row_group_size=2)
    (batch,) = ParquetReader(tmp_path / "c.parquet").batches(10)
    assert [r.tolist() for r in batch["c"]] == lists


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.array([1, None]), "column 'c' of int64: 1 of 2 values are missing"),
        (pa.array([[1, None]]), "column 'c' of int64: 1 of 2 values are missing"),
        (pa.array([{"a": 1}]), "column 'c' of struct<a: int64>: expected numbers"),
        (pa.array([npy(TENSOR)[:-3]]), "column 'c': .* no readable NumPy array"),
        (pa.array([b"PK\x03\x04 no archive"]), "column 'c': .* no readable NumPy array"),
        (pa.array([npy(np.array([{}], object))]), "column 'c': .* no readable NumPy array.* of plain elements"),
        (pa.array([b"\xff\xd8\xff no image"]), "not a readable image"),
    ],
)
def test_what_is_no_array(tmp_path, values, message) -> None:
    with pytest.raises(mx.MXNetError, match=message):
        column(tmp_path, values)


def test_arrays_that_claim_to_be_huge_are_refused(tmp_path) -> None:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": (1 << 50,)})
    with pytest.raises(mx.MXNetError, match="no readable NumPy array"):
        column(tmp_path, pa.array([out.getvalue() + bytes(64)]))


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 60), workers=st.integers(1, 5), batch=st.integers(1, 9), group=st.integers(1, 20),
    files=st.integers(1, 3), shuffle=st.booleans(),
)  # fmt: skip
def test_every_row_goes_to_one_worker(tmp_path_factory, n, workers, batch, group, files, shuffle) -> None:
    path = numbered(tmp_path_factory.mktemp("rows"), n, group, min(files, n))
    seen: list[int] = []
    counts = []
    for rank in range(min(workers, n)):
        reader = ParquetReader(path, shuffle=shuffle, num_parts=min(workers, n), part_index=rank)
        for _ in range(2):
            mine = [b["x"] for b in reader.batches(batch)]
            assert all(len(b) == batch for b in mine[:-1])
        rows = np.concatenate(mine)
        assert len(rows) == reader.num_rows
        counts.append(len(rows))
        seen += rows.tolist()
    assert sorted(seen) == list(range(n)) and max(counts) - min(counts) <= 1


def test_orders_are_those_of_the_seed_and_epoch(tmp_path) -> None:
    path = numbered(tmp_path / "rows", 100)

    def epochs(**more) -> list[list[int]]:
        reader = ParquetReader(path, **more)
        return [[int(row["x"]) for row in reader] for _ in range(2)]

    assert epochs() == [list(range(100))] * 2
    first, second = epochs(shuffle=True)
    assert first != second and first != sorted(first) and sorted(first) == sorted(second) == list(range(100))
    assert epochs(shuffle=True) == [first, second]
    assert epochs(shuffle=True, seed=1)[0] != first
    assert any(abs(a - b) > 10 for a, b in zip(first, first[1:], strict=False)), "rows of several groups are mixed"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ([("x", "<", 5)], range(5)),
        ([("x", ">=", 95), ("y", "!=", 98.0**2)], [95, 96, 97, 99]),
        ([[("x", "<", 2)], [("x", "in", [50, 70])]], [0, 1, 50, 70]),
        ([("x", "not in", list(range(99)))], [99]),
        ([("x", ">", 1000)], []),
    ],
)
@pytest.mark.parametrize("parts", [1, 7])
def test_conditions(tmp_path, where, expected, parts) -> None:
    path = numbered(tmp_path / "rows", 100, files=2)
    found = []
    for rank in range(parts):
        for batch in ParquetReader(path, ["x"], where, num_parts=parts, part_index=rank).batches(3):
            assert list(batch) == ["x"]
            found += batch["x"].tolist()
    assert found == list(expected)


def test_conditions_on_columns_that_are_not_read(tmp_path) -> None:
    path = numbered(tmp_path / "rows", 20)
    (batch,) = ParquetReader(path, ["y"], [("x", "==", 3)]).batches(5)
    assert {k: v.tolist() for k, v in batch.items()} == {"y": [9.0]}


def test_row_groups_without_such_rows_are_not_read(tmp_path) -> None:
    file = numbered(tmp_path / "rows", 20) / "part-00000.parquet"
    chunk = pq.ParquetFile(file).metadata.row_group(0).column(0)
    content = bytearray(file.read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    file.write_bytes(content)
    assert [int(row["x"]) for row in ParquetReader(file, where=[("x", ">=", 15)])] == list(range(15, 20))
    with pytest.raises(mx.MXNetError, match="part-00000.parquet"):
        list(ParquetReader(file))


def test_directories_as_spark_writes_them(tmp_path) -> None:
    for year in (2020, 2021):
        folder = tmp_path / "t" / f"year={year}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"x": [year % 100]}), folder / "part-0.snappy.parquet")
    (tmp_path / "t" / "_SUCCESS").touch()
    rows = list(ParquetReader(tmp_path / "t"))
    assert [(int(r["x"]), int(r["year"])) for r in rows] == [(20, 2020), (21, 2021)]
    assert [int(r["x"]) for r in ParquetReader(tmp_path / "t", ["x"], [("year", "==", 2021)])] == [21]


def test_transform(tmp_path) -> None:
    path = numbered(tmp_path / "rows", 10)
    reader = ParquetReader(path, transform=lambda block: {"z": block["x"] * 2})
    assert [b["z"].tolist() for b in reader.batches(6, discard=True)] == [[0, 2, 4, 6, 8, 10]]
    wrongs: list[Any] = [lambda block: 3, lambda block: {"a": np.zeros(2), "b": np.zeros(3)}]
    for wrong in wrongs:
        with pytest.raises(mx.MXNetError, match="transform"):
            list(ParquetReader(path, transform=wrong))


def test_module_trains_on_it(tmp_path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    table = pa.table({**{f"f{i}": x[:, i] for i in range(3)}, "label": (x.sum(axis=1) > 0).astype(np.int64)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=64)
    batches = ParquetIter(tmp_path / "t.parquet", {"data": ["f0", "f1", "f2"]}, "label", 20, shuffle=True)
    assert [tuple(d) for d in batches.provide_data] == [("data", (20, 3))]
    assert [tuple(d) for d in batches.provide_label] == [("softmax_label", (20,))]
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2), name="softmax")
    module = mx.mod.Module(net)
    module.fit(batches, num_epoch=8, optimizer_params={"learning_rate": 1.0}, initializer=mx.init.Xavier())
    assert module.score(batches, "acc")[0][1] > 0.95


def test_an_epoch_that_is_given_up_waits_for_no_thread(tmp_path, monkeypatch) -> None:
    # The garbage collector ends it, perhaps inside `Thread.start`, whose lock joining would wait for.
    blocks = mx.io.ParquetReader(numbered(tmp_path / "rows", 9, group=3)).blocks()
    next(blocks)
    joined: list[threading.Thread] = []
    monkeypatch.setattr(threading.Thread, "join", lambda thread, timeout=None: joined.append(thread))
    blocks.close()
    assert not joined


@pytest.mark.parametrize("n", [3, 8, 10])
@pytest.mark.parametrize("how", ["pad", "discard", "roll_over"])
def test_last_batches_are_those_of_arrays(tmp_path, how, n) -> None:
    path = numbered(tmp_path / "rows", n, group=3)
    if how != "pad" and n < 4:
        with pytest.raises(mx.MXNetError, match="holds no batch"):
            ParquetIter(path, "x", batch_size=4, last_batch_handle=how)
        return
    mine = ParquetIter(path, "x", "y", 4, last_batch_handle=how)
    other = mx.io.NDArrayIter(np.arange(n), np.arange(n) ** 2, 4, last_batch_handle=how)
    for _ in range(3):
        for a, b in zip(mine, other, strict=True):
            assert a.data and b.data and a.data[0].asnumpy().tolist() == b.data[0].asnumpy().tolist()
            assert a.label and b.label and a.label[0].asnumpy().tolist() == b.label[0].asnumpy().tolist()
            if how == "pad":
                assert a.pad == b.pad
        mine.reset()
        other.reset()


def test_types_and_names_of_inputs(tmp_path) -> None:
    path = numbered(tmp_path / "rows", 4)
    it = ParquetIter(path, ["x", "y"], batch_size=2, dtype=None)
    assert [(d.name, d.dtype) for d in it.provide_data] == [("x", np.int64), ("y", np.float64)]
    assert it.provide_label == [] and next(it).label == []
    it.reset()  # in the midst of an epoch
    assert [b.data[0].asnumpy().tolist() for b in it if b.data] == [[0, 1], [2, 3]]


def test_wrong_input(tmp_path) -> None:
    path = numbered(tmp_path / "rows", 4)
    (tmp_path / "no.parquet").write_bytes(b"PAR1 and no more")
    pq.write_table(pa.table({"t": ["a", "b"], "r": [[1], [1, 2]]}), tmp_path / "text.parquet")
    for make, message in [
        (lambda: ParquetReader(tmp_path / "missing"), "cannot read .*missing"),
        (lambda: ParquetReader(tmp_path / "no.parquet"), "not Parquet files"),
        (lambda: ParquetReader(path, ["z"]), "no column 'z' in .*; there are x, y"),
        (lambda: ParquetReader(path, where=[("z", "<", 1)]), "no column 'z'"),
        (lambda: ParquetReader(path, where=[("x", "~", 1)]), "where="),
        (lambda: ParquetReader(path, where="x < 1"), r"where='x < 1': expected \(column, op, value\)"),
        (lambda: ParquetReader(path, where=[]), "where="),
        (lambda: ParquetReader(path, mix=0), "mix=0"),
        (lambda: ParquetReader(path, num_parts=2, part_index=2), "part_index=2"),
        (lambda: ParquetReader(path, num_parts=9, part_index=8), "part 8 of 9 of 4 rows is empty"),
        (lambda: list(ParquetReader(path).batches(0)), "batch_size=0"),
        (lambda: ParquetIter(path, "x", batch_size=0), "batch_size=0"),
        (lambda: ParquetIter(path, "x", last_batch_handle="keep"), "last_batch_handle='keep'"),
        (lambda: ParquetIter(tmp_path / "text.parquet", "t"), "column 't': text.* expected numbers"),
        (lambda: ParquetIter(tmp_path / "text.parquet", "r", batch_size=2), "column 'r': .*rows of different shapes"),
        (lambda: ParquetIter(path, "z", transform=lambda b: b), "transform gave no column 'z'"),
    ]:
        with pytest.raises(mx.MXNetError, match=message):
            make()


def test_files_larger_than_memory(tmp_path) -> None:
    rows = np.zeros((50_000, 100), np.float64)
    with pq.ParquetWriter(tmp_path / "t.parquet", pa.schema([("x", pa.list_(pa.float64(), 100))])) as out:
        for _ in range(8):  # 320 MB of numbers, which are stored in few bytes
            values = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 100)
            out.write_table(pa.table({"x": values}), row_group_size=5000)
    program = (
        "import sys\n"
        "from dualmx.io import ParquetReader\n"
        "from tests.fuzz.limits import peak\n"
        "reader = ParquetReader(sys.argv[1], shuffle=True)\n"
        "before = peak()\n"
        "print(sum(len(b['x']) for b in reader.batches(64)), (peak() - before) >> 20)\n"
    )
    out = jobs.run(jobs.PYTHON, "-c", program, tmp_path / "t.parquet").stdout
    count, grown = map(int, out.split())
    assert count == 400_000 and grown < 200
