"""Every snippet gives what MXNet gives: values, shapes, dtypes, or an error of a class its users catch."""

import numpy as np
import pytest

import dualmx as mx
from dualmx import nd
from tests.goldens.store import load

from . import snippets

GOLDENS = load("ndarray")

# Programs that MXNet refuses, or answers in a way that dualmx improves on, with the reason.
BETTER: dict[str, str] = {
    "nd.array(None)": "None is no array; MXNet makes NaN of it",
    "float(nd.array([2.5]))": "an array of one element converts to a number",
    "int(nd.array([2.5]))": "an array of one element converts to a number",
    "float(b)": "more elements: ValueError, as bool() and asscalar()",
    "list(range(5))[nd.array([2], dtype='int32')]": "an integer array of one element is an index",
    "b @ b": "@ is dot, so the shapes are what is wrong",
    "nd.sqrt(i)": "the square root of a negative integer is undefined in MXNet",
    "nd.hypot(b, 2)": "MXNet only has the symbol function",
    "nd.batch_take(b, nd.array([0, 1, 2]))": "float indices are cut to integers, as in take",
    "c.transpose(0, 2, 1)": "axes may be given one by one, as in NumPy",
}


def same(got, want, where=""):
    if isinstance(want, dict) and "values" in want:
        assert got["shape"] == want["shape"], where
        assert got["dtype"] == want["dtype"], where
        values = [float(v) for v in want["values"]]
        tolerance = 2e-3 if want["dtype"] == "float16" else 1e-5
        np.testing.assert_allclose(got["values"], values, rtol=tolerance, atol=tolerance, err_msg=where)
    elif isinstance(want, dict) and "scalar" in want:
        assert got["type"] == want["type"], where
        np.testing.assert_allclose(got["scalar"], float(want["scalar"]), rtol=1e-6)
    elif isinstance(want, list):
        assert len(got) == len(want), where
        for g, w in zip(got, want, strict=True):
            same(g, w, where)
    else:
        assert got == want, where


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("text", [s for s in GOLDENS if s not in BETTER])
def test_snippet(text):
    want = GOLDENS[text]
    scope = {"mx": mx, "nd": mx.nd, "np": np}
    if "error" in want:
        classes = {
            "MXNetError": mx.MXNetError, "IndexError": IndexError, "ValueError": ValueError, "TypeError": TypeError,
            "AttributeError": AttributeError, "AssertionError": AssertionError,
        }  # fmt: skip
        with pytest.raises(classes[want["error"]]):
            exec(snippets.program(text), scope)
            snippets.describe(scope["out"], mx.nd.NDArray)
        return
    exec(snippets.program(text), scope)
    same(snippets.describe(scope["out"], mx.nd.NDArray), want["out"], text)


def test_histogram_of_all_elements_counts_in_float32():
    counts, edges = nd.histogram(nd.array([1, 2, 3]), bins=3)
    assert counts.dtype == edges.dtype == np.float32
    assert counts.asnumpy().tolist() == [1, 1, 1] and edges.asnumpy()[[0, 3]].tolist() == [1, 3]
    assert nd.histogram(nd.array([1, 2, 3]), bins=3, range=(0, 4))[0].dtype is np.int64
    assert nd.linspace(0, 1, 0).shape == (0,)
