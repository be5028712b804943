"""Datasets, samplers, and the loader in this process, in threads and in worker processes."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import MXNetError
from dualmx.gluon.data import (
    ArrayDataset,
    BatchSampler,
    DataLoader,
    Dataset,
    FilterSampler,
    IntervalSampler,
    RandomSampler,
    SequentialSampler,
    SimpleDataset,
    dataset,
    default_batchify_fn,
)
from dualmx.gluon.data.worker import load
from dualmx.gluon.data.worker_pool import _pack
from tests import jobs

X = np.arange(14).reshape(7, 2)
Y = np.arange(7)
WAYS = [{}, {"num_workers": 2}, {"num_workers": 2, "thread_pool": True}]


def rows(loader):
    return [batch[1].asnumpy().tolist() for batch in loader]


class Doomed(Dataset):
    """Item 3 kills its process."""

    def __len__(self):
        return 8

    def __getitem__(self, idx):
        if idx == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return np.float32(idx)


class Slow(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, idx):
        time.sleep(30)
        return idx


class Broken(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, idx):
        if idx == 5:
            raise KeyError("item five")
        return idx


class Who(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, idx):
        return np.int64(os.getpid())


class Draw(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, idx):
        return np.random.random()


def lambda_of(dataset):
    """The same dataset behind a function that cannot be pickled."""
    return dataset.transform(lambda *item: item if len(item) > 1 else item[0])


def wrappers():
    return pytest.mark.parametrize("wrap", [lambda d: d, lambda_of], ids=["fresh", "forked"])


# ---- datasets


def test_dataset_views():
    ds = ArrayDataset(X, Y)
    assert len(ds) == 7 and ds[2][1] == 2 and isinstance(ds[2][0], np.ndarray)
    assert [[s[1] for s in ds.shard(3, i)] for i in range(3)] == [[0, 1, 2], [3, 4], [5, 6]]
    assert [s[1] for s in ds.take(3)] == [0, 1, 2] and len(ds.take(100)) == len(ds.take(None)) == 7
    assert len(ds.filter(lambda s: s[1] % 2 == 0)) == 4
    assert [s[1] for s in ds.sample(SequentialSampler(2, 3))] == [3, 4]
    assert list(FilterSampler(lambda s: s[1] > 3, ds)) == [4, 5, 6]
    assert ds.transform(lambda a, b: (a + 1, b))[0][0].tolist() == [1, 2]
    assert isinstance(ds.transform(lambda a, b: a, lazy=False), SimpleDataset)
    assert ds.transform_first(lambda a: a * 2)[1][0].tolist() == [4, 6]
    assert SimpleDataset([1, 2]).transform_first(lambda a: a + 1)[1] == 3


def test_dataset_errors():
    ds = ArrayDataset(X, Y)
    for bad in (lambda: ds.take(-1), lambda: ds.shard(3, 3), lambda: ArrayDataset(), lambda: ArrayDataset(X, [1])):
        with pytest.raises(
            ValueError, match=r"take: count=-1: expected|shard: index=3: expected|at least one array|\[7, 1\]"
        ):
            bad()
    with pytest.raises(TypeError, match="Sampler"):
        ds.sample([1, 2])
    with pytest.raises(NotImplementedError, match="__getitem__"):
        Dataset()[0]


def test_items_of_ndarrays_are_ndarrays():
    item = ArrayDataset(mx.nd.array(X), mx.nd.array(Y))[1]
    assert isinstance(item[0], mx.nd.NDArray) and item[0].asnumpy().tolist() == [2, 3]
    assert item[1] == 1


def test_a_subclass_with_its_own_items_is_not_read_past():
    class Doubled(ArrayDataset):
        def __getitem__(self, idx):
            return super().__getitem__(idx) * 2

    (batch,) = DataLoader(Doubled(X), 7)
    assert np.array_equal(batch.asnumpy(), X * 2)


# ---- samplers


def test_batch_sampler_modes():
    def passes(mode):
        b = BatchSampler(SequentialSampler(7), 3, mode)
        return [(len(b), list(b)) for _ in range(3)]

    assert passes("keep") == [(3, [[0, 1, 2], [3, 4, 5], [6]])] * 3
    assert passes("discard") == [(2, [[0, 1, 2], [3, 4, 5]])] * 3
    assert passes("rollover") == [
        (2, [[0, 1, 2], [3, 4, 5]]),
        (2, [[6, 0, 1], [2, 3, 4]]),
        (3, [[5, 6, 0], [1, 2, 3], [4, 5, 6]]),
    ]
    with pytest.raises(ValueError, match="rollover"):
        BatchSampler(SequentialSampler(7), 3, "x")


def test_random_and_interval_samplers():
    np.random.seed(1)
    assert list(RandomSampler(5)) == [2, 1, 4, 0, 3]
    assert list(IntervalSampler(7, 3)) == [0, 3, 6, 1, 4, 2, 5]
    assert list(IntervalSampler(7, 3, rollover=False)) == [0, 3, 6]


# ---- collation


def test_default_batchify_keeps_dtypes():
    for data, dtype, shape in (
        ([1, 2], np.int64, (2,)),
        ([1.5], np.float64, (1,)),
        ([np.int32(1)], np.int32, (1,)),
        ([np.ones(2, "float16")] * 2, np.float16, (2, 2)),
        ([mx.nd.ones(2)] * 2, np.float32, (2, 2)),
        ([True, False], np.bool_, (2,)),
    ):
        out = default_batchify_fn(data)
        assert out.dtype == dtype and out.shape == shape
    x, y = default_batchify_fn([(1, 2.5), (2, 3.5)])
    assert x.dtype == np.int64 and y.dtype == np.float64


# ---- the loader


@pytest.mark.parametrize("way", WAYS, ids=["here", "processes", "threads"])
def test_batches_dtypes_and_order(way):
    loader = DataLoader(ArrayDataset(X, Y.astype("float64")), 3, **way)
    assert len(loader) == 3
    for _ in range(2):
        batches = list(loader)
        assert [b[1].asnumpy().tolist() for b in batches] == [[0, 1, 2], [3, 4, 5], [6]]
        assert all(isinstance(a, mx.nd.NDArray) for b in batches for a in b)
        assert batches[0][0].dtype == np.int64 and batches[0][1].dtype == np.float64


@pytest.mark.parametrize("way", WAYS, ids=["here", "processes", "threads"])
def test_functions_of_the_script_and_own_collation(way):
    dataset = ArrayDataset(X, Y).transform(lambda a, b: (a * 2, b))
    loader = DataLoader(dataset, 3, batchify_fn=lambda items: np.stack([a for a, _ in items]), **way)
    assert [b.shape for b in loader] == [(3, 2), (3, 2), (1, 2)]
    first = next(iter(loader))
    assert (first.asnumpy() if isinstance(first, mx.nd.NDArray) else first).tolist() == (X[:3] * 2).tolist()


@pytest.mark.parametrize("way", WAYS, ids=["here", "processes", "threads"])
def test_shuffle_visits_everything_once(way):
    loader = DataLoader(ArrayDataset(X, Y), 2, shuffle=True, **way)
    np.random.seed(3)
    first = sum(rows(loader), [])
    second = sum(rows(loader), [])
    assert sorted(first) == sorted(second) == list(range(7)) and first != second
    np.random.seed(3)
    assert sum(rows(loader), []) == first


def test_rollover_and_lists_as_datasets():
    loader = DataLoader(ArrayDataset(X, Y), 3, last_batch="rollover")
    assert rows(loader) == [[0, 1, 2], [3, 4, 5]] and rows(loader) == [[6, 0, 1], [2, 3, 4]]
    assert [b.asnumpy().tolist() for b in DataLoader([1, 2, 3], 2)] == [[1, 2], [3]]


class Rows(ArrayDataset):
    def __getitem__(self, idx):
        return self._data[0][idx], self._data[1][idx] * 2


class Fetched(dataset._DownloadedDataset):
    def _get_data(self):
        self._data, self._label = mx.nd.array(X), Y


@pytest.mark.parametrize("workers", [0, 1])
def test_subclasses_read_the_arrays_that_the_base_holds(tmp_path, workers):
    table = Rows(mx.nd.array(X), mx.nd.array(Y))
    assert isinstance(table[1][0], mx.nd.NDArray) and np.array_equal(table[1][0].asnumpy(), X[1])
    assert [type(a).__name__ for a in table._data] == ["NDArray", "ndarray"]
    fetched = Fetched(tmp_path / "new", None)
    assert (tmp_path / "new").is_dir() and len(fetched) == len(Y)
    assert Fetched(str(tmp_path), lambda x, y: (x.shape, y + 1))[2] == ((X.shape[1],), Y[2] + 1)
    assert fetched.transform_first(abs)._data is fetched
    for data, factor in ((table, 2), (fetched, 1)):
        x, y = zip(*DataLoader(data, 3, num_workers=workers), strict=True)
        assert np.array_equal(np.concatenate([a.asnumpy() for a in x]), X)
        assert np.array_equal(np.concatenate([a.asnumpy() for a in y]), Y * factor)


def test_a_downloaded_dataset_says_what_to_define(tmp_path):
    with pytest.raises(NotImplementedError, match="_get_data"):
        dataset._DownloadedDataset(tmp_path, None)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ([np.zeros(2), np.zeros(3)], r"the shapes \[\(2,\), \(3,\)\]: expected one"),
        ([(np.zeros((1, 2)), 0), (np.zeros((1, 3)), 1)], r"the shapes \[\(1, 2\), \(1, 3\)\]"),
        ([(1, 2), (1, 2, 3)], r"tuples of \[2, 3\] items"),
    ],
)
def test_samples_that_make_no_batch(samples, said, workers):
    with pytest.raises(MXNetError, match=said):
        list(DataLoader(SimpleDataset(samples), 2, num_workers=workers))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "batch_size is missing; give it, or a batch_sampler"),
        ({"batch_size": 2, "sampler": SequentialSampler(7), "shuffle": True}, "shuffle: not together with sampler"),
        ({"batch_size": 2, "batch_sampler": BatchSampler(SequentialSampler(7), 3)}, "not together with batch_sampler"),
        ({"batch_sampler": BatchSampler(SequentialSampler(7), 3), "last_batch": "keep"}, "not together with batch_sam"),
        ({"batch_size": 2, "timeout": -1}, "timeout=-1: expected more than 0 seconds"),
        ({"batch_size": 0}, "batch_size=0: expected 1 or more"),
    ],
)
def test_contradictory_arguments(arguments, said):
    with pytest.raises(ValueError, match=said):
        DataLoader(ArrayDataset(X, Y), **arguments)


@wrappers()
def test_work_happens_in_other_processes(wrap):
    loader = DataLoader(wrap(Who()), 1, num_workers=2)
    pids = {int(b.asscalar()) for b in loader}
    assert pids == set(loader._pool.pids) and os.getpid() not in pids


def test_which_datasets_get_a_fresh_process():
    fd, size = _pack(ArrayDataset(X), None)
    dataset, batchify = load(fd, size)
    os.close(fd)
    assert np.array_equal(dataset.host_batch([0, 1, 2]), X[:3]) and batchify is None
    assert _pack(lambda_of(ArrayDataset(X)), None) is None
    assert _pack(ArrayDataset(np.zeros(1 << 29, np.uint8)), None) is None


@wrappers()
def test_a_killed_worker_is_an_error(wrap):
    loader = DataLoader(wrap(Doomed()), 2, num_workers=2)
    with pytest.raises(MXNetError, match="ended unexpectedly"):
        list(loader)
    with pytest.raises(MXNetError, match="ended unexpectedly"):
        list(loader)


def test_killing_an_idle_worker_is_noticed_and_the_next_pass_works():
    loader = DataLoader(lambda_of(ArrayDataset(X, Y)), 2, num_workers=2)
    assert len(rows(loader)) == 4
    os.kill(loader._pool.pids[0], signal.SIGKILL)
    time.sleep(0.2)
    with pytest.raises(MXNetError, match="killed by signal 9"):
        rows(loader)
    assert len(rows(loader)) == 4


@wrappers()
def test_timeout(wrap):
    loader = DataLoader(wrap(Slow()), 2, num_workers=1, timeout=1)
    with pytest.raises(MXNetError, match="timeout=1"):
        next(iter(loader))


@pytest.mark.parametrize("way", WAYS, ids=["here", "processes", "threads"])
def test_errors_of_the_dataset_arrive(way):
    it = iter(DataLoader(Broken(), 2, **way))
    next(it)
    next(it)
    with pytest.raises(KeyError, match="item five"):
        next(it)


def test_an_abandoned_pass_does_not_disturb_the_next():
    loader = DataLoader(ArrayDataset(X, Y), 1, num_workers=2, prefetch=6)
    for batch in loader:
        assert batch[1].asnumpy().tolist() == [0]
        break
    assert rows(loader) == [[i] for i in range(7)]
    a, b = iter(loader), iter(loader)
    assert [(int(x[1].asscalar()), int(y[1].asscalar())) for x, y in zip(a, b, strict=True)] == [
        (i, i) for i in range(7)
    ]


def test_auto_reload():
    loader = DataLoader(ArrayDataset(X, Y), 3, num_workers=1, auto_reload=True)
    assert rows(loader) == rows(loader) == [[0, 1, 2], [3, 4, 5], [6]]
    loader.clean()


@pytest.mark.slow
@wrappers()
def test_workers_draw_different_numbers_that_follow_the_seed(wrap):
    def draw():
        np.random.seed(5)
        return [float(b.asscalar()) for b in DataLoader(wrap(Draw()), 1, num_workers=4, prefetch=4)]

    first = draw()
    assert len(set(first)) == 4 and first == draw()


@wrappers()
def test_big_batches_leave_nothing_behind(wrap):
    before = set(os.listdir("/dev/shm"))
    descriptors = len(os.listdir("/proc/self/fd"))
    data = np.arange(200_000, dtype=np.float32).reshape(100, 2000)
    loader = DataLoader(wrap(ArrayDataset(data, np.arange(100))), 10, num_workers=2)
    for _ in range(3):
        assert np.array_equal(np.concatenate([b[0].asnumpy() for b in loader]), data)
    pids = loader._pool.pids
    loader._pool.close()
    del loader
    jobs.wait_for(lambda: not any(map(jobs.alive, pids)))
    assert set(os.listdir("/dev/shm")) <= before
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 2  # the fork server's control socket stays


@pytest.mark.slow
def test_workers_end_with_a_killed_parent(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import os, signal, numpy as np, dualmx as mx\n"
        "from dualmx.gluon.data import ArrayDataset, DataLoader\n"
        "data = ArrayDataset(np.arange(8))\n"
        "loaders = [DataLoader(d, 2, num_workers=2) for d in (data, data.transform(lambda x: x))]\n"
        "its = [iter(l) for l in loaders]\n"
        "print([int(b.asnumpy()[0]) for b in map(next, its)])\n"
        "print(*[p for l in loaders for p in l._pool.pids], flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = jobs.run(jobs.PYTHON, script, status=-signal.SIGKILL)
    first, second = done.stdout.splitlines()
    assert first == "[0, 0]"
    pids = [int(p) for p in second.split()]
    jobs.wait_for(lambda: not any(map(jobs.alive, pids)))


def test_arrays_are_computed_here_where_a_fork_cannot():
    x = mx.nd.ones((2, 2))
    pids = []

    def of(a):
        pids.append(os.getpid())
        return mx.nd.dot(x, x) * int(a), a

    loader = DataLoader(ArrayDataset(np.arange(5)).transform(of), 2, num_workers=2)
    with pytest.warns(UserWarning, match="made in this process"):
        first = list(loader)
    for batches in (first, list(loader), list(loader)):  # without a second warning
        assert [b[1].asnumpy().tolist() for b in batches] == [[0, 1], [2, 3], [4]]
        assert [b[0][:, 0, 0].asnumpy().tolist() for b in batches] == [[0, 2], [4, 6], [8]]
    assert len(pids) == 15 and set(pids) == {os.getpid()}


def test_collation_with_arrays_is_done_here_where_a_fork_cannot():
    loader = DataLoader([1.0, 2.0, 3.0], 2, num_workers=1, batchify_fn=lambda s: mx.nd.array(s) * 2)
    with pytest.warns(UserWarning, match="made in this process"):
        assert [b.asnumpy().tolist() for b in loader] == [[2, 4], [6]]
