"""Stores within one process."""

import numpy as np
import pytest

import dualmx as mx
from dualmx import nd


def pulled(kv, key, shape=(2, 3)):
    out = nd.zeros(shape)
    kv.pull(key, out=out)
    return out.asnumpy()


@pytest.fixture(params=["local", "device", "nccl"])
def kv(request):
    made = mx.kv.create(request.param)
    assert (made.type, made.rank, made.num_workers) == (request.param, 0, 1)
    made.init(3, nd.ones((2, 3)) * 2)
    return made


def test_push_replaces_by_the_sum_over_devices(kv):
    assert (pulled(kv, 3) == 2).all()
    kv.push(3, nd.ones((2, 3)) * 8)
    assert (pulled(kv, 3) == 8).all()
    kv.push(3, [nd.ones((2, 3), ctx=mx.cpu(i)) for i in range(4)])
    outs = [nd.zeros((2, 3), ctx=mx.cpu(i)) for i in range(4)]
    kv.pull(3, out=outs)
    assert all((o.asnumpy() == 4).all() and o.context == mx.cpu(i) for i, o in enumerate(outs))


def test_what_was_pushed_or_pulled_is_independent_of_the_store(kv):
    a = nd.ones((2, 3))
    kv.push(3, a)
    a[:] = 100
    assert (pulled(kv, 3) == 1).all()
    out = nd.zeros((2, 3))
    kv.pull(3, out=out)
    out += 5
    assert (pulled(kv, 3) == 1).all()


def test_updater_gets_key_sum_and_stored(kv):
    seen = []

    def update(key, total, stored):
        seen.append(key)
        stored += total * 10

    kv._set_updater(update)
    kv.push(3, [nd.ones((2, 3)), nd.ones((2, 3))])
    assert seen == [3]
    assert (pulled(kv, 3) == 22).all()


def test_updates_are_made_in_the_order_of_keys(kv):
    def order(store, keys, pushed):
        seen = []
        store.init(keys, [nd.zeros((1,))] * len(keys))
        store._set_updater(lambda key, *_: seen.append(key))
        store.push(pushed, [nd.ones((1,))] * len(pushed))
        return seen

    assert order(kv, [9, 5, 7], [7, 9, 5, 7]) == [5, 7, 9]
    assert order(mx.kv.create(kv.type), [9, 5], [9, 5]) == [5, 9]
    # str keys in the order in which they were initialized
    assert order(mx.kv.create(kv.type), ["c", "a", "b"], ["a", "b", "c"]) == ["c", "a", "b"]


def test_states_that_cannot_be_written(kv, tmp_path):
    kv.set_optimizer(mx.optimizer.SGD())
    with pytest.raises(mx.MXNetError, match="cannot write '.*absent/states': No such file"):
        kv.save_optimizer_states(str(tmp_path / "absent" / "states"))
    with pytest.raises(FileNotFoundError, match=r"load_optimizer_states: cannot read '.*states'") as caught:
        kv.load_optimizer_states(str(tmp_path / "states"))
    assert isinstance(caught.value, mx.MXNetError)
    kv.save_optimizer_states(str(tmp_path / "states"))
    (tmp_path / "plain").touch()
    assert (tmp_path / "states").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_rows_are_not_compressed():
    kv = mx.kv.create("device")
    kv.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    kv.init("table", nd.zeros((3, 1)).tostype("row_sparse"))
    kv.push("table", [nd.array([[0.25], [0], [2]]).tostype("row_sparse")] * 2)
    out = nd.zeros((3, 1))
    kv.pull("table", out=out, ignore_sparse=False)
    assert out.asnumpy().tolist() == [[0.5], [0], [4]]


def test_key_lists(kv):
    kv.init([5, 7], [nd.ones((2, 3)), nd.zeros((2, 3))])
    kv.push([5, 7], [[nd.ones((2, 3))] * 2, [nd.ones((2, 3)) * 3] * 2])
    outs = [nd.zeros((2, 3)), nd.zeros((2, 3))]
    kv.pull([5, 7], out=outs)
    assert [o.asnumpy()[0, 0] for o in outs] == [2.0, 6.0]
    kv.pushpull([5, 7], [nd.ones((2, 3)), nd.ones((2, 3))], out=outs)
    assert [o.asnumpy()[0, 0] for o in outs] == [1.0, 1.0]


def test_pushpull_in_place_and_broadcast(kv):
    a, b = nd.ones((2, 3)), nd.ones((2, 3)) * 3
    kv.pushpull(3, [a, b])
    assert (a.asnumpy() == 4).all() and (b.asnumpy() == 4).all()
    outs = [nd.zeros((2, 3)), nd.zeros((2, 3))]
    kv.broadcast(9, nd.ones((2, 3)) * 7, out=outs)
    assert all((o.asnumpy() == 7).all() for o in outs)


def test_optimizer_in_the_store_and_its_states(kv, tmp_path):
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.9))
    kv.push(3, nd.ones((2, 3)))
    assert np.allclose(pulled(kv, 3), 1.5)
    kv.save_optimizer_states(str(tmp_path / "s"))
    kv.push(3, nd.ones((2, 3)))
    after = pulled(kv, 3)
    other = mx.kv.create("local")
    other.init(3, nd.full((2, 3), 1.5))
    other.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.9))
    other.load_optimizer_states(str(tmp_path / "s"))
    other.push(3, nd.ones((2, 3)))
    assert np.allclose(pulled(other, 3), after)


def test_two_bit_compression_keeps_the_rest():
    kv = mx.kv.create("device")
    kv.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    kv.init("w", nd.zeros((4,)))
    total = np.zeros(4)
    for _ in range(10):
        kv.push("w", nd.array([0.3, -0.3, 0.7, 0.0]))
        sent = pulled(kv, "w", (4,))
        assert set(np.unique(sent)) <= {-0.5, 0.0, 0.5}
        total += sent
    # What was kept back after ten rounds of 0.3, -0.3, 0.7 is less than the threshold.
    np.testing.assert_array_equal(total, [3.0, -3.0, 5.0, 0.0])


@pytest.mark.parametrize(
    ("kind", "given", "sent"),
    [
        ("2bit", [0.5, -0.5, 0.25, -0.25, 0.0], [0.5, -0.5, 0, 0, 0]),
        ("1bit", [0.5, -0.5, 0.25, -0.25, 0.0], [1, -1, 1, -1, -1]),
    ],
)
def test_values_at_the_threshold_are_sent(kind, given, sent):
    kv = mx.kv.create("device")
    kv.set_gradient_compression({"type": kind, "threshold": 0.5} if kind == "2bit" else {"type": kind})
    kv.init("w", nd.zeros((5,)))
    kv.push("w", nd.array(given))
    assert pulled(kv, "w", (5,)).tolist() == sent


def test_rows_of_a_matrix():
    kv = mx.kv.create("local")
    kv.init("m", nd.array(np.arange(12.0).reshape(4, 3)))
    out = nd.ones((4, 3))
    kv.row_sparse_pull("m", out=out, row_ids=nd.array([3, 1, 1]))
    want = np.arange(12.0).reshape(4, 3)
    want[[0, 2]] = 0
    np.testing.assert_array_equal(out.asnumpy(), want)


@pytest.mark.parametrize(
    "wrong, text",
    [
        (lambda kv: kv.init(3, nd.ones((2, 3))), "3.*initialized before"),
        (lambda kv: kv.push(5, nd.ones((2, 3))), "5.*init first"),
        (lambda kv: kv.pull(5, out=nd.ones((2, 3))), "5.*init first"),
        (lambda kv: kv.init("a", nd.ones((2, 3))), "cannot be mixed"),
        (lambda kv: kv.init(["a", 4], [nd.ones((1,))] * 2), "cannot be mixed"),
        (lambda kv: kv.row_sparse_pull(3, out=nd.ones((2, 3)), row_ids=[0]), "row_ids=0: expected an NDArray"),
        (lambda kv: kv._set_updater(5), "updater=5: expected a function"),
        (lambda kv: kv.push(3, nd.ones((4,))), r"float32\[4\].*float32\[2, 3\]"),
        (lambda kv: kv.push(3, nd.ones((2, 3), dtype="float64")), "float64"),
        (lambda kv: kv.pull(3, out=nd.ones((4,))), r"\[4\]"),
        (lambda kv: kv.pull(3), "out=None"),
        (lambda kv: kv.push([3, 4, 5], [nd.ones((2, 3))] * 2), "2 values for 3 keys"),
        (lambda kv: kv.push(2.5, nd.ones((2, 3))), "int or a str"),
        (lambda kv: kv.push(3, np.ones((2, 3))), "expected NDArrays"),
        (lambda kv: kv.set_optimizer("sgd"), "expected an Optimizer"),
        (lambda kv: kv.save_optimizer_states("x"), "set_optimizer first"),
        (lambda kv: kv.is_capable("flying"), "flying"),
        (lambda kv: kv.init(4, [nd.ones((2, 3))] * 2), "key 4: 2 arrays; expected one initial value"),
        (lambda kv: kv.row_sparse_pull(3, out=nd.ones((2, 3)), row_ids=nd.array([0, 2])), r"rows in \[0, 2\)"),
    ],
)
def test_wrong_use(kv, wrong, text):
    with pytest.raises(mx.MXNetError, match=text):
        wrong(kv)
    assert (pulled(kv, 3) == 2).all()


def test_names():
    with pytest.raises(mx.MXNetError, match="local.*nccl|did you mean"):
        mx.kv.create("foo")
    with pytest.raises(TypeError, match="name=3: expected a string"):
        mx.kv.create(3)
    with pytest.raises(mx.MXNetError, match="distributed"):
        mx.kv.create("dist_sync")
    assert mx.kv.create("LOCAL").type == "local" and mx.kv.create().get_num_dead_node(7) == 0
    with pytest.raises(mx.MXNetError, match="compression"):
        mx.kv.create("local").set_gradient_compression({"type": "2bit"})


def test_registered_store_is_found_by_name():
    @mx.kv.KVStoreBase.register
    class Mine(mx.kv.KVStoreBase):
        pass

    assert isinstance(mx.kv.create("mine"), Mine)
    with pytest.raises(NotImplementedError, match="pushpull"):
        mx.kv.create("mine").pushpull(1, nd.ones((1,)))
    del mx.kv.KVStoreBase.kv_registry["mine"]


def test_trainer_uses_a_registered_store():
    calls = []

    @mx.kv.KVStoreBase.register
    class Summing(mx.kv.KVStoreBase):
        def broadcast(self, key, value, out, priority=0):
            calls.append(("broadcast", key))
            for o in out:
                if o is not value:
                    value.copyto(o)

        def pushpull(self, key, value, out=None, priority=0):
            calls.append(("pushpull", key))
            total = sum(a.as_in_context(mx.cpu(0)) for a in value[1:]) + value[0]
            for o in out:
                total.copyto(o)

        @staticmethod
        def is_capable(capability):
            return False

    net = mx.gluon.nn.Dense(1, in_units=2, use_bias=False)
    net.initialize(mx.init.One(), ctx=[mx.cpu(0), mx.cpu(1)])
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0}, kvstore="summing")
    with mx.autograd.record():
        losses = [net(nd.ones((1, 2), ctx=mx.cpu(i)) * (i + 1)) for i in range(2)]
    mx.autograd.backward(losses)
    trainer.step(1)
    assert calls == [("broadcast", 0), ("pushpull", 0)]
    for ctx in (mx.cpu(0), mx.cpu(1)):
        assert net.weight.data(ctx).asnumpy().tolist() == [[-2.0, -2.0]]
    del mx.kv.KVStoreBase.kv_registry["summing"]


def test_arrays_of_one_key_belong_together(kv):
    kv.init([5, 7], [nd.zeros((2, 3)), nd.zeros((2, 3))])
    kv.push([5, 7, 5], [nd.ones((2, 3)) * n for n in (7, 8, 9)])
    assert (pulled(kv, 5) == 16).all() and (pulled(kv, 7) == 8).all()
    outs = [nd.zeros((2, 3)), nd.zeros((2, 3))]
    kv.pull([5, 5], out=outs)
    assert all((o.asnumpy() == 16).all() for o in outs)
    with pytest.raises(mx.MXNetError, match="key 8 is there twice"):
        kv.init([8, 8], [nd.zeros((1,)), nd.zeros((1,))])
    with pytest.raises(mx.MXNetError, match="4 values for 2 keys"):
        kv.push([5, 7], [nd.ones((2, 3))] * 4)
    with pytest.raises(mx.MXNetError, match="a csr array"):
        kv.push(5, nd.ones((2, 3)).tostype("csr"))
    assert kv._send_command_to_servers(1, "nobody hears it") is None


@pytest.mark.parametrize("kind", ["1bit", "fp16"])
def test_other_compressions_keep_the_rest(kind):
    kv = mx.kv.create("device")
    kv.set_gradient_compression({"type": kind})
    kv.init("w", nd.zeros((2,)))
    total = np.zeros(2)
    for _ in range(5):
        kv.push("w", nd.array([0.3, -0.2]))
        total += pulled(kv, "w", (2,))
    np.testing.assert_allclose(total, [1.5, -1.0], atol=1.0 if kind == "1bit" else 1e-6)


def test_the_store_for_tests_serves_a_trainer():
    net = mx.gluon.nn.Dense(1, in_units=2, use_bias=False)
    net.initialize(mx.init.One(), ctx=[mx.cpu(0), mx.cpu(1)])
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore="teststore")
    with mx.autograd.record():
        losses = [net(nd.ones((1, 2), ctx=c)) for c in (mx.cpu(0), mx.cpu(1))]
    mx.autograd.backward(losses)
    trainer.step(1)
    for c in (mx.cpu(0), mx.cpu(1)):
        np.testing.assert_allclose(net.weight.data(c).asnumpy(), 0.8, rtol=1e-6)
    assert mx.kv.TestStore is mx.kv.base.TestStore is mx.kv.KVStoreBase.kv_registry["teststore"]
    store = mx.kv.create("TestStore")
    assert (store.type, store.rank, store.num_workers, store.is_capable("optimizer")) == ("teststore", 0, 1, False)
    with pytest.raises(NotImplementedError, match="TestStore has no optimizer"):
        store.set_optimizer(mx.optimizer.SGD())


def test_stores_that_only_sum() -> None:
    for name in ("horovod", "byteps"):
        store = mx.kv.create(name)
        assert (store.type, store.rank, store.num_workers, store.is_capable("optimizer")) == (name, 0, 1, False)
        values = [mx.nd.ones((2,)), mx.nd.ones((2,), mx.cpu(1)) * 2]
        store.pushpull("w", values)
        assert [v.asnumpy().tolist() for v in values] == [[3.0, 3.0]] * 2
        outs = [[mx.nd.zeros((2,))], [mx.nd.zeros((1,))]]
        store.pushpull(["a", "b"], [values[:1], [mx.nd.ones((1,))]], out=outs)
        assert outs[0][0].asnumpy().tolist() == [3.0, 3.0] and outs[1][0].asscalar() == 1.0
        store.broadcast("c", mx.nd.full((2,), 7), outs[0])
        assert outs[0][0].asnumpy().tolist() == [7.0, 7.0]
        with pytest.raises(ValueError, match="1 entries for 2 keys"):
            store.pushpull(["a", "b"], [values, values], out=[values])
    net = mx.gluon.nn.Dense(1, in_units=2)
    net.initialize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0}, kvstore="horovod")
    before = net.weight.data().asnumpy()
    with mx.autograd.record():
        loss = net(mx.nd.ones((4, 2))).sum()
    loss.backward()
    trainer.step(4)
    np.testing.assert_allclose(net.weight.data().asnumpy(), before - 1, rtol=1e-6)


def test_compression_on_devices_by_the_long_name() -> None:
    store = mx.kv.create("local_allreduce_device")
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    with pytest.raises(ValueError, match="gradient compression"):
        mx.kv.create("local_allreduce_cpu").set_gradient_compression({"type": "2bit", "threshold": 0.5})


@pytest.mark.parametrize("kind", ["2bit", "1bit", "fp16"])
def test_compression_of_mx_np_arrays(kind: str) -> None:
    store, rounds = mx.kv.create("device"), []
    store.set_gradient_compression({"type": kind})
    for array in (mx.nd.array, mx.np.array):
        key = array.__module__
        store.init(key, array([0.0, 0.0, 0.0]))
        for _ in range(3):
            out = array([0.0, 0.0, 0.0])
            store.push(key, array([0.3, -0.6, 0.1]))
            store.pull(key, out=out)
            rounds.append(out.asnumpy())
    np.testing.assert_array_equal(rounds[:3], rounds[3:])


def test_a_wrong_mx_np_array_is_named() -> None:
    store = mx.kv.create()
    store.init("w", mx.np.ones((2,)))
    with pytest.raises(ValueError, match=r"float64\[3\], expected float32\[2\]"):
        store.push("w", mx.np.ones((3,), dtype="float64"))


@pytest.mark.parametrize("stype", ["csr", "default", "row_sparse"])
def test_stored_values_of_any_kind_are_pulled_into_csr_arrays(kv, stype: str) -> None:
    values = [[0.0, 1.0], [2.0, 0.0]]
    kv.init(7, nd.array(values).tostype(stype))
    out = nd.sparse.zeros("csr", (2, 2))
    kv.pull(7, out=out)
    assert out.nnz == 0
    kv.pull(7, out=out, ignore_sparse=False)
    assert (out.stype, out.asnumpy().tolist(), pulled(kv, 7, (2, 2)).tolist()) == ("csr", values, values)


class Sums(mx.kv.KVStoreBase):
    """A user's store with the two methods that a Trainer needs."""

    def __init__(self) -> None:
        self.calls: list[tuple] = []

    def broadcast(self, key, value, out, priority=0):
        self.calls.append(("broadcast", key))
        for o in out:
            o[:] = value.as_in_context(o.context)

    def pushpull(self, key, value, out=None, priority=0):
        self.calls.append(("pushpull", key, priority))
        total = self.changed(key, sum((v.as_in_context(mx.cpu(0)) for v in value[1:]), value[0].copy()))
        for o in value if out is None else out:
            o[:] = total.as_in_context(o.context)

    def changed(self, key, total):
        return total

    @staticmethod
    def is_capable(capability):
        return False


class Updates(Sums):
    """And one that updates as well."""

    def broadcast(self, key, value, out, priority=0):
        super().broadcast(key, value, out, priority)
        self.weights = {**getattr(self, "weights", {}), key: value.copy()}

    def set_optimizer(self, optimizer):
        self.updater = mx.optimizer.get_updater(optimizer)

    def changed(self, key, total):
        self.updater(key, total, self.weights[key])
        return self.weights[key]

    @staticmethod
    def is_capable(capability):
        return True


def trained_by_trainer(store) -> list:
    net = mx.gluon.nn.Dense(2, in_units=2)
    contexts = [mx.cpu(0), mx.cpu(1)]
    net.initialize(mx.init.One(), ctx=contexts)
    params, settings = net.collect_params(), {"learning_rate": 0.1, "momentum": 0.9}
    trainer = mx.gluon.Trainer(params, "sgd", settings, kvstore=store)
    for _ in range(2):
        with mx.autograd.record():
            losses = [(net(nd.ones((1, 2), ctx=c) * (i + 1)) ** 2).sum() for i, c in enumerate(contexts)]
        mx.autograd.backward(losses)
        trainer.step(4)
    return [p.data(c).asnumpy().tolist() for p in params.values() for c in contexts]


def trained_by_module(store, **settings) -> list:
    x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    symbol = mx.sym.LinearRegressionOutput(x, mx.sym.Variable("label"), name="out")
    draw = np.random.default_rng(0)
    data, label = (draw.standard_normal((8, 2)).astype("float32") for _ in range(2))
    mod = mx.mod.Module(symbol, label_names=("label",), context=[mx.cpu(0), mx.cpu(1)], **settings)
    start = {"fc_weight": nd.ones((2, 2)), "fc_bias": nd.zeros(2)}
    mod.fit(mx.io.NDArrayIter(data, label, 4, label_name="label"), kvstore=store, num_epoch=2, arg_params=start,
            eval_metric="mse", optimizer_params={"learning_rate": 0.1, "momentum": 0.9})  # fmt: skip
    return [v.asnumpy().tolist() for _, v in sorted(mod.get_params()[0].items())]


@pytest.mark.parametrize("kind", [Sums, Updates])
@pytest.mark.parametrize("trained, keys", [(trained_by_trainer, (0, 1)), (trained_by_module, ("fc_weight", "fc_bias"))])
def test_trainers_and_modules_work_with_stores_that_only_broadcast_and_pushpull(trained, keys, kind) -> None:
    store, expected = kind(), trained("device")
    np.testing.assert_allclose(np.array(trained(store)[0]), np.array(expected[0]), rtol=1e-6)
    first = [("broadcast", k) for k in keys] + [("pushpull", k, -i) for i, k in enumerate(keys)]
    assert store.calls[:4] == first
    mx.kv.KVStoreBase.register(kind)
    try:
        np.testing.assert_allclose(np.array(trained(kind.__name__)[-1]), np.array(expected[-1]), rtol=1e-6)
    finally:
        del mx.kv.KVStoreBase.kv_registry[kind.__name__.lower()]


def test_int_and_str_keys_are_not_mixed_in_one_call() -> None:
    store = mx.kv.create()
    for keys in (["a", 1], [1, "a"]):
        with pytest.raises(ValueError, match="cannot be mixed"):
            store.init(keys, [nd.ones((1,))] * 2)
    store.init("a", nd.ones((1,)))


def test_stores_that_only_sum_compress_nothing() -> None:
    with pytest.raises(NotImplementedError, match="Sums has no gradient compression"):
        trained_by_module(Sums(), compression_params={"type": "2bit"})
    with pytest.raises(NotImplementedError, match="TestStore has no gradient compression"):
        mx.kv.create("teststore").set_gradient_compression({"type": "2bit"})


def test_stores_without_an_optimizer_do_not_update() -> None:
    net = mx.gluon.nn.Dense(1, in_units=1)
    net.initialize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", kvstore="teststore", update_on_kvstore=True)
    with pytest.raises(ValueError, match="update_on_kvstore=True: the store 'teststore' has no optimizer"):
        trainer._init_kvstore()


def test_modules_compress_between_contexts() -> None:
    compress = {"type": "2bit", "threshold": 0.25}
    plain, packed = trained_by_module("device"), trained_by_module("device", compression_params=compress)
    assert packed != plain
    np.testing.assert_allclose(packed[0], trained_by_module(mx.kv.create("device"), compression_params=compress)[0])
    with pytest.raises(ValueError, match="gradient compression is for 'device'"):
        trained_by_module("local", compression_params=compress)
