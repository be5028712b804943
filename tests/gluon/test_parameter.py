"""Parameters and dictionaries of them: initialization, contexts, sharing, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import gluon
from dualmx.gluon import Constant, DeferredInitializationError, Parameter, ParameterDict

CPUS = [mx.cpu(0), mx.cpu(1)]


def test_attributes_and_repr() -> None:
    p = Parameter("w", shape=(2, 3))
    assert repr(p) == "Parameter w (shape=(2, 3), dtype=<class 'numpy.float32'>)"
    assert (p.grad_req, p.lr_mult, p.wd_mult, p.init) == ("write", 1.0, 1.0, None)
    assert Parameter("w", shape=5).shape == (5,)
    assert Parameter("w", dtype="float16").dtype == "float16"


def test_uninitialized_errors_tell_the_remedy() -> None:
    p = Parameter("w", shape=(2, 3))
    for read in (p.data, p.grad, p.list_data, p.list_ctx, p.list_grad):
        with pytest.raises(RuntimeError, match=r"'w' has not been initialized.*initialize\(\)"):
            read()
    with pytest.raises(mx.MXNetError, match="not been initialized"):
        p.set_data(mx.nd.ones((2, 3)))
    with pytest.raises(ValueError, match="cannot change the context"):
        p.reset_ctx(mx.cpu())
    with pytest.raises(ValueError, match="at least one context"):
        p.initialize(ctx=[])
    p.zero_grad()


def test_initialize_once_unless_forced() -> None:
    p = Parameter("w", shape=(2, 3))
    p.initialize(init="ones")
    assert p.data().asnumpy().tolist() == [[1, 1, 1], [1, 1, 1]]
    assert p.grad().asnumpy().sum() == 0
    with pytest.warns(UserWarning, match="force_reinit=True"):
        p.initialize(init="zeros")
    assert p.data().asnumpy().sum() == 6
    p.initialize(init="zeros", force_reinit=True)
    assert p.data().asnumpy().sum() == 0


def test_default_is_uniform() -> None:
    p = Parameter("w", shape=(100, 100))
    p.initialize()
    values = p.data().asnumpy()
    assert abs(values).max() <= 0.07
    assert abs(values).max() > 0.069
    assert abs(values.mean()) < 0.002


def test_own_initializer_beats_the_default() -> None:
    params = ParameterDict()
    params.get("a_weight", shape=(2,), init="ones")
    params.get("odd_name", shape=(2,))
    params.initialize(mx.init.Constant(3))
    assert params["a_weight"].data().asnumpy().tolist() == [1, 1]
    assert params["odd_name"].data().asnumpy().tolist() == [3, 3]


def test_unregistered_initializer() -> None:
    class Ramp(mx.init.Initializer):
        def _init_weight(self, name: str, arr: Any) -> None:
            arr[:] = mx.nd.arange(arr.size).reshape(arr.shape)

    p = Parameter("w", shape=(3,), init=Ramp())
    p.initialize()
    assert p.data().asnumpy().tolist() == [0, 1, 2]


def test_deferred() -> None:
    with pytest.raises(ValueError, match="allow_deferred_init"):
        Parameter("w", shape=(2, 0)).initialize()
    p = Parameter("w", shape=(2, 0), allow_deferred_init=True)
    p.initialize(ctx=CPUS)
    with pytest.raises(DeferredInitializationError, match=r"shape \(2, 0\).*in_units"):
        p.data()
    assert p.list_ctx() == CPUS
    with pytest.raises(ValueError, match=r"\(3, 4\) does not fit"):
        p.shape = (3, 4)
    p.shape = (2, 4)
    p.finish_deferred_init()
    assert p.data(mx.cpu(1)).shape == (2, 4)


def test_set_data_before_deferred_initialization() -> None:
    p = Parameter("w", shape=(2, 0), allow_deferred_init=True)
    p.initialize()
    p.set_data(mx.nd.ones((2, 3)) * 4)
    p.finish_deferred_init()
    assert p.data().asnumpy().tolist() == [[4, 4, 4], [4, 4, 4]]


def test_replicas() -> None:
    p = Parameter("w", shape=(2, 2))
    p.initialize(ctx=CPUS)
    assert [d.context for d in p.list_data()] == CPUS
    assert [g.context for g in p.list_grad()] == CPUS
    np.testing.assert_array_equal(p.data(CPUS[0]).asnumpy(), p.data(CPUS[1]).asnumpy())
    with mx.cpu(1):
        assert p.data().context == mx.cpu(1)
    with pytest.raises(RuntimeError, match=r"not initialized on context cpu\(2\), only on cpu\(0\), cpu\(1\)"):
        p.data(mx.cpu(2))
    p.data(CPUS[1])[:] = 3
    p.data(CPUS[0])[:] = 1
    p.reset_ctx(mx.cpu(2))
    assert p.data().asnumpy().tolist() == [[2, 2], [2, 2]]
    assert p.data().context == mx.cpu(2)


def test_set_data_reaches_all_replicas() -> None:
    p = Parameter("w", shape=(2,))
    p.initialize(ctx=CPUS)
    p.set_data(mx.nd.array([5, 6]))
    assert [d.asnumpy().tolist() for d in p.list_data()] == [[5, 6], [5, 6]]
    with pytest.raises(ValueError, match=r"\(3,\) does not fit"):
        p.set_data(mx.nd.ones((3,)))


def test_grad_req() -> None:
    p = Parameter("w", shape=(2,))
    with pytest.raises(ValueError, match="'write', 'add' or 'null'"):
        p.grad_req = "foo"
    p.initialize(init="ones")
    p.grad_req = "add"
    for _ in range(2):
        with mx.autograd.record():
            y = p.data() * 3
        y.backward()
    assert p.grad().asnumpy().tolist() == [6, 6]
    p.zero_grad()
    assert p.grad().asnumpy().tolist() == [0, 0]
    p.grad_req = "null"
    with pytest.raises(RuntimeError, match="grad_req is 'null'"):
        p.grad()
    fixed = Parameter("f", shape=(2,), differentiable=False)
    fixed.grad_req = "write"
    assert fixed.grad_req == "null"


def test_cast() -> None:
    p = Parameter("w", shape=(2,), init="ones")
    p.initialize()
    p.cast("float16")
    assert p.data().dtype == np.float16
    assert p.grad().dtype == np.float16
    assert p.dtype == "float16"


def test_bad_storage_type() -> None:
    with pytest.raises(ValueError, match="stype='bar'"):
        Parameter("w", shape=(2,), stype="bar")


def test_constant() -> None:
    c = Constant("c", [[1, 2], [3, 4]])
    assert repr(c) == "Constant c (shape=(2, 2), dtype=<class 'numpy.float32'>)"
    c.initialize()
    assert c.data().asnumpy().tolist() == [[1, 2], [3, 4]]
    with pytest.raises(RuntimeError, match="Parameter 'c' has no gradient because its grad_req is 'null'"):
        c.grad()
    with pytest.warns(UserWarning, match="null"):
        c.grad_req = "write"
    assert c.grad_req == "null"


def test_var_carries_attributes() -> None:
    p = Parameter("net_w", shape=(3, 4), lr_mult=0.5, init="zeros")
    assert p.var() is p.var()
    found = p.var().attr_dict()["net_w"]
    assert found["__shape__"] == "(3, 4)"
    assert found["__lr_mult__"] == "0.5"
    assert found["__init__"] == "zeros"
    assert found["__dtype__"] == "0"


def test_dict_get_and_repr() -> None:
    params = ParameterDict("net_")
    w = params.get("w", shape=(3, 0), allow_deferred_init=True)
    assert repr(params) == "net_ (\n  Parameter net_w (shape=(3, 0), dtype=<class 'numpy.float32'>)\n)"
    assert params.get("w", shape=(0, 4)) is w
    assert w.shape == (3, 4)
    assert params.get("w", dtype="float32", init="zeros").init == "zeros"
    with pytest.raises(ValueError, match="shape"):
        params.get("w", shape=(3, 5))
    with pytest.raises(ValueError, match="dtype"):
        params.get("w", dtype="float16")
    with pytest.raises(KeyError, match="ParameterDict: no parameter 'w'; "):
        params["w"]


def test_dict_constants() -> None:
    params = ParameterDict("net_")
    c = params.get_constant("c", mx.nd.array([1, 2]))
    assert params.get_constant("c", [1, 2]) is c
    with pytest.raises(ValueError, match="another value"):
        params.get_constant("c", [1, 3])
    with pytest.raises(KeyError, match="net_d"):
        params.get_constant("d")
    params.get("w", shape=(2,))
    with pytest.raises(ValueError, match="not a constant"):
        params.get_constant("w", [1])


def test_dict_sharing_and_merging() -> None:
    first = ParameterDict("net_")
    w = first.get("w", shape=(2,))
    shared = ParameterDict("net_", shared=first)
    assert list(shared.keys()) == []
    assert shared.get("w") is w
    other = ParameterDict("net_")
    other.get("w", shape=(2,))
    with pytest.raises(ValueError, match="'net_w'"):
        first.update(other)


def test_dict_broadcasts_settings() -> None:
    params = ParameterDict()
    for name in "ab":
        params.get(name, shape=(2,))
    params.initialize(ctx=CPUS)
    assert params.list_ctx() == CPUS
    params.setattr("grad_req", "add")
    params.setattr("lr_mult", 0.5)
    assert [p.grad_req for p in params.values()] == ["add", "add"]
    assert params["a"].lr_mult == 0.5
    params.reset_ctx(mx.cpu(0))
    assert params.list_ctx() == [mx.cpu(0)]


def test_block_refuses_input_on_another_context() -> None:
    net = gluon.nn.Dense(2, in_units=3)
    net.initialize(ctx=mx.cpu(0))
    with pytest.raises(RuntimeError, match=r"cpu\(1\)"):
        net(mx.nd.ones((1, 3), ctx=mx.cpu(1)))
