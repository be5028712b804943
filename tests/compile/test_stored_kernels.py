"""Kernels and shapes that one process keeps serve the next; what is damaged, hostile or outdated is not used."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import numpy as np
import pytest

from dualmx.compile.cpu.kernels import kernel as kernels
from dualmx.compile.cpu.kernels.codegen import Unsupported
from dualmx.compile.cpu.kernels.kernel import kernel_for
from dualmx.core.errors import MXNetError
from dualmx.op import shape_functions, trace_store
from dualmx.op.registry import OPS, Call
from dualmx.op.shape_functions import read_shapes
from dualmx.op.stored_source import FormatError, SourceReader, encode_expression, encode_functions
from dualmx.op.symbolic_sizes import define, guard_function, pattern_of, trace_symbolically
from tests import jobs
from tests.compile.test_kernels import COMMON, WITHOUT_KERNEL
from tests.op.samples import Sample, all_samples

FLOAT = np.dtype(np.float32)
AVALS = (((3, 4), FLOAT), ((4, 5), FLOAT))


def forget() -> None:
    """Know of kernels what a new process knows."""
    kernels._kernels.clear()
    trace_store.store.forget()
    trace_store._shipped.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of its own, and nothing known, not what came with the package either."""
    monkeypatch.setenv("DUALMX_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(trace_store, "SHIPPED", tmp_path / "none")
    forget()
    yield tmp_path
    forget()


def forbid_traces(monkeypatch) -> None:
    """Make a trace an error."""

    def refuse(*args: object) -> None:
        raise AssertionError("an operator was traced")

    monkeypatch.setattr(kernels, "trace_symbolically", refuse)
    monkeypatch.setattr(shape_functions, "trace_symbolically", refuse)


def call_of(sample: Sample) -> Call:
    op, params = OPS[sample.op], dict(sample.params)
    if op.variadic and "num_args" in op.params:
        params.setdefault("num_args", len(sample.arrays))
    return op.call(sample.train, **params)


def computed(call: Call, wrt: tuple[int, ...], arrays: list[np.ndarray]) -> tuple[kernels.Kernel, list[np.ndarray]]:
    """A kernel, and its results, residuals and gradients."""
    kernel, sizes = kernel_for(call, wrt, tuple((a.shape, a.dtype) for a in arrays))
    scalars = [np.float32(v) for v in call.op.runtime_values(call.params)]
    with np.errstate(all="ignore"):
        values = kernel.run(sizes, *arrays, *scalars, *[np.array([3, 7], np.uint32)] * call.n_keys)
        if kernel.pull is not None:
            heads = [np.ones_like(values[i]) for i in kernel.floating]
            values = (*values, *kernel.pull(sizes, *values[kernel.n_results :], *heads))
    return kernel, [np.asarray(v) for v in values]


def compare(name: str) -> None:
    """Assert that what is read of an operator's first sample is what was made."""
    sample = all_samples()[name][0]
    call, arrays = call_of(sample), [np.asarray(a) for a in sample.arrays]
    if call.joint or call.op.dynamic:
        return
    avals = tuple((a.shape, a.dtype) for a in arrays)
    pattern, sizes = pattern_of(avals)
    plain = call.without_stated_sizes(avals)
    differentiable = tuple(k for k in sample.smooth if arrays[k].dtype.kind == "f")
    for wrt in dict.fromkeys([(), differentiable]):
        made, wanted = computed(call, wrt, arrays)
        forget()
        with pytest.MonkeyPatch.context() as patch:
            forbid_traces(patch)
            read, found = computed(call, wrt, arrays)
            shapes = next(shapes for guard, shapes in read_shapes(plain, pattern, sizes) if guard(sizes))
        assert [v.tobytes() for v in found] == [v.tobytes() for v in wanted]
        assert read[3:] == made[3:]
        assert list(shapes(sizes)) == [(v.shape, v.dtype) for v in wanted[: made.n_results]]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", COMMON)
def test_a_kept_kernel_of_a_common_operator(name):
    compare(name)


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", sorted(all_samples()))
def test_a_kept_kernel_of_every_operator(name):
    try:
        compare(name)
    except Unsupported as e:
        assert str(e) in {*WITHOUT_KERNEL, name}


SCRIPT = """
import dualmx as mx
from dualmx.op import shape_functions
from dualmx.compile.cpu.kernels import kernel
from dualmx.op.symbolic_sizes import trace_symbolically

count = 0

def counted(*args):
    global count
    count += 1
    return trace_symbolically(*args)

shape_functions.trace_symbolically = kernel.trace_symbolically = counted
mx.random.seed(0)
net = mx.gluon.nn.Dense(4, activation="relu", in_units=3)
net.initialize()
trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"beta1": 0.77})  # no kernel of it comes with the package
for n in (2, 5):
    with mx.autograd.record():
        loss = (net(mx.nd.ones((n, 3))) ** 2).sum()
    loss.backward()
    trainer.step(n)
print(count, net.weight.data().asnumpy().tobytes().hex())
"""


def test_a_second_process_traces_nothing(tmp_path):
    env = {"DUALMX_CACHE_DIR": str(tmp_path), "DUALMX_TIER": "numpy"}
    first, second = [jobs.run(jobs.PYTHON, "-c", SCRIPT, env=env).stdout.split() for _ in range(2)]
    assert int(first[0]) > 0 and int(second[0]) == 0
    assert first[1] == second[1]


def made_once(wrt: tuple[int, ...] = (0, 1)) -> tuple[Call, list[np.ndarray], list[bytes]]:
    """A call, inputs, and what its kernel computes, which is kept in a file."""
    call = OPS["dot"].call(False)
    arrays = [np.arange(np.prod(s), dtype=d).reshape(s) for s, d in AVALS]
    return call, arrays, [v.tobytes() for v in computed(call, wrt, arrays)[1]]


def file_of(folder: Path) -> Path:
    (path,) = folder.rglob("*.json")
    return path


def rewrite(folder: Path, change) -> None:
    """Change what a file holds, and give it the checksum that it must have."""
    path = file_of(folder)
    entry = json.loads(path.read_bytes().partition(b"\n")[2])
    key = entry.pop("key")
    change(entry)
    trace_store.write_entry(path, key, entry)


DAMAGE = {
    "cut": lambda raw: raw[: len(raw) // 2],
    "empty": lambda raw: b"",
    "a bit": lambda raw: raw[:-20] + bytes([raw[-20] ^ 1]) + raw[-19:],
    "no JSON": lambda raw: _with_checksum(b"{" * 50),
    "deep JSON": lambda raw: _with_checksum(b"[" * 100_000),
    "a list": lambda raw: _with_checksum(b"[]"),
    "of another key": lambda raw: _with_checksum(b'{"key":"softmax"}'),
    "bytes": lambda raw: _with_checksum(bytes(range(256))),
    "large": lambda raw: raw + b" " * trace_store.MAX_FILE_BYTES,
}


def _with_checksum(text: bytes) -> bytes:
    return trace_store.checksum_of(text) + b"\n" + text


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_not_used(damage, folder, caplog):
    call, arrays, wanted = made_once()
    path = file_of(folder)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    forget()
    with caplog.at_level(logging.DEBUG, "dualmx.op.trace_store"):
        _, found = computed(call, (0, 1), arrays)
    assert [v.tobytes() for v in found] == wanted
    assert "is not used" in caplog.text


KERNEL = "kernels [0, 1]"


def replaced(*path, value):
    """A change of one place of an entry's kernel."""

    def change(entry) -> None:
        place = entry[KERNEL][0]
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


def with_expression(expression):
    return replaced("functions", 0, 2, 1, 1, value=expression)


HOSTILE = {
    "an operand that calls": with_expression("__import__('os').system('true')"),
    "a name of Python": with_expression("__builtins__"),
    "an unknown operand": with_expression("v900"),
    "a function of NumPy's that is not listed": with_expression(["call", "np.load", ["string", "file"]]),
    "a function of Python's": with_expression(["call", "eval", ["string", "x"]]),
    "a private function": with_expression(["call", "K._special", ["string", "erf"], "x0"]),
    "a module of the primitives": with_expression(["function", "K.itertools"]),
    "an attribute": with_expression(["method", "tofile", "x0", ["string", "file"]]),
    "a dunder": with_expression(["method", "__class__", "x0"]),
    "a text with quotes": with_expression(["string", "a'+b"]),
    "a long text": with_expression(["string", "a" * 25]),
    "an unknown keyword": with_expression(["call", "np.add", "x0", "x1", {"where": "x0"}]),
    "too few arguments": with_expression(["call", "K.pad", "x0"]),
    "too many arguments": with_expression(["call", "K.erfc", "x0", "x1"]),
    "a wrong keyword": with_expression(["call", "K.erf", {"axis": 1}]),
    "an unknown operator": with_expression(["**", "x0", "x0"]),
    "an operator that is code": with_expression([" if exit() else ", "x0", "x1"]),
    "an unknown node": with_expression(["lambda", "x0"]),
    "a node without a head": with_expression([]),
    "a dict": with_expression({"call": "np.add"}),
    "a fraction": with_expression(0.5),
    "a large number": with_expression(2**70),
    "a deep expression": with_expression(["~", ["~", ["~", "v9"]]]),
    "a target that is code": replaced("functions", 0, 2, 1, 0, value="x0 = exit()\nv1"),
    "a target of the house": replaced("functions", 0, 2, 1, 0, value="np"),
    "a statement that is text": replaced("functions", 0, 2, 1, value="exit()"),
    "a nested function that is none": replaced("functions", 0, 2, 1, value={"function": "exit()"}),
    "another nested thing": replaced("functions", 0, 2, 1, value={"class": []}),
    "a name of a function": replaced("functions", 0, 0, value="run():\n exit()\ndef run"),
    "an argument that is code": replaced("functions", 0, 1, 1, value="x0=exit()"),
    "a missing argument": replaced("functions", 0, 1, value=["sizes", "x0"]),
    "sizes that are others": replaced("functions", 0, 2, 0, 0, value=["d0", "d1"]),
    "a result too few": replaced("functions", 0, 3, value=["tuple"]),
    "no results": replaced("functions", 0, 3, value="x0"),
    "no pull": replaced("functions", value=[]),
    "another number of results": replaced("n_results", value=2),
    "results that are no number": replaced("n_results", value=True),
    "gradients of what is none": replaced("floating", value=[7]),
    "a guard that is code": replaced("guards", value=["exit()"]),
    "a guard of an operand": replaced("guards", value=["x0"]),
    "guards that are text": replaced("guards", value="d0"),
    "a name of a constant": replaced("constants", value={"np": {"number": 1}}),
    "a pickle": replaced("constants", value={"c0": {"array": "gASVAAAAAA==", "of": "object", "shape": [1]}}),
    "a short array": replaced("constants", value={"c0": {"array": "AAAA", "of": "float32", "shape": [9]}}),
    "a negative shape": replaced("constants", value={"c0": {"array": "", "of": "float32", "shape": [-1]}}),
    "bad base64": replaced("constants", value={"c0": {"array": "%%%%", "of": "float32", "shape": [1]}}),
    "an unknown dtype": replaced("constants", value={"c0": {"dtype": "object"}}),
    "an unknown constant": replaced("constants", value={"c0": {"Popen": {"args": "true"}}}),
    "a pattern that is code": replaced("pattern", value=[["exit()", -1], [-2, -3]]),
    "a pattern of another rank": replaced("pattern", value=[[-1, -2]]),
    "a pattern without its first size": replaced("pattern", value=[[-1, -2], [-2, -4]]),
    "more fields": replaced("source", value="exit()"),
    "no kernel": lambda entry: entry.update({KERNEL: ["exit()"]}),
}


@pytest.mark.parametrize("attack", HOSTILE)
def test_hostile_contents_are_not_used(attack, folder, caplog):
    call, arrays, wanted = made_once()
    rewrite(folder, HOSTILE[attack])
    forget()
    with caplog.at_level(logging.DEBUG, "dualmx.op.trace_store"):
        _, found = computed(call, (0, 1), arrays)
    assert [v.tobytes() for v in found] == wanted
    assert "is not used" in caplog.text


def test_control_a_file_that_was_written_anew_is_used(folder, monkeypatch):
    call, arrays, wanted = made_once()
    rewrite(folder, lambda entry: None)
    forget()
    forbid_traces(monkeypatch)
    assert [v.tobytes() for v in computed(call, (0, 1), arrays)[1]] == wanted


SHAPES = {
    "a size that is code": ["exit()", "d0"],
    "an unknown size": ["d7", "d0"],
    "a division by zero": [["//", "d0", 0], "d0"],
    "a number": 3,
}


@pytest.mark.parametrize("attack", SHAPES)
def test_hostile_shapes_are_not_used(attack, folder, caplog):
    call, _, _ = made_once()
    rewrite(folder, lambda entry: entry["shapes"][0]["results"][0].__setitem__(0, SHAPES[attack]))
    forget()
    with caplog.at_level(logging.DEBUG, "dualmx.op.trace_store"):
        assert read_shapes(call, *pattern_of(AVALS)) == []
    assert "is not used" in caplog.text


def test_an_edited_source_has_other_files(tmp_path, monkeypatch):
    edited = trace_store.PACKAGE / "op" / "__init__.py"
    before = trace_store.digest_of([edited])
    assert trace_store.digest_of([edited]) == before
    copy = tmp_path / "__init__.py"
    copy.write_text(edited.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    monkeypatch.setattr(trace_store, "PACKAGE", tmp_path)
    assert trace_store.digest_of([copy]) != before


def test_operators_of_users_are_not_kept():
    pattern = pattern_of(AVALS)[0]
    call = OPS["dot"].call(False)
    assert trace_store.key_of(call, pattern) is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(call.op.fn, "__module__", "script")
        assert trace_store.key_of(call, pattern) is None


def test_calls_that_differ_have_different_keys():
    pattern = pattern_of(AVALS)[0]
    calls = [OPS["dot"].call(False), OPS["dot"].call(False, transpose_a=True), OPS["softmax"].call(False)]
    keys = {trace_store.key_of(c, p) for c in calls for p in (pattern, pattern[:1])}
    assert len(keys) == 6


def test_without_a_folder_nothing_is_written(folder, monkeypatch):
    monkeypatch.setenv("DUALMX_CACHE_DIR", "")
    made_once()
    assert not list(folder.iterdir())


def test_a_folder_that_cannot_be_written_is_no_error(folder, monkeypatch):
    (folder / "file").write_text("")
    monkeypatch.setenv("DUALMX_CACHE_DIR", str(folder / "file"))
    made_once()


def test_folders_that_added_nothing_for_long_are_removed(folder):
    old, recent = folder / "traces" / "old", folder / "traces" / "recent"
    for other in (old, recent):
        other.mkdir(parents=True)
        (other / "entry.json").touch()
    os.utime(old, (0, 0))
    made_once()
    assert recent.is_dir() and not old.exists() and len(list((folder / "traces").iterdir())) == 2


@pytest.mark.parametrize("source", ["open(x0)", "x0.tofile(c1)", "(lambda: 1)", "f'{x0}'", "x0 if x1 else x2", "0.5"])
def test_source_of_other_kinds_is_not_kept_or_not_read(source):
    with pytest.raises(FormatError, match="open|tofile|lambda|x0|0.5"):
        SourceReader(["x0", "x1", "x2", "c1"]).expression(encode_expression(source))


def test_functions_in_functions_are_kept():
    inner = " def v1(v1_0):\n  v2 = np.add(v1_0,x0)\n  return (v2,)\n"
    (data,) = encode_functions(f"def run(sizes, x0):\n d0, = sizes\n{inner} return (v1,d0,)")
    read = "\n".join(SourceReader((), ["d0"]).function(data, ("run",)))
    function, size = define(read, "run", {"np": np})((3,), 4)
    assert (function(1), size) == ((5,), 3)


def test_a_kernel_for_different_sizes_serves_for_equal_ones(folder, monkeypatch):
    made_once()
    square = [np.arange(16, dtype=FLOAT).reshape(4, 4) for _ in range(2)]
    forget()
    with monkeypatch.context() as patch:
        forbid_traces(patch)
        _, found = computed(OPS["dot"].call(False), (0, 1), square)
    np.testing.assert_array_equal(found[0], square[0] @ square[1])


def test_what_asked_whether_sizes_differ_does_not_serve_for_equal_ones(folder):
    def body(specs):
        a, b = specs
        return (a,) if a.shape == b.shape else (b,)

    different = [((2, 3), FLOAT), ((4, 3), FLOAT)]
    trace = trace_symbolically(body, *pattern_of(different))
    guard = guard_function(trace.names, trace.guards)
    assert guard((5, 6, 7)) and not guard((5, 6, 5))


@pytest.mark.parametrize("name", ["FullyConnected", "Convolution", "Embedding", "RNN"])
def test_one_trace_serves_for_all_parameters_that_repeat_a_size(name, folder, monkeypatch):
    sample = all_samples()[name][0]
    call, arrays = call_of(sample), [np.asarray(a) for a in sample.arrays]
    avals = tuple((a.shape, a.dtype) for a in arrays)
    plain = call.without_stated_sizes(avals)
    assert plain is not call and plain is OPS[name].bind({**plain.params}, plain.train)
    assert plain.infer(avals) == call.infer(avals)
    stated = {n: call.params[n] + 1 for n in OPS[name].traits.stated_sizes}
    other = OPS[name].bind({**call.params, **stated}, call.train)
    assert other.without_stated_sizes(avals) is other


def test_a_wrong_parameter_that_repeats_a_size_is_told_as_it_was_given():
    call = OPS["FullyConnected"].call(False, num_hidden=3)
    with pytest.raises(MXNetError, match="num_hidden=3"):
        call.infer((((2, 5), FLOAT), ((3, 4), FLOAT), ((3,), FLOAT)))


def ship(folder: Path, monkeypatch) -> Path:
    """Put what a folder holds into a file as it comes with the package, and empty the folder."""
    path = folder / "shipped.json"
    assert trace_store.TraceFile.write(path, folder) == 1
    file_of(folder / "traces").unlink()
    monkeypatch.setattr(trace_store, "SHIPPED", path)
    forget()
    return path


def test_what_comes_with_the_package_is_used(folder, monkeypatch):
    call, arrays, wanted = made_once()
    ship(folder, monkeypatch)
    forbid_traces(monkeypatch)
    assert [v.tobytes() for v in computed(call, (0, 1), arrays)[1]] == wanted


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw.replace(trace_store.source_digest().encode(), b"0" * 32),
        lambda raw: raw[:-20],
        lambda raw: raw[:40],
        lambda raw: b"",
        lambda raw: raw.replace(b":[0,", b":[-1,"),
        lambda raw: raw.replace(b":[0,", b":[9,"),
    ],
)
def test_a_damaged_file_of_the_package_is_not_used(damage, folder, monkeypatch):
    call, arrays, wanted = made_once()
    path = ship(folder, monkeypatch)
    damaged = damage(path.read_bytes())
    assert damaged != path.read_bytes()
    path.write_bytes(damaged)
    forget()
    assert not trace_store.store.read(trace_store.key_of(call, pattern_of(AVALS)[0]))
    assert [v.tobytes() for v in computed(call, (0, 1), arrays)[1]] == wanted
