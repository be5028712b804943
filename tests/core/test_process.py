"""What dualmx does to its process and reads from it: settings, environment variables, the debug ladder, doctor."""

import contextlib
import gc
import json
import os
import re
from pathlib import Path

import pytest

import dualmx
from dualmx.core import process
from dualmx.core.errors import ArgumentError
from dualmx.core.knobs import _ACCEPTED, BULK, KNOBS
from tests import jobs

ROOT = Path(dualmx.__file__).parents[1]


def python(*args, status=0, **env):
    """Run Python in a fresh process; returns its output and error output."""
    clean = dict.fromkeys(knob.name for knob in KNOBS)
    done = jobs.run(jobs.PYTHON, *args, env={**clean, **env}, status=status)
    return done.stdout, done.stderr


STEP = """
import dualmx as mx
x = mx.nd.ones((3, 5))
x.attach_grad()
with mx.autograd.record():
    y = (mx.nd.exp(x) * 2).sum()
y.backward()
x.grad.asnumpy()
"""


def test_import_and_work_change_no_setting_and_no_variable(tmp_path):
    code = """
import json, os, sys, warnings, logging, signal
import jax, numpy as np
def state():
    found = {f"jax {k}": repr(v) for k, v in jax.config.values.items()}
    found |= {f"env {k}": v for k, v in os.environ.items()}
    found["numpy"] = repr(np.geterr()) + repr(np.get_printoptions())
    found["log"] = repr((logging.root.level, logging.root.handlers))
    found["warnings"] = repr(warnings.filters)
    found["interrupt"] = repr(signal.getsignal(signal.SIGINT))
    found["recursion"] = sys.getrecursionlimit()
    return found
before = state()
import dualmx
after_import = state()
STEP
dualmx.nd.array([1, 2], dtype="float64").asnumpy()
dualmx.profiler.set_state("run"); (dualmx.nd.ones((2,)) + 1).asnumpy(); dualmx.profiler.set_state("stop")
after_work = state()
print(json.dumps([{k: [b.get(k), a.get(k)] for k in {*a, *b} if a.get(k) != b.get(k)}
                  for b, a in ((before, after_import), (after_import, after_work))]))
print(jax.numpy.ones(2).dtype, jax.numpy.arange(3).dtype)
""".replace("STEP", STEP)
    out, _ = python("-c", code, DUALMX_CACHE_DIR=str(tmp_path))
    changes, defaults = out.strip().splitlines()
    assert json.loads(changes) == [{}, {}]
    # The user's own JAX code keeps its 32-bit default types.
    assert defaults == "float32 int32"


@pytest.mark.parametrize("level", [0, 1, 2, 3, 4])
def test_debug_ladder(level):
    _, said = python("-c", STEP, DUALMX_DEBUG=str(level), DUALMX_CACHE_DIR="", DUALMX_TIER="xla")
    found = {
        1: re.search(r"\[dualmx\] compiled 3 operations, .* ms .*<string>:7.*reason: the first program", said)
        and re.search(r"\[dualmx\] flush of \d+ steps, 2 results at <string>:7", said),
        2: re.search(r"op +_mul_scalar\(scalar=2.0\) .*float32\[3, 5\].*<string>:6", said),
        3: re.search(r"jaxpr: .*lambda", said, re.S),
        4: re.search(r"lowered: module @.*compiled: HloModule", said, re.S),
    }
    assert [n for n, there in found.items() if there] == list(range(1, level + 1)), said


def test_debug_gives_the_reason_of_a_second_compilation():
    code = "import dualmx as mx\nfor n in (2, 3): (mx.nd.ones((n,)) * 2).asnumpy()"
    _, said = python("-c", code, DUALMX_DEBUG="1")
    reasons = re.findall(r"reason: (.*)", said)
    assert len(reasons) == 2 and "float32[3]" in reasons[1] and "float32[2]" in reasons[1]


@pytest.mark.parametrize(
    "name, value",
    [
        ("DUALMX_DEBUG", "9"),
        ("MXNET_ENGINE_TYPE", "Fast"),
        ("MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN", "many"),
        ("MXNET_PROFILER_AUTOSTART", "yes"),
    ],  # fmt: skip
)
def test_a_wrong_value_of_a_variable_is_an_error_naming_it(name, value):
    _, said = python("-c", "import dualmx", status=1, **{name: value})
    assert f"ArgumentError: environment variable {name}={value!r}: expected" in said


@pytest.mark.parametrize("knob", [k for k in KNOBS if k.choices], ids=lambda k: k.name)
def test_choices(knob, monkeypatch):
    for value in knob.choices:
        monkeypatch.setenv(knob.name, value)
        assert knob.read() == value
    monkeypatch.setenv(knob.name, "no such choice")
    with pytest.raises(ArgumentError, match=f"{knob.name}='no such choice'.*{re.escape(knob.choices[0])}"):
        knob.read()
    monkeypatch.delenv(knob.name)
    assert knob.read() == knob.default


def test_numbers(monkeypatch):
    for wrong in ("0", "-3", "1.5", ""):
        monkeypatch.setenv(BULK.name, wrong)
        with pytest.raises(ArgumentError, match=BULK.name):
            BULK.integer(1)
    monkeypatch.setenv(BULK.name, "7")
    assert BULK.integer(1) == 7


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_of_a_process_that_computes_ends_and_does_not_compute():
    code = """
import os, sys
import dualmx as mx
kept = mx.nd.ones((3,)) * 2
there = FIRST
print(there, flush=True)
child = os.fork()
if child == 0:
    x = mx.nd.ones((5,)) * 3 + kept[0]
    try:
        print(kept.asnumpy().tolist() if there else "", x.asnumpy().tolist())
    except mx.MXNetError as e:
        print(kept.asnumpy().tolist(), e)
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (kept + 1).asnumpy().tolist())
"""
    out, _ = python("-W", "ignore", "-c", code.replace("FIRST", "kept.asnumpy().tolist()"))
    assert re.search(r"^\[2.0, 2.0, 2.0\] this process is a fork .*'spawn'", out, re.M), out
    assert out.endswith("7 [3.0, 3.0, 3.0]\n")
    out, _ = python("-W", "ignore", "-c", code.replace("FIRST", "0"))
    assert " [5.0, 5.0, 5.0, 5.0, 5.0]\n7 [3.0, 3.0, 3.0]\n" in out


def test_doctor():
    out, _ = python("-m", "dualmx.cli", "doctor", XLA_FLAGS="--xla_force_host_platform_device_count=2")
    assert re.search(r"python +3\.", out) and re.search(r"jax +0\.", out)
    assert re.search(r"cpu +2 device", out)
    for knob in KNOBS:
        assert f"{knob.name}={knob.default!r} (default)" in out and knob.doc in out
    assert "XLA_FLAGS=--xla_force_host_platform_device_count=2" in out
    assert "x64       off" in out


@pytest.mark.slow
def test_doctor_tells_which_variables_change_nothing():
    given = {"PS_RESEND": "1", "MXNET_KVSTORE_USETREE": "1", "MXNET_KVSTORE_BIGARRY_BOUND": "9", "MXNET_SOMETHING": "x"}
    out, _ = python("-m", "dualmx.cli", "doctor", status=0, **given)
    told = dict(re.findall(r"^  (\w+)\n      (.*)", out[out.index("without effect") :], re.M))
    assert told.keys() >= given.keys() and "PS_RESEND_TIMEOUT" in told["PS_RESEND"]
    assert told["MXNET_KVSTORE_BIGARRY_BOUND"] == "not known; did you mean MXNET_KVSTORE_BIGARRAY_BOUND?"
    assert told["MXNET_SOMETHING"] == "not known" and "program" in told["MXNET_KVSTORE_USETREE"]


@pytest.mark.slow
def test_variables_that_are_none_warn_once_with_the_nearest_name():
    given = {
        "DUALMX_ONEDNN": "MXNET_MKLDNN_ENABLED",
        "MXNET_ONEDNN_ENABLED": "MXNET_MKLDNN_ENABLED",
        "MXNET_KVSTORE_BIGARRY_BOUND": "MXNET_KVSTORE_BIGARRAY_BOUND",
        "DMLC_NUM_WORKERS": "DMLC_NUM_WORKER",
        "PS_HEARTBEAT_TIME": "PS_HEARTBEAT_TIMEOUT",
        "DUALMX_HOME": "MXNET_HOME",
        "MXNET_CUDNN_AUTOTUNE": "MXNET_CUDNN_AUTOTUNE_DEFAULT",
        "DUALMX_QQQ": None,
    }
    code = "import sys\nimport dualmx as mx\nfrom dualmx import gluon, kv\nmx.nd.ones((1,)).asnumpy()"
    _, told = python("-c", code, **dict.fromkeys(given, "0"))
    found = re.findall(
        r"UserWarning: the environment variable (\w+) changes nothing: not known(?:; did you mean (\w+)\?)?", told
    )
    assert dict(found) == {name: near or "" for name, near in given.items()} and len(found) == len(given)
    assert "<string>:2: UserWarning" in told  # the line that imports dualmx


def test_variables_of_mxnet_and_of_others_are_silent():
    known = {knob.name: knob.default for knob in KNOBS if knob.default}
    others = dict.fromkeys(["PS_FORMAT", "DUALMX_ORACLE_PYTHON", "HOROVOD_GPU_ALLREDUCE", "PATH_"], "1")
    _, told = python("-W", "error", "-c", "import dualmx", **known, **dict.fromkeys(_ACCEPTED, "1"), **others)
    assert "changes nothing" not in told


def test_doctor_points_at_a_wrong_value():
    out, _ = python("-m", "dualmx.cli", "doctor", status=1, MXNET_UPDATE_ON_KVSTORE="maybe")
    assert "MXNET_UPDATE_ON_KVSTORE=INVALID" in out and "expected one of 0, 1" in out


def test_the_naive_engine_names_the_line_of_a_failure():
    code = """
import dualmx as mx
assert mx.ndarray.recorder.engine.naive
x = mx.nd.ones((2,)) * 3
assert mx.debug.pending() == 0
print(x.asnumpy().tolist())
"""
    out, _ = python("-c", code, MXNET_ENGINE_TYPE="NaiveEngine")
    assert out.split("\n")[0] == "[3.0, 3.0]"


@pytest.mark.parametrize("is_enabled", [True, False])
def test_collection_goes_on_after_a_pause_as_before(is_enabled):
    before = gc.isenabled()
    try:
        (gc.enable if is_enabled else gc.disable)()
        with contextlib.suppress(KeyError), process.paused_collection():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() == is_enabled
    finally:
        (gc.enable if before else gc.disable)()
