"""What the tier of degenerate shapes runs: every operator and every layer, at the sizes where kernels go wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dualmx as mx
from dualmx.op.registry import OPS
from tests.op.fronts import call
from tests.op.samples import Sample, all_samples, registered, wave

INTEGERS = np.array([[3, 4, 7], [2, 5, 6]], np.int32)


@dataclass(frozen=True, eq=False)
class Case:
    """One call.

    Attributes:
        name: says what is called on what.
        arrays: inputs.
        smooth: positions of the inputs whose gradients are computed.
        train: training mode.
        run: inputs -> outputs.
        constant: the head gradients are ones, which the program makes; else one number is broadcast.
    """

    name: str
    arrays: Sequence[np.ndarray]
    smooth: Sequence[int]
    train: bool
    run: Callable[[Sequence[Any]], list[Any]]
    constant: bool = True


def _of(sample: Sample, constant: bool = True) -> Case:
    def run(inputs: Sequence[Any]) -> list[Any]:
        return call(mx.nd, sample, inputs)

    return Case(str(sample), sample.arrays, sample.smooth, sample.train, run, constant)


def _integers() -> Iterator[Sample]:
    for name in ("_npi_lcm", "_npi_bitwise_and", "_npi_bitwise_or", "_npi_bitwise_xor"):
        yield Sample(name, (INTEGERS, INTEGERS + 1))
        yield Sample(f"{name}_scalar", (INTEGERS,), {"scalar": 3})
    yield Sample("_npi_bitwise_not", (INTEGERS,))
    yield Sample("_npi_bincount", (INTEGERS.ravel(),))
    yield Sample("_npi_unique", (INTEGERS,))
    yield Sample("_npx_nonzero", (INTEGERS,))
    yield Sample("_contrib_boolean_mask", (wave((2, 3)), np.float32([0, 1])), smooth=(0,))
    yield Sample("_npi_delete", (wave((4, 3)),), {"int_ind": 1, "axis": 0})
    yield Sample("_npi_insert_tensor", (wave((4, 3)), np.int64([1, 2]), wave((2, 3), 1)), {"axis": 0})
    yield Sample("_npi_eig", (wave((3, 3)),))
    yield Sample("_npi_eigvals", (wave((3, 3)),))


def _quantized_lstms() -> Iterator[Sample]:
    """uint8 data; the length of the vector of parameters follows from all other lengths."""
    for steps, batch, features, units, layers, ways in ((1, 1, 1, 1, 1, 1), (3, 2, 5, 17, 1, 2), (2, 1, 3, 1, 2, 1)):
        widths = [features] + [units * ways] * (layers - 1)
        count = sum(ways * 4 * units * (width + units + 2) for width in widths)
        data = (wave((steps, batch, features)) * 100).astype(np.uint8)
        states = [wave((layers * ways, batch, units), k) for k in (1, 2)]
        arrays = (data, wave((count,), 3) - 1.5, *states, np.float32([40]), np.float32([100]))
        sizes = {"state_size": units, "num_layers": layers, "bidirectional": ways == 2, "mode": "lstm"}
        yield Sample("_contrib_quantized_rnn", arrays, {**sizes, "state_outputs": True}, smooth=(2, 3))


# Rows of adjacency matrices: no vertex, one without edges, one with an edge to itself, rows without edges, all edges.
GRAPHS: dict[str, np.ndarray] = {
    "no vertex": np.zeros((0, 0), np.int64),
    "one vertex": np.zeros((1, 1), np.int64),
    "one loop": np.ones((1, 1), np.int64),
    "a path": np.int64([[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]),
    "all edges": 1 - np.eye(5, dtype=np.int64),
}


def _graph(name: str, edges: np.ndarray, *more: np.ndarray, **params: Any) -> Iterator[Case]:
    """Calls of an operator on graphs: (edge numbers, columns, row pointer, further inputs), in csr matrices."""
    rows, columns = np.nonzero(edges)
    pointer = np.searchsorted(rows, np.arange(len(edges) + 1)).astype(np.int64)
    pieces = (np.arange(1, len(rows) + 1), columns.astype(np.int64), pointer)

    def run(inputs: Sequence[Any]) -> list[Any]:
        graph = mx.nd.sparse.csr_matrix(tuple(inputs[:3]), shape=edges.shape, dtype="int64")
        if name == "dgl_graph_compact":  # takes what a sampler gives
            vertices, sampled, _ = mx.nd.contrib.dgl_csr_neighbor_uniform_sample(
                graph, inputs[3], num_args=2, num_hops=1, num_neighbor=len(edges), max_num_vertices=len(edges) + 1
            )
            count = int(vertices[-1].asscalar())
            found = mx.nd.contrib.dgl_graph_compact(sampled, vertices, graph_sizes=(count,), return_mapping=True)
        else:
            found = getattr(mx.nd.contrib, name)(graph, *inputs[3:], **params)
        flat: list[Any] = []
        for out in found if isinstance(found, list) else [found]:
            flat += [out.data, out.indices, out.indptr] if out.stype == "csr" else [out]
        return flat

    shown = ", ".join(f"{k}={v}" for k, v in params.items())
    what = f"_contrib_{name}({shown}) on {len(edges)} vertices, {len(rows)} edges, {[m.tolist() for m in more]}"
    yield Case(what, [*pieces, *more], (), False, run)


def graphs() -> Iterator[Case]:
    """Every operator on graphs, on graphs without vertices or edges too."""
    for edges in GRAPHS.values():
        size = len(edges)
        ends = np.arange(size), np.arange(size)[::-1].copy()
        for axis in (None, 1):
            yield from _graph("getnnz", edges, axis=axis)
        yield from _graph("edge_id", edges, *ends)
        yield from _graph("dgl_adjacency", edges)
        for chosen in dict.fromkeys((0, min(size, 1), size)):
            vertices = np.arange(chosen)
            yield from _graph("dgl_subgraph", edges, vertices, num_args=2, return_mapping=True)
            for hops, neighbors, most in ((1, 1, 1), (2, 3, 6)):
                if chosen > most:
                    continue
                sizes = {"num_hops": hops, "num_neighbor": neighbors, "max_num_vertices": most}
                yield from _graph("dgl_csr_neighbor_uniform_sample", edges, vertices, num_args=2, **sizes)
                chances = wave((size,))
                yield from _graph("dgl_csr_neighbor_non_uniform_sample", edges, chances, vertices, num_args=3, **sizes)
            yield from _graph("dgl_graph_compact", edges, vertices)


def shrunk(sample: Sample, lengths: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Sample | None:
    """A sample with other shapes of its inputs, not longer ones; None if nothing changes."""
    arrays = tuple(a[tuple(map(slice, lengths(a.shape)))].copy() for a in sample.arrays)
    if [a.shape for a in arrays] == [a.shape for a in sample.arrays]:
        return None
    return Sample(sample.op, arrays, sample.params, sample.smooth, sample.train)


def _variants(sample: Sample) -> list[Sample]:
    """A sample as it is, with one element, with a batch of one, and without elements."""
    batch = sample.arrays[0].shape[:1] if sample.arrays else ()

    def batch_of(count: int) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
        return lambda shape: (min(shape[0], count), *shape[1:]) if shape and shape[:1] == batch else shape

    found = [sample, shrunk(sample, lambda shape: tuple(min(n, 1) for n in shape))]
    found += [shrunk(sample, batch_of(1)), shrunk(sample, batch_of(0))]
    return [s for s in found if s is not None]


def operators() -> list[Case]:
    """Every operator: as its first sample has it, with one element, with a batch of one, and without elements."""
    table = all_samples()
    for sample in _integers():
        table.setdefault(OPS[sample.op].name, []).append(sample)
    found = [*map(_of, _quantized_lstms()), *graphs()]
    missing = {op.name for op in registered()} - set(table) - {c.name.partition("(")[0] for c in found}
    if missing:
        raise LookupError(f"operators without a sample: {sorted(missing)}; add one to tests/op or to _integers")
    for k, name in enumerate(sorted(table)):
        found += [_of(s, (k + i) % 2 == 0) for i, s in enumerate(_variants(table[name][0]))]
    return found


def windows() -> list[Case]:
    """Convolutions and pooling: kernels as large as the image, images of one pixel, groups of one channel."""
    found: list[Sample] = []
    for ndim, (n, c, o) in itertools.product((1, 2, 3), ((1, 1, 1), (3, 4, 4), (2, 17, 5))):
        for size, kernel, stride, pad, dilate in (
            (1, 1, 1, 0, 1), (1, 3, 1, 1, 1), (5, 5, 1, 0, 1), (7, 3, 3, 1, 1), (5, 2, 3, 0, 2), (4, 1, 3, 0, 1),
        ):  # fmt: skip
            if ndim == 3 and (c > 4 or size > 5):
                continue
            what = {
                "kernel": (kernel,) * ndim, "stride": (stride,) * ndim, "pad": (pad,) * ndim,
            }  # fmt: skip
            x = wave((n, c, *(size,) * ndim))
            for groups in dict.fromkeys((1, c if o % c == 0 else 1)):
                w = wave((o, c // groups, *(kernel,) * ndim), 1)
                more = {**what, "dilate": (dilate,) * ndim, "num_filter": o, "num_group": groups}
                found.append(Sample("Convolution", (x, w, wave((o,), 2)), more, (0, 1, 2)))
                w = wave((c, o // groups, *(kernel,) * ndim), 1)
                if dilate == 1 and (pad == 0 or size > 1):
                    found.append(
                        Sample("Deconvolution", (x, w), {**what, "num_filter": o, "num_group": groups}, (0, 1))
                    )
            if dilate == 1 and pad < kernel:
                found += [
                    Sample("Pooling", (x,), {**what, "pool_type": kind, "pooling_convention": convention}, (0,))
                    for kind in ("max", "avg")
                    for convention in ("valid", "full")
                ]
    generator = {"kernel": (7, 7), "num_filter": 64}
    found.append(Sample("Deconvolution", (wave((32, 100, 1, 1)), wave((100, 64, 7, 7), 1)), generator, (0, 1)))
    return [_of(s, k % 2 == 0) for k, s in enumerate(found)]


def _layer(name: str, make: Callable[[], Any], *shapes: Sequence[int], indices: bool = False) -> Case:
    """A layer whose parameters are inputs as well: (x, …, parameters in their order)."""
    block = make()
    block.initialize(mx.init.Uniform(0.5))
    inputs = [np.zeros(s, np.float32) if indices else wave(tuple(s), i) for i, s in enumerate(shapes)]

    def forward(arrays: Sequence[Any]) -> list[Any]:
        out = block(*arrays)
        flat: list[Any] = []
        for o in out if isinstance(out, (list, tuple)) else [out]:
            flat += o if isinstance(o, (list, tuple)) else [o]
        return flat

    with mx.autograd.train_mode():
        forward([mx.nd.array(a) for a in inputs])  # which tells the shapes of parameters
    parameters = [p for p in block.collect_params().values() if p.grad_req != "null"]
    values = [p.data().asnumpy() for p in parameters]

    def run(given: Sequence[Any]) -> list[Any]:
        for p, value in zip(parameters, given[len(inputs) :], strict=True):
            p._data = [value]
        return forward(given[: len(inputs)])

    first = () if indices else range(len(inputs))
    smooth = [*first, *range(len(inputs), len(inputs) + len(values))]
    return Case(f"{name} on {list(map(tuple, shapes))}", [*inputs, *values], smooth, True, run)


def _convolutions(nn: Any) -> Iterator[tuple[str, Callable[[], Any], Sequence[int]]]:
    for ndim in (1, 2, 3):
        plain, transposed = getattr(nn, f"Conv{ndim}D"), getattr(nn, f"Conv{ndim}DTranspose")
        one, many = (1,) * ndim, (5,) * ndim
        yield plain.__name__, lambda f=plain, k=one: f(1, k), (1, 1, *one)
        yield plain.__name__, lambda f=plain, k=many: f(4, k, groups=4), (2, 4, *many)
        yield (
            plain.__name__,
            lambda f=plain, k=(3,) * ndim: f(3, k, strides=3, padding=1, activation="relu"),
            (1, 2, *many),
        )
        yield transposed.__name__, lambda f=transposed, k=many: f(3, k), (2, 4, *one)
        yield transposed.__name__, lambda f=transposed, k=(3,) * ndim: f(4, k, strides=3, groups=4), (1, 4, *one)
        for kind in ("Max", "Avg"):
            pool = getattr(nn, f"{kind}Pool{ndim}D")
            yield pool.__name__, lambda f=pool, k=many: f(k), (2, 1, *many)
            yield pool.__name__, lambda f=pool, k=(1,) * ndim: f(k, strides=3), (1, 3, *many)
            everything = getattr(nn, f"Global{kind}Pool{ndim}D")
            yield everything.__name__, everything, (1, 1, *one)
            yield everything.__name__, everything, (2, 3, *many)


LAYERS_ON_ROWS = ((1, 1), (3, 4), (1, 4, 1), (2, 3, 1, 1), (2, 1, 5, 5))
JOINED = ("Sequential", "HybridSequential", "Concatenate", "HybridConcatenate")
# Classes that layers are derived from or made of, modules.
BASES = {
    "Block", "HybridBlock", "SymbolBlock", "activations", "basic_layers", "conv_layers", "RecurrentCell",
    "HybridRecurrentCell", "ModifierCell", "rnn_cell", "rnn_layer",
}  # fmt: skip


def _joined(nn: Any, kind: str) -> Any:
    block = getattr(nn, kind)()
    block.add(nn.Dense(2, flatten=False), nn.Dense(3, flatten=False))
    return block


def layers() -> list[Case]:
    """Every layer of `gluon.nn` and `gluon.rnn`."""
    nn, rnn = mx.gluon.nn, mx.gluon.rnn
    found = [_layer(name, make, shape) for name, make, shape in _convolutions(nn)]
    plain: dict[str, Callable[[], Any]] = {
        "Activation": lambda: nn.Activation("softrelu"), "LeakyReLU": lambda: nn.LeakyReLU(0.1), "PReLU": nn.PReLU,
        "ELU": nn.ELU, "SELU": nn.SELU, "GELU": nn.GELU, "Swish": nn.Swish, "Dense": lambda: nn.Dense(1),
        "Dropout": lambda: nn.Dropout(0.5), "Flatten": nn.Flatten, "Identity": nn.Identity,
        "BatchNorm": nn.BatchNorm, "BatchNormReLU": nn.BatchNormReLU, "LayerNorm": nn.LayerNorm,
        "InstanceNorm": nn.InstanceNorm, "GroupNorm": lambda: nn.GroupNorm(1), "Lambda": lambda: nn.Lambda("tanh"),
        "HybridLambda": lambda: nn.HybridLambda("tanh"),
        **{k: lambda k=k: _joined(nn, k) for k in JOINED},
    }  # fmt: skip
    for name, make in plain.items():
        for shape in LAYERS_ON_ROWS:
            if not (name in ("InstanceNorm", "GroupNorm") and len(shape) < 3):
                found.append(_layer(name, make, shape))
    found += [_layer("ReflectionPad2D", lambda: nn.ReflectionPad2D(1), s) for s in ((1, 1, 2, 2), (2, 3, 5, 4))]
    found += [_layer("Embedding", lambda: nn.Embedding(1, 1), s, indices=True) for s in ((1,), (3, 2))]
    for (size, hidden, steps), kind in itertools.product(((1, 1, 1), (3, 5, 2)), ("RNN", "LSTM", "GRU")):
        for both in (False, True):
            make = lambda kind=kind, hidden=hidden, both=both: getattr(rnn, kind)(hidden, bidirectional=both)  # noqa: E731
            found.append(_layer(kind, make, (steps, 1, size)))
        cell = lambda kind=kind, hidden=hidden: getattr(rnn, f"{kind}Cell")(hidden)  # noqa: E731
        found.append(_unrolled(f"{kind}Cell", cell, (1, steps, size)))
    wrapped: dict[str, Callable[[], Any]] = {
        "DropoutCell": lambda: rnn.DropoutCell(0.5),
        "ResidualCell": lambda: rnn.ResidualCell(rnn.GRUCell(3)),
        "ZoneoutCell": lambda: rnn.ZoneoutCell(rnn.RNNCell(3), 0.5, 0.5),
        "BidirectionalCell": lambda: rnn.BidirectionalCell(rnn.LSTMCell(3), rnn.GRUCell(2)),
        "SequentialRNNCell": lambda: _stacked(rnn.SequentialRNNCell()),
        "HybridSequentialRNNCell": lambda: _stacked(rnn.HybridSequentialRNNCell()),
    }
    found += [_unrolled(name, make, (1, 2, 3)) for name, make in wrapped.items()]
    missing = {*nn.__all__, *rnn.__all__} - BASES - {c.name.split(" ")[0] for c in found}
    if missing:
        raise LookupError(f"layers without a case: {sorted(missing)}")
    return found


def _stacked(cell: Any) -> Any:
    for size in (3, 1):
        cell.add(mx.gluon.rnn.LSTMCell(size))
    return cell


class _Unrolled(mx.gluon.Block):
    def __init__(self, cell: Any, steps: int):
        super().__init__()
        self.cell, self.steps = cell, steps

    def forward(self, x: Any) -> list[Any]:
        """Outputs of all steps, and the last states."""
        self.cell.reset()
        outs, states = self.cell.unroll(self.steps, x, layout="NTC", merge_outputs=True)
        return [outs, *states]


def _unrolled(name: str, make: Callable[[], Any], shape: tuple[int, int, int]) -> Case:
    return _layer(name, lambda: _Unrolled(make(), shape[1]), shape)


FAMILIES: dict[str, Callable[[], list[Case]]] = {"operators": operators, "windows": windows, "layers": layers}
