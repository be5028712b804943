"""One of three processes whose exchanges are collected: any order, names, fusion, errors, joining."""

from __future__ import annotations

import os
import threading
import time

import numpy as np

import dualmx as mx
import dualmx.horovod as hvd

hvd.init()
r, n = hvd.rank(), hvd.size()
assert n == 3

path = os.environ.get("HOROVOD_TIMELINE")
if path:  # all processes call it, and one of them writes
    hvd.stop_timeline()
    hvd.start_timeline(path)


def exchanges() -> int:
    engine = hvd.global_process_set._engine
    return 0 if engine is None else engine.exchanges


# -- each process has its own order; small ones travel together
count = 60
hvd.barrier()
before = exchanges()
handles = {}
for k in sorted(range(count), key=lambda k: (k * (r + 7)) % 61):
    dtype = ("float32", "float16")[k % 2]
    handles[k] = hvd.allreduce_async(mx.nd.full((3,), k + r, dtype=dtype), name=f"t{k}", op=hvd.Sum)
for k in range(count):
    got = hvd.synchronize(handles[k])
    assert got.asnumpy().tolist() == [3.0 * k + 3] * 3 and hvd.poll(handles[k]), (k, got)
made = exchanges() - before
fused = os.environ.get("HOROVOD_FUSION_THRESHOLD") != "0"
assert made <= 12 if fused else made == count, made

# -- in place, without waiting
arrays = [mx.nd.full((2, 2), k * (r + 1), dtype="float64") for k in range(count)]
before = exchanges()
for k, a in enumerate(arrays):
    assert hvd.allreduce_(a, name=f"p{k}", average=False) is a
total = sum(arrays, mx.nd.zeros((2, 2), dtype="float64"))
assert total.asnumpy().tolist() == [[6.0 * sum(range(count))] * 2] * 2
made = exchanges() - before
assert made <= 12 if fused else made == count, made
b = mx.nd.full((2,), r)
view = b[1:]
hvd.broadcast_(b, root_rank=2, name="b")
assert b.asnumpy().tolist() == [2.0, 2.0] and view.asnumpy().tolist() == [2.0]
w = mx.nd.full((1,), r + 1.0)
hvd.synchronize(hvd.allreduce_async_(w, name="w", op=hvd.Max))
w += 1
assert w.asscalar() == 4.0

# -- other exchanges, mixed, in another order
a, b, c, d = (
    lambda: hvd.allgather_async(mx.nd.full((r + 1, 2), r), name="gather"),
    lambda: hvd.broadcast_async(mx.nd.full((2,), r), 1, name="cast"),
    lambda: hvd.alltoall_async(mx.nd.arange(r + 3), splits=[1, 1, r + 1], name="swap"),
    lambda: hvd.reducescatter_async(mx.nd.arange(4) + r, op=hvd.Sum, name="scatter"),
)
begun = [(f, f()) for f in ([a, b, c, d], [d, c, b, a], [b, d, a, c])[r]]
found = {f: hvd.synchronize(h) for f, h in begun}
assert found[a].asnumpy().ravel().tolist() == [0.0] * 2 + [1.0] * 4 + [2.0] * 6
assert found[b].asnumpy().tolist() == [1.0, 1.0]
rows, counts = found[c]
assert counts.asnumpy().tolist() == ([1, 1, 1] if r < 2 else [1, 2, 3]), counts
assert found[d].asnumpy().tolist() == ([3.0, 6.0], [9.0], [12.0])[r]  # 4 rows: 2, 1 and 1
together = hvd.grouped_allreduce([mx.nd.ones((2,)), mx.nd.ones((2,), dtype="float16")], op=hvd.Sum)
assert [t.asnumpy()[0] for t in together] == [3.0, 3.0]

# -- integers are divided and scaled as Horovod does: cut off
assert hvd.allreduce(mx.nd.array([r, 5], dtype="int32")).asnumpy().tolist() == [1, 5]
assert hvd.allreduce(mx.nd.array([3], dtype="int64"), op=hvd.Sum, prescale_factor=0.5).asnumpy().tolist() == [3]
rs = mx.nd.sparse.row_sparse_array((mx.nd.ones((1, 2)), [r]), shape=(4, 2))
assert hvd.allreduce(rs, average=False).asnumpy().sum() == 6.0
x = mx.nd.full((2,), r + 1.0)
x.attach_grad()
with mx.autograd.record():
    y = (hvd.allreduce(x, op=hvd.Sum) * (r + 1)).sum() + hvd.allgather(x * x).sum() + hvd.reducescatter(x).sum()
y.backward()
assert np.allclose(x.grad.asnumpy(), 6.0 + 3 * 2 * (r + 1) + 1 / 3), x.grad

# -- what is wrong is said in all processes, and they go on
for call, said in (
    (lambda: hvd.allreduce(mx.nd.ones((r + 1,)), name="shape"), "shape: the processes disagree: process 0 calls"),
    (lambda: hvd.allreduce(mx.nd.ones((2,), dtype=("float32", "float64")[r % 2]), name="type"), "disagree"),
    (lambda: hvd.broadcast(mx.nd.ones((2,)), root_rank=r, name="root"), "root_rank=1"),
    (lambda: (hvd.allreduce, hvd.allgather)[r % 2](mx.nd.ones((2,))), "allgather of"),
    (lambda: hvd.allreduce_(mx.nd.ones((r + 1,)), name="later").wait_to_read(), "later: the processes disagree"),
    (lambda: hvd.reducescatter(mx.nd.ones((3,)), op=hvd.Max), "expected Average or Sum"),
    (lambda: hvd.grouped_allreduce([mx.nd.ones((2,)), 3]), "expected NDArrays"),
):
    try:
        call()
    except (ValueError, TypeError) as e:
        assert said in str(e), e
    else:
        raise AssertionError(said)
first = hvd.allreduce_async(mx.nd.ones((2,)), name="twice") if r else None
if r:
    try:
        hvd.allreduce_async(mx.nd.ones((2,)), name="twice")
    except mx.base.MXNetError as e:
        assert "'twice' is under way" in str(e)
    else:
        raise AssertionError("twice")
else:
    time.sleep(0.2)
    first = hvd.allreduce_async(mx.nd.ones((2,)), name="twice")
assert hvd.synchronize(first).asnumpy().tolist() == [1.0, 1.0]

# -- sets of processes do not wait for each other
evens, odds = hvd.add_process_set([0, 2]), hvd.add_process_set([1])
if r == 1:
    assert hvd.allreduce(mx.nd.ones((1,)), process_set=odds).asscalar() == 1.0
    try:
        hvd.allreduce(mx.nd.ones((1,)), process_set=evens)
    except ValueError as e:
        assert "is not in" in str(e)
    else:
        raise AssertionError("not in the set")
else:
    results = [0.0, 0.0]

    def work(i: int) -> None:
        results[i] = hvd.allreduce(mx.nd.ones((1,)), op=hvd.Sum, process_set=evens, name=f"thread{i}").asscalar()

    threads = [threading.Thread(target=work, args=(i,)) for i in ((0, 1), (), (1, 0))[r]]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [2.0, 2.0]

# -- uneven data: averages are those of processes that have some
seen = []
for k in range((3, 5, 4)[r]):
    seen.append(hvd.allreduce(mx.nd.full((2,), r + 1.0), name=f"step{k}").asnumpy()[0])
last = hvd.join()
assert last == 1, last
assert np.allclose(seen, ([2.0] * 3, [2.0, 2.0, 2.0, 2.5, 2.0], [2.0, 2.0, 2.0, 2.5])[r]), seen
assert hvd.allreduce(mx.nd.ones((1,)), op=hvd.Sum).asscalar() == 3.0

# -- a process that does not come is named
if os.environ.get("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"):
    if r != 1:
        try:
            hvd.allreduce(mx.nd.ones((1,)), name="lonely")
        except mx.base.MXNetError as e:
            assert "lonely: process 1 did not take part within" in str(e), e
        else:
            raise AssertionError("lonely")
    mx.parallel.barrier()
hvd.barrier()
hvd.shutdown()
print("finished", flush=True)
