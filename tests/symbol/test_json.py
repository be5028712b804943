"""Symbol JSON: versions since 0.8, damaged files, and what MXNet itself makes of our files."""

from __future__ import annotations

import copy
import json
import os
import pickle
import random
import subprocess

import numpy as np
import pytest

import dualmx as mx
from tests.goldens.symbol_cases import BUILDS

X = {"op": "null", "name": "x", "inputs": []}


def on_x(op, **attrs):
    return {"op": op, "name": "n", "attrs": attrs, "inputs": [[0, 0, 0]]}


def document(nodes, heads=((0, 0, 0),), version=10901, **more):
    arg_nodes = [i for i, n in enumerate(nodes) if isinstance(n, dict) and n.get("op") == "null"]
    attrs = {} if version is None else {"attrs": {"mxnet_version": ["int", version]}}
    return json.dumps({"nodes": nodes, "arg_nodes": arg_nodes, "heads": [list(h) for h in heads], **attrs, **more})


def batch_norm_0_8():
    """A file as MXNet 0.8 wrote them: `param` and `attr`, pairs instead of triples, no auxiliary states."""
    nodes = [
        {"op": "null", "param": {}, "name": "data", "inputs": [], "backward_source_id": -1},
        {
            "op": "null",
            "param": {},
            "name": "bn_gamma",
            "inputs": [],
            "backward_source_id": -1,
            "attr": {"lr_mult": "2"},
        },
        {"op": "null", "param": {}, "name": "bn_beta", "inputs": [], "backward_source_id": -1},
        {
            "op": "BatchNorm",
            "param": {"eps": "0.001", "fix_gamma": "False"},
            "attr": {"ctx_group": "dev1", "beta_lr_mult": "3"},
            "name": "bn",
            "inputs": [[0, 0], [1, 0], [2, 0]],
            "backward_source_id": -1,
        },
    ]
    return document(nodes, [(3, 0)], None)


def test_a_file_of_version_0_8():
    s = mx.sym.load_json(batch_norm_0_8())
    assert s.list_arguments() == ["data", "bn_gamma", "bn_beta"]
    assert s.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    attrs = s.attr_dict()
    assert attrs["bn_gamma"]["__lr_mult__"] == "2"
    assert attrs["bn_beta"]["__lr_mult__"] == "3"
    assert attrs["bn"]["__ctx_group__"] == "dev1"
    assert attrs["bn_moving_mean"]["__init__"] == '["zero", {}]'
    assert attrs["bn_moving_var"]["__init__"] == '["one", {}]'
    assert s.infer_shape(data=(2, 3))[2] == [(3,), (3,)]


def test_a_file_of_version_0_9_names_its_attributes_attr():
    nodes = [X, {"op": "Activation", "name": "a", "attr": {"act_type": "tanh"}, "inputs": [[0, 0, 0]]}]
    s = mx.sym.load_json(document(nodes, [(1, 0, 0)], 903))
    assert s.list_attr() == {"act_type": "tanh"}


@pytest.mark.parametrize(("version", "shape"), [(904, (1,)), (905, (2,)), (10901, (2,))])
def test_argmax_over_axis_minus_one_meant_all_axes(version, shape):
    nodes = [X, {"op": "argmax", "name": "a", "attrs": {"axis": "-1"}, "inputs": [[0, 0, 0]]}]
    assert mx.sym.load_json(document(nodes, [(1, 0, 0)], version)).infer_shape(x=(2, 3))[1] == [shape]


@pytest.mark.parametrize(
    ("nodes", "heads", "part"),
    [
        ([X], [(5, 0, 0)], "5"),
        ([X], [(0, 5, 0)], "5"),
        ([X], [(-1, 0, 0)], "index -1"),
        ([X], [(0, -1, 0)], "index -1"),
        ([X], [(0,)], "entry"),
        ([X], [("0", 0, 0)], "index"),
        ([{"op": "null", "name": "x"}], [(0, 0, 0)], "inputs"),
        ([{"op": "null", "inputs": []}], [(0, 0, 0)], "name"),
        ([{"op": "null", "name": 3, "inputs": []}], [(0, 0, 0)], "name"),
        ([{**X, "zzz": 1}], [(0, 0, 0)], "zzz"),
        ([{**X, "attrs": {"a": 1}}], [(0, 0, 0)], "'a'"),
        ([X, {"op": "relu", "name": "n", "inputs": [[1, 0, 0]]}], [(1, 0, 0)], "index 1"),
        ([X, {"op": "relu", "name": "n", "inputs": [[-1, 0, 0]]}], [(1, 0, 0)], "index -1"),
        ([X, {"op": "relu", "name": "n", "inputs": [[0, 0, 0], [0, 0, 0]]}], [(1, 0, 0)], "2 inputs"),
        ([X, on_x("FullyConnected", num_hidden="1")], [(1, 0, 0)], "1 inputs"),
        ([X, on_x("Nope")], [(1, 0, 0)], "Nope"),
        ([X, on_x("Activation", act_type="tan")], [(1, 0, 0)], "act_type"),
        ([X, on_x("Activation", act_type="tanh", foo="1")], [(1, 0, 0)], "foo"),
    ],
)  # fmt: skip
def test_a_wrong_graph_names_the_problem(nodes, heads, part):
    with pytest.raises(mx.MXNetError, match=part):
        mx.sym.load_json(document(nodes, heads))


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"arg_nodes": None}, "missing field 'arg_nodes'"),
        ({"arg_nodes": [1]}, "'arg_nodes' lists node 1 .*no variable"),
        ({"arg_nodes": [0, 2]}, "index 2"),
        ({"arg_nodes": [-1]}, "index -1"),
        ({"attrs": {"mxnet_version": ["int"]}}, "a pair like"),
        ({"attrs": {"mxnet_version": ["int", "10901"]}}, "mxnet_version"),
        ({"heads": None}, "'heads'"),
        ({"nodes": None}, "'nodes'"),
    ],
)
def test_a_wrong_document_names_the_field(changes, part):
    doc = {**json.loads(document([X, on_x("relu")], [(1, 0, 0)])), **changes}
    with pytest.raises(mx.MXNetError, match=part):
        mx.sym.load_json(json.dumps({k: v for k, v in doc.items() if v is not None}))


@pytest.mark.parametrize(
    ("node", "part"),
    [
        ({**on_x("relu"), "subgraphs": [{}]}, "this operator has no subgraphs"),
        ({**on_x("BatchNorm"), "inputs": [[0, 0, 0]] * 3 + [[1, 0, 0]] * 2}, "index 1"),
    ],
)
def test_a_wrong_node_names_the_problem(node, part):
    with pytest.raises(mx.MXNetError, match=part):
        mx.sym.load_json(document([X, node], [(1, 0, 0)]))


def test_a_state_that_is_a_result_is_refused():
    nodes = [X, {**on_x("relu"), "name": "r"}, {**on_x("BatchNorm"), "inputs": [[0, 0, 0]] * 4 + [[1, 0, 0]]}]
    with pytest.raises(mx.MXNetError, match="input 'moving_var' is a state, but no variable feeds it"):
        mx.sym.load_json(document(nodes, [(2, 0, 0)]))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '{"nodes": []}', "{}", "[" * 100000, '{"nodes": 3}'])
def test_what_is_no_graph_raises(text):
    with pytest.raises(mx.MXNetError, match="symbol JSON.*; it is damaged or of another kind"):
        mx.sym.load_json(text)


def test_a_name_that_is_no_string_raises():
    with pytest.raises(TypeError, match="load_json: expected a string, got int"):
        mx.sym.load_json(3)
    with pytest.raises(TypeError, match="load: fname=3: expected the path of a file"):
        mx.sym.load(3)
    with pytest.raises(mx.MXNetError, match="nowhere"):
        mx.sym.load("/nowhere.json")


def test_a_damaged_byte_raises_or_loads_but_never_escapes(tmp_path):
    with mx.name.NameManager():
        data = BUILDS["mlp"](mx).tojson().encode()
    rng = random.Random(1)
    path = tmp_path / "net.json"
    for _ in range(400):
        broken = bytearray(data)
        at = rng.randrange(len(broken))
        if rng.random() < 0.3:
            del broken[at : at + rng.randrange(1, 40)]
        else:
            broken[at] = rng.randrange(256)
        path.write_bytes(bytes(broken))
        try:
            mx.sym.load(str(path)).tojson()
        except mx.MXNetError:
            pass


def test_save_and_load(tmp_path):
    with mx.name.NameManager():
        net = BUILDS["convnet"](mx)
    net.save(str(tmp_path / "net.json"))
    assert mx.sym.load(str(tmp_path / "net.json")).tojson() == net.tojson()


def test_copies_are_independent():
    with mx.name.NameManager():
        net = BUILDS["mlp"](mx)
    for other in (copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other.tojson() == net.tojson()
        other._set_attr(__note__="1")
        assert net.attr("__note__") is None


def test_casts_of_mixed_precision_are_left_out():
    x = mx.sym.var("x")
    cast = mx.sym.amp_cast(x, dtype="float16")
    net = mx.sym.FullyConnected(cast, num_hidden=2, name="fc")
    assert "amp_cast" not in net.tojson()
    assert "amp_cast" in net.tojson(remove_amp_cast=False)
    assert mx.sym.load_json(net.tojson()).list_arguments() == ["x", "fc_weight", "fc_bias"]


READ_IN_MXNET = """
import json, sys
import mxnet as mx
import numpy as np
net = mx.sym.load(sys.argv[1])
assert net.tojson() == open(sys.argv[1]).read()
exe = net.simple_bind(mx.cpu(), **{k: tuple(v) for k, v in json.loads(sys.argv[2]).items()})
rng = np.random.RandomState(3)
for name in sorted(exe.arg_dict):
    exe.arg_dict[name][:] = rng.uniform(-1, 1, exe.arg_dict[name].shape).astype(np.float32)
for name, array in exe.aux_dict.items():
    array[:] = 1 if name.endswith("var") else 0
print(json.dumps([o.asnumpy().tolist() for o in exe.forward()]))
"""


@pytest.mark.parametrize(
    ("build", "shapes"),
    [
        ("mlp", {"data": (4, 5)}),
        ("convnet", {"data": (2, 3, 8, 8)}),
        ("residual", {"data": (3, 4)}),
        ("grouped", {"x": (2, 6)}),
    ],
)
def test_mxnet_loads_and_runs_our_file(tmp_path, build, shapes):
    python = os.environ.get("DUALMX_ORACLE_PYTHON")
    if not python:
        pytest.skip("set DUALMX_ORACLE_PYTHON to a Python with MXNet 1.9.1 to run this comparison")
    with mx.name.NameManager():
        net = BUILDS[build](mx)
    path = tmp_path / "net.json"
    net.save(str(path))
    done = subprocess.run(
        [python, "-W", "ignore", "-c", READ_IN_MXNET, str(path), json.dumps(shapes)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    exe = net.simple_bind(mx.cpu(), **shapes)
    rng = np.random.RandomState(3)
    for name in sorted(exe.arg_dict):
        exe.arg_dict[name][:] = rng.uniform(-1, 1, exe.arg_dict[name].shape).astype(np.float32)
    for name, array in exe.aux_dict.items():
        array[:] = 1 if name.endswith("var") else 0
    for got, want in zip(exe.forward(), json.loads(done.stdout.splitlines()[-1]), strict=True):
        np.testing.assert_allclose(got.asnumpy(), np.float32(want), rtol=1e-5, atol=1e-6)


WRITE_ZOO = """
import json, sys
import mxnet as mx
out = {}
for name in ("resnet18_v1", "resnet50_v2", "vgg11_bn", "alexnet", "densenet121", "squeezenet1.0", "inceptionv3",
             "mobilenet0.25", "mobilenetv2_0.25"):
    with mx.name.NameManager():
        net = mx.gluon.model_zoo.vision.get_model(name)(mx.sym.var("data"))
    side = 299 if name == "inceptionv3" else 224
    lists = net.infer_shape(data=(2, 3, side, side))
    out[name] = {"json": net.tojson(), "side": side, "shapes": [[list(s) for s in part] for part in lists]}
json.dump(out, open(sys.argv[1], "w"))
"""


def test_the_model_zoo_of_mxnet_survives_a_round_trip(tmp_path):
    python = os.environ.get("DUALMX_ORACLE_PYTHON")
    if not python:
        pytest.skip("set DUALMX_ORACLE_PYTHON to a Python with MXNet 1.9.1 to run this comparison")
    path = tmp_path / "zoo.json"
    done = subprocess.run([python, "-W", "ignore", "-c", WRITE_ZOO, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    for name, case in json.loads(path.read_text()).items():
        net = mx.sym.load_json(case["json"])
        assert net.tojson() == case["json"], name
        found = net.infer_shape(data=(2, 3, case["side"], case["side"]))
        assert [[list(s) for s in part] for part in found] == case["shapes"], name


def test_work_space_counts_among_the_outputs():
    """As in files of MXNet, whose outputs for work space nothing reads."""
    x = mx.sym.Variable("x")
    for made, count in ((mx.sym.sort(x), 2), (mx.sym.L2Normalization(x), 2), (mx.sym.linalg.det(x), 3)):
        assert json.loads(made.tojson())["node_row_ptr"] == [0, 1, 1 + count]
