"""Wrong input everywhere: an error of the MXNetError family at the user's call that says what was wrong.

After each case the process must be usable: flags restored, the next operation right.
"""

import re

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, gluon, nd, sym


class Things:
    """What the cases work on, made anew for each."""

    def __init__(self, tmp_path):
        self.tmp = tmp_path
        self.x, self.y = nd.ones((2, 3)), nd.ones((3, 2))
        self.i = nd.ones((2, 3), dtype="int32")
        self.a = sym.var("a")
        self.fc = sym.FullyConnected(self.a, num_hidden=4, name="fc")
        self.out = sym.SoftmaxOutput(self.fc, name="softmax")

    def file(self, name, content):
        path = self.tmp / name
        path.write_bytes(content)
        return str(path)

    def params(self, **arrays):
        nd.save(self.tmp / "p.params", arrays)
        return str(self.tmp / "p.params")

    @property
    def net(self):
        net = gluon.nn.Dense(4, in_units=3)
        net.initialize()
        return net

    @property
    def trainer(self):
        return gluon.Trainer(self.net.collect_params(), "sgd")

    @property
    def bound(self):
        mod = mx.mod.Module(self.out, data_names=["a"])
        mod.bind([("a", (2, 3))], [("softmax_label", (2,))])
        return mod

    @property
    def ready(self):
        mod = self.bound
        mod.init_params()
        return mod

    @property
    def executor(self):
        return self.out.simple_bind(mx.cpu(), a=(2, 3))

    def batch(self, *shape):
        return mx.io.DataBatch([nd.ones(shape)], [nd.ones((2,))])


# What is done with the things, and what its error must say.
ARRAYS = {
    "dot shapes": (lambda t: nd.dot(t.x, t.x), "dot: .*(2, 3)"),
    "operator shapes": (lambda t: t.x + t.y, "broadcast_add: .*[2, 3].*[3, 2]"),
    "operator dtypes": (lambda t: t.x + t.i, "broadcast_add.*float32.*int32.*astype"),
    "operator text": (lambda t: t.x + "a", "str operand is not supported"),
    "operator None": (lambda t: t.x * None, "NoneType operand"),
    "operator list": (lambda t: t.x + [1, 2], "list operand"),
    "complex": (lambda t: t.x * 1j, "complex"),
    "axis": (lambda t: nd.sum(t.x, axis=5), "sum: axis=5.*[-2, 1]"),
    "axis text": (lambda t: t.x.sum(axis="q"), "sum: axis='q'"),
    "unknown parameter": (lambda t: nd.sum(t.x, keepdim=True), "sum: unknown parameter 'keepdim'.*keepdims"),
    "missing parameter": (lambda t: nd.one_hot(t.x), "one_hot: missing required parameter 'depth'"),
    "missing input": (lambda t: nd.FullyConnected(t.x, num_hidden=4), "FullyConnected: missing input 'weight'"),
    "no input": (lambda t: nd.relu(), "relu: missing input 'data'"),
    "too many inputs": (lambda t: nd.relu(t.x, t.x), "relu: takes at most 1"),
    "not an array": (lambda t: nd.relu([1, 2]), "relu: data=.*list.*NDArray"),
    "choice": (lambda t: nd.Activation(t.x, act_type="foo"), "Activation: act_type='foo'.*relu"),
    "range": (lambda t: nd.Dropout(t.x, p=2), "Dropout: p=2.*[0, 1]"),
    "number": (lambda t: nd.clip(t.x, "a", 1), "clip: a_min='a'"),
    "reshape": (lambda t: t.x.reshape((7,)), "shape=.7.*6 elements"),
    "reshape keyword": (lambda t: t.x.reshape(6, order="C"), "reshape: unknown argument 'order'"),
    "concat": (lambda t: nd.concat(t.x, t.y, dim=0), "Concat: input 1 has shape .3, 2."),
    "concat nothing": (lambda t: nd.concat(), "Concat: got no array"),
    "concatenate": (lambda t: nd.concatenate([t.x, 3]), "concatenate: arrays.1. of type int"),
    "stack": (lambda t: nd.stack(t.x, t.y), "stack: input 1"),
    "transpose": (lambda t: t.x.transpose((0, 0)), "transpose: axes=.0, 0."),
    "split": (lambda t: nd.split(t.x, num_outputs=2, axis=1), "num_outputs=2.*3"),
    "split_v2": (lambda t: nd.split_v2(t.x, 2, axis=7), "split_v2: axis=7"),
    "slice": (lambda t: nd.slice_axis(t.x, axis=0, begin=0, end=10), "slice_axis: .*end=10"),
    "topk": (lambda t: nd.topk(t.x, k=10), "topk: k=10"),
    "embedding": (lambda t: nd.Embedding(t.x, t.y, input_dim=3, output_dim=4), "Embedding: weight has shape"),
    "batch norm": (lambda t: nd.BatchNorm(t.x, t.y, t.y, t.y, t.y), "BatchNorm: gamma has shape"),
    "convolution": (lambda t: nd.Convolution(t.x, t.x, t.x, kernel=(3, 3), num_filter=2), "Convolution: .*4-d"),
    "update": (lambda t: nd.sgd_update(t.x, t.y, lr=0.1), "sgd_update: grad has shape"),
    "update of integers": (lambda t: nd.sgd_update(t.i, t.i, lr=0.1), "sgd_update: weight is int32"),
    "update with a state": (lambda t: nd.adam_update(t.x, t.x, t.y, t.x, lr=0.1), "adam_update: mean has shape .3, 2."),
    "updates of groups": (
        lambda t: nd.multi_mp_sgd_update(t.x, t.x, t.y, lrs=(1,), wds=(0,), num_weights=1),
        "multi_mp_sgd_update: state 0 of group 0 has shape",
    ),
    "reset": (lambda t: nd.reset_arrays(t.x, num_arrays=2), "reset_arrays: got 1 arrays"),
    "columns of integers": (
        lambda t: nd.col2im(nd.ones((1, 8, 4), dtype="int32"), kernel=(2, 2), output_size=(3, 3)),
        "col2im: data is int32",
    ),
    "out shape": (lambda t: nd.relu(t.x, out=t.y), "relu: out has shape .3, 2."),
    "out type": (lambda t: nd.relu(t.x, out=3), "relu: out=3"),
    "zeros negative": (lambda t: nd.zeros((2, -1)), "zeros: shape=.2, -1."),
    "zeros text": (lambda t: nd.zeros("a"), "zeros: shape='a'"),
    "zeros huge": (lambda t: nd.zeros((2**40, 2**30)), "zeros: shape=.*cannot be allocated"),
    "dtype": (lambda t: nd.zeros((2,), dtype="foo"), "dtype='foo'.*float32"),
    "astype": (lambda t: t.x.astype("complex64"), "dtype='complex64'"),
    "array of text": (lambda t: nd.array("abc"), "array: source_array of type str"),
    "ragged array": (lambda t: nd.array([[1], [2, 3]]), "array: source_array is not a regular array"),
    "array of None": (lambda t: nd.array(None), "array: .*NoneType"),
    "arange step": (lambda t: nd.arange(0, 5, 0), "arange: step=0"),
    "arange text": (lambda t: nd.arange("a"), "arange: stop='a'"),
    "arange nan": (lambda t: nd.arange(float("nan")), "arange: stop=nan"),
    "linspace": (lambda t: nd.linspace(0, 1, -1), "linspace: num=-1"),
    "eye": (lambda t: nd.eye("a"), "eye: N='a'"),
    "full": (lambda t: nd.full((2,), None), "_full: value=None"),
    "moveaxis": (lambda t: nd.moveaxis(t.x, 5, 0), "moveaxis: source=5"),
    "histogram": (lambda t: nd.histogram(t.x, bins="a"), "histogram: bins='a'"),
    "onehot_encode": (lambda t: nd.onehot_encode(3, t.y), "onehot_encode: indices of type int"),
    "from_numpy": (lambda t: nd.from_numpy([1]), "from_numpy: .*list"),
    "asscalar": (lambda t: t.x.asscalar(), "asscalar: .*(2, 3)"),
    "truth": (lambda t: bool(t.x), "truth value.*(2, 3)"),
    "copyto": (lambda t: t.x.copyto(t.y), "copyto: .*(3, 2).*(2, 3)"),
    "copyto type": (lambda t: t.x.copyto(3), "copyto: other=3"),
    "tostype": (lambda t: t.x.tostype("foo"), "stype='foo'"),
    "bulk": (lambda t: mx.engine.set_bulk_size("a"), "set_bulk_size: size='a'"),
}
CONTEXTS = {
    "missing GPU": (lambda t: nd.ones((2,), ctx=mx.gpu(63)), "gpu.63.: no such device"),
    "copy to a missing GPU": (lambda t: t.x.as_in_context(mx.gpu(63)), "gpu.63."),
    "kind": (lambda t: mx.Context("foo", 0), "device_type='foo'.*cpu"),
    "number": (lambda t: mx.cpu(-1), "device_id=-1"),
    "text number": (lambda t: mx.cpu("a"), "device_id='a'"),
    "not a context": (lambda t: t.x.as_in_context(3), "Context: device_type=3"),
    "creation": (lambda t: nd.zeros((2,), ctx=3), "device_type=3"),
}
INDICES = {
    "beyond": (lambda t: t.x[5], "index 5 is out of bounds for axis 0 with size 2"),
    "too many": (lambda t: t.x[0, 0, 0], "too many indices"),
    "text": (lambda t: t.x["a"], "index 'a'"),
    "float": (lambda t: t.x[1.5], "index 1.5"),
    "list": (lambda t: t.x[[9]], "index 9"),
    "write beyond": (lambda t: t.x.__setitem__(7, 1), "index 7"),
    "write shape": (lambda t: t.x.__setitem__(0, nd.ones((5,))), "(5,).*(3,)"),
    "write text": (lambda t: t.x.__setitem__(0, "a"), "assignment: value of type str"),
    "take raise": (lambda t: nd.take(t.x, nd.array([5]), mode="raise").asnumpy(), "take: .*raise|take: index 5"),
    "take raise negative": (lambda t: nd.take(t.x, nd.array([-1]), mode="raise").asnumpy(), "take"),
}
FILES = {
    "missing": (lambda t: nd.load(str(t.tmp / "none.params")), "cannot read .*none.params"),
    "corrupt": (lambda t: nd.load(t.file("bad.params", b"\x12\x01junk")), "bad.params.*byte"),
    "not a path": (lambda t: nd.load(3), "load: fname=3"),
    "buffer": (lambda t: nd.load_frombuffer("abc"), "load_frombuffer: buf of type str"),
    "unwritable": (lambda t: nd.save(str(t.tmp / "no" / "x"), t.x), "cannot write"),
    "save type": (lambda t: nd.save(str(t.tmp / "x"), {"a": 3}), "save: .*NDArray"),
    "symbol missing": (lambda t: sym.load(str(t.tmp / "none.json")), "none.json"),
    "symbol cut": (lambda t: sym.load(t.file("bad.json", b'{"nodes": [')), "JSON"),
    "symbol empty": (lambda t: sym.load_json("{}"), "nodes"),
    "symbol op": (
        lambda t: sym.load_json(
            '{"nodes": [{"op": "Foo", "name": "x", "inputs": []}], "arg_nodes": [], "heads": [[0,0,0]]}'
        ),
        "'Foo'",
    ),
    "symbol unwritable": (lambda t: t.out.save(str(t.tmp / "no" / "x")), "save: cannot write"),
    "parameters corrupt": (lambda t: t.net.load_parameters(t.file("b", b"\x12\x01")), "byte"),
    "parameters shape": (
        lambda t: t.net.load_parameters(t.params(weight=nd.ones((4, 7)), bias=nd.ones((4,)))),
        "weight",
    ),
    "parameters missing": (lambda t: t.net.load_parameters(t.params(weight=nd.ones((4, 3)))), "bias"),
    "parameters extra": (
        lambda t: t.net.load_parameters(t.params(weight=nd.ones((4, 3)), bias=nd.ones((4,)), z=nd.ones((1,)))),
        "z",
    ),
    "trainer states": (lambda t: t.trainer.load_states(t.file("s", b"abc")), "."),
    "trainer states missing": (lambda t: t.trainer.load_states(str(t.tmp / "none")), "cannot read .*none"),
    "module": (lambda t: t.ready.load_params(t.file("m", b"\x12")), "byte"),
    "checkpoint": (lambda t: mx.mod.Module.load(str(t.tmp / "none"), 0), "none"),
    "images": (lambda t: mx.io.MNISTIter(image=t.file("i", b"\0\0\x08\x03\0\0\xff\xff"), label=t.file("l", b"")), "."),
    "csv": (lambda t: mx.io.CSVIter(data_csv=str(t.tmp / "none"), data_shape=(3,)), "none"),
    "csv content": (lambda t: mx.io.CSVIter(data_csv=t.file("c", b"1,2\nx,3\n"), data_shape=(2,)), "."),
    "dataset": (lambda t: gluon.data.vision.MNIST(str(t.tmp)), "."),
}
AUTOGRAD = {
    "not recorded": (lambda t: t.x.backward(), "backward: .*attach_grad"),
    "nothing": (lambda t: autograd.backward([]), "backward: heads=..: "),
    "heads": (lambda t: autograd.backward(3), "backward: heads of type int"),
    "heads in a list": (lambda t: autograd.backward([3]), "heads contain a int"),
    "unreached": (lambda t: autograd.grad(t.x, [t.y]), "grad: variable 0"),
    "mark shapes": (lambda t: autograd.mark_variables([t.x], [t.y]), "mark_variables: .*[3, 2].*[2, 3]"),
    "mark numbers": (lambda t: autograd.mark_variables([t.x], [t.x, t.x]), "mark_variables: 1 variables, 2 gradients"),
    "mark types": (lambda t: autograd.mark_variables([t.x], [3]), "mark_variables: gradients of type int"),
    "grad_req": (lambda t: t.x.attach_grad("foo"), "grad_req='foo'.*write"),
}
RANDOM = {
    "seed nan": (lambda t: mx.random.seed(float("nan")), "seed_state=nan.*finite"),
    "seed inf": (lambda t: mx.random.seed(float("inf")), "seed_state=inf"),
    "seed fraction": (lambda t: mx.random.seed(1.5), "seed_state=1.5"),
    "seed text": (lambda t: mx.random.seed("a"), "seed_state='a'"),
    "seed None": (lambda t: mx.random.seed(None), "seed_state=None"),
    "seed context": (lambda t: mx.random.seed(3, ctx="foo"), "device_type='foo'"),
    "shape": (lambda t: nd.random.normal(shape=(2, -2)), "normal.*(2, -2)"),
    "shape text": (lambda t: nd.random.uniform(0, 1, shape="a"), "uniform: shape='a'"),
    "scale": (lambda t: nd.random.normal(0, -1, shape=(2,)), "normal: scale=-1"),
    "bounds": (lambda t: nd.random.randint(5, 2, shape=(2,)), "randint: low=5, high=2"),
    "dtype": (lambda t: nd.random.uniform(0, 1, shape=(2,), dtype="int32"), "dtype='int32'"),
    "mixed": (lambda t: nd.random.uniform(nd.ones((2,)), 1), "uniform: .*NDArrays"),
}
SYMBOLS = {
    "input": (lambda t: sym.FullyConnected(3, num_hidden=4), "FullyConnected"),
    "parameter": (lambda t: sym.FullyConnected(t.a, num_hidden="x"), "FullyConnected: num_hidden='x'"),
    "unknown": (lambda t: sym.FullyConnected(t.a, num_hidden=4, foo=3), "FullyConnected: .*'foo'"),
    "name": (lambda t: sym.var(3), "name=3"),
    "group": (lambda t: sym.Group(3), "Group: "),
    "operator": (lambda t: t.a + "x", "str"),
    "array": (lambda t: t.a + t.x, "NDArray"),
    "shapes": (lambda t: t.out.infer_shape(a=(2, 3), fc_weight=(4, 9)), "fc"),
    "unknown shape": (lambda t: t.out.infer_shape(a=(2, 3), zzz=(3,)), "zzz"),
    "output": (lambda t: t.out["foo"], "foo"),
    "bind missing": (lambda t: t.out.bind(mx.cpu(), {"a": t.x}), "fc_weight"),
    "bind type": (lambda t: t.out.bind(mx.cpu(), 3), "args"),
    "bind unknown shapes": (lambda t: t.out.simple_bind(mx.cpu()), "shape"),
    "grad_req": (lambda t: t.out.simple_bind(mx.cpu(), a=(2, 3), grad_req="zzz"), "zzz"),
    "forward shape": (lambda t: t.executor.forward(is_train=False, a=t.y), "a.*(3, 2)"),
    "forward name": (lambda t: t.executor.forward(is_train=False, zz=t.y), "zz"),
    "copy": (lambda t: t.executor.copy_params_from({"zz": t.x}), "zz"),
    "attribute": (lambda t: t.a._set_attr(x=3), "x"),
    "print_summary": (lambda t: mx.viz.print_summary(3), "."),
}
GLUON = {
    "units": (lambda t: gluon.nn.Dense(-1), "-1"),
    "activation": (lambda t: gluon.nn.Dense(4, activation="foo")(t.x), "foo|initialize"),
    "layout": (lambda t: gluon.nn.Conv2D(3, (3, 3), layout="ABC"), "ABC"),
    "rate": (lambda t: gluon.nn.Dropout(2)(t.x), "2"),
    "input shape": (lambda t: t.net(t.y), "FullyConnected.*weight"),
    "input type": (lambda t: t.net(3), "int"),
    "uninitialized": (lambda t: gluon.nn.Dense(4, in_units=3)(t.x), "initialize"),
    "data uninitialized": (lambda t: gluon.nn.Dense(4, in_units=3).weight.data(), "initialize"),
    "context": (lambda t: t.net.weight.data(mx.cpu(5)), "cpu.5."),
    "set shape": (lambda t: t.net.weight.set_data(t.y), "(3, 2)"),
    "set type": (lambda t: t.net.weight.set_data(3), "set_data: data of type int"),
    "initializer": (lambda t: gluon.nn.Dense(4, in_units=3).initialize(init="foo"), "foo"),
    "child": (lambda t: gluon.nn.Sequential().add(3), "int.*Block"),
    "hybrid child": (lambda t: gluon.nn.HybridSequential().add(gluon.nn.Sequential()), "HybridBlock"),
    "grad_req": (lambda t: gluon.Parameter("w", shape=(2,), grad_req="foo"), "foo"),
    "trainer parameters": (lambda t: gluon.Trainer(3, "sgd"), "int"),
    "optimizer": (lambda t: gluon.Trainer(t.net.collect_params(), "foo"), "'foo'"),
    "optimizer argument": (lambda t: gluon.Trainer(t.net.collect_params(), "sgd", {"foo": 3}), "'sgd'.*'foo'"),
    "store": (lambda t: gluon.Trainer(t.net.collect_params(), "sgd", kvstore="foo"), "kvstore.*'foo'.*local"),
    "rate type": (lambda t: gluon.Trainer(t.net.collect_params(), "sgd", {"learning_rate": "a"}), "learning_rate='a'"),
    "set rate": (lambda t: t.trainer.set_learning_rate("a"), "learning_rate='a'"),
    "stale": (lambda t: t.trainer.step(1), "backward|stale|grad"),
    "batch size 0": (lambda t: t.trainer.step(0), "step: batch_size=0"),
    "batch size text": (lambda t: t.trainer.step("a"), "step: batch_size='a'"),
    "loss shapes": (lambda t: gluon.loss.L2Loss()(t.x, nd.ones((5,))), "(5,)|[5]"),
    "split": (lambda t: gluon.utils.split_data(t.x, 4), "split_data: .*4"),
    "split contexts": (lambda t: gluon.utils.split_and_load(t.x, []), "ctx_list=.."),
    "split context type": (lambda t: gluon.utils.split_and_load(t.x, [3]), "device_type=3"),
    "clip": (lambda t: gluon.utils.clip_global_norm([], 1), "clip_global_norm"),
    "dataset": (lambda t: gluon.data.ArrayDataset(t.x, nd.ones((7,))), "7"),
    "loader": (lambda t: gluon.data.DataLoader(gluon.data.ArrayDataset(t.x)), "batch_size"),
    "loader size": (lambda t: gluon.data.DataLoader(gluon.data.ArrayDataset(t.x), batch_size="a"), "batch_size='a'"),
    "last batch": (lambda t: gluon.data.DataLoader(gluon.data.ArrayDataset(t.x), 2, last_batch="foo"), "foo"),
    "imports": (lambda t: gluon.SymbolBlock.imports(str(t.tmp / "none"), ["data"]), "none"),
    "export": (lambda t: gluon.nn.Dense(4).export(str(t.tmp / "x")), "."),
}
MODULES = {
    "symbol": (lambda t: mx.mod.Module(3), "Module: symbol of type int"),
    "data name": (lambda t: mx.mod.Module(t.out, data_names=["zz"]), "'zz'"),
    "bind": (lambda t: mx.mod.Module(t.out, data_names=["a"]).bind(3), "data_shapes: 3"),
    "unbound": (lambda t: mx.mod.Module(t.out, data_names=["a"]).init_params(), "bind"),
    "uninitialized": (lambda t: t.bound.forward(t.batch(2, 3)), "init"),
    "shape": (lambda t: t.ready.forward(t.batch(2, 9)), "fc"),
    "batch": (lambda t: t.ready.forward(3), "forward: data_batch of type int"),
    "update": (lambda t: t.ready.update(), "init_optimizer|optimizer"),
    "optimizer": (lambda t: t.ready.init_optimizer(optimizer="foo"), "foo"),
    "store": (lambda t: t.ready.init_optimizer(kvstore="foo"), "kvstore.*'foo'"),
    "optimizer argument": (lambda t: t.ready.init_optimizer(optimizer_params={"zz": 3}), "'zz'"),
    "parameter shape": (lambda t: t.ready.set_params({"fc_weight": t.y}, {}, allow_missing=True), "fc_weight"),
    "fit data": (lambda t: t.ready.fit(3, num_epoch=1), "fit: train_data of type int"),
    "fit epochs": (lambda t: t.ready.fit(mx.io.NDArrayIter(t.x, nd.ones((2,)), 2, data_name="a")), "num_epoch"),
    "metric": (lambda t: t.ready.score(mx.io.NDArrayIter(t.x, nd.ones((2,)), 2, data_name="a"), "foo"), "foo"),
}
REST = {
    "iterator size": (lambda t: mx.io.NDArrayIter(t.x, batch_size="a"), "batch_size='a'"),
    "iterator size 0": (lambda t: mx.io.NDArrayIter(t.x, batch_size=0), "batch_size=0"),
    "iterator lengths": (lambda t: mx.io.NDArrayIter(t.x, nd.ones((7,)), 2), "7"),
    "iterator data": (lambda t: mx.io.NDArrayIter(3), "."),
    "resize": (lambda t: mx.io.ResizeIter(3, 4), "ResizeIter: data_iter of type int"),
    "prefetch": (lambda t: mx.io.PrefetchingIter(3), "PrefetchingIter: iters holds a int"),
    "optimizer": (lambda t: mx.optimizer.create("foo"), "foo"),
    "optimizer argument": (lambda t: mx.optimizer.create("sgd", foo=3), "optimizer 'sgd': unknown argument 'foo'"),
    "learning rate": (lambda t: mx.optimizer.SGD(learning_rate="a"), "SGD: learning_rate='a'"),
    "scheduler": (lambda t: mx.optimizer.SGD(lr_scheduler=3), "SGD: lr_scheduler of type int"),
    "update shapes": (lambda t: mx.optimizer.SGD().update(0, t.x, t.y, None), "(3, 2)"),
    "update types": (lambda t: mx.optimizer.SGD().update(0, 3, t.y, None), "SGD.update: .*int"),
    "states": (lambda t: mx.optimizer.get_updater(mx.optimizer.SGD()).set_states(b"abc"), "."),
    "factor": (lambda t: mx.lr_scheduler.FactorScheduler(0), "0"),
    "steps": (lambda t: mx.lr_scheduler.MultiFactorScheduler([3, 2]), "."),
    "metric": (lambda t: mx.metric.create("foo"), "foo"),
    "metric numbers": (lambda t: mx.metric.Accuracy().update([t.x], [t.x, t.x]), "metric: labels"),
    "metric shapes": (lambda t: mx.metric.Accuracy().update([nd.ones((5,))], [t.x]), "5"),
    "metric types": (lambda t: mx.metric.Accuracy().update(3, 4), "labels of type int"),
    "top k": (lambda t: mx.metric.TopKAccuracy(top_k="a"), "top_k='a'"),
    "initializer": (lambda t: mx.initializer.create("foo"), "foo"),
    "xavier": (lambda t: mx.init.Xavier(rnd_type="foo")("w_weight", t.x), "foo"),
    "xavier shape": (lambda t: mx.init.Xavier()("w_weight", nd.ones((2,))), "(2,)"),
    "sigma": (lambda t: mx.init.Normal("a"), "sigma='a'"),
    "constant": (lambda t: mx.init.Constant("a"), "value='a'"),
    "fill": (lambda t: mx.init.Uniform()("fc_weight", 3), "arr of type int"),
}
GROUPS = {"array": ARRAYS, "context": CONTEXTS, "index": INDICES, "file": FILES, "autograd": AUTOGRAD,
          "random": RANDOM, "symbol": SYMBOLS, "gluon": GLUON, "module": MODULES, "rest": REST}  # fmt: skip
CASES = [(f"{group}: {name}", *case) for group, cases in GROUPS.items() for name, case in cases.items()]


def usable(x):
    """What was there before works, and what comes after."""
    assert not autograd.is_recording() and not autograd.is_training()
    assert x.asnumpy().tolist() == [[1.0] * 3] * 2
    w = nd.array([1.0, 2.0])
    w.attach_grad()
    with autograd.record():
        loss = (w * w).sum()
    loss.backward()
    assert w.grad.asnumpy().tolist() == [2.0, 4.0]


def _pattern(text: str) -> str:
    """The regular expression of a text with brackets that are meant."""
    return "(?s)" + re.sub(r"(?<!\\)([\[\]()])", r"\\\1", text)


@pytest.mark.slow
@pytest.mark.parametrize("action, text", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
@pytest.mark.filterwarnings("ignore")
def test_wrong_input_is_an_error_at_the_call(tmp_path, action, text):
    t = Things(tmp_path)
    with pytest.raises(mx.MXNetError, match=_pattern(text)):
        action(t)
    usable(t.x)


RECORDED = {name: ARRAYS[name] for name in ("dot shapes", "operator dtypes", "axis", "reshape", "concat", "out shape")}


@pytest.mark.parametrize("naive", [False, True])
@pytest.mark.parametrize("action, text", RECORDED.values(), ids=RECORDED)
def test_an_error_while_recording_leaves_the_recording_intact(tmp_path, action, text, naive):
    t = Things(tmp_path)
    w = nd.array([1.0, 2.0])
    w.attach_grad()
    before = mx.engine.set_bulk_size(1) if naive else None
    try:
        with autograd.record():
            y = w * 3
            with pytest.raises(mx.MXNetError, match=_pattern(text)):
                action(t)
            assert autograd.is_recording()
            loss = (y * w).sum()
        loss.backward()
        assert w.grad.asnumpy().tolist() == [6.0, 12.0]
        with pytest.raises(mx.MXNetError, match=_pattern(text)), autograd.record():
            action(t)
        usable(t.x)
    finally:
        if before is not None:
            mx.engine.set_bulk_size(before)


def test_classes_are_those_that_python_users_expect():
    x = nd.ones((2, 3))
    for error, action in [
        (IndexError, lambda: x[5]),
        (ValueError, lambda: x.reshape((7,))),
        (TypeError, lambda: x + "a"),
        (ValueError, lambda: mx.random.seed(float("nan"))),
        (ValueError, lambda: nd.load_frombuffer(b"abc")),
        (RuntimeError, lambda: x.backward()),
        (ValueError, lambda: mx.random.seed("a")),
        (TypeError, lambda: nd.save("x", {1: x})),
        (AssertionError, lambda: nd.random.multinomial([0.2, 0.8])),
        (AssertionError, lambda: nd.random.shuffle(5)),
        (RuntimeError, lambda: nd.Custom(x)),
        (KeyError, lambda: x.attach_grad("bogus")),
        (KeyError, lambda: mx.Context("bogus")),
        (KeyError, lambda: mx.profiler.set_state("bogus")),
        (KeyError, lambda: mx.profiler.pause("bogus")),
    ]:
        with pytest.raises(error) as caught:
            action()
        assert isinstance(caught.value, mx.MXNetError)
    # Python itself says that nobody knows the operation.
    for other in (2, None, "a"):
        with pytest.raises(TypeError, match="@"):
            x @ other


def test_no_number_stands_for_a_truth_value_but_whole_ones():
    x = nd.ones((2, 3))
    assert nd.sum(x, axis=1, keepdims=1).shape == (2, 1)
    with pytest.raises(mx.MXNetError, match="keepdims=1.0: expected True or False"):
        nd.max(x, axis=1, keepdims=1.0)


def test_element_types_may_be_given_as_classes():
    x = nd.array([[3, 1, 2]])
    assert nd.topk(x, k=2, dtype=np.int32).asnumpy().tolist() == [[0, 2]]
    assert nd.argsort(x, dtype=np.dtype("int64")).dtype is np.int64
    assert nd.one_hot(nd.array([1]), 3, dtype=np.float16).dtype is np.float16
    assert nd.Embedding(nd.array([1]), x, input_dim=1, output_dim=3, dtype=np.float32).shape == (1, 3)
    assert x.astype("int8").astype(None).dtype is np.float32
    with pytest.raises(mx.MXNetError, match="dtype"):
        nd.topk(x, dtype=np.uint16)


@pytest.mark.parametrize("room, name", [(nd, "FullyConected"), (sym, "Convolutoin"), (nd.linalg, "foo"), (mx, "ndd")])
def test_an_unknown_operator_is_an_attribute_error_naming_it(room, name):
    with pytest.raises(AttributeError, match=name):
        getattr(room, name)
    assert not hasattr(room, name)


def test_inputs_on_several_contexts_follow_the_first():
    a, b = nd.ones((2,), ctx=mx.cpu(0)), nd.ones((2,), ctx=mx.cpu(1))
    assert (a + b).context == mx.cpu(0)
    assert np.array_equal((a + b).asnumpy(), [2.0, 2.0])


def test_a_failing_forward_of_a_hybridized_block_can_be_tried_again():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(4, in_units=3), gluon.nn.Dense(2))
    net.initialize()
    net.hybridize()
    with pytest.raises(
        mx.MXNetError, match=r"deferred initialization failed.*input 'weight' has shape \(4, 3\), but \(4, 5\) follows"
    ):
        net(nd.ones((2, 5)))
    assert net(nd.ones((2, 3))).shape == (2, 2)
