"""RecordIO: bytes as MXNet writes them, damaged files, other processes; shares of data."""

from __future__ import annotations

import copy
import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualmx as mx
from dualmx.gluon.data import ArrayDataset, BatchSampler, DataLoader, SplitSampler
from dualmx.io.recordio import MAGIC, encode_record, offsets, shard_start

GOLDEN = {
    b"abc": "0a23d7ce 03000000 61626300",
    b"": "0a23d7ce 00000000",
    MAGIC + b"xy": "0a23d7ce 00000020 0a23d7ce 02000060 78790000",
    b"12" + MAGIC: "0a23d7ce 06000000 3132 0a23d7ce 0000",
}


@pytest.mark.parametrize("payload", list(GOLDEN), ids=repr)
def test_records_byte_by_byte(payload: bytes, tmp_path: Path) -> None:
    path = str(tmp_path / "a.rec")
    with mx.recordio.MXRecordIO(path, "w") as out:
        out.write(payload)
    assert Path(path).read_bytes() == bytes.fromhex(GOLDEN[payload])
    assert mx.recordio.MXRecordIO(path, "r").read() == payload


@pytest.mark.parametrize("wrong", ["text", 5, None])
def test_only_bytes_are_records(wrong: object, tmp_path: Path) -> None:
    with mx.recordio.MXRecordIO(str(tmp_path / "a.rec"), "w") as out, pytest.raises(TypeError, match="expected bytes"):
        out.write(wrong)  # type: ignore[arg-type]


def test_headers_byte_by_byte() -> None:
    packed = mx.recordio.pack((0, 4.0, 7, 0), b"zz")
    assert packed.hex() == "0000000000008040070000000000000000000000000000007a7a"
    packed = mx.recordio.pack(mx.recordio.IRHeader(9, [1, 2], 7, 0), b"zz")
    assert packed.hex() == "0200000000000000070000000000000000000000000000000000803f000000407a7a"
    header, rest = mx.recordio.unpack(packed)
    assert header.flag == 2 and header.label.tolist() == [1, 2] and header.id == 7 and rest == b"zz"
    for short in (b"", packed[:23], packed[:30]):
        with pytest.raises(mx.MXNetError, match="image record of"):
            mx.recordio.unpack(short)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from([b"a", b"\x00", MAGIC, MAGIC[:2], MAGIC[2:]]), max_size=9).map(b"".join), max_size=6
    )
)
def test_whatever_is_written_is_read(payloads: list[bytes]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.rec")
        with mx.recordio.MXRecordIO(path, "w") as out:
            for p in payloads:
                out.write(p)
        reader = mx.recordio.MXRecordIO(path, "r")
        assert [reader.read() for _ in payloads] == payloads and reader.read() is None
        reader.reset()
        assert not payloads or reader.read() == payloads[0]
        starts = offsets(path)
        assert starts == list(np.cumsum([0, *(len(encode_record(p)) for p in payloads)]))[: len(payloads)]
        for parts in (1, 2, 3):
            assert [at for i in range(parts) for at in shard_start(path, parts, i)] == starts


def test_damaged_files_are_explained(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    good = encode_record(b"hello world") + encode_record(b"second")
    for content, said in (
        (good[:-3], "cut off"), (good[:22], "no record begins"), (b"junkjunk" + good, "no record begins at byte 0"),
        (good[:30], "cut off"), (encode_record(MAGIC + b"x")[:8], "end of a record is missing"),
        (encode_record(MAGIC + b"x")[8:], "begin of a record is missing"),
    ):  # fmt: skip
        path.write_bytes(content)
        reader = mx.recordio.MXRecordIO(str(path), "r")
        with pytest.raises(mx.MXNetError, match=said):
            while reader.read() is not None:
                pass


def test_indexed_files(tmp_path: Path) -> None:
    idx, rec = str(tmp_path / "a.idx"), str(tmp_path / "a.rec")
    writer = mx.recordio.MXIndexedRecordIO(idx, rec, "w")
    for i in range(4):
        assert writer.tell() == 12 * i
        writer.write_idx(i, b"%03d" % i)
    with pytest.raises(mx.MXNetError, match="goes to no other process"):
        copy.copy(writer)
    writer.close()
    assert Path(idx).read_text() == "0\t0\n1\t12\n2\t24\n3\t36\n"
    reader = mx.recordio.MXIndexedRecordIO(idx, rec, "r")
    assert reader.keys == [0, 1, 2, 3] and reader.read_idx(2) == b"002" and reader.read() == b"003"
    assert copy.copy(reader).read_idx(1) == b"001"
    for error in (mx.MXNetError, KeyError):
        with pytest.raises(error, match="no key 9"):
            reader.read_idx(9)
    with pytest.raises(mx.MXNetError, match="opened for reading"):
        reader.write(b"x")
    for wrong in ("a\t1\n", "1\n", "1\t-4\n", "1\tx\n"):
        Path(idx).write_text(wrong)
        with pytest.raises(mx.MXNetError, match="line 1"):
            mx.recordio.MXIndexedRecordIO(idx, rec, "r")
    with pytest.raises(mx.MXNetError, match="flag='a'"):
        mx.recordio.MXRecordIO(rec, "a")
    with pytest.raises(mx.MXNetError, match="cannot open"):
        mx.recordio.MXRecordIO(str(tmp_path / "absent"), "r")


def _read_in_child(reader: mx.recordio.MXIndexedRecordIO, out: multiprocessing.Queue[bytes]) -> None:
    for i in (3, 0, 2):
        out.put(reader.read_idx(i) or b"")


def test_processes_do_not_share_a_position(tmp_path: Path) -> None:
    idx, rec = str(tmp_path / "a.idx"), str(tmp_path / "a.rec")
    with mx.recordio.MXIndexedRecordIO(idx, rec, "w") as writer:
        for i in range(4):
            writer.write_idx(i, b"%d" % i * 5000)  # type: ignore[attr-defined]
    reader = mx.recordio.MXIndexedRecordIO(idx, rec, "r")
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=_read_in_child, args=(reader, queue)) for _ in range(2)]
    for c in children:
        c.start()
    for i in (1, 2, 3, 0):
        assert reader.read_idx(i) == b"%d" % i * 5000
    assert sorted(queue.get(timeout=20)[:1] for _ in range(6)) == [b"0", b"0", b"2", b"2", b"3", b"3"]
    for c in children:
        c.join(20)


NUMBERS = st.tuples(st.integers(0, 40), st.integers(1, 7), st.integers(1, 6))


@settings(max_examples=150, deadline=None)
@given(NUMBERS, st.booleans(), st.integers(0, 3))
def test_every_sample_goes_to_exactly_one_worker(numbers: tuple[int, int, int], shuffle: bool, epoch: int) -> None:
    n, workers, batch = numbers
    seen = []
    for rank in range(workers):
        sampler = SplitSampler(n, workers, rank, shuffle=shuffle, seed=5)
        sampler.set_epoch(epoch)
        batches = list(BatchSampler(sampler, batch))
        assert len(batches) == -(-len(sampler) // batch)
        seen += [i for b in batches for i in b]
    assert sorted(seen) == list(range(n))


@settings(max_examples=100, deadline=None)
@given(NUMBERS, st.booleans())
def test_even_shares(numbers: tuple[int, int, int], shuffle: bool) -> None:
    n, workers, _ = numbers
    repeated = [list(SplitSampler(n, workers, r, shuffle, 1, "repeat")) for r in range(workers)]
    assert {len(r) for r in repeated} == {-(-n // workers)} and set().union(*map(set, repeated)) == set(range(n))
    dropped = [list(SplitSampler(n, workers, r, shuffle, 1, "drop")) for r in range(workers)]
    assert {len(r) for r in dropped} == {n // workers}
    assert len(set().union(*map(set, dropped))) == n // workers * workers


def test_epochs_differ_and_agree() -> None:
    a, b = (SplitSampler(20, 2, r, shuffle=True) for r in (0, 1))
    first, second = [list(a), list(b)], [list(a), list(b)]
    assert first != second and sorted(first[0] + first[1]) == sorted(second[0] + second[1]) == list(range(20))
    with pytest.raises(mx.MXNetError, match="part_index=2"):
        SplitSampler(5, 2, 2)
    with pytest.raises(mx.MXNetError, match="even='yes'"):
        SplitSampler(5, 2, 1, even="yes")


@pytest.mark.parametrize(("n", "workers", "batch"), [(7, 2, 3), (10, 3, 2), (5, 5, 4), (9, 4, 1)])
def test_iterators_share_their_rows(n: int, workers: int, batch: int, tmp_path: Path) -> None:
    rows = np.arange(n, dtype=np.float32).reshape(n, 1)
    np.savetxt(tmp_path / "a.csv", rows, fmt="%d")
    kinds = {
        "array": lambda r: mx.io.NDArrayIter(rows, batch_size=batch, num_parts=workers, part_index=r),
        "csv": lambda r: mx.io.CSVIter(
            str(tmp_path / "a.csv"), (1,), batch_size=batch, num_parts=workers, part_index=r
        ),
        "loader": lambda r: (
            mx.io.DataBatch([x]) for x in DataLoader(ArrayDataset(rows), batch, sampler=SplitSampler(n, workers, r))
        ),
    }
    for name, made in kinds.items():
        seen = []
        for rank in range(workers):
            for b in made(rank):
                values = b.data[0].asnumpy()[:, 0].tolist()
                seen += values[: len(values) - (b.pad or 0)]
        assert sorted(seen) == list(range(n)), name
