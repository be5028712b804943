"""Exported networks answer without training code: from Python, and over HTTP in a process of their own."""

from __future__ import annotations

import http.client
import io
import json
import re
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import ArgumentError, ArgumentKeyError, ArgumentTypeError, FormatError
from dualmx.predictor import Predictor, load_ndarray_file
from dualmx.tools.serve import Model, main, parse_input
from tests import jobs

X = np.random.RandomState(0).rand(11, 3, 6, 6).astype("float32")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, np.ndarray]:
    """A prefix of files, and what the network says of `X`."""
    prefix = str(tmp_path_factory.mktemp("exported") / "net")
    mx.random.seed(1)
    net = mx.gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(mx.gluon.nn.Conv2D(4, 3, activation="relu"), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dense(5))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    out = net(mx.nd.array(X)).asnumpy()
    net.export(prefix)
    return prefix, out


def opened(prefix: str, rows: int, **more: Any) -> Predictor:
    return Predictor(f"{prefix}-symbol.json", f"{prefix}-0000.params", {"data": (rows, 3, 6, 6)}, **more)


class TestPredictor:
    def test_outputs_are_those_of_the_network(self, exported: tuple[str, np.ndarray]) -> None:
        prefix, want = exported
        text, raw = Path(f"{prefix}-symbol.json").read_text(), Path(f"{prefix}-0000.params").read_bytes()
        predictor = Predictor(text, raw, {"data": X.shape})
        for data in (X, mx.nd.array(X), X.tolist()):
            predictor.forward(data=data)
            np.testing.assert_allclose(predictor.get_output(0), want, rtol=1e-5, atol=1e-6)
        assert predictor.input_shapes == {"data": X.shape} and len(predictor.output_names) == 1

    def test_other_shapes_share_the_parameters(self, exported: tuple[str, np.ndarray]) -> None:
        prefix, want = exported
        predictor = opened(prefix, 11)
        two = predictor.reshaped({"data": (2, 3, 6, 6)})
        two.forward(data=X[3:5])
        np.testing.assert_allclose(two.get_output(0), want[3:5], rtol=1e-5, atol=1e-6)
        assert two._params["net_dense0_weight"] is predictor._params["net_dense0_weight"]
        predictor.forward(data=X)
        predictor.reshape({"data": (1, 3, 6, 6)})
        with pytest.raises(ArgumentError, match="call forward first"):
            predictor.get_output(0)
        predictor.forward(data=X[:1])
        np.testing.assert_allclose(predictor.get_output(0), want[:1], rtol=1e-5, atol=1e-6)

    def test_inner_outputs(self, exported: tuple[str, np.ndarray]) -> None:
        predictor = opened(exported[0], 1, output_names=["net_conv0_fwd", "net_dense0_fwd_output"])
        assert predictor.output_names == ["net_conv0_fwd_output", "net_dense0_fwd_output"]
        predictor.forward(data=X[:1])
        assert predictor.get_output(0).shape == (1, 4, 4, 4)
        np.testing.assert_allclose(predictor.get_output(1), exported[1][:1], rtol=1e-5, atol=1e-6)

    def test_labels_play_no_part(self) -> None:
        net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), name="softmax")
        params = {"arg:fc_weight": mx.nd.ones((2, 3)), "arg:fc_bias": mx.nd.zeros((2,))}
        predictor = Predictor(net.tojson(), mx.nd.save_tobuffer(params), {"data": (4, 3)})
        predictor.forward(data=np.zeros((4, 3)))
        assert predictor.get_output(0).tolist() == [[0.5, 0.5]] * 4

    def test_types_of_inputs(self) -> None:
        net = mx.sym.Embedding(mx.sym.var("ids"), input_dim=3, output_dim=1, name="e")
        params = mx.nd.save_tobuffer({"arg:e_weight": mx.nd.array([[1], [2], [3]])})
        predictor = Predictor(net.tojson(), params, {"ids": (2,)}, type_dict={"ids": "int32"})
        predictor.forward(ids=[2, 0])
        assert predictor.get_output(0).tolist() == [[3.0], [1.0]]

    def test_wrong_arguments(self, exported: tuple[str, np.ndarray]) -> None:
        prefix, _ = exported
        predictor = opened(prefix, 2)
        with pytest.raises(ArgumentKeyError, match="input 'image' is none of data"):
            predictor.forward(image=X[:2])
        with pytest.raises(ArgumentError, match=r"shape \(3, 3, 6, 6\), expected \(2, 3, 6, 6\); call reshape"):
            predictor.forward(data=X[:3])
        with pytest.raises(ArgumentTypeError, match="input 'data'"):
            predictor.forward(data="many")
        with pytest.raises(ArgumentError, match="index=1: the network has 1 outputs"):
            predictor.get_output(1)
        with pytest.raises(ArgumentKeyError, match="input 'image' is none of the network's: data"):
            predictor.reshape({"image": (1,)})
        with pytest.raises(ArgumentKeyError, match="'fc9': no such output; the network has .*net_dense0_fwd_output"):
            opened(prefix, 1, output_names=["fc9"])
        text = Path(f"{prefix}-symbol.json").read_text()
        params = mx.nd.load(f"{prefix}-0000.params")
        del params["arg:net_dense0_weight"]
        with pytest.raises(ArgumentKeyError, match="net_dense0_weight: neither among the parameters"):
            Predictor(text, mx.nd.save_tobuffer(params), {"data": (1, 3, 6, 6)})
        with pytest.raises(FormatError, match="not a .params file: name 7 of 8.*; it is damaged"):
            Predictor(text, Path(f"{prefix}-0000.params").read_bytes()[:-9], {"data": (1, 3, 6, 6)})

    def test_files_of_arrays(self) -> None:
        raw = mx.nd.save_tobuffer([mx.nd.ones((2,)), mx.nd.zeros((1,))])
        assert [a.tolist() for a in load_ndarray_file(raw)] == [[1.0, 1.0], [0.0]]

    def test_no_training_code_is_loaded(self, exported: tuple[str, np.ndarray]) -> None:
        code = (
            "import sys, numpy as np, dualmx as mx\n"
            "p = mx.predictor.Predictor(sys.argv[1] + '-symbol.json', sys.argv[1] + '-0000.params',"
            " {'data': (1, 3, 6, 6)})\n"
            "p.forward(data=np.ones((1, 3, 6, 6)))\n"
            "assert p.get_output(0).shape == (1, 5)\n"
            "print([m for m in sys.modules if m.split('.')[:2][-1] in ('gluon', 'module', 'optimizer', 'kvstore')"
            " and m.startswith('dualmx.')])\n"
        )
        done = jobs.run(jobs.PYTHON, "-c", code, exported[0])
        assert done.stdout.strip() == "[]"


class Client:
    """Talks to a server in another process."""

    def __init__(self, port: int):
        self.port = port

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    def predict(self, given: Any) -> tuple[int, Any]:
        status, body = self.ask("POST", "/predict", json.dumps(given).encode())
        return status, json.loads(body)


@pytest.fixture(scope="module")
def served(exported: tuple[str, np.ndarray]) -> Iterator[Client]:
    command = [jobs.PYTHON, "-m", "dualmx.cli", "serve", exported[0], "--input", "data=3,6,6"]
    command += ["--buckets", "1,4", "--port", "0", "--max-mb", "1"]
    with jobs.running(*command, env={"PYTHONUNBUFFERED": "1"}, stderr=None) as process:
        assert process.stdout is not None
        found = re.search(r"on http://127\.0\.0\.1:(\d+)$", process.stdout.readline().strip())
        assert found is not None
        yield Client(int(found[1]))
        process.send_signal(signal.SIGTERM)
        jobs.finish(process)
        assert process.returncode == 0
    process.stdout.close()


class TestServer:
    @pytest.mark.parametrize("rows", [1, 2, 4, 11])
    def test_batches_of_any_size(self, rows: int, served: Client, exported: tuple[str, np.ndarray]) -> None:
        status, found = served.predict({"data": X[:rows].tolist()})
        assert status == 200
        (out,) = found["outputs"].values()
        np.testing.assert_allclose(out, exported[1][:rows], rtol=1e-5, atol=1e-6)

    def test_arrays_of_numpy(self, served: Client, exported: tuple[str, np.ndarray]) -> None:
        packed = io.BytesIO()
        np.savez_compressed(packed, data=X)
        status, body = served.ask("POST", "/predict", packed.getvalue(), Content_Type="application/x-npz")
        assert status == 200
        with np.load(io.BytesIO(body)) as found:
            (name,) = found.files
            np.testing.assert_allclose(found[name], exported[1], rtol=1e-5, atol=1e-6)

    def test_it_tells_of_itself(self, served: Client) -> None:
        assert served.ask("GET", "/health") == (200, b'{"status": "ok"}\n')
        status, body = served.ask("GET", "/model")
        told = json.loads(body)
        assert status == 200 and told["buckets"] == [1, 4] and len(told["outputs"]) == 1
        assert told["inputs"] == {"data": {"shape": [None, 3, 6, 6], "dtype": "float32"}}

    @pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
    def test_curl(self, served: Client) -> None:
        body = json.dumps({"data": X[:1].tolist()})
        command = ["curl", "-sS", "-d", "@-", f"http://127.0.0.1:{served.port}/predict"]
        done = jobs.run(*command, given=body)
        assert np.shape(next(iter(json.loads(done.stdout)["outputs"].values()))) == (1, 5)

    @pytest.mark.parametrize(
        "given, text",
        [
            ({"data": [[1, 2]]}, r"input 'data' has shape \(1, 2\), expected \(samples, 3, 6, 6\)"),
            ({"data": "x"}, "could not convert string to float"),
            ({"data": [[1], [1, 2]]}, "inhomogeneous"),
            ({"data": []}, "input 'data' has shape|one or more"),
            ({"image": X[:1].tolist()}, "inputs image: expected data"),
            ({}, "inputs none: expected data"),
            ([1], "expected .*name of an input"),
        ],
    )
    def test_wrong_questions(self, given: Any, text: str, served: Client) -> None:
        status, found = served.predict(given)
        assert status == 400 and re.search(text, found["error"]), found

    def test_wrong_requests(self, served: Client) -> None:
        status, body = served.ask("POST", "/predict", b"{'data'")
        assert status == 400 and b"not JSON" in body
        status, body = served.ask("POST", "/predict", b"PK\x03\x04no", Content_Type="application/x-npz")
        assert status == 400 and b"a .npz file" in body
        assert served.ask("GET", "/predicted")[0] == 404 and served.ask("POST", "/model", b"{}")[0] == 404
        assert served.ask("DELETE", "/model")[0] == 501

    def test_nothing_is_unpickled_and_nothing_large_is_read(self, served: Client) -> None:
        packed = io.BytesIO()
        np.savez(packed, data=np.array([{"a": 1}], dtype=object))
        status, body = served.ask("POST", "/predict", packed.getvalue(), Content_Type="application/x-npz")
        assert status == 400 and b"of plain elements" in body
        packed = io.BytesIO()
        np.savez_compressed(packed, data=np.zeros((1 << 20, 3), "float32"))
        status, body = served.ask("POST", "/predict", packed.getvalue(), Content_Type="application/x-npz")
        assert status == 400 and b"bytes when unpacked, of at most 1048576" in body
        with socket.create_connection(("127.0.0.1", served.port), timeout=30) as raw:
            raw.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")
            assert raw.recv(100).startswith(b"HTTP/1.1 413")
        with socket.create_connection(("127.0.0.1", served.port), timeout=30) as raw:
            raw.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\n\r\n")
            assert raw.recv(100).startswith(b"HTTP/1.1 411")
        assert served.ask("GET", "/health")[0] == 200


class TestStart:
    def test_only_bucket_sizes_are_compiled(self, exported: tuple[str, np.ndarray]) -> None:
        model = Model(exported[0], 0, [parse_input("data=3,6,6")], [2, 4])
        with mx.debug.assert_compiles(0):
            for rows in (1, 2, 3, 4, 7, 11):
                (out,) = model.predict({"data": X[:rows]}).values()
                np.testing.assert_allclose(out, exported[1][:rows], rtol=1e-5, atol=1e-6)

    def test_outputs_need_an_axis_of_samples(self, tmp_path: Path) -> None:
        prefix = str(tmp_path / "sum")
        mx.sym.sum(mx.sym.broadcast_mul(mx.sym.var("data"), mx.sym.var("w")), name="total").save(
            f"{prefix}-symbol.json"
        )
        mx.nd.save(f"{prefix}-0000.params", {"arg:w": mx.nd.ones((1,))})
        with pytest.raises(ArgumentError, match="output 'total_output' has shape .*: expected an axis of samples"):
            Model(prefix, 0, [parse_input("data=1")], [2])

    @pytest.mark.parametrize("text", ["data", "=3", "data=a", "data=3,-1", "data=3,0"])
    def test_inputs_are_checked(self, text: str) -> None:
        with pytest.raises(ArgumentError, match="expected NAME=DIMS"):
            parse_input(text)

    def test_wrong_command_lines(self, exported: tuple[str, np.ndarray], capsys: pytest.CaptureFixture[str]) -> None:
        assert main([exported[0] + "x", "--input", "data=3,6,6"]) == 1
        assert "netx-symbol.json" in capsys.readouterr().err
        assert main([exported[0], "--input", "data=3,6,6", "--buckets", "one"]) == 2
        assert main([exported[0], "--input", "data=3,6,6", "--buckets", "0"]) == 1
        assert main([exported[0], "--input", "image=3,6,6"]) == 1
        assert "input 'image' is none of the network's: data" in capsys.readouterr().err
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = str(taken.getsockname()[1])
            assert main([exported[0], "--input", "data=3,6,6", "--buckets", "1", "--port", port]) == 1
        assert "in use" in capsys.readouterr().err
