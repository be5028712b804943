"""Batch iterators of `mx.io`; expected values are those of MXNet 1.9.1."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import FormatError, MXNetError
from dualmx.io import (
    CSVIter,
    DataBatch,
    DataDesc,
    DataIter,
    MNISTIter,
    NDArrayIter,
    PrefetchingIter,
    ResizeIter,
)

X = np.arange(10).reshape(5, 2)
Y = np.arange(5)


def epochs(it, count=3):
    """First column of the data and pad of every batch, for `count` epochs."""
    out = []
    for _ in range(count):
        out.append([(b.data[0].asnumpy()[:, 0].tolist(), b.pad) for b in it])
        it.reset()
    return out


# ---- descriptions and batches


def test_data_desc():
    d = DataDesc("data", (2, 3))
    name, shape = d
    assert (name, shape) == ("data", (2, 3)) and d == ("data", (2, 3)) and d.dtype is np.float32 and d.layout == "NCHW"
    assert repr(d) == "DataDesc[data,(2, 3),<class 'numpy.float32'>,NCHW]"
    assert [DataDesc.get_batch_axis(x) for x in ("NCHW", "TNC", None, "CHW")] == [0, 1, 0, -1]
    assert DataDesc.get_list([("a", (1, 2))], [("a", "float16")])[0].dtype == "float16"


def test_data_batch():
    b = DataBatch([mx.nd.ones((2, 3))], [mx.nd.ones(2)])
    assert str(b) == "DataBatch: data shapes: [(2, 3)] label shapes: [(2,)]"
    assert b.pad is None and b.index is None and b.bucket_key is None
    with pytest.raises(TypeError, match="list of NDArrays"):
        DataBatch(mx.nd.ones(2))


# ---- NDArrayIter


@pytest.mark.parametrize(
    "handle, size, expected",
    [
        ("pad", 2, [[([0, 2], 0), ([4, 6], 0), ([8, 0], 1)]] * 3),
        ("pad", 3, [[([0, 2, 4], 0), ([6, 8, 0], 1)]] * 3),
        ("pad", 8, [[([0, 2, 4, 6, 8, 0, 2, 4], 3)]] * 3),
        ("discard", 2, [[([0, 2], 0), ([4, 6], 0)]] * 3),
        ("discard", 8, [[]] * 3),
        ("roll_over", 2, [
            [([0, 2], 0), ([4, 6], 0)],
            [([8, 0], 1), ([2, 4], 0), ([6, 8], 0)],
            [([0, 2], 0), ([4, 6], 0)],
        ]),
        ("roll_over", 3, [
            [([0, 2, 4], 0)],
            [([6, 8, 0], 2), ([2, 4, 6], 0)],
            [([8, 0, 2], 1), ([4, 6, 8], 0)],
        ]),
        ("roll_over", 8, [[], [([0, 2, 4, 6, 8, 0, 2, 4], 5)], []]),
    ],
)  # fmt: skip
def test_ndarray_iter_last_batch(handle, size, expected):
    it = NDArrayIter(X, Y, batch_size=size, last_batch_handle=handle)
    assert epochs(it) == expected


def test_roll_over_of_a_large_batch_loses_nothing():
    it = NDArrayIter(X, batch_size=8, last_batch_handle="roll_over")
    seen = sum((rows for epoch in epochs(it, 9) for rows, _ in epoch), [])
    assert seen == [2.0 * (i % 5) for i in range(len(seen))] and len(seen) == 40


def test_rows_are_rolled_over_into_the_next_epoch_only():
    it = NDArrayIter(X, batch_size=3, last_batch_handle="roll_over")
    first = [([0, 2, 4], 0)]
    assert epochs(it, 1) == [first]
    it.reset()  # as `fit` leaves it, and as `predict` begins
    assert epochs(it, 1) == [first]
    it.next()
    it.reset()
    assert epochs(it, 1) == [first]


def test_ndarray_iter_names_and_dtypes():
    it = NDArrayIter({"b": X, "a": X.astype("int64")}, {"l": Y}, batch_size=2)
    assert it.provide_data == [("a", (2, 2)), ("b", (2, 2))] and it.provide_label == [("l", (2,))]
    assert [d.dtype for d in it.next().data] == [np.float32] * 2
    it = NDArrayIter([X, X], [Y, Y], batch_size=2)
    assert [d.name for d in it.provide_data + it.provide_label] == [
        "_0_data", "_1_data", "_0_softmax_label", "_1_softmax_label",
    ]  # fmt: skip
    it = NDArrayIter(mx.nd.array(X, dtype="int32"), batch_size=2)
    assert it.provide_data[0].dtype is np.int32 and it.provide_label == [] and it.next().label == []
    assert it.next().data[0].dtype is np.int32 and it.data[0][0] == "data"


def test_ndarray_iter_getters():
    it = NDArrayIter(X, Y, batch_size=2)
    assert it.iter_next() and it.getdata()[0].shape == (2, 2) and it.getpad() == 0 and it.getindex() is None
    assert it.cursor == 0 and it.num_data == 5
    for _ in it:
        pass
    with pytest.raises(StopIteration):
        it.next()


def test_ndarray_iter_shuffle_follows_numpy():
    np.random.seed(0)
    it = NDArrayIter(X, Y, batch_size=2, shuffle=True)
    labels = []
    for _ in range(3):
        labels.append([b.label[0].asnumpy().tolist() for b in it])
        it.reset()
    assert labels == [
        [[2, 0], [1, 3], [4, 2]],
        [[1, 0], [2, 4], [3, 1]],
        [[0, 3], [4, 2], [1, 0]],
    ]


@pytest.mark.parametrize(
    "arguments, error, said",
    [
        ((X, np.arange(4)), ValueError, "numbers of rows .*'softmax_label': 4.*: expected the same"),
        (("x",), TypeError, "data: got str: expected an NDArray"),
        ((None,), TypeError, "data: expected at least one array"),
        (([],), TypeError, "data: expected at least one array"),
        ((np.zeros((0, 2)),), ValueError, "numbers of rows .*'data': 0.*: expected .* at least 1"),
        ((X, Y, 0), ValueError, "batch_size=0: expected 1 or more"),
        ((X, Y, 2, False, "foo"), ValueError, "last_batch_handle='foo': expected 'pad'"),
    ],
)
def test_ndarray_iter_errors(arguments, error, said):
    with pytest.raises(error, match=said):
        NDArrayIter(*arguments)


# ---- iterators around iterators


def test_resize_iter():
    it = ResizeIter(NDArrayIter(X, Y, batch_size=2), 7)
    expected = [([0, 2], 0), ([4, 6], 0), ([8, 0], 1)] * 2 + [([0, 2], 0)]
    assert epochs(it, 2) == [expected, expected]
    assert it.batch_size == 2 and it.provide_data == [("data", (2, 2))]


def test_prefetching_iter_joins_and_renames():
    it = PrefetchingIter(
        [NDArrayIter(X, Y, batch_size=2), NDArrayIter(X + 100, Y, batch_size=2)],
        rename_data=[{"data": "d1"}, {"data": "d2"}],
        rename_label=[{"softmax_label": "l1"}, {"softmax_label": "l2"}],
    )
    assert [d.name for d in it.provide_data + it.provide_label] == ["d1", "d2", "l1", "l2"] and it.batch_size == 2
    for _ in range(2):
        batches = list(it)
        assert [[x.asnumpy()[0, 0] for x in b.data] for b in batches] == [[0, 100], [4, 104], [8, 108]]
        assert [b.pad for b in batches] == [0, 0, 1] and len(batches[0].label) == 2
        it.reset()
    it.reset()
    assert it.next().data[0].asnumpy()[0, 0] == 0


def test_prefetching_iter_passes_errors_on():
    class Bad(DataIter):
        provide_data = [DataDesc("data", (2, 2))]

        def next(self):
            raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        PrefetchingIter(Bad()).next()
    unequal = PrefetchingIter([NDArrayIter(X, batch_size=2), NDArrayIter(X[:2], batch_size=2)])
    unequal.next()
    with pytest.raises(MXNetError, match="different lengths"):
        unequal.next()


# ---- MNIST


@pytest.fixture
def digits(tmp_path):
    n = 11
    images = np.repeat(np.arange(n, dtype=np.uint8) * 20, 28 * 28)
    (tmp_path / "im").write_bytes(struct.pack(">4i", 2051, n, 28, 28) + images.tobytes())
    (tmp_path / "lb").write_bytes(struct.pack(">2i", 2049, n) + bytes(range(n)))
    return {"image": str(tmp_path / "im"), "label": str(tmp_path / "lb"), "silent": True}


def test_mnist_iter(digits):
    it = MNISTIter(**digits, batch_size=4, shuffle=False)
    assert it.provide_data == [("data", (4, 1, 28, 28))] and it.provide_label == [("softmax_label", (4,))]
    for _ in range(2):
        batches = list(it)
        assert [b.label[0].asnumpy().tolist() for b in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert (batches[1].data[0].asnumpy()[:, 0, 0, 0] * 256).tolist() == [80, 100, 120, 140]
        assert batches[0].data[0].dtype is np.float32 and batches[0].pad == 0
        it.reset()


def test_mnist_iter_parts_and_flat(digits):
    parts = [MNISTIter(**digits, batch_size=1, shuffle=False, flat=True, num_parts=3, part_index=i) for i in range(3)]
    labels = [[int(b.label[0].asscalar()) for b in it] for it in parts]
    assert labels == [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9, 10]]
    assert parts[0].provide_data == [("data", (1, 784))]


def test_mnist_iter_has_each_image_in_one_part(tmp_path):
    """15 / 11 * 11 is less than 15 where it is rounded."""
    files = {"image": str(tmp_path / "image"), "label": str(tmp_path / "label")}
    (tmp_path / "image").write_bytes(struct.pack(">4i", 2051, 15, 1, 1) + bytes(15))
    (tmp_path / "label").write_bytes(struct.pack(">2i", 2049, 15) + bytes(range(15)))
    seen = []
    for i in range(11):
        it = MNISTIter(**files, batch_size=1, shuffle=False, num_parts=11, part_index=i)
        seen += [int(b.label[0].asscalar()) for b in it]
    assert seen == list(range(15))


def test_mnist_iter_shuffles_once_by_seed(digits):
    def labels(seed):
        it = MNISTIter(**digits, batch_size=11, seed=seed)
        first = it.next().label[0].asnumpy().tolist()
        it.reset()
        assert it.next().label[0].asnumpy().tolist() == first
        return first

    assert labels(0) == labels(0) != labels(1)
    assert sorted(labels(2)) == list(range(11))


def test_mnist_iter_reads_gzip(digits, tmp_path):
    (tmp_path / "im.gz").write_bytes(gzip.compress((tmp_path / "im").read_bytes()))
    it = MNISTIter(**{**digits, "image": str(tmp_path / "im.gz")}, batch_size=4)
    assert len(list(it)) == 2


@pytest.mark.parametrize(
    "arguments",
    [{"part_index": 5}, {"num_parts": 20}, {"num_parts": 0}, {"batch_size": 40}, {"dtype": "uint8"}, {"batch_size": 0}],
)
def test_mnist_iter_argument_errors(digits, arguments):
    with pytest.raises(ValueError, match="MNISTIter"):
        MNISTIter(**{**digits, "batch_size": 4, **arguments})


def test_mnist_iter_file_errors(digits, tmp_path):
    with pytest.raises(MXNetError, match="nope"):
        MNISTIter(**{**digits, "image": str(tmp_path / "nope")})
    content = (tmp_path / "im").read_bytes()
    for bad in (
        content[:-1],
        content[:7],
        b"",
        content + b"x",
        b"\x1f\x8b" + content,
        content[:1] + b"\1" + content[2:],
    ):
        (tmp_path / "bad").write_bytes(bad)
        with pytest.raises((FormatError, MXNetError), match="bad"):
            MNISTIter(**{**digits, "image": str(tmp_path / "bad")})
    with pytest.raises(FormatError, match="N images and N labels"):
        MNISTIter(**{**digits, "label": digits["image"]})


# ---- CSV


@pytest.fixture
def table(tmp_path):
    (tmp_path / "a.csv").write_text("1,2,3\n2,3,4\n3,4,5\n4,5,6\n")
    (tmp_path / "l.csv").write_text("1\n2\n3\n4\n")
    return {"data_csv": str(tmp_path / "a.csv"), "data_shape": (3,), "batch_size": 3}


def test_csv_iter_rounds_over_epochs(table):
    assert epochs(CSVIter(**table)) == [
        [([1, 2, 3], 0), ([4, 1, 2], 2)],
        [([3, 4, 1], 1)],
        [([2, 3, 4], 0)],
    ]


def test_csv_iter_without_rounding_keeps_old_rows(table):
    assert epochs(CSVIter(**table, round_batch=False)) == [[([1, 2, 3], 0), ([4, 2, 3], 2)]] * 3


def test_csv_iter_labels_dtype_and_index(table, tmp_path):
    (tmp_path / "f.csv").write_text("1.0e+00,2.9\n")
    whole = CSVIter(data_csv=str(tmp_path / "f.csv"), data_shape=(2,), batch_size=1, dtype="int32")
    assert whole.next().data[0].asnumpy().tolist() == [[1, 2]]
    it = CSVIter(**table, label_csv=str(tmp_path / "l.csv"), dtype="int32")
    b = it.next()
    assert b.label[0].asnumpy().tolist() == [1, 2, 3] and b.data[0].dtype is np.int32 and b.label[0].dtype is np.int32
    assert b.index.tolist() == [0, 1, 2] and it.provide_label == [("softmax_label", (3,))]
    assert CSVIter(**table).next().label[0].asnumpy().tolist() == [0, 0, 0]
    assert CSVIter(**{**table, "data_shape": (3, 1)}).next().data[0].shape == (3, 3, 1)


def test_csv_iter_reads_a_folder(table, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "1.csv").write_text("1,2,3\n")
    (folder / "2.csv").write_text("2,3,4\n")
    it = CSVIter(**{**table, "data_csv": str(folder), "batch_size": 2})
    assert epochs(it, 1) == [[([1, 2], 0)]]


def test_csv_iter_errors(table, tmp_path):
    with pytest.raises(FormatError, match="rows of 3 numbers"):
        CSVIter(**{**table, "data_shape": (2,)})
    with pytest.raises(MXNetError, match="nope"):
        CSVIter(**{**table, "data_csv": str(tmp_path / "nope.csv")})
    for text in ("1,2,3\n1,2\n", "1,x,3\n", ""):
        (tmp_path / "bad.csv").write_text(text)
        with pytest.raises(FormatError, match=r"bad\.csv"):
            CSVIter(**{**table, "data_csv": str(tmp_path / "bad.csv")})
    (tmp_path / "short.csv").write_text("1\n")
    with pytest.raises(FormatError, match="same number"):
        CSVIter(**table, label_csv=str(tmp_path / "short.csv"))


def test_csv_iter_takes_texts(table):
    it = CSVIter(**{**table, "data_shape": "(3,)", "batch_size": "2", "round_batch": "True"})
    assert it.provide_data[0].shape == (2, 3)
    with pytest.raises(MXNetError, match="CSVIter: data_shape='3, x'"):
        CSVIter(**{**table, "data_shape": "3, x"})


def test_nested_lists_are_arrays():
    it = NDArrayIter({"a": [[1, 2], [3, 4]]}, [[0, 1]], batch_size=2)
    assert it.provide_data[0].shape == (2, 2) and it.provide_label[0].shape == (2,)
    assert it.next().data[0].asnumpy().tolist() == [[1, 2], [3, 4]]
    with pytest.raises(TypeError, match="got list"):
        NDArrayIter({"a": [[1, 2], [3]]})


def test_lists_of_all_arrays():
    it = NDArrayIter({"a": np.zeros((4, 2))}, np.arange(4), batch_size=2)
    assert [v.shape for v in it.data_list] == [(4, 2), (4,)]


def test_dummy_iterators_repeat_the_first_batch():
    it = mx.test_utils.DummyIter(NDArrayIter(np.arange(4), batch_size=2))
    assert isinstance(it, mx.io.DataIter) and it.batch_size == 2 and it.provide_data[0].shape == (2,)
    for _, batch in zip(range(5), it, strict=False):
        assert batch.data[0].asnumpy().tolist() == [0, 1]


def test_iterators_over_files_give_arrays_and_warn_of_unknown_arguments(tmp_path):
    (tmp_path / "x.csv").write_text("0,1\n2,3\n4,5\n6,7\n")
    with pytest.warns(UserWarning, match="CSVIter: there is no argument colour: ignored"):
        it = mx.io.CSVIter(data_csv=tmp_path / "x.csv", data_shape=(2,), batch_size=2, colour=3)
    assert isinstance(it, mx.io.MXDataIter) and it.iter_next()
    assert it.getdata().asnumpy().tolist() == [[0, 1], [2, 3]] and it.getlabel().shape == (2,)
    it.reset()
    it.debug_skip_load()
    assert [it.next().data[0].asnumpy().tolist() for _ in range(3)] == [[[0, 1], [2, 3]]] * 3


class _OwnDescriptions(mx.io.DataIter):
    def __init__(self):
        super().__init__(2)
        self.provide_data = [("data", (2, 3))]
        self.provide_label = [mx.io.DataDesc("softmax_label", (2,))]
        self.left = 3

    def reset(self):
        self.left = 3

    def next(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        return mx.io.DataBatch([mx.nd.ones((2, 3))], [mx.nd.zeros((2,))], pad=0)


def test_iterators_of_users_assign_their_descriptions():
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2), name="softmax")
    module = mx.mod.Module(net)
    module.fit(_OwnDescriptions(), num_epoch=1, initializer=mx.init.One())
    assert module.score(_OwnDescriptions(), "acc") == [("accuracy", 1.0)]
    assert len(list(mx.io.PrefetchingIter(_OwnDescriptions()))) == 3
    assert mx.io.DataIter().provide_data == []


def test_descriptions_of_library_iterators_can_be_replaced():
    inner = mx.io.NDArrayIter(np.zeros((4, 2)), np.zeros(4), 2)
    resized = mx.io.ResizeIter(inner, 1)
    assert resized.provide_label == inner.provide_label
    resized.provide_label = []
    assert resized.provide_label == [] and inner.provide_label != []


def test_arrays_of_an_iterator_can_be_replaced():
    batches = mx.io.NDArrayIter(np.zeros((4, 2)), np.zeros(4), 2)
    batches.data = [(name, values + 1) for name, values in batches.data]
    batches.label = [("other", mx.nd.arange(4))]
    assert batches.provide_label[0].name == "other"
    got = [(b.data[0].asnumpy().tolist(), b.label[0].asnumpy().tolist()) for b in batches]
    assert got == [([[1, 1], [1, 1]], [0, 1]), ([[1, 1], [1, 1]], [2, 3])]
