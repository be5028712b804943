"""Layers cut over a mesh, fully sharded parameters and cut optimizer states equal the unsharded network."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.compile.events import Listener, listeners
from dualmx.gluon import nn, parallel

RNG = np.random.RandomState(0)
X = RNG.randn(4, 8, 8)
IDS = RNG.randint(0, 16, (4, 8)).astype("f")


class Programs(Listener):
    """Collects what is compiled."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def compiled(self, event) -> None:
        self.events.append(event)

    def __enter__(self) -> Programs:
        listeners.append(self)
        return self

    def __exit__(self, *exc) -> None:
        listeners.remove(self)

    def count(self, what: str) -> int:
        texts = [e.compiled.as_text() for e in self.events]
        return max((len(re.findall(rf" {what}(?:-start)?\(", t)) for t in texts), default=0)


def train(make: Callable[[], Any], ctx, x: np.ndarray, hybridize: bool = True, spec: tuple = ("data",), **options: Any):
    """Two steps in float64; returns losses and parameters, the network and the trainer."""
    net = make()
    net.cast("float64")
    net.initialize(ctx=ctx)
    if hybridize:
        net.hybridize()
    values = np.random.RandomState(4)
    for _, p in sorted(net.collect_params_with_prefix().items()):
        p.set_data(mx.nd.array(values.randn(*p.shape) * 0.3, dtype="float64"))
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05, "momentum": 0.9}, **options)
    losses = []
    for _ in range(2):
        data = mx.nd.array(x, dtype="float64")
        data = mx.parallel.shard(data, spec, ctx) if ctx.mesh is not None else data
        with mx.autograd.record():
            loss = (net(data) ** 2).sum()
        loss.backward()
        trainer.step(4)
        losses.append(loss.asnumpy())
    found = net.collect_params_with_prefix()
    return [*losses, *(found[n].data().asnumpy() for n in sorted(found))], net, trainer


def assert_equal_to_one_device(make: Callable[[], Any], mesh, x: np.ndarray, **options: Any):
    """The same numbers on the mesh as on one device; returns the network, the trainer and the compiled programs."""
    with Programs() as seen:
        got, net, trainer = train(make, mesh, x, **options)
    want, _, _ = train(make, mx.cpu(0), x)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
    return net, trainer, seen


def on_mesh(mesh):
    return mx.parallel.shard(mx.nd.array(X, dtype="float64"), ("data",), mesh)


@pytest.fixture
def mesh():
    return mx.parallel.Mesh({"data": 2, "model": 4})


@pytest.mark.parametrize("hybridize", [True, False])
def test_column_then_row_is_one_all_reduce(mesh, hybridize: bool) -> None:
    def make():
        net = nn.HybridSequential()
        net.add(parallel.ColumnParallelDense(16, activation="tanh", flatten=False, in_units=8))
        net.add(parallel.RowParallelDense(4, flatten=False, in_units=16))
        return net

    net, _, _ = assert_equal_to_one_device(make, mesh, X, hybridize=hybridize)
    column, row = (net[k].weight.data() for k in (0, 1))
    assert column.sharding == ("model", None) and row.sharding == (None, "model")
    assert set(mx.parallel.device_bytes(column, row).values()) == {(column.size + row.size) * 8 // 4}
    x = on_mesh(mesh)
    with Programs() as seen:
        y = net(x)
        y.wait_to_read()
    assert (seen.count("all-reduce"), seen.count("all-gather")) == (1, 0)
    assert y.sharding == ("data", None, None)
    gathered = parallel.ColumnParallelDense(16, flatten=False, in_units=8, gather=True)
    gathered.cast("float64")
    gathered.initialize(ctx=mesh)
    assert gathered(x).sharding == ("data", None, None) and net[0](x).sharding == ("data", None, "model")


def test_inputs_are_flattened_as_dense_does(mesh) -> None:
    def make():
        net = nn.HybridSequential()
        net.add(parallel.RowParallelDense(8), parallel.ColumnParallelDense(4))
        return net

    def deferred():
        net = make()
        net.cast("float64")
        net.initialize()
        net(mx.nd.ones((4, 8, 8), dtype="float64"))
        net.collect_params().reset_ctx(mesh)
        return net

    net = deferred()
    x = on_mesh(mesh)
    got = net(x)
    net.collect_params().reset_ctx(mx.cpu(0))
    np.testing.assert_allclose(got.asnumpy(), net(mx.nd.array(X, dtype="float64")).asnumpy(), rtol=1e-12, atol=1e-14)


def test_a_table_is_never_gathered(mesh) -> None:
    def make():
        net = nn.HybridSequential()
        net.add(parallel.VocabParallelEmbedding(16, 4, dtype="float64"))
        net.add(nn.Dense(3, flatten=False, in_units=4))
        return net

    net, _, seen = assert_equal_to_one_device(make, mesh, IDS)
    assert net[0].weight.grad().sharding == ("model", None)
    assert seen.count("all-reduce") >= 1 and seen.count("all-gather") == 0


def test_a_transformer_whose_heads_are_divided(mesh) -> None:
    def make():
        return parallel.ParallelTransformerCell(8, 16, heads=4)

    net, _, seen = assert_equal_to_one_device(make, mesh, X)
    assert net.attention.query.weight.data().sharding == ("model", None)
    assert seen.count("all-gather") == seen.count("all-to-all") == 0
    with Programs() as seen:
        net(on_mesh(mesh)).wait_to_read()
    assert (seen.count("all-reduce"), seen.count("all-gather")) == (2, 0)


def test_sequences_cut_over_a_mesh_travel_around_a_ring() -> None:
    mesh = mx.parallel.Mesh({"data": 2, "model": 2, "context": 2})

    def make():
        return parallel.ParallelTransformerCell(8, 16, heads=2, causal=True, ring="context")

    _, _, seen = assert_equal_to_one_device(make, mesh, X, spec=("data", "context"))
    assert seen.count("collective-permute") >= 2 and seen.count("all-gather") == 0


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_ring_attention(causal: bool, dtype: str) -> None:
    mesh = mx.parallel.Mesh({"context": 8})
    values = [RNG.randn(2, 3, 16, 4) for _ in range(4)]

    def run(ctx, axis: str) -> list[np.ndarray]:
        arrays = [mx.nd.array(v, dtype="float64").astype(dtype) for v in values]
        if ctx.mesh is not None:
            arrays = [mx.parallel.shard(a, (None, None, "context"), ctx) for a in arrays]
        *qkv, head = arrays
        for a in qkv:
            a.attach_grad()
        with mx.autograd.record():
            out = mx.nd.contrib.dot_product_attention(*qkv, causal=causal, axis=axis)
        out.backward(head)
        return [out.astype("float64").asnumpy(), *(a.grad.astype("float64").asnumpy() for a in qkv)]

    rtol, atol = (1e-12, 1e-13) if dtype == "float64" else (3e-2, 3e-2)
    with Programs() as seen:
        got = run(mesh, "context")
    for a, b in zip(got, run(mx.cpu(0), "context"), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
    assert seen.count("collective-permute") >= 2 and seen.count("all-gather") == 0
    # No device ever has more than its part of the weights, L * L / devices.
    with pytest.raises(mx.base.MXNetError, match="axis 2 .* 8 equal parts along 'context'"):
        x = mx.nd.ones((1, 1, 12, 4), ctx=mesh)
        mx.nd.contrib.dot_product_attention(x, x, x, axis="context")


def plain():
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="tanh", flatten=False, in_units=8), nn.LayerNorm(in_channels=16))
    net.add(nn.Dense(3, flatten=False, in_units=16))
    return net


@pytest.mark.parametrize("hybridize", [True, False])
def test_fully_sharded_parameters(hybridize: bool) -> None:
    mesh = mx.parallel.Mesh({"data": 8})
    x = RNG.randn(8, 8)
    net, trainer, seen = assert_equal_to_one_device(lambda: parallel.fully_shard(plain()), mesh, x, hybridize=hybridize)
    params = list(net.collect_params().values())
    cut = [p for p in params if p.shape != (3,)]
    for p in cut:
        assert "data" in p.data().sharding and p.grad().sharding == p.data().sharding, p.name
    held = [p.data() for p in cut], [p.grad() for p in cut]
    assert set(mx.parallel.device_bytes(held).values()) == {2 * sum(p.data().size for p in cut) * 8 // 8}
    flat = [s for s in trainer.updaters[0].states.values() if s.shape != (3,)]
    assert set(mx.parallel.device_bytes(flat).values()) == {sum(s.size for s in flat) * 8 // 8}
    assert seen.count("all-gather") >= len(cut)
    # Hybridized, what is gathered is not kept for the backward pass; XLA on the CPU merges the two gathers again.
    assert any("optimization_barrier" in e.lowered.as_text() for e in seen.events) == hybridize


@pytest.mark.parametrize("hybridize", [True, False])
def test_fully_sharded_layers_update_their_statistics(mesh, hybridize: bool) -> None:
    def make():
        net = nn.HybridSequential()
        net.add(nn.Dense(8, in_units=8), nn.BatchNorm(in_channels=8), nn.Dense(4, in_units=8))
        return net

    net, _, _ = assert_equal_to_one_device(lambda: parallel.fully_shard(make()), mesh, X[:, 0], hybridize=hybridize)
    assert net[1].gamma.data().sharding == ("data",) and net[1].running_mean.data().sharding == (None,)


def test_fully_sharded_beside_divided_layers(mesh) -> None:
    def make():
        net = nn.HybridSequential()
        net.add(
            parallel.ColumnParallelDense(16, activation="tanh", in_units=8), parallel.RowParallelDense(4, in_units=16)
        )
        return net

    net, _, _ = assert_equal_to_one_device(lambda: parallel.fully_shard(make(), min_size=20), mesh, X[:, 0])
    assert net[0].weight.data().sharding == ("model", "data") and net[1].weight.data().sharding == ("data", "model")
    assert net[1].bias.data().sharding == (None,)
    assert set(mx.parallel.device_bytes(net[0].weight.data()).values()) == {16 * 8 * 8 // 8}


def test_states_cut_along_the_axis_of_the_batch() -> None:
    mesh = mx.parallel.Mesh({"data": 8})
    x = RNG.randn(8, 8)
    _, whole, _ = assert_equal_to_one_device(plain, mesh, x)
    net, cut, seen = assert_equal_to_one_device(plain, mesh, x, shard_states="data")
    assert net[0].weight.data().sharding == (None, None)
    before, after = (
        mx.parallel.device_bytes([s for s in t.updaters[0].states.values() if s.shape != (3,)]) for t in (whole, cut)
    )
    assert all(after[d] * 8 == before[d] for d in before)
    assert seen.count("all-gather") >= 1


def test_wrong_arguments(mesh) -> None:
    net = nn.Dense(4, in_units=8)
    net.initialize()
    with pytest.raises(mx.base.MXNetError, match="shard_states='data'.*initialize them on a"):
        mx.gluon.Trainer(net.collect_params(), "sgd", shard_states="data")
    net.collect_params().reset_ctx(mesh)
    with pytest.raises(mx.base.MXNetError, match="shard_states='rows'.*no such axis"):
        mx.gluon.Trainer(net.collect_params(), "sgd", shard_states="rows")
    with pytest.raises(mx.base.MXNetError, match="_weight.*no axis 'rows'"):
        parallel.fully_shard(net, "rows")
    with pytest.raises(mx.base.MXNetError, match="units=8 cannot be divided into 3 heads"):
        parallel.ParallelSelfAttention(8, 3)
    with pytest.raises(mx.base.MXNetError, match="_weight.*axis 0 of shape .6, 4. cannot be cut into 4"):
        parallel.ColumnParallelDense(6, in_units=4).initialize(ctx=mesh)
