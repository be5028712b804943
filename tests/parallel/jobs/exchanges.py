"""One of several processes that exchange arrays in all ways; argv: how they meet (size and rank then), or nothing."""

from __future__ import annotations

import sys

import numpy as np

import dualmx as mx

p = mx.parallel
if len(sys.argv) > 1:
    p.init(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
else:
    p.init()
n, r = p.size(), p.rank()
assert n > 1 and p.is_initialized() and p.local_size() == n and p.local_rank() == r
assert (p.cross_rank(), p.cross_size()) == (0, 1)


def values(rank: int, shape: tuple[int, ...] = (3, 4), dtype: str = "float32") -> np.ndarray:
    return (np.random.RandomState(rank).randint(1, 9, shape)).astype(dtype)


everyone = [values(k) for k in range(n)]
mine = mx.nd.array(everyone[r])

# -- reductions
wanted = {"sum": sum(everyone), "average": sum(everyone) / np.float32(n), "min": np.min(everyone, 0)}
wanted |= {"max": np.max(everyone, 0), "product": np.prod(everyone, 0)}
for op, want in wanted.items():
    np.testing.assert_array_equal(p.all_reduce(mine, op).asnumpy(), want)
    at_root = p.reduce(mine, root=n - 1, op=op)
    assert (at_root is None) == (r != n - 1)
    if at_root is not None:
        np.testing.assert_array_equal(at_root.asnumpy(), want)
np.testing.assert_array_equal(p.all_reduce(mine, prescale=0.5, postscale=4).asnumpy(), 2 * wanted["sum"])
for dtype in ("float16", "bfloat16", "float64", "int8", "int32", "int64", "uint8"):
    got = p.all_reduce(mine.astype(dtype))
    assert got.dtype == mine.astype(dtype).dtype
    np.testing.assert_array_equal(got.astype("float32").asnumpy(), wanted["sum"])
flags = mx.nd.array([r == 0, True], dtype="bool")
assert p.all_reduce(flags, "min").asnumpy().tolist() == [False, True]
many = p.all_reduce([mx.nd.full((5,), i + r, dtype=("float16", "float32")[i % 2]) for i in range(6)])
assert [a.asnumpy()[0] for a in many] == [n * i + n * (n - 1) / 2 for i in range(6)]
for size in (300_000, 2_000_003):  # by the lane, or in parts
    large = mx.nd.arange(size) + r
    got = p.all_reduce([large, mx.nd.full((size,), r, dtype="float16")])
    np.testing.assert_array_equal(got[0].asnumpy(), np.arange(size, dtype="float32") * n + n * (n - 1) / 2)
    assert got[1].asnumpy()[-1] == n * (n - 1) / 2
p.all_reduce(large, out=large)
assert large.asnumpy()[1] == n + n * (n - 1) / 2
handles = [p.all_reduce(mine * k, wait=False) for k in range(4)]
p.barrier()
for k, handle in enumerate(handles):
    np.testing.assert_array_equal(handle.wait().asnumpy(), wanted["sum"] * k)
scalar = p.all_reduce(mx.np.array(2.0))
assert scalar.shape == () and type(scalar) is mx.np.ndarray and scalar == 2 * n
for exchange in (p.all_gather, p.broadcast, p.reduce_scatter, p.all_to_all):
    assert type(exchange(mx.np.ones((n,)))) is mx.np.ndarray
assert type(p.all_reduce(mx.np.ones((2,)), wait=False).wait()) is mx.np.ndarray
sparse = p.broadcast(mx.nd.full((3, 2), r).tostype("row_sparse"), root=1)
assert sparse.stype == "row_sparse" and (sparse.asnumpy() == 1).all()

# -- gathering and scattering
np.testing.assert_array_equal(p.all_gather(mine).asnumpy(), np.stack(everyone))
ragged = p.all_gather(mx.nd.full((r + 1, 2), r), join=True).asnumpy()
np.testing.assert_array_equal(ragged, np.concatenate([np.full((k + 1, 2), k) for k in range(n)]))
assert p.broadcast(mine, root=1).asnumpy().tolist() == everyone[1].tolist()
found = p.gather(mx.nd.full((r + 1, 2), r), root=0, join=True)
assert (found is None) == (r != 0) and [f.shape for f in found or ()] == [(k + 1, 2) for k in range(n) if not r]
part = p.scatter([mx.nd.full((2,), k) for k in range(n)] if r == 1 else None, root=1)
assert part.asnumpy().tolist() == [r, r]
rows = mx.nd.array(np.arange(2 * n * 3).reshape(2 * n, 3)) * (r + 1)
total = np.arange(2 * n * 3).reshape(2 * n, 3) * (n * (n + 1) // 2)
np.testing.assert_array_equal(p.reduce_scatter(rows).asnumpy(), total[2 * r : 2 * r + 2])
sent = mx.nd.array([10 * r + k for k in range(n) for _ in range(k + 1)])
back = p.all_to_all(sent, splits=[k + 1 for k in range(n)]).asnumpy()
assert back.tolist() == [10.0 * k + r for k in range(n) for _ in range(r + 1)]
assert [a.asnumpy()[0] for a in p.all_to_all([mx.nd.full((1,), 10 * r + k) for k in range(n)])] == [
    10 * k + r for k in range(n)
]
state = {"lr": 0.1, 3: (None, b"x", {1, 2}), "w": np.arange(3), "nested": [[True, 1 + 2j, np.float32(1.5)]]}
got = p.broadcast_object(state if r == 0 else None)
assert str(got) == str(state) and p.all_gather_object(("rank", r)) == [("rank", k) for k in range(n)]
embedding = mx.nd.sparse.row_sparse_array(([[1.0 + r, 2.0]], [2 * r]), shape=(100, 2))
shared = p.all_reduce(embedding)
assert shared.stype == "row_sparse" and shared.indices.asnumpy().tolist() == [2 * k for k in range(n)]
np.testing.assert_array_equal(shared.asnumpy()[: 2 * n : 2], [[1.0 + k, 2.0] for k in range(n)])

# -- gradients
x = mx.nd.array([1.0 + r, 2.0])
x.attach_grad()
weight = mx.nd.array([3.0 + r, 5.0])
with mx.autograd.record():
    loss = (p.all_reduce(x * x, "average") * weight).sum()
loss.backward()
np.testing.assert_allclose(
    x.grad.asnumpy(), 2 * x.asnumpy() * np.mean([[3.0 + k, 5.0] for k in range(n)], 0), rtol=1e-6
)
with mx.autograd.record():
    loss = (p.all_gather(x) * (r + 1)).sum() + (p.broadcast(x, root=1) * (r + 1)).sum()
    loss = loss + (p.all_gather(mx.nd.concat(*[x] * (r + 1), dim=0), join=True) * (r + 1)).sum()
loss.backward()
s = n * (n + 1) / 2
assert x.grad.asnumpy().tolist() == [s * (1 + (r == 1) + r + 1)] * 2

# -- from one to another
if r == 0:
    p.send(mx.nd.array([1.5, 2.5]), to=1, tag=7)
    p.isend(mx.nd.array([3], dtype="int64"), to=1, tag=8).wait()
    assert p.recv(source=1).asnumpy().shape == (600, 1000)
elif r == 1:
    early = p.irecv(source=0, tag=8)
    place = mx.nd.zeros((2,))
    assert p.recv(source=0, tag=7, out=place) is place and place.asnumpy().tolist() == [1.5, 2.5]
    assert early.wait().asnumpy().tolist() == [3] and early.source == 0 and early.is_completed()
    p.send(mx.nd.ones((600, 1000)), to=0)
if r == 0:
    seen = [p.irecv(tag=9) for _ in range(n - 1)]
    assert sorted(h.wait().asscalar() for h in seen) == list(range(1, n)) and {h.source for h in seen} == set(
        range(1, n)
    )
else:
    p.send(mx.nd.array([r]), to=0, tag=9)

# -- groups
evens, odds = p.new_group(range(0, n, 2)), p.new_group(range(1, n, 2))
own = odds if r % 2 else evens
assert p.rank(own) == r // 2 and p.rank(evens if r % 2 else odds) == -1
assert p.all_reduce(mx.nd.array([r]), group=own).asscalar() == sum(own.ranks)

# -- mistakes are errors of all that make them, and the processes go on
for wrong in (
    lambda: p.all_reduce(mx.nd.ones((2 + r,))),
    lambda: p.all_reduce(mx.nd.ones((2,), dtype="float64" if r else "float32")),
    lambda: p.all_gather(mx.nd.ones((2, 2))) if r else p.broadcast(mx.nd.ones((2, 2))),
    lambda: p.broadcast(mx.nd.ones((2,)), root=min(r, 1)) if n == 2 else p.reduce_scatter(mx.nd.ones((n, r + 1))),
    lambda: p.all_reduce(mx.nd.ones((200_000 + r,))),
):
    try:
        wrong()
    except mx.base.MXNetError as e:
        assert "disagree" in str(e) and "process" in str(e), e
    else:
        raise AssertionError("no error")
    p.barrier()

# -- what is pending is one program, although a thread of its own exchanges (as it does after wait=False)
p.all_reduce(mx.nd.ones((1,)), wait=False).wait()
start = mx.nd.arange(5) + 1
start.wait_to_read()
with mx.debug.assert_compiles(1):
    pending, x = [], start
    for _ in range(6):
        x = x * 1.5
        pending.append(x)
    found = p.all_reduce(pending, op="average")
assert np.allclose(found[5].asnumpy(), start.asnumpy() * 1.5**6), found[5]

# -- uneven data
for k in range(3 + r):
    active = sum(3 + j > k for j in range(n))
    average = p.all_reduce(mx.nd.full((10, 10 ** (4 * (k % 2))), 3.0), "average").asnumpy()
    total = p.all_reduce(mx.nd.ones((1,))).asscalar()
    assert (average == 3.0).all() and total == active, (k, total, active)
assert p.join() == n - 1
assert p.all_reduce(mx.nd.ones((1,))).asscalar() == n
print("finished", r, flush=True)
