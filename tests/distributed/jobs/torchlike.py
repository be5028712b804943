"""One of three processes that exchange in the words of torch.distributed."""

from __future__ import annotations

import numpy as np

import dualmx as mx
import dualmx.distributed as dist

nd = mx.nd
try:
    dist.all_reduce(nd.ones((1,)))
except mx.base.MXNetError as e:
    assert "call init_process_group first" in str(e)
else:
    raise AssertionError("not begun")
dist.init_process_group("gloo")
r, n = dist.get_rank(), dist.get_world_size()
assert n == 3 and dist.is_initialized() and dist.get_backend() == "gloo"


def of(*values: float, dtype: str = "float32") -> mx.nd.NDArray:
    return nd.array(list(values), dtype=dtype)


def is_now(x: mx.nd.NDArray, *values: float) -> None:
    assert x.asnumpy().tolist() == list(values), (x, values)


# -- in place, over all
for op, expected in (
    (dist.ReduceOp.SUM, 9), (dist.ReduceOp.AVG, 3), (dist.ReduceOp.PRODUCT, 24), (dist.ReduceOp.MIN, 2),
    (dist.ReduceOp.MAX, 4),
):  # fmt: skip
    x = of(r + 2.0)
    assert dist.all_reduce(x, op=op) is None
    is_now(x, expected)
x = of(1 << r, 3, dtype="int32")
dist.all_reduce(x, dist.ReduceOp.BOR)
is_now(x, 7, 3)
mine = of(1 << r, 3, 6 + r, dtype="int32")
for op, expected in ((dist.ReduceOp.BAND, [0, 3, 0]), (dist.ReduceOp.BOR, [7, 3, 15]), (dist.ReduceOp.BXOR, [7, 3, 9])):
    x = mine.copy()
    dist.reduce(x, dst=1, op=op)
    is_now(x, *(expected if r == 1 else mine.asnumpy().tolist()))
    x = of(0, dtype="int32")
    dist.reduce_scatter_tensor(x, mine, op=op)
    is_now(x, expected[r])
    dist.reduce_scatter(x, [v.reshape((1,)) for v in mine], op=op)
    is_now(x, expected[r])
x = of(r == 1, 0, dtype="bool")
dist.all_reduce(x)  # the sum of truth values: whether any is true
is_now(x, True, False)
x = of(r, r)
work = dist.all_reduce(x, async_op=True)
assert work.wait() is True and work.is_completed() and work.is_success()
is_now(x, 3, 3)
x = of(r)
dist.broadcast(x, src=2)
is_now(x, 2)
x = of(r + 1)
dist.reduce(x, dst=1)
is_now(x, 6 if r == 1 else r + 1)
parts = [nd.zeros((2,)) for _ in range(n)]
dist.all_gather(parts, of(r, 10 * r))
assert [p.asnumpy().tolist() for p in parts] == [[0, 0], [1, 10], [2, 20]]
uneven = [nd.zeros((k + 1,)) for k in range(n)]
dist.all_gather(uneven, nd.full((r + 1,), r))
assert [p.asnumpy().tolist() for p in uneven] == [[0], [1, 1], [2, 2, 2]]
joined, stacked = nd.zeros((6,)), nd.zeros((3, 2))
dist.all_gather_into_tensor(joined, of(r, r))
dist.all_gather_into_tensor(stacked, of(r, r))
is_now(joined, 0, 0, 1, 1, 2, 2)
assert stacked.asnumpy().ravel().tolist() == joined.asnumpy().tolist()
found = [nd.zeros((1,)) for _ in range(n)] if r == 1 else None
dist.gather(of(r), found, dst=1)
assert r != 1 or [f.asscalar() for f in found] == [0, 1, 2]
x = nd.zeros((2,))
dist.scatter(x, [nd.full((2,), k) for k in range(n)] if r == 0 else None, src=0)
is_now(x, r, r)
x = nd.zeros((1,))
dist.reduce_scatter(x, [of(k + r) for k in range(n)])
is_now(x, 3 * r + 3)
x = nd.zeros((2,))
dist.reduce_scatter_tensor(x, nd.arange(6) + r)
is_now(x, 6 * r + 3, 6 * r + 6)
outs = [nd.zeros((1,)) for _ in range(n)]
dist.all_to_all(outs, [of(10 * r + k) for k in range(n)])
assert [o.asscalar() for o in outs] == [r, 10 + r, 20 + r]
x = nd.zeros((3,))
dist.all_to_all_single(x, nd.arange(3) + 10 * r)
is_now(x, r, 10 + r, 20 + r)
x = nd.zeros((3 * (r + 1),))
dist.all_to_all_single(x, nd.arange(6) + 10 * r, [r + 1] * 3, [1, 2, 3])
is_now(x, *[10 * k + v for k in range(3) for v in range((r * (r + 1)) // 2, (r * (r + 1)) // 2 + r + 1)])
dist.barrier()
dist.monitored_barrier()

# -- Python data
every = [None] * n
dist.all_gather_object(every, {"rank": r})
assert every == [{"rank": k} for k in range(n)]
listed = [r, "x"] if r == 0 else [None, None]
dist.broadcast_object_list(listed, src=0)
assert listed == [0, "x"]
one = [None]
dist.scatter_object_list(one, ["a", "b", "c"] if r == 2 else None, src=2)
assert one == ["abc"[r]]
got = [None] * n if r == 0 else None
dist.gather_object(r * r, got, dst=0)
assert r or got == [0, 1, 4]

# -- from one to another
if r == 0:
    dist.send(of(7), dst=1)
    x = nd.zeros((1,))
    assert dist.recv(x) == 2
    is_now(x, 9)
elif r == 1:
    x = nd.zeros((1,))
    assert dist.recv(x, src=0) == 0
    is_now(x, 7)
else:
    dist.send(of(9), dst=0)
x = nd.zeros((1,))
works = dist.batch_isend_irecv([dist.P2POp(dist.isend, of(r), (r + 1) % n), dist.P2POp(dist.irecv, x, (r - 1) % n)])
for w in works:
    w.wait()
is_now(x, (r - 1) % n)

# -- groups: who is not in one passes by
ends = dist.new_group([0, 2])
x = of(r + 1)
dist.all_reduce(x, group=ends)
is_now(x, 2 if r == 1 else 4)
assert dist.get_rank(ends) == (0, -1, 1)[r] and dist.get_world_size(ends) == (2, -1, 2)[r]
assert dist.get_process_group_ranks(ends) == [0, 2] and dist.get_global_rank(ends, 1) == 2
dist.broadcast(x, src=2, group=ends)
# numbers within the group
x = of(r + 1)
dist.broadcast(x, group=ends, group_src=1)
is_now(x, 2 if r == 1 else 3)
x = of(r + 1)
dist.reduce(x, group=ends, group_dst=1)
is_now(x, (1, 2, 4)[r])
found = [nd.zeros((1,)) for _ in range(2)] if r == 2 else None
dist.gather(of(r), found, group=ends, group_dst=1)
assert r != 2 or [f.asscalar() for f in found] == [0, 2]
x = of(5)
dist.scatter(x, [of(3), of(4)] if r == 2 else None, group=ends, group_src=1)
is_now(x, (3, 5, 4)[r])
listed = [r]
dist.broadcast_object_list(listed, group=ends, group_src=1)
assert listed == [(2, 1, 2)[r]]
if r == 0:
    dist.send(of(8), group=ends, group_dst=1)
    dist.send_object_list([1, {"b": None}], dst=2)
    for w in dist.batch_isend_irecv([dist.P2POp(dist.isend, of(6), group=ends, group_peer=1)]):
        w.wait()
elif r == 2:
    assert dist.recv(x, group=ends, group_src=0) == 0
    is_now(x, 8)
    listed = [None, None]
    assert dist.recv_object_list(listed, src=0) == 0 and listed == [1, {"b": None}]
    dist.irecv(x, group=ends, group_src=0).wait()
    is_now(x, 6)
own, every = dist.new_subgroups_by_enumeration([[0, 1], [2]])
assert [dist.get_process_group_ranks(g) for g in every] == [[0, 1], [2]] and dist.get_rank(own) == (0, 1, 0)[r]
dist.barrier(ends)

# -- what is wrong
for call, said in (
    (lambda: dist.all_reduce(np.ones(2)), "expected an NDArray"),
    (lambda: dist.all_reduce(of(1), op="mean"), "a value of ReduceOp"),
    (lambda: dist.all_reduce(of(1), op=dist.ReduceOp.BAND), "expected integers"),
    (lambda: dist.broadcast(of(1), src=3), "src=3"),
    (lambda: dist.all_gather([nd.zeros((1,))], of(1)), "expected 3, one for each process"),
    (lambda: dist.all_reduce(nd.ones((r + 1,))), "the processes disagree"),
    (lambda: dist.reduce_scatter(nd.zeros((2,)), [of(1), of(2), of(3)]), "those of output"),
    (lambda: dist.init_process_group("gloo"), "called before"),
    (lambda: dist.all_gather_object([None], 1), "a list of 3 elements"),
):
    try:
        call()
    except (ValueError, TypeError, mx.base.MXNetError) as e:
        assert said in str(e), e
    else:
        raise AssertionError(said)
dist.barrier()
dist.destroy_process_group()
assert not dist.is_initialized()
print("finished", flush=True)
