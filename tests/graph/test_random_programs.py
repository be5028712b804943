"""Random programs give the same values and gradients lazily, naively, and with values forced at random points."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualmx as mx
from dualmx import autograd, nd

UNARY = [
    nd.tanh,
    nd.sin,
    nd.relu,
    lambda x: x * 0.5,
    lambda x: x + 1,
    nd.sigmoid,
    lambda x: x.reshape((-1,)).reshape(x.shape),
]
BINARY = [
    lambda x, y: x + y,
    lambda x, y: x * y,
    lambda x, y: x - y,
    nd.maximum,
    lambda x, y: nd.concat(x, y, dim=0)[0:2],
]

action = st.tuples(st.integers(0, 11), st.integers(0, 10_000), st.integers(0, 10_000), st.booleans())


def run(actions, seed, mode):
    """Interpret `actions`; returns the values of all arrays and gradients at the end."""
    rng = np.random.default_rng(seed)
    mx.random.seed(seed)
    variables = [nd.array(rng.normal(size=(2, 3))) for _ in range(3)]
    for i, v in enumerate(variables):
        v.attach_grad("add" if i == 2 else "write")
    plain = [nd.array(rng.normal(size=(2, 3))) for _ in range(2)]
    tracked = []
    seen = []
    scope = None

    def close():
        nonlocal scope
        if scope is not None:
            scope.__exit__(None, None, None)
            scope = None

    for kind, a, b, force in actions:
        pool = variables + plain + tracked
        x, y = pool[a % len(pool)], pool[b % len(pool)]
        if kind == 0 and scope is None:
            scope = autograd.record()
            scope.__enter__()
            tracked = []
        elif kind == 1:
            close()
        elif kind in (2, 3, 4):
            tracked.append(UNARY[b % len(UNARY)](x))
        elif kind in (5, 6):
            tracked.append(BINARY[(a + b) % len(BINARY)](x, y))
        elif kind == 7 and scope is None:
            target = (variables + plain)[b % 5]
            target += 0.25
        elif kind == 8 and scope is None:
            target = (variables + plain)[b % 5]
            target[a % 2] = (pool[b % len(pool)])[(a + 1) % 2]
        elif kind == 9 and scope is not None:
            with autograd.pause():
                target = variables[a % 3]
                target *= 0.5
                plain[b % 2][:, 1] = x[:, 0]
        elif kind == 10 and tracked:
            close()
            try:
                heads = [tracked[b % len(tracked)], tracked[a % len(tracked)]]
                autograd.backward(heads[: 1 + a % 2], retain_graph=force)
            except mx.MXNetError as e:
                seen.append(str(e)[:40])
        elif kind == 11:
            tracked.append(nd.Dropout(x, p=0.5, mode="always"))
        if mode == "forced" and force:
            (tracked or plain)[-1].asnumpy()
    close()
    return seen, [a.asnumpy() for a in variables + plain + tracked + [v.grad for v in variables]]


def check_modes(actions, seed):
    messages, lazy = run(actions, seed, "lazy")
    with mx.engine.naive():
        naive_messages, naive = run(actions, seed, "naive")
    forced_messages, forced = run(actions, seed, "forced")
    assert messages == naive_messages == forced_messages
    for a, b, c in zip(lazy, naive, forced, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(a, c, rtol=1e-5, atol=1e-6)


PROGRAMS = given(st.lists(action, min_size=4, max_size=24), st.integers(0, 5))


@settings(max_examples=15, deadline=None)
@PROGRAMS
def test_modes_agree(actions, seed):
    check_modes(actions, seed)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@PROGRAMS
def test_modes_agree_in_many_programs(actions, seed):
    check_modes(actions, seed)
