"""Calls of `mx.npx` and `mx.np.linalg` whose results MXNet and dualmx share: values, dtypes, gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

Case = Callable[[Any, Any, Any], Any]


def _x(np: Any, *shape: int) -> Any:
    return np.array(onp.random.RandomState(len(shape)).uniform(-2, 2, shape).astype("float32"))


def _spd(np: Any, *batch: int) -> Any:
    a = onp.random.RandomState(5).uniform(-1, 1, (*batch, 3, 3)).astype("float32")
    return np.array(a @ onp.swapaxes(a, -1, -2) + 2 * onp.eye(3, dtype="float32"))


# name: function of (np, npx, x), with x of shape (2, 3)
CASES: dict[str, Case] = {
    "relu": lambda np, npx, x: npx.relu(x),
    "sigmoid": lambda np, npx, x: npx.sigmoid(x),
    "erf": lambda np, npx, x: npx.erf(x),
    "erfinv": lambda np, npx, x: npx.erfinv(x * 0.4),
    "gamma": lambda np, npx, x: npx.gamma(x + 3),
    "gammaln": lambda np, npx, x: npx.gammaln(x + 3),
    "activation": lambda np, npx, x: npx.activation(x, act_type="softrelu"),
    "leaky_relu": lambda np, npx, x: npx.leaky_relu(x, act_type="leaky", slope=0.1),
    "gelu": lambda np, npx, x: npx.leaky_relu(x, act_type="gelu"),
    "softmax": lambda np, npx, x: npx.softmax(x, axis=0),
    "softmax_length": lambda np, npx, x: npx.softmax(x, np.array([1, 2], dtype="int32"), axis=1, use_length=True),
    "log_softmax": lambda np, npx, x: npx.log_softmax(x, temperature=2.0),
    "fully_connected": lambda np, npx, x: npx.fully_connected(x, _x(np, 4, 3), np.ones(4), num_hidden=4),
    "fully_connected_no_bias": lambda np, npx, x: npx.fully_connected(x, _x(np, 4, 3), num_hidden=4, no_bias=True),
    "layer_norm": lambda np, npx, x: npx.layer_norm(x, np.ones(3), np.zeros(3)),
    "smooth_l1": lambda np, npx, x: npx.smooth_l1(x, scalar=1.0),
    "batch_dot": lambda np, npx, x: npx.batch_dot(x.reshape(1, 2, 3), x.reshape(1, 2, 3), transpose_b=True),
    "batch_flatten": lambda np, npx, x: npx.batch_flatten(x.reshape(2, 3, 1)),
    "cast": lambda np, npx, x: npx.cast(x, dtype="int32"),
    "slice": lambda np, npx, x: npx.slice(x, begin=(0, 1), end=(None, 3)),
    "gather_nd": lambda np, npx, x: npx.gather_nd(x, np.array([[0, 1], [1, 2]])),
    "reshape_like": lambda np, npx, x: npx.reshape_like(x, np.ones((3, 2))),
    "sequence_mask": lambda np, npx, x: npx.sequence_mask(x, np.array([1, 2, 0]), use_sequence_length=True, value=-1),
    "pick": lambda np, npx, x: npx.pick(x, np.array([0, 2])),
    "topk": lambda np, npx, x: npx.topk(x, k=2, ret_typ="both"),
    "topk_int": lambda np, npx, x: npx.topk(x, k=2, dtype="int64"),
    "one_hot": lambda np, npx, x: npx.one_hot(np.array([0, 2], dtype="int64"), 3),
    "embedding": lambda np, npx, x: npx.embedding(np.array([1, 0]), x, input_dim=2, output_dim=3),
    "arange_like": lambda np, npx, x: npx.arange_like(x, axis=1, start=1, step=2),
    "shape_array": lambda np, npx, x: npx.shape_array(x),
    "nonzero": lambda np, npx, x: npx.nonzero(x > 0),
    "convolution": lambda np, npx, x: npx.convolution(
        x.reshape(1, 1, 2, 3), _x(np, 2, 1, 2, 2), np.ones(2), kernel=(2, 2), num_filter=2, pad=(1, 0)
    ),
    "deconvolution": lambda np, npx, x: npx.deconvolution(
        x.reshape(1, 1, 2, 3), _x(np, 1, 2, 2, 2), kernel=(2, 2), num_filter=2, no_bias=True
    ),
    "pooling": lambda np, npx, x: npx.pooling(x.reshape(1, 1, 2, 3), kernel=(2, 2), pool_type="avg"),
    "batch_norm": lambda np, npx, x: npx.batch_norm(x, np.ones(3), np.zeros(3), np.zeros(3), np.ones(3)),
    "rnn": lambda np, npx, x: npx.rnn(
        x.reshape(2, 1, 3),
        _x(np, 36),
        np.zeros((1, 1, 4)),
        state_size=4,
        num_layers=1,
        mode="rnn_tanh",
        state_outputs=True,
    )[0],
    "no_axis": lambda np, npx, x: npx.relu(x.sum()),
    "no_elements": lambda np, npx, x: npx.sigmoid(x[:0]),
    "reshape_copy": lambda np, npx, x: npx.reshape(x, (-2, -2, 1)),
    "reshape_drop": lambda np, npx, x: npx.reshape(x.reshape(2, 1, 3), (-2, -3, -1)),
    "reshape_rest": lambda np, npx, x: npx.reshape(x.reshape(1, 2, 3, 1), (-4, 1)),
    "reshape_merge": lambda np, npx, x: npx.reshape(x.reshape(1, 2, 3, 1), (-2, -5, -4)),
    "reshape_split": lambda np, npx, x: npx.reshape(x, (-6, -1, 2, -4)),
    "reshape_reverse": lambda np, npx, x: npx.reshape(x.reshape(1, 2, 3), (-4, 3, -1, -6), reverse=True),
    "cholesky": lambda np, npx, x: np.linalg.cholesky(_spd(np, 2) + 0 * x.sum()),
    "inv": lambda np, npx, x: np.linalg.inv(_spd(np) + x.sum() ** 2),
    "det": lambda np, npx, x: np.linalg.det(_spd(np, 2) + x.sum() ** 2),
    "slogdet": lambda np, npx, x: np.linalg.slogdet(_spd(np) + x.sum() ** 2),
    "eigvalsh": lambda np, npx, x: np.linalg.eigvalsh(_spd(np, 2)),
    "eigh_values": lambda np, npx, x: np.linalg.eigh(_spd(np), UPLO="U")[0],
    "eig": lambda np, npx, x: np.linalg.eig(np.array([[2.0, 1.0], [0.0, 3.0]])),
    "eigvals": lambda np, npx, x: np.linalg.eigvals(np.array([[2, 1], [0, 3]], dtype="int32")),
    "svd_values": lambda np, npx, x: np.linalg.svd(_spd(np, 2))[1],
    "norm": lambda np, npx, x: np.linalg.norm(x),
    "norm_axis": lambda np, npx, x: np.linalg.norm(x, axis=1),
    "norm_fro": lambda np, npx, x: np.linalg.norm(x, "fro", keepdims=True),
    "norm_1": lambda np, npx, x: np.linalg.norm(x, 1),
    "norm_3": lambda np, npx, x: np.linalg.norm(x, 3, axis=0),
    "norm_inf": lambda np, npx, x: np.linalg.norm(x, float("inf"), axis=(0, 1), keepdims=True),
    "norm_zero": lambda np, npx, x: np.linalg.norm(np.array([0.0, 3.0, 4.0]), 0),
    "norm_nuc": lambda np, npx, x: np.linalg.norm(x, "nuc"),
    "norm_minus_2": lambda np, npx, x: np.linalg.norm(x, -2),
    "solve": lambda np, npx, x: np.linalg.solve(_spd(np), x.T),
    "solve_vector": lambda np, npx, x: np.linalg.solve(_spd(np), x[0]),
    "solve_batch": lambda np, npx, x: np.linalg.solve(_spd(np, 2), x),
    "solve_int": lambda np, npx, x: np.linalg.solve(
        np.array([[4, 1], [1, 3]], dtype="int32"), np.array([1, 2], dtype="int32")
    ),
    "pinv": lambda np, npx, x: np.linalg.pinv(_x(np, 4, 3)),
    "tensorinv": lambda np, npx, x: np.linalg.tensorinv(_spd(np).reshape(3, 3, 1), ind=1),
    "tensorsolve": lambda np, npx, x: np.linalg.tensorsolve(
        _spd(np).reshape(3, 1, 3), x[:, :1].sum() + np.ones((3, 1))
    ),
}

# Cases whose gradient is compared; MXNet defines no other derivative, or one by other rules.
DIFFERENTIABLE = (
    "relu sigmoid erf gamma gammaln activation leaky_relu softmax log_softmax fully_connected layer_norm smooth_l1 "
    "batch_dot slice gather_nd sequence_mask pick embedding convolution pooling rnn no_axis reshape_split "
    "reshape_reverse inv det norm norm_axis norm_3 solve"
).split()


def run(mx: Any, name: str) -> dict[str, onp.ndarray]:
    """Return the results of a case and the gradient of x."""
    np, npx = mx.np, mx.npx
    x = _x(np, 2, 3)
    if name not in DIFFERENTIABLE:
        out = CASES[name](np, npx, x)
        return {f"out{i}": a.asnumpy() for i, a in enumerate(out if isinstance(out, (list, tuple)) else [out])}
    x.attach_grad()
    with mx.autograd.record():
        out = CASES[name](np, npx, x)
    head = onp.random.RandomState(9).uniform(-1, 1, out.shape).astype("float32")
    out.backward(np.array(head))
    return {"out0": out.asnumpy(), "grad": x.grad.asnumpy()}


def record(mx: Any) -> Any:
    """Arrays of every case."""
    mx.npx.set_np()
    return {f"{name}|{key}": a for name in CASES for key, a in run(mx, name).items()}
