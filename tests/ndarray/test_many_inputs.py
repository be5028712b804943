"""Many arrays enter a program at once, by the way that those before them went; whatever has changed is noticed."""

from __future__ import annotations

import numpy as np
import pytest

from dualmx import autograd, nd

COUNT, AT = 20, 5


def variable(values, req="write"):
    a = nd.array(values)
    a.attach_grad(req)
    return a


def variables():
    return [variable([i, i + 0.5]) for i in range(COUNT)]


def check(arrays, before=None):
    """Join arrays, twice over, and compare the result and the gradients with those of NumPy."""
    for _ in range(2):
        for a in arrays:
            a += 1  # results of a program, as weights are
        wanted = np.concatenate([a.asnumpy() for a in arrays])
        heads = np.arange(1, wanted.size + 1, dtype=np.float32)
        grads = {id(a): a.grad.asnumpy() * (a._meta.grad_req == "add") for a in arrays if a.grad is not None}
        with autograd.record():
            first = None if before is None else before * 3
            joined = nd.concat(*arrays, dim=0)
        outs = [joined] if first is None else [joined, first]
        autograd.backward(outs, [nd.array(heads), None][: len(outs)])
        np.testing.assert_array_equal(joined.asnumpy(), wanted)
        start = 0
        for a in arrays:
            if a.grad is not None:
                grads[id(a)] = grads[id(a)] + heads[start : start + a.size] + 3 * (a is before)
            start += a.size
        for a in arrays:
            if a.grad is not None and a._meta.grad_req != "null":
                np.testing.assert_array_equal(a.grad.asnumpy(), grads[id(a)])


def overwritten(arrays):
    arrays[AT][:] = 9


def twice(arrays):
    arrays[AT] = arrays[AT - 1]


def longer(arrays):
    arrays[AT] = variable([1, 2, 3])


def no_variable(arrays):
    arrays[AT] = nd.array([3, 4])


def adds_up(arrays):
    arrays[AT].attach_grad("add")


def pending(arrays):
    arrays[AT] = nd.array([1, 2]) * 2


def view(arrays):
    arrays[AT] = nd.arange(8)[2:4]


def stale_view(arrays):
    base = nd.arange(8)
    arrays[AT] = base[2:4]
    base[:] = 7


def second_handle(arrays):
    arrays[AT] = nd.arange(2).reshape((1, 2)).reshape((2,))


def fewer(arrays):
    del arrays[AT:]


def others(arrays):
    arrays[:] = variables()


@pytest.mark.parametrize(
    "change",
    [overwritten, twice, longer, no_variable, adds_up, pending, view, stale_view, second_handle, fewer, others],
)
def test_what_has_changed_since_arrays_entered_is_noticed(change):
    arrays = variables()
    check(arrays)
    changed = list(arrays)
    change(changed)
    check(changed)
    check(arrays)


@pytest.mark.parametrize("at", [0, AT, COUNT - 2])
def test_a_variable_that_has_entered_already_keeps_its_number(at):
    arrays = variables()
    check(arrays)
    check(arrays, before=arrays[at])
    check(arrays)


def test_a_variable_that_enters_again_with_another_value_keeps_its_number():
    arrays = variables()
    check(arrays)
    for _ in range(2):
        for a in arrays:
            a += 1
        nd.waitall()
        with autograd.record():
            first = arrays[AT] * 3
            with autograd.pause():
                arrays[AT][:] = nd.array([7, 8])
            joined = nd.concat(*arrays, dim=0)
        autograd.backward([joined, first])
        assert joined.asnumpy()[2 * AT : 2 * AT + 2].tolist() == [7, 8]
        assert arrays[AT].grad.asnumpy().tolist() == [4, 4]


def test_plain_arrays_and_variables_mixed():
    arrays = [a if i % 3 else nd.array([i, -i]) for i, a in enumerate(variables())]
    check(arrays)
    arrays[3], arrays[4] = arrays[4], arrays[3]
    check(arrays)


def test_arrays_whose_memory_others_write_to_are_read_anew():
    arrays = variables()
    check(arrays)
    memory = np.ones(2, np.float32)
    arrays[AT] = nd.from_dlpack(memory)
    check(arrays)
    memory[:] = 5
    check(arrays)
    assert arrays[AT].asnumpy().tolist() == [7, 7]
