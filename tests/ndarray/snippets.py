"""Programs whose results MXNet and dualmx must agree on; `mx`, `nd`, `np` are in scope, `out` is the result.

The results of MXNet are in `tests/goldens/ndarray.json`, written by `tests/goldens/record.py`.
"""

import math

PRELUDE = """
b = nd.array(np.arange(12).reshape(3, 4))
c = nd.array(np.arange(24).reshape(2, 3, 4))
i = nd.array([3, -2, 7], dtype='int32')
f = nd.array([1.5, -2.5, 0.0, 3.0])
h = nd.array([1.5, -2.5, 0.0, 3.0], dtype='float16')
d = nd.array([1.5, -2.5, 0.0, 3.0], dtype='float64')
u = nd.array([250, 3, 0], dtype='uint8')
"""

CREATION = [
    "nd.array([1, 2])", "nd.array(np.array([1, 2]))", "nd.array(np.array([1.5], 'float64'))",
    "nd.array(np.array([1], 'uint8'))", "nd.array(i)", "nd.array(i, dtype='float64')", "nd.array([1.9], dtype='int32')",
    "nd.array([])", "nd.array(5.)", "nd.array([[1, 2], [3, 4]])[1]", "nd.zeros((2, 3))", "nd.zeros(4)",
    "nd.ones((2,), dtype='int32')", "nd.full((2, 2), 7)", "nd.full((2,), 7.9, dtype='int64')", "nd.arange(3)",
    "nd.arange(1, 7, 2)", "nd.arange(0, 1, 0.25)", "nd.arange(3, repeat=2)", "nd.arange(5, 0, -2)",
    "nd.arange(4, dtype='int32')", "nd.eye(3)", "nd.eye(2, 3, 1)", "nd.eye(3, k=-1, dtype='int32')",
    "nd.linspace(0, 1, 5)", "nd.linspace(0, 1, 5, endpoint=False)", "nd.empty((2, 2)).shape", "nd.zeros_like(b)",
    "nd.ones_like(i)", "nd.array([True, False])", "nd.array(np.array([True]))", "nd.array([1, 2], dtype=np.float16)",
    "nd.zeros((2,), dtype=np.float64).dtype.__name__", "nd.array([1]).dtype.__name__", "nd.array([[1, 2], [3]])",
    "nd.array('abc')", "nd.array(None)", "nd.zeros((2,), dtype='foo')", "nd.zeros(())", "nd.zeros((0, 3))",
    "nd.zeros((-1, 2))", "nd.concatenate([b, b])", "nd.concatenate([b, b], axis=1)", "nd.onehot_encode(nd.array([1, 0]), nd.zeros((2, 3)))",
    "nd.moveaxis(c, 0, 2)", "nd.moveaxis(c, 2, 0).shape", "nd.from_numpy(np.arange(3.0))", "nd.array(b, ctx=mx.cpu(1)).context.device_id",
]  # fmt: skip

INSPECTION = [
    "b.shape", "b.size", "b.ndim", "len(b)", "str(b.context)", "b.stype", "b.T", "repr(nd.array([[1, 2]]))",
    "repr(nd.array([1]))", "repr(nd.zeros((2, 1, 2), dtype='int32'))", "nd.array([3]).asscalar()", "b.asscalar()",
    "type(nd.array([3]).asscalar()).__name__", "bool(nd.array([0]))", "bool(nd.array([2]))", "bool(b)",
    "float(nd.array([2.5]))", "int(nd.array([2.5]))", "float(b)", "b == None", "b is None", "nd.array([1, 2]) in [1]",
    "list(range(5))[nd.array([2], dtype='int32')]", "b.astype('int32').dtype.__name__", "nd.array([1.7, -1.7]).astype('int32')",
    "b.astype('float32') is b", "b.astype('float32', copy=False) is b", "b.as_in_context(mx.cpu()) is b",
    "b.copy() is b", "b.asnumpy().flags.writeable", "mx.cpu(0) == mx.cpu()", "mx.cpu(0) == mx.cpu(1)", "hash(mx.cpu(0)) == hash(mx.cpu())",
    "str(mx.cpu(2))", "mx.cpu(2).device_type", "mx.cpu(2).device_typeid", "mx.context.num_gpus()", "nd.ones((1,), ctx=mx.gpu(0))",
    "nd.waitall()", "b.wait_to_read()", "len(nd.array(5.))", "[r.asnumpy().tolist() for r in b]", "iter(b).__next__()",
]  # fmt: skip

ARITHMETIC = [
    "b + b", "b + 1", "1 + b", "b - 1", "1 - b", "b * 2", "2 * b", "b / 2", "2 / (b + 1)", "b % 3", "7 % (b + 1)",
    "b ** 2", "2 ** f", "-b", "abs(f)", "b + nd.array([1, 2, 3, 4])", "c + b", "b + nd.ones((3, 1))",
    "b + nd.ones((2,))", "b == b", "b > 3", "3 > b", "b != 2", "b >= 4", "b <= 4", "b < 4", "(i > 0)", "(i == 3)",
    "i * 2.5", "i + 1.9", "i / i", "i / 2", "nd.array([3], dtype='int32') / nd.array([2], dtype='int32')", "u + u",
    "u + 10", "h + 1.5", "h * h", "d * 0.1", "i % 3", "nd.array([-5.0]) % 3", "nd.array([5.0]) % -3", "nd.array([-5], dtype='int32') % 3",
    "i + f[:3]", "h + f", "d + f", "b + None", "b + 'a'", "b // 2", "divmod(b, 2)", "b @ b", "nd.sqrt(i)", "nd.sqrt(nd.array([4, 5], dtype='int32'))",
    "i.mean()", "i.sum()", "u.sum()", "nd.array([True, True]).sum()", "nd.round(f)", "nd.rint(f)", "nd.fix(f)", "nd.floor(f)",
    "nd.ceil(f)", "nd.trunc(f)", "nd.rint(nd.array([0.5, 1.5, 2.5, -0.5, -1.5]))", "nd.round(nd.array([0.5, 1.5, 2.5, -0.5, -1.5]))",
    "nd.maximum(f, 1)", "nd.minimum(1, f)", "nd.maximum(f, f * 0)", "nd.power(2, f)", "nd.power(f, 2)", "nd.add(f, 1)", "nd.add(1, f)",
    "nd.subtract(1, f)", "nd.divide(1, f + 10)", "nd.modulo(f, 2)", "nd.equal(f, 0)", "nd.greater(1, f)", "nd.lesser_equal(f, 0)",
    "nd.logical_and(f, 1)", "nd.logical_or(f, f)", "nd.logical_xor(f, 1)", "nd.add(1, 2)", "nd.elemwise_add(b, b)", "nd.elemwise_add(b, nd.ones((1, 4)))",
    "nd.broadcast_add(b, nd.ones((1, 4)))", "nd.broadcast_add(b, nd.ones((4,)))", "nd.broadcast_hypot(b, b)", "nd.hypot(b, 2)", "nd.clip(f, -1, 1)", "f.clip(0, 2)",
    "nd.where(f > 0, f, f * 10)", "nd.sign(f)", "nd.square(f)", "nd.cbrt(f)", "nd.reciprocal(f + 5)", "nd.negative(i)", "nd.logical_not(f)",
    "nd.sigmoid(h)", "nd.relu(i)", "nd.exp(d)", "nd.log1p(nd.abs(f))", "nd.add_n(b, b, b)", "nd.ElementWiseSum(b, b)", "f.abs().sqrt().exp()",
    "nd.smooth_l1(f, scalar=1)", "nd.cast(f, 'int32')", "nd.Cast(f, dtype='float16')", "nd.erf(f)", "nd.gamma(nd.abs(f) + 1)", "nd.isnan(f)" ,
]  # fmt: skip

INDEXING = [
    "b[1]", "b[-1]", "b[3]", "b[-4]", "b[1, 2]", "b[1, -1]", "b[0, 7]", "b[0, 0, 0]", "b[1:3]", "b[::2]", "b[::-1]", "b[:, 1]", "b[:, 1:3]",
    "b[:, ::-2]", "b[..., 1]", "b[None]", "b[:, None, 1]", "c[1, 1:3, 2]", "c[..., ::2]", "c[0, ..., 1]", "b[[0, 2]]", "b[[0, 2], [1, 3]]",
    "b[np.array([2, 0])]", "b[nd.array([2, 0])]", "b[nd.array([2, 0]), nd.array([1, 1])]", "b[[0, 1], 1:3]", "b[:, [0, 2]]", "c[[0, 1], :, [1, 2]]",
    "c[:, [0, 1], [1, 2]]", "c[1, [0, 1]]", "b[b > 5]", "b[True]", "b['a']", "b[1.5]", "b[[5]]", "b[:, [9]]", "b[2:1]", "b[5:9]", "b[1:100]", "b[-2:]",
    "b[1][2]", "b[1:][0]", "b[()]", "b[...]", "b[:]", "c[:, 1, :]", "c[1][1][1]", "b[0:0]", "nd.array([1, 2, 3])[1]", "nd.array([1, 2, 3])[1].shape",
    "b[[-1]]", "b[[[0, 1], [1, 2]]]", "b.slice_axis(axis=1, begin=1, end=3)", "nd.slice(b, begin=(0, 1), end=(2, 3))", "nd.slice(b, begin=(None, 3), end=(None, 0), step=(None, -1))",
    "nd.slice_like(b, nd.ones((2, 2)))", "nd.take(b, nd.array([0, 2]))", "nd.take(b, nd.array([-1, 9]))", "nd.take(b, nd.array([-1, 9]), mode='wrap')",
    "nd.take(b, nd.array([0, 2]), axis=1)", "b.take(nd.array([1]))", "nd.pick(b, nd.array([0, 1, 9]))", "nd.pick(b, nd.array([0, 1, 2]), keepdims=True)",
    "nd.one_hot(nd.array([0, 2, 5, -1]), 3)", "nd.gather_nd(b, nd.array([[0, 2], [1, 3]]))", "nd.scatter_nd(nd.array([1, 2]), nd.array([[0, 2], [1, 3]]), (3, 4))",
    "nd.Embedding(nd.array([0, 9, -1]), b, input_dim=3, output_dim=4)", "nd.batch_take(b, nd.array([0, 1, 2]))", "nd.topk(f)", "nd.topk(f, k=2, ret_typ='both')",
    "nd.topk(f, k=2, ret_typ='mask')", "nd.topk(f, k=2, is_ascend=True, dtype='int32')", "nd.sort(f)", "nd.sort(f, is_ascend=False)", "nd.argsort(f)", "nd.argmax(b, axis=1)",
    "nd.argmin(b, axis=0)", "nd.argmax(b)", "b.argmax(axis=1).dtype.__name__", "nd.argmax_channel(b)", "nd.argmax(nd.array([[1, 1, 0]]), axis=1)",
]  # fmt: skip

ASSIGNMENT = [
    "b[:] = 5; out = b", "b[1] = 5; out = b", "b[1, 2] = 5; out = b", "b[:, 1] = nd.array([7, 8, 9]); out = b", "b[1:3] = nd.ones((2, 4)); out = b",
    "b[::2] = -1; out = b", "b[::-1] = nd.array(np.arange(12).reshape(3, 4)); out = b", "b[:] = nd.array([1, 2, 3, 4]); out = b", "b[:] = np.ones((4,)); out = b",
    "b[:] = [1, 2, 3, 4]; out = b", "b[:] = nd.ones((2, 2)); out = b", "b[5] = 1", "b[:] = 'a'", "b[[0, 2]] = 9; out = b", "b[[0, 2], [1, 3]] = nd.array([7, 8]); out = b",
    "b[nd.array([1]), nd.array([1])] = 4; out = b", "b[:, [0, 2]] = 3; out = b", "i[:] = 1.9; out = i", "i[:] = nd.array([1.9, -1.9, 2]); out = i", "i[0] = 2.7; out = i",
    "b[1:2, 1:3] = nd.array([[5, 6]]); out = b", "c[:, 1, :] = 0; out = c", "c[0] = b * 2; out = c", "c[..., 0] = 100; out = c", "c[:, 1:, ::2] = -3; out = c",
    "v = b[1]; v[:] = 9; out = b", "v = b[1:3]; v[0] = 9; out = b", "v = b[1:3][1]; v[2] = 9; out = b", "v = b[:, 1]; v[:] = 9; out = b", "v = b[::2]; v[:] = 9; out = b",
    "v = b.reshape((4, 3)); v[0] = 9; out = b", "v = b.reshape((4, 3))[1]; v[:] = 9; out = b", "v = b.T; v[:] = 9; out = b", "v = nd.reshape(b, (4, 3)); v[:] = 9; out = b",
    "v = b[1]; b[:] = 3; out = v", "v = b.reshape((-1,)); b[0, 0] = 42; out = v", "v = b[1, 1:3]; v[:] = 7; out = b", "v = b[1, 2]; v[:] = 7; out = b", "v = b[None]; v[:] = 1; out = b",
    "v = b.slice_axis(axis=0, begin=0, end=1); v[:] = 9; out = b", "v = b.expand_dims(0); v[:] = 9; out = b", "v = b.flatten(); v[:] = 9; out = b", "v = b[1]; v += 1; out = b",
    "v = b[1]; v *= 2; out = b", "b += 1; out = b", "b -= nd.ones((4,)); out = b", "b *= 2; out = b", "b /= 2; out = b", "b %= 3; out = b", "b **= 2; out = b",
    "i += 1.5; out = i", "i += f[:3]", "b += nd.ones((2, 3, 4))", "a = b; a += 1; out = (a is b)", "nd.exp(f, out=f); out = f", "nd.elemwise_add(b, b, out=b); out = b",
    "t = nd.zeros((3, 4)); nd.broadcast_add(b, b, out=t); out = t", "t = nd.zeros((2, 4)); nd.broadcast_add(b, b, out=t); out = t", "t = nd.zeros((3, 4)); b.copyto(t); out = t",
    "t = nd.zeros((3, 4), dtype='int32'); b.copyto(t); out = t", "t = nd.zeros((2, 4)); b.copyto(t); out = t", "b.copyto(b)", "out = b.copyto(mx.cpu(1)).context.device_id",
    "out = b.as_in_context(mx.cpu(1)).context.device_id", "out = (b.as_in_context(mx.cpu(1)) + b).context.device_id", "x = b[0]; y = b[1]; x[:] = y; y[:] = 1; out = b",
    "w = b.reshape((2, 6)); w[1] += 10; b[0] = -1; out = w", "t = b[1:]; u2 = t[1:]; u2[:] = 0; t[0, 0] = 5; out = b",
]  # fmt: skip

SHAPES = [
    "c.reshape((0, -1))", "c.reshape((-2,))", "c.reshape((-3, 4))", "c.reshape((-3, -2))", "c.reshape((0, -3))", "c.reshape((-4, 1, 2, -2))", "c.reshape((-4, -1, 2, 0, 0))",
    "c.reshape((0, 0, -4, 2, 2))", "c.reshape((2, -4, -1, 3, -2))", "c.reshape(6, 4)", "c.reshape(-1)", "c.reshape((5, 5))", "c.reshape((-1, 0), reverse=True)", "nd.zeros((10, 5, 4)).reshape((-1, 0), reverse=True).shape",
    "nd.zeros((10, 5, 4)).reshape((-1, 0)).shape", "c.reshape((2, -1), order='C')", "c.reshape(shape=(4, 6))", "c.reshape()", "c.flatten()", "nd.array([1, 2, 3, 4]).flatten()", "nd.split(b, 2)", "nd.split(b, 3, axis=0)",
    "nd.split(b, 3, axis=0, squeeze_axis=True)", "nd.split(b, 3)", "nd.split_v2(b, (1, 3), axis=1)", "nd.split_v2(b, 2, axis=1)", "nd.concat(b, b)", "nd.concat(b, b, dim=0)", "nd.stack(b, b)", "nd.stack(b, b, axis=1)", "nd.repeat(b, 2)", "nd.repeat(b, 2, axis=1)",
    "nd.tile(b, 2)", "nd.tile(b, (2, 1))", "nd.tile(b, (2, 1, 1))", "nd.expand_dims(b, -1)", "nd.expand_dims(b, 0)", "nd.squeeze(nd.ones((1, 2, 1)))", "nd.squeeze(nd.ones((1, 2, 1)), axis=0)", "nd.squeeze(b, axis=0)", "nd.broadcast_to(nd.ones((3, 1)), shape=(3, 4))",
    "nd.broadcast_to(nd.ones((3, 1)), shape=(0, 4))", "nd.ones((4,)).broadcast_to((3, 4))", "nd.broadcast_like(nd.ones((1, 4)), b)", "nd.broadcast_axis(nd.ones((1, 4)), axis=0, size=3)", "nd.transpose(c)", "nd.transpose(c, axes=(1, 0, 2))", "c.transpose((2, 0, 1))", "c.transpose(0, 2, 1)", "c.transpose()", "nd.swapaxes(c, 0, 2)",
    "nd.flip(b, axis=0)", "nd.reverse(b, axis=1)", "nd.pad(nd.ones((1, 1, 2, 2)), mode='constant', pad_width=(0, 0, 0, 0, 1, 1, 1, 1), constant_value=5)", "nd.pad(nd.arange(4).reshape((1, 1, 2, 2)), mode='edge', pad_width=(0, 0, 0, 0, 1, 1, 1, 1))", "nd.pad(nd.arange(9).reshape((1, 1, 3, 3)), mode='reflect', pad_width=(0, 0, 0, 0, 1, 1, 1, 1))",
    "nd.sum(b)", "nd.sum(b, axis=1)", "nd.sum(b, axis=1, keepdims=True)", "nd.sum(c, axis=1, exclude=True)", "nd.sum(c, axis=(0, 2))", "b.sum(axis=-1)", "nd.mean(b)", "nd.mean(b, axis=0)", "nd.prod(b + 1, axis=0)", "nd.max(b)", "nd.max(b, axis=(0,))", "nd.min(b, axis=1)", "nd.nansum(nd.array([1, np.nan]))", "nd.norm(b)",
    "nd.norm(b, ord=1, axis=1)", "nd.sum(b, axis=5)", "nd.dot(b, b.T)", "nd.dot(b, b, transpose_b=True)", "nd.dot(c, nd.ones((4, 5)))", "nd.dot(nd.ones((2, 3, 4)), nd.ones((4, 5, 6))).shape", "nd.dot(f, f)", "nd.dot(b, b)", "nd.batch_dot(c, c, transpose_b=True)", "nd.batch_dot(b, b)", "nd.depth_to_space(nd.arange(8).reshape((1, 4, 1, 2)), 2)", "nd.diag(nd.array([1, 2]))", "nd.diag(b)",
    "nd.shape_array(c)", "nd.size_array(c)", "nd.reshape_like(b, nd.ones((4, 3)))", "nd.slice_axis(b, axis=1, begin=-2, end=None)", "nd.transpose(c, axes=(0, 0, 1))", "nd.concat(b, nd.ones((2, 2)))", "nd.stack(b, nd.ones((2, 2)))", "nd.expand_dims(b, 7)", "nd.softmax(b)", "nd.softmax(b, axis=0)", "nd.log_softmax(b)", "nd.FullyConnected(c, nd.ones((2, 12)), nd.ones((2,)), num_hidden=2)",
    "nd.FullyConnected(c, nd.ones((2, 4)), num_hidden=2, no_bias=True, flatten=False)", "nd.FullyConnected(c, nd.ones((2, 5)), nd.ones((2,)), num_hidden=2)", "nd.FullyConnected(c, num_hidden=2)", "nd.FullyConnected(c, nd.ones((2, 12)), nd.ones((2,)))", "nd.Activation(f, act_type='relu')", "nd.Activation(f, act_type='foo')", "nd.Activation(f, 'tanh')", "nd.SequenceMask(c, nd.array([1, 2, 1]), use_sequence_length=True)",
    "nd.L2Normalization(b)", "nd.cumsum(b, axis=1)", "nd.histogram(f, bins=4, range=(-4, 4))", "nd.unravel_index(nd.array([5, 7]), shape=(3, 4))", "nd.ravel_multi_index(nd.array([[1, 1], [1, 3]]), shape=(3, 4))", "nd.khatri_rao(b, b)", "nd.linalg.gemm2(b, b, transpose_b=True)", "nd.linalg.potrf(nd.array([[4., 2.], [2., 3.]]))", "nd.contrib.arange_like(b, axis=0)", "nd.moments(b, axes=(0,))",
]  # fmt: skip

CHECKS = [
    "nd.gather_nd(b, nd.array([[0, 3], [1, 1]]))", "nd.gather_nd(b, nd.array([[-1], [-4]]))", "nd.gather_nd(b, nd.array([[-4], [0]]))",
    "b[nd.array([9])]", "b[nd.array([0, -1])]", "c[:, nd.array([5], dtype='int32')]", "nd.split_v2(b, 1)", "-nd.array([1, 0], dtype='bool')",
    "nd.one_hot(i, 3, dtype='foo')", "nd.cast(b, dtype='foo')", "nd.sum(b, keepdims=2)", "nd.sgd_update(b, b, lr=1, clip_gradient=0)",
    "nd.signsgd_update(b, b, lr=1, rescale_grad=0)", "nd.im2col(nd.ones((1, 1, 2, 2), dtype='int32'), kernel=(1, 1))",
    "nd.Deconvolution(nd.ones((1, 1, 3)), nd.ones((1, 1, 2)), kernel=(2,), num_filter=1, target_shape=None)",
    "nd.log2(nd.array([1, 2, 8, 1024, 2 ** 29], dtype='int32'))", "mx.np.ldexp(mx.np.array([1, 2, 3], dtype='int32'), mx.np.array([2, 3, 1], dtype='int32')).asnumpy().tolist()",
    "mx.mod.Module(mx.sym.var('data'), label_names=None).data_shapes", "mx.mod.Module(mx.sym.var('data'), label_names=None).update()",
    "mx.gluon.loss.CTCLoss()(nd.ones((1, 3, 3)), nd.array([[0, 1]]), None, nd.array([1]))",
]  # fmt: skip


def program(snippet: str) -> str:
    """Return the snippet as a program that sets `out`."""
    if "out = " in snippet:
        body = snippet.replace("; ", "\n")
    elif any(op in snippet for op in ("] = ", " += ", " -= ")):
        body = snippet.replace("; ", "\n") + "\nout = None"
    else:
        body = f"out = {snippet}"
    return f"{PRELUDE}\n{body}\n"


SNIPPETS = CREATION + INSPECTION + ARITHMETIC + INDEXING + ASSIGNMENT + SHAPES + CHECKS


def describe(value, array_type):
    """Return a JSON value that says what a result is."""
    if isinstance(value, array_type):
        host = value.asnumpy()
        return {"shape": list(value.shape), "dtype": str(host.dtype), "values": host.astype("float64").ravel().tolist()}
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], array_type):
        return [describe(v, array_type) for v in value]
    if hasattr(value, "item") and not isinstance(value, (str, bool, int, float)):
        return {"scalar": float(value), "type": type(value).__name__}
    if isinstance(value, tuple):
        return list(value)
    return value


def record(mx):
    """What MXNet answers to every program, or the name of its error."""
    import numpy as np

    def answer(text):
        scope = {"mx": mx, "nd": mx.nd, "np": np}
        try:
            exec(program(text), scope)
            out = describe(scope["out"], mx.nd.NDArray)
            mx.nd.waitall()
            return {"out": out}
        except Exception as e:
            return {"error": type(e).__name__}

    return {text: clean(answer(text)) for text in SNIPPETS}


def clean(v):
    """JSON has no NaN."""
    if isinstance(v, float) and not math.isfinite(v):
        return str(v)
    if isinstance(v, list):
        return [clean(x) for x in v]
    return {k: clean(x) for k, x in v.items()} if isinstance(v, dict) else v
