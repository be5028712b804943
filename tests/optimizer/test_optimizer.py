"""The Optimizer classes: rates and multipliers, states, registries, updaters, state files."""

from __future__ import annotations

import os
import pickle
import subprocess
import warnings

import numpy as np
import pytest

import dualmx as mx
from dualmx import nd
from dualmx.optimizer import safe_pickle
from dualmx.optimizer.optimizer import OPTIMIZERS

NAMES = (
    "adadelta adagrad adam adamax ccsgd dcasgd ftml ftrl groupadagrad lamb lars lbsgd nadam nag rmsprop sgd sgld signum"
).split()


def shapes(state):
    """Shapes and dtypes of a state, nested as the state."""
    if isinstance(state, (tuple, list)):
        return tuple(shapes(s) for s in state)
    return state if state is None else (state.shape, np.dtype(state.dtype).name)


def test_the_registry_has_mxnets_names():
    assert set(NAMES) | {"test"} <= set(OPTIMIZERS)
    for name in NAMES:
        assert type(mx.optimizer.create(name.upper())).__name__.lower() == name
    with pytest.raises(mx.MXNetError, match="did you mean 'adam'"):
        mx.optimizer.create("adamm")
    with pytest.raises(TypeError, match="optimizer 'sgd': unknown argument 'momentun'; did you mean 'momentum'"):
        mx.optimizer.create("sgd", momentun=0.9)


def test_defaults():
    opt = mx.optimizer.Optimizer()
    assert (opt.lr, opt.wd, opt.rescale_grad, opt.clip_gradient, opt.num_update) == (0.01, 0.0, 1.0, None, 0)
    assert mx.optimizer.Adam().lr == 0.001 and mx.optimizer.Ftrl().lr == 0.1 and mx.optimizer.Adamax().lr == 0.002


def test_schedules_rule_the_rate():
    schedule = mx.lr_scheduler.FactorScheduler(step=2, factor=0.5, base_lr=1.0)
    opt = mx.optimizer.SGD(lr_scheduler=schedule)
    w = nd.zeros((1,))
    seen = []
    for _ in range(5):
        opt.update(0, w, nd.ones((1,)), None)
        seen.append(w.asscalar())
    assert seen == [-1.0, -2.0, -2.5, -3.0, -3.25]
    with pytest.raises(UserWarning, match="follows an lr_scheduler; set lr_scheduler.base_lr instead"):
        opt.set_learning_rate(3)
    assert mx.optimizer.SGD(learning_rate=0.3, lr_scheduler=schedule).lr_scheduler.base_lr == 0.3
    opt = mx.optimizer.SGD()
    opt.set_learning_rate(7)
    assert opt.learning_rate == 7


def test_names_decide_which_parameters_decay():
    names = {0: "a_weight", 1: "a_bias", 2: "b_gamma", 3: "b_beta"}
    opt = mx.optimizer.SGD(param_idx2name=names, wd=0.1)
    assert opt._get_wds([0, 1, 2, 3, "a_bias", 77]) == [0.1, 0.0, 0.1, 0.0, 0.0, 0.1]
    opt.set_lr_mult({"a_weight": 0.5, 2: 0.25})
    opt.set_wd_mult({0: 7.0})
    assert opt._get_lrs([0, 1, 2, "a_weight"]) == [0.005, 0.01, 0.0025, 0.005]
    assert opt._get_wds([0, 1]) == pytest.approx([0.7, 0.0])
    with pytest.raises(mx.MXNetError, match="param_idx2name"):
        mx.optimizer.SGD(param_idx2name=3)


def test_symbols_carry_multipliers():
    net = mx.sym.var("a_weight", lr_mult=0.5, wd_mult=0.25) + mx.sym.var("b_weight")
    opt = mx.optimizer.SGD(learning_rate=1.0, wd=1.0, sym=net, param_idx2name={0: "a_weight", 1: "b_weight"})
    assert opt._get_lrs([0, 1]) == [0.5, 1.0]
    assert opt._get_wds([0, 1]) == [0.25, 1.0]


def test_parameters_carry_multipliers():
    class Parameter:
        name, lr_mult, wd_mult = "x", 0.5, 0.0

    opt = mx.optimizer.SGD(learning_rate=1.0, wd=1.0, param_dict={0: Parameter})
    assert opt._get_lrs([0, 1]) == [0.5, 1.0] and opt._get_wds([0, 1]) == [0.0, 1.0]


def test_counts_are_per_index_and_device():
    opt = mx.optimizer.SGD(begin_num_update=10)
    opt._update_count(0)
    opt._update_count(0)
    opt._update_count([1, 2])
    assert opt.num_update == 12 and opt._index_update_count == {0: 12, 1: 11, 2: 11}
    opt._set_current_context(1)
    opt._update_count(0)
    assert opt._all_index_update_counts == {0: {0: 12, 1: 11, 2: 11}, 1: {0: 11}}


F32, F16 = ((2, 3), "float32"), ((2, 3), "float16")


@pytest.mark.parametrize(
    "name, params, single, master",
    [
        ("sgd", {}, None, (None, F32)),
        ("sgd", {"momentum": 0.9}, F32, (F32, F32)),
        ("nag", {"momentum": 0.9}, F32, (F32, F32)),
        ("lars", {}, None, (None, F32)),
        ("signum", {}, F32, (F32, F32)),
        ("adam", {}, (F32, F32), (F32, (F32, F32))),
        ("rmsprop", {}, (F32,), (F32, (F32,))),
        ("rmsprop", {"centered": True}, (F32, F32, F32), (F32, (F32, F32, F32))),
        ("adagrad", {}, F32, (F32, F32)),
        ("groupadagrad", {}, ((2, 1), "float32"), (F32, ((2, 1), "float32"))),
        ("dcasgd", {}, (None, F32), (F32, (None, F32))),
        ("sgld", {}, None, (F32, None)),
    ],
)
def test_state_layouts(name, params, single, master):
    opt = mx.optimizer.create(name, multi_precision=True, **params)
    assert shapes(opt.create_state_multi_precision(0, nd.ones((2, 3)))) == single
    assert shapes(opt.create_state_multi_precision(0, nd.ones((2, 3), dtype="float16"))) == master


def test_half_precision_without_master_copies_warns():
    with pytest.warns(UserWarning, match="multi_precision=True"):
        state = mx.optimizer.Adam().create_state_multi_precision(0, nd.ones((2, 3), dtype="float16"))
    assert shapes(state) == (F16, F16)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_every_optimizer_takes_every_float_type(name, dtype):
    opt = mx.optimizer.create(name, multi_precision=True)
    updater = mx.optimizer.get_updater(opt)
    w, g = nd.ones((2, 3), dtype=dtype), nd.ones((2, 3), dtype=dtype)
    for _ in range(2):
        updater(0, g, w)
    values = w.asnumpy().astype("float64")
    assert np.isfinite(values).all() and np.dtype(w.dtype).name == dtype


def test_lists_equal_single_updates():
    rng = np.random.RandomState(0)
    start = [rng.randn(2, 3), rng.randn(4)]
    grads = [rng.randn(2, 3), rng.randn(4)]
    for name, params in (("sgd", {"momentum": 0.9}), ("nag", {"momentum": 0.9}), ("adam", {}), ("lamb", {})):
        found = []
        for together in (False, True):
            updater = mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.1, wd=0.1, **params))
            ws, gs = [nd.array(x) for x in start], [nd.array(x) for x in grads]
            for _ in range(3):
                if together:
                    updater([0, 1], gs, ws)
                else:
                    for i in (0, 1):
                        updater(i, gs[i], ws[i])
            found.append([w.asnumpy() for w in ws])
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_mixed_precisions_in_one_list():
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.5, momentum=0.9, multi_precision=True))
    ws = [nd.ones((2,)), nd.ones((2,), dtype="float16"), nd.ones((3,))]
    updater([0, 1, 2], [w.copy() for w in ws], ws)
    assert all((w.asnumpy() == 0.5).all() for w in ws) and ws[1].dtype == np.float16
    assert shapes(updater.states[1]) == (((2,), "float32"), ((2,), "float32"))


@pytest.mark.parametrize("name", ["sgd", "adam", "lars"])
def test_weights_of_several_contexts_in_one_list(name):
    updater = mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.5))
    ws = [nd.ones((2,), ctx=mx.cpu(i)) for i in (0, 1, 0)]
    updater([0, 1, 2], [w.copy() for w in ws], ws)
    assert [w.context for w in ws] == [mx.cpu(0), mx.cpu(1), mx.cpu(0)]
    np.testing.assert_allclose(ws[0].asnumpy(), ws[1].asnumpy())
    assert (ws[1].asnumpy() < 1).all()


def test_damaged_bytes_never_raise_anything_else():
    data = trained("rmsprop", centered=True)[0].get_states(dump_optimizer=True)
    rng = np.random.RandomState(0)
    updater = mx.optimizer.get_updater(mx.optimizer.SGD())
    refused = 0
    for _ in range(300):
        damaged = bytearray(data)
        for at in rng.randint(0, len(data), rng.randint(1, 4)):
            damaged[at] = rng.randint(256)
        try:
            updater.set_states(bytes(damaged))
        except mx.MXNetError:
            refused += 1
    assert refused > 100


def test_a_users_class_sees_one_parameter_at_a_time():
    @mx.optimizer.register
    class Halve(mx.optimizer.Optimizer):
        def create_state(self, index, weight):
            return nd.zeros(weight.shape)

        def update(self, index, weight, grad, state):
            assert isinstance(weight, nd.NDArray)
            self._update_count(index)
            state += 1
            weight -= self._get_lr(index) * grad + self._get_wd(index) * weight

    updater = mx.optimizer.get_updater(mx.optimizer.create("halve", learning_rate=0.5, multi_precision=True))
    ws = [nd.ones((2,)), nd.ones((2,), dtype="float16")]
    updater([0, 1], [w.copy() for w in ws], ws)
    assert all((w.asnumpy() == 0.5).all() for w in ws)
    assert (updater.states[0].asnumpy() == 1).all()


def test_the_base_class_is_abstract():
    with pytest.raises(NotImplementedError, match="Optimizer must define update"):
        mx.optimizer.Optimizer().update(0, nd.ones((1,)), nd.ones((1,)), None)
    with pytest.raises(mx.MXNetError, match="subclass of Optimizer"):
        mx.optimizer.register(int)


def test_groupadagrad_has_no_decay():
    opt = mx.optimizer.create("groupadagrad", wd=0.1)
    with pytest.raises(mx.MXNetError, match="no weight decay"):
        opt.update(0, nd.ones((2, 2)), nd.ones((2, 2)), opt.create_state(0, nd.ones((2, 2))))
    with pytest.raises(mx.MXNetError, match="2 axes"):
        opt.create_state(0, nd.ones((2,)))


def test_sgld_adds_noise_of_the_rates_size():
    mx.random.seed(3)
    w = nd.zeros((10000,))
    mx.optimizer.SGLD(learning_rate=0.04).update(0, w, nd.zeros((10000,)), None)
    assert w.asnumpy().std() == pytest.approx(0.2, rel=0.03)


@pytest.mark.parametrize("given, numbers", [(None, [4, 45, 4, 0]), ("60", [60, 45, 60, 0]), ("0", [0, 1, 0, 0])])
def test_how_many_updates_mxnet_would_fuse(given, numbers, monkeypatch):
    """It stands in files of states; MXNet's LAMB fails with 0."""
    monkeypatch.delenv("MXNET_OPTIMIZER_AGGREGATION_SIZE", raising=False)
    if given is not None:
        monkeypatch.setenv("MXNET_OPTIMIZER_AGGREGATION_SIZE", given)
    assert [mx.optimizer.create(n).aggregate_num for n in ("sgd", "lamb", "lars", "adam")] == numbers


def test_schedules_compile_nothing():
    schedule = mx.lr_scheduler.CosineScheduler(max_update=50, base_lr=0.1)
    for name in ("sgd", "adam", "nadam", "lamb", "lars"):
        updater = mx.optimizer.get_updater(mx.optimizer.create(name, lr_scheduler=schedule, learning_rate=0.1))
        w, g = nd.ones((3, 2)), nd.ones((3, 2))
        for _ in range(2):
            updater(0, g, w)
            w.wait_to_read()
        with mx.debug.assert_compiles(0):
            for _ in range(4):
                updater(0, g, w)
                w.wait_to_read()


def trained(name="sgd", **params):
    updater = mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.1, **params))
    w = nd.ones((2, 3))
    for _ in range(2):
        updater(0, nd.ones((2, 3)), w)
        updater("b", nd.ones((2, 3)), w)
    return updater, w


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("xla_tier")  # bits of programs that ran a different number of times
def test_training_continues_from_saved_states(name):
    if name == "sgld":
        pytest.skip("draws noise")
    updater, w = trained(name)
    copy, resumed = w.copy(), mx.optimizer.get_updater(mx.optimizer.create("test"))
    resumed.set_states(updater.get_states(dump_optimizer=True))
    assert type(resumed.optimizer) is type(updater.optimizer)
    for _ in range(2):
        updater(0, nd.ones((2, 3)), w)
        resumed(0, nd.ones((2, 3)), copy)
    np.testing.assert_array_equal(w.asnumpy(), copy.asnumpy())


def test_states_without_the_optimizer_keep_the_present_one():
    updater, _ = trained(momentum=0.9)
    other = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=9.0, momentum=0.9))
    other.set_states(updater.get_states())
    assert other.optimizer.lr == 9.0 and set(other.states) == {0, "b"}


def test_states_of_users_classes():
    @mx.optimizer.register
    class Own(mx.optimizer.SGD):
        pass

    class Rise(mx.lr_scheduler.LRScheduler):
        def __call__(self, num_update):
            return float(num_update)

    updater = mx.optimizer.get_updater(Own(lr_scheduler=Rise(), rescale_grad=np.float32(0.5)))
    loaded = mx.optimizer.get_updater(mx.optimizer.SGD())
    loaded.set_states(updater.get_states(dump_optimizer=True))
    assert type(loaded.optimizer) is Own and loaded.optimizer.lr_scheduler(3) == 3.0
    updater.optimizer.extra = object()
    with pytest.raises(mx.MXNetError, match="'extra'"):
        updater.get_states(dump_optimizer=True)


class Bomb:
    def __reduce__(self):
        return os.system, ("touch /tmp/dualmx-was-here",)


HOSTILE = [
    pickle.dumps({0: Bomb()}),
    pickle.dumps(({}, Bomb())),
    pickle.dumps({0: 3}, 0),
    pickle.dumps([1, 2]),
    pickle.dumps({0: range(3)}),
    b"",
    b"\x80\x04",
    b"\x80\x04N.",
    b"\x80\x04h\x05.",
    b"\x80\x04X\xff\xff\xff\xff.",
    b"\x80\x04" + b"(" * 1000 + b"t" * 1000 + b".",
    pickle.dumps({0: bytearray(5)}) + b"x" * 10,
    safe_pickle.write({0: safe_pickle.Record("mxnet.ndarray.ndarray", "NDArray", (None,), {"handle": b"\x01"})}),
    safe_pickle.write(({}, safe_pickle.Record("mxnet.optimizer.optimizer", "Nothing", (), {}))),
    safe_pickle.write(({}, safe_pickle.Record("os", "SGD", (), {}))),
    safe_pickle.write(({}, safe_pickle.Record("mxnet.optimizer.optimizer", "SGD", (), [1]))),
]


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_or_damaged_states_are_refused(data):
    updater = mx.optimizer.get_updater(mx.optimizer.SGD())
    if data is HOSTILE[11]:
        updater.set_states(data)
        return
    with pytest.raises(mx.MXNetError, match="optimizer states"):
        updater.set_states(data)
    assert not os.path.exists("/tmp/dualmx-was-here")


def of_sgd(settings):
    return safe_pickle.write(({}, safe_pickle.Record("mxnet.optimizer.optimizer", "SGD", (), settings)))


@pytest.mark.parametrize(
    "data, said",
    [
        (b"\x80\x01N.", "protocol 2 to 5"),
        (b"\x80\x06N.", "protocol 2 to 5"),
        (b"\x80\x04K", "ends too early"),
        (b"\x80\x04.", "a value is missing"),
        (b"\x80\x04(.", "a value is missing"),
        (b"\x80\x04}K\x01K\x02u.", "a mark is missing"),
        (b"\x80\x04}(K\x01u.", "a key without a value"),
        (b"\x80\x04}()K\x01u.", "a dictionary key of type tuple"),
        (b"\x80\x04N(K\x01K\x02u.", "expected a dict"),
        (b"\x80\x04h\x05.", "no value was stored as 5"),
        (b"\x80\x04K\x01\x8c\x01a\x93.", "a class without a name"),
        (b"\x80\x04K\x01)R.", "expected a class and its arguments"),
        (b"\x80\x04ccollections\nOrderedDict\nK\x01R.", "expected a class and its arguments"),
        (b"\x80\x04ccollections\nCounter\n)R.", "optimizer states"),
        (of_sgd([1]), "has no settings"),
        (of_sgd({1: 2}), "has no settings"),
        (of_sgd({"lr": "much"}), "lr='much'"),
        (of_sgd({"wd_mult": 3}), "wd_mult=3"),
        (of_sgd({"update": 3}), "a setting with the name of the method 'update'"),
        (of_sgd({"lr_scheduler": 3}), "lr_scheduler=3"),
    ],
)
def test_what_is_wrong_with_states_is_said(data, said):
    with pytest.raises(mx.MXNetError, match=said):
        mx.optimizer.get_updater(mx.optimizer.SGD()).set_states(data)


def test_an_empty_ordered_dictionary_is_a_dictionary():
    updater = mx.optimizer.get_updater(mx.optimizer.SGD())
    updater.set_states(b"\x80\x04ccollections\nOrderedDict\n)R.")
    assert updater.states == {}


def test_what_is_nested_without_end_is_not_saved():
    deep = ()
    for _ in range(1000):
        deep = (deep,)
    with pytest.raises(TypeError, match="nested too deeply"):
        safe_pickle.write(deep)


def test_every_truncation_is_refused():
    data = trained(momentum=0.9)[0].get_states(dump_optimizer=True)
    updater = mx.optimizer.get_updater(mx.optimizer.SGD())
    for n in range(0, len(data), 7):
        with pytest.raises(mx.MXNetError, match="optimizer states.*; it is damaged or of another kind"):
            updater.set_states(data[:n])


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickles_of_plain_values_are_read(protocol):
    shared = [1.5, None, True, -7, 2**40, -(2**33), "é", b"xx"]
    value = {"a": 1, "b": shared, "t": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)), 3: {}, "c": shared}
    got = safe_pickle.read(pickle.dumps(value, protocol))
    assert got == value and got["b"] is got["c"]
    got = pickle.loads(safe_pickle.write(value))
    assert got == value and got["b"] is got["c"]


@pytest.mark.oracle
@pytest.mark.parametrize("name, params", [("sgd", {"momentum": 0.9}), ("adam", {}), ("rmsprop", {"centered": True})])
def test_mxnet_reads_our_files(name, params, tmp_path):
    oracle = os.environ.get("DUALMX_ORACLE")
    if not oracle:
        pytest.skip("DUALMX_ORACLE names no Python with MXNet")
    updater, w = trained(name, **params)
    updater.optimizer.lr_scheduler = mx.lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.1)
    (tmp_path / "file.states").write_bytes(updater.get_states(dump_optimizer=True))
    code = (
        "import sys, mxnet as mx; u = mx.optimizer.get_updater(mx.optimizer.create('test'));"
        "u.set_states(open(sys.argv[1], 'rb').read()); w = mx.nd.ones((2, 3)); u(0, mx.nd.ones((2, 3)), w);"
        "print(*w.asnumpy().ravel())"
    )
    python = os.path.join(oracle, "bin", "python") if os.path.isdir(oracle) else oracle
    done = subprocess.run(
        [python, "-W", "ignore", "-c", code, str(tmp_path / "file.states")], capture_output=True, text=True, check=True
    )
    w = nd.ones((2, 3))
    updater(0, nd.ones((2, 3)), w)
    np.testing.assert_allclose([float(x) for x in done.stdout.split()], w.asnumpy().ravel(), rtol=1e-6)


def test_registering_again_replaces():
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @mx.optimizer.register
        class Twice(mx.optimizer.Optimizer):
            pass

        @mx.optimizer.register
        class Twice(mx.optimizer.SGD):  # noqa: F811
            pass

    assert isinstance(mx.optimizer.create("twice"), mx.optimizer.SGD)


def test_a_loop_that_reads_nothing_is_one_program_for_each_pass():
    updater = mx.optimizer.get_updater(mx.optimizer.create("sgd", momentum=0.5))
    weights, grads = [nd.ones((2, 3)), nd.ones((4,))], [nd.ones((2, 3)), nd.ones((4,))]

    def passes(count):
        for _ in range(count):
            for i, (w, g) in enumerate(zip(weights, grads, strict=True)):
                updater(i, g, w)
        nd.waitall()

    passes(3)
    with mx.debug.assert_compiles(0):
        passes(40)


def test_set_lr_scale_is_gone():
    with pytest.raises(DeprecationWarning, match="set_lr_mult"):
        mx.optimizer.SGD().set_lr_scale({0: 1.0})


def test_lars_decays_weights_only():
    lars = mx.optimizer.create("lars", learning_rate=0.1, wd=0.1, param_idx2name={0: "a_gamma", 1: "a_weight"})
    assert lars.wd_mult == {"a_gamma": 0.0}
    w = nd.array([1.0, 2.0])
    mx.optimizer.get_updater(lars)(0, nd.array([1.0, 0.5]), w)
    np.testing.assert_allclose(w.asnumpy(), [0.9, 1.95], rtol=1e-6)


def test_lars_knows_no_names_of_gluon():
    bias = mx.gluon.Parameter("a_bias", shape=(3,))
    lars = mx.optimizer.create("lars", learning_rate=1.0, momentum=0.9, wd=0.1, param_dict={0: bias})
    w, updater = nd.array([1.0, 2.0, 3.0]), mx.optimizer.get_updater(lars)
    want = [[0.997565, 1.998782, 2.997971], [0.992100, 1.996907, 2.995521]]
    for g, after in zip(([0.5, 0.1, 0.2], [2.0, 0.3, 0.1]), want, strict=True):
        updater(0, nd.array(g), w)
        np.testing.assert_allclose(w.asnumpy(), after, atol=2e-6)


@pytest.mark.parametrize("base", [mx.optimizer.SGD, mx.optimizer.LAMB])
def test_a_subclass_that_updates_one_parameter_gets_them_one_by_one(base):
    class Signs(base):
        def update(self, index, weight, grad, state):
            super().update(index, weight, nd.sign(grad), state)

    twins = [mx.gluon.nn.Dense(2, in_units=2) for _ in range(2)]
    for net, optimizer in zip(twins, (Signs(learning_rate=0.1), base(learning_rate=0.1)), strict=True):
        net.initialize(mx.init.One())
        trainer = mx.gluon.Trainer(net.collect_params(), optimizer)
        with mx.autograd.record():
            out = net(nd.array([[1.0, 1.0]])) * (3 if isinstance(optimizer, Signs) else 1)
        out.backward()
        trainer.step(1)
    for one, other in zip(*(net.collect_params().values() for net in twins), strict=True):
        np.testing.assert_allclose(one.data().asnumpy(), other.data().asnumpy(), rtol=1e-6)


def test_the_test_optimizer_counts_nothing():
    updater = mx.optimizer.get_updater(mx.optimizer.create("test"))
    updater(0, nd.ones((2,)), nd.ones((2,)))
    assert updater.optimizer.num_update == 0 and not updater.aggregate_updates


def test_classes_by_name():
    assert mx.optimizer.Optimizer.opt_registry["sgd"] is mx.optimizer.SGD


def test_large_batch_sgd_says_what_it_does(caplog):
    caplog.set_level("INFO")
    mx.optimizer.create("lbsgd", batch_scale=4)
    assert caplog.messages[1] == (
        "(Batch_scale=4.000000, warmup_epochs=5, warmup_strategy=linear, updates_per_epoch=32)"
    )


def test_large_batch_sgd_asks_its_schedule_before_it_counts():
    class Recorder(mx.lr_scheduler.LRScheduler):
        def __call__(self, num_update):
            asked.append(num_update)
            return 0.1

    w = nd.ones((2,))
    for name, want in (("lbsgd", [0, 1]), ("sgd", [1, 2])):
        asked = []
        updater = mx.optimizer.get_updater(mx.optimizer.create(name, lr_scheduler=Recorder()))
        for _ in want:
            updater(0, w, w)
        assert asked == want


def test_large_batch_sgd_counts_each_parameter_before_it_asks_for_the_next():
    schedule = mx.lr_scheduler.FactorScheduler(step=1, factor=0.5, base_lr=1.0)
    params = [mx.gluon.Parameter(f"p{i}", shape=(1,)) for i in range(2)]
    for param in params:
        param.initialize(init="zeros")
    trainer = mx.gluon.Trainer(params, "lbsgd", {"lr_scheduler": schedule, "learning_rate": 1.0, "warmup_epochs": 0})
    for _ in range(3):
        with mx.autograd.record():
            loss = params[0].data() + params[1].data()
        loss.backward()
        trainer.step(1)
    assert [param.data().asscalar() for param in params] == [-2.5, -1.75]


def test_what_is_no_optimizer_is_refused():
    with pytest.raises(TypeError, match="3"):
        mx.optimizer.create(3)
