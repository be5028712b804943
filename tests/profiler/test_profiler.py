"""The profiler: what its Chrome trace and its totals say."""

import json
import os
import sys

import pytest

import dualmx as mx
from dualmx import autograd, nd, profiler
from dualmx.compile.events import listeners
from dualmx.ndarray.recorder import engine
from tests import jobs

HERE = os.path.abspath(__file__)


@pytest.fixture
def trace(tmp_path):
    """Run the profiler; returns a function that stops it and reads the file."""
    file = tmp_path / "trace.json"
    before = dict(profiler.profiler.control.settings)
    profiler.set_config(filename=str(file))
    profiler.profiler.control.recorder.clear()  # of what other tests recorded
    profiler.dumps(reset=True)

    def read():
        profiler.set_state("stop")
        profiler.dump()
        content = json.loads(file.read_text())
        assert content["displayTimeUnit"] == "ms"
        return content["traceEvents"]

    yield read
    profiler.set_state("stop")
    profiler.profiler.control.settings.update(before)
    profiler.profiler.control.recorder.capacity = before["max_events"]
    profiler.profiler.control.recorder.clear()
    profiler.dumps(reset=True)
    assert listeners == []


def of(events, category):
    return [e for e in events if e.get("cat") == category]


def inside(inner, outer):
    return outer["ts"] - 0.01 <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.01


def line():
    return sys._getframe(1).f_lineno


@pytest.mark.usefixtures("xla_tier")
def test_a_flush_names_its_operators_and_user_lines_and_invents_no_times(trace):
    profiler.set_state("run")
    # A shape of its own: a program has the lines that recorded it first.
    x = nd.ones((1, 37))
    first = line() + 1
    y = nd.tanh(x) * 3
    z = y.sum()
    z.asnumpy()
    (y + 1).asnumpy()
    events = trace()
    # What is not measured has no slice.
    assert {e["cat"] for e in events if e["ph"] == "X"} == {"flush", "execute", "compile", "record"}
    flushes = of(events, "flush")
    assert len(flushes) == 2 and [f["args"]["operations"] for f in flushes] == [3, 1]
    assert flushes[0]["args"]["operators"] == {"tanh": 1, "_mul_scalar": 1, "sum": 1}
    assert [f["args"]["lines"] for f in flushes] == [
        {f"{HERE}:{first}": {"tanh": 1, "_mul_scalar": 1}, f"{HERE}:{first + 1}": {"sum": 1}},
        {f"{HERE}:{first + 3}": {"_plus_scalar": 1}},
    ]
    for f, e, c in zip(flushes, of(events, "execute"), of(events, "compile"), strict=True):
        assert inside(e, f) and inside(c, f) and c["ts"] + c["dur"] <= e["ts"] + 0.01
    assert set(json.loads(profiler.dumps(format="json"))["Time"]) == {"flush", "execute", "compile", "record"}


@pytest.mark.usefixtures("numpy_tier")
def test_operators_of_programs_that_are_not_compiled_have_times(trace):
    w = nd.ones((2, 37))
    w.attach_grad()
    net = mx.gluon.nn.Dense(3, in_units=37)
    net.initialize()
    net.hybridize()
    profiler.set_state("run")
    with autograd.record():
        loss = (net(w) * 2).sum()
    loss.backward()
    w.grad.asnumpy()
    events = trace()
    operators, executed = of(events, "operator"), of(events, "execute")
    names = [e["name"] for e in operators]
    assert {"FullyConnected", "_backward_FullyConnected", "sum", "_backward_sum"} <= set(names)
    assert all(any(inside(o, e) for e in executed) for o in operators)
    assert len(of(events, "prepare")) == len(executed) and not of(events, "compile")
    assert of(events, "prepare")[0]["args"]["where"].startswith(HERE)
    totals = json.loads(profiler.dumps(format="json"))
    assert totals["Time"]["operator"]["_backward_FullyConnected"]["Count"] == 1
    assert totals["Fused"] == {}


@pytest.mark.usefixtures("xla_tier")
def test_compilations_have_a_reason_and_lie_inside_their_flush(trace):
    profiler.set_state("run")
    for n in (3, 4, 4):
        (nd.ones((n, 43)) * 1.25 + 0.75).asnumpy()
    events = trace()
    compiles, flushes = of(events, "compile"), of(events, "flush")
    assert len(compiles) == 2 and len(flushes) == 3
    assert all(inside(c, f) for c, f in zip(compiles, flushes, strict=False))
    assert "float32[4, 43]" in compiles[1]["args"]["reason"] and "float32[3, 43]" in compiles[1]["args"]["reason"]
    assert compiles[0]["args"]["where"].startswith(HERE)
    assert compiles[0]["args"]["operations"] == 2
    # What the user did between flushes is shown between them.
    assert len(of(events, "record")) == 2


def test_backward_is_an_operation_with_a_line(trace):
    w = nd.ones((41,))
    w.attach_grad()
    profiler.set_state("run")
    with autograd.record():
        loss = (w * w).sum()
    loss.backward()
    at = line() - 1
    w.grad.asnumpy()
    (flush,) = of(trace(), "flush")
    assert flush["args"]["lines"][f"{HERE}:{at}"] == {"backward": 1}
    assert set(flush["args"]["operators"]) == {"broadcast_mul", "sum", "backward"}


@pytest.mark.usefixtures("xla_tier")
@pytest.mark.parametrize("setting, size", [({"profile_imperative": True}, 5), ({"mode": "per_op"}, 6)])
def test_each_operation_has_its_own_time_when_asked(trace, setting, size):
    profiler.set_config(**setting)
    profiler.set_state("run")
    assert engine.naive
    x = nd.ones((4, size)) * 2
    nd.dot(x, x.T).asnumpy()
    with pytest.raises(mx.MXNetError, match="stop the profiler"):
        profiler.set_config(mode="program")
    events = trace()
    assert not engine.naive
    operators = of(events, "operator")
    assert [e["name"] for e in operators if e["name"] != "_ones"] == ["_mul_scalar", "transpose", "dot"]
    assert all(e["dur"] > 0 and e["args"]["where"].startswith(HERE) for e in operators)
    assert not of(events, "flush")
    compiles = of(events, "compile")
    assert len(compiles) >= 3
    for o in operators:  # what was compiled for it comes before
        assert not any(c["ts"] < o["ts"] + o["dur"] - 0.01 and o["ts"] + 0.01 < c["ts"] + c["dur"] for c in compiles)
    assert sum(c["ts"] < operators[-1]["ts"] for c in compiles) == len(compiles)
    table = json.loads(profiler.dumps(format="json"))
    assert table["Time"]["operator"]["dot"]["Count"] == 1
    assert table["Fused"] == {}


def test_marks_of_the_program(trace):
    domain = profiler.Domain("mine")
    silent = domain.new_task("before")
    with silent:
        pass
    profiler.set_state("run")
    task, frame, event = domain.new_task("work"), domain.new_frame("step"), profiler.Event("alone")
    task.start()
    with frame, event:
        (nd.ones((2,)) + 1).asnumpy()
    task.stop()
    counter = domain.new_counter("items", 5)
    counter += 3
    counter -= 1
    counter.increment()
    domain.new_marker("here").mark("thread")
    profiler.pause()
    counter.set_value(100)
    (nd.ones((2,)) + 1).asnumpy()
    profiler.resume()
    counter.set_value(1)
    events = trace()
    spans = [(e["name"], e["ph"], e["cat"]) for e in events if e["ph"] in "be"]
    assert spans == [
        ("alone", "b", "event"),
        ("alone", "e", "event"),
        ("step", "b", "mine,frame"),
        ("step", "e", "mine,frame"),
        ("work", "b", "mine"),
        ("work", "e", "mine"),
    ]
    assert [e["args"]["items"] for e in events if e["ph"] == "C"] == [5, 8, 7, 8, 1]
    assert [(e["name"], e["s"]) for e in events if e["ph"] == "i"] == [("here", "t")]
    assert len(of(events, "flush")) == 1
    assert str(task) == "work" and str(domain) == "mine" and str(counter) == "items"


def test_an_operation_outside_programs_is_measured_after_a_first_run(trace):
    calls = []
    x = mx.np.array([3.0, 1.0, 3.0, 2.0])
    x.wait_to_read()
    profiler.set_state("run")
    for _ in range(2):
        calls.append(mx.np.unique(x).asnumpy().tolist())
    events = trace()
    assert calls == [[1.0, 2.0, 3.0]] * 2
    runs, operators = of(events, "first run"), of(events, "operator")
    assert [e["args"]["operator"] for e in runs] == [e["name"] for e in operators] and len(runs) == 2
    for first, second in zip(runs, operators, strict=True):
        assert first["ts"] + first["dur"] <= second["ts"] + 0.01


def test_counters_are_no_times(trace):
    profiler.set_state("run")
    counter = profiler.Domain("mine").new_counter("level", -5)
    counter -= 2
    profiler.set_state("stop")
    found = json.loads(profiler.dumps(format="json"))
    assert "mine" not in found["Time"]
    assert found["Value"] == {"mine": {"level": {"Count": 2, "Min": -7, "Max": -5, "Avg": -6}}}
    heads = profiler.dumps().split("mine (counters)")[1].splitlines()[2].split("  ")
    assert [h.strip() for h in heads if h] == ["Name", "Total Count", "Min Value", "Max Value", "Avg Value"]
    assert json.loads(profiler.dumps(format="json", reset=True)) and "level" not in profiler.dumps()


@pytest.mark.usefixtures("xla_tier")
def test_totals_table(trace):
    profiler.set_state("run")
    for _ in range(3):
        (nd.ones((6, 2)) * 5 - 1).asnumpy()
    text = profiler.dumps()
    assert "Profile Statistics:" in text and "flush" in text and "Total Count" in text
    counts = json.loads(profiler.dumps(format="json", sort_by="count", ascending=True, reset=True))
    assert counts["Time"]["flush"]["flush"]["Count"] == 3
    assert counts["Fused"] == {"_mul_scalar": 3, "_minus_scalar": 3}
    assert json.loads(profiler.dumps(format="json"))["Fused"] == {}


def test_the_trace_is_bounded(trace):
    profiler.set_config(max_events=20)
    profiler.set_state("run")
    for _ in range(30):
        (nd.ones((2,)) + 1).asnumpy()
    assert len([e for e in trace() if e["ph"] != "M"]) <= 20
    with open(profiler.profiler.control.settings["filename"]) as f:
        dropped = json.load(f)["otherData"]["dropped"]
    assert int(dropped) > 0


def test_dump_can_go_on(trace):
    profiler.set_state("run")
    (nd.ones((2,)) + 1).asnumpy()
    profiler.dump(finished=False)
    (nd.ones((2,)) + 1).asnumpy()
    assert len(of(trace(), "flush")) == 2


def test_a_failing_operation_does_not_stop_the_profiler(trace):
    profiler.set_state("run")
    with pytest.raises(mx.MXNetError, match=r"dot: shapes \(2, 3\) and \(2, 3\)"):
        nd.dot(nd.ones((2, 3)), nd.ones((2, 3)))
    assert (nd.ones((2,)) + 1).asnumpy().tolist() == [2.0, 2.0]
    assert len(of(trace(), "flush")) == 1


def test_off_it_is_not_there():
    assert listeners == []
    profiler.set_state("stop")
    profiler.pause()
    profiler.resume()
    assert listeners == []


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: profiler.set_config(filenam="x"), "unknown setting 'filenam'.*filename"),
        (lambda: profiler.set_config(filename=3), "filename=3"),
        (lambda: profiler.set_config(mode="slow"), "mode='slow'.*program, per_op"),
        (lambda: profiler.set_config(max_events=0), "max_events=0"),
        (lambda: profiler.set_state("go"), "state='go'.*'run' or 'stop'"),
        (lambda: profiler.set_state("run", profile_process="server"), "profile_process='server'"),
        (lambda: profiler.dumps(format="xml"), "format='xml'"),
        (lambda: profiler.dumps(sort_by="name"), "sort_by='name'.*total"),
        (lambda: profiler.Domain("d").new_marker("m").mark("here"), "scope='here'.*global"),
        (lambda: profiler.Domain(3), "name=3"),
    ],
)
def test_wrong_settings(call, text):
    with pytest.raises(mx.MXNetError, match=text):
        call()
    assert listeners == []


def test_an_unwritable_file_keeps_the_events(trace, tmp_path):
    profiler.set_state("run")
    (nd.ones((2,)) + 1).asnumpy()
    good = profiler.profiler.control.settings["filename"]
    profiler.set_config(filename=str(tmp_path / "none" / "trace.json"))
    with pytest.raises(mx.MXNetError, match="cannot write"):
        profiler.dump()
    profiler.set_config(filename=good)
    assert len(of(trace(), "flush")) == 1


def test_deprecated_names(trace, tmp_path):
    with pytest.warns(DeprecationWarning, match="set_config"):
        profiler.profiler_set_config(mode="all", filename=str(tmp_path / "old.json"))
    with pytest.warns(DeprecationWarning, match="set_state"):
        profiler.profiler_set_state("run")
    with pytest.warns(DeprecationWarning, match="set_state"):
        profiler.profiler_set_state("stop")
    with pytest.warns(DeprecationWarning, match="dump"):
        profiler.dump_profile()
    assert json.loads((tmp_path / "old.json").read_text())["traceEvents"]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["0", "1"])
def test_autostart(tmp_path, mode):
    env = {"MXNET_PROFILER_AUTOSTART": "1", "MXNET_PROFILER_MODE": mode, "DUALMX_TIER": "xla"}
    code = "import dualmx as mx; (mx.nd.ones((2,)) * 2 + 1).asnumpy()"
    jobs.run(jobs.PYTHON, "-c", code, env=env, cwd=tmp_path)
    events = json.loads((tmp_path / "profile.json").read_text())["traceEvents"]
    names = [e["name"] for e in of(events, "operator")]
    assert names == (["_ones", "_mul_scalar", "_plus_scalar"] if mode == "1" else [])
