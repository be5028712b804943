"""`dualmx serve`: serve predictions of an exported network over HTTP."""

from __future__ import annotations

import argparse
import io
import json
import signal
import sys
import threading
import zipfile
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, ArgumentTypeError, FormatError, MXNetError
from ..core.reader import Content
from ..predictor import Predictor

_NPZ = "application/x-npz"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(
        prog="dualmx serve",
        description="Serve a network that was exported to PREFIX-symbol.json and PREFIX-0000.params.",
        epilog="curl -d '{\"data\": [[1, 2]]}' http://127.0.0.1:8080/predict",
    )
    p.add_argument("prefix", help="beginning of the file names")
    p.add_argument("--epoch", type=int, default=0, help="number in the name of the parameter file")
    p.add_argument(
        "--input",
        action="append",
        required=True,
        metavar="NAME=DIMS[:DTYPE]",
        help="an input, and the shape of one sample: data=3,224,224 or ids=128:int32; repeat for more",
    )
    p.add_argument("--output", action="append", default=[], metavar="NAME", help="an inner output; repeat for more")
    p.add_argument("--buckets", default="1,4,16,64", help="batch sizes that are compiled; others are filled up")
    p.add_argument("--device", default="cpu", choices=("cpu", "gpu", "tpu"))
    p.add_argument(
        "--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 for all, without any check of who asks"
    )
    p.add_argument("--port", type=int, default=8080, help="0 for any")
    p.add_argument("--max-mb", type=int, default=64, help="largest request in MiB")
    return p


def parse_input(text: str) -> tuple[str, tuple[int, ...], np.dtype[Any]]:
    """Return name, shape of a sample, and dtype.

    Raises:
        ArgumentError: it is written otherwise.

    Example:
        >>> parse_input("ids=128:int32")
        ('ids', (128,), dtype('int32'))
    """
    name, _, rest = text.partition("=")
    dims, _, dtype = rest.partition(":")
    try:
        shape = tuple(int(d) for d in dims.split(",") if d)
        if not name or "=" not in text or any(d < 1 for d in shape):
            raise ValueError
    except ValueError:
        raise ArgumentError(f"--input {text!r}: expected NAME=DIMS[:DTYPE], as data=3,224,224") from None
    return name, shape, as_dtype(dtype or "float32")


class Model:
    """A network for batches of any size, by programs for some sizes.

    Args:
        prefix, epoch: of the exported files.
        inputs: `(name, shape of a sample, dtype)`.
        buckets: batch sizes that are compiled, here and now.
        outputs: names of inner outputs; empty for the network's.
        device: `"cpu"`, `"gpu"` or `"tpu"`.

    Raises:
        ArgumentError: an output has no axis of samples, or sizes are not positive. MXNetError: see `Predictor`.
    """

    def __init__(
        self,
        prefix: str,
        epoch: int,
        inputs: Sequence[tuple[str, tuple[int, ...], np.dtype[Any]]],
        buckets: Sequence[int],
        outputs: Sequence[str] = (),
        device: str = "cpu",
    ):
        if not buckets or min(buckets) < 1:
            raise ArgumentError(f"--buckets {','.join(map(str, buckets))!r}: expected positive batch sizes")
        self.inputs = {name: (shape, dtype) for name, shape, dtype in inputs}
        first = Predictor(
            f"{prefix}-symbol.json",
            f"{prefix}-{epoch:04d}.params",
            self._shapes(min(buckets)),
            device,
            type_dict={name: dtype for name, (_, dtype) in self.inputs.items()},
            output_names=outputs,
        )
        self.outputs = first.output_names
        self._lock = threading.Lock()
        self._of_size = {size: first.reshaped(self._shapes(size)) for size in sorted(set(buckets))}
        for size, predictor in self._of_size.items():
            predictor.forward()
            for i, name in enumerate(self.outputs):
                shape = predictor.get_output(i).shape
                if shape[:1] != (size,):
                    raise ArgumentError(
                        f"output {name!r} has shape {shape} for {size} samples: expected an axis of samples"
                    )

    @property
    def buckets(self) -> list[int]:
        """The batch sizes that were compiled."""
        return list(self._of_size)

    def _shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        return {name: (size, *shape) for name, (shape, _) in self.inputs.items()}

    def predict(self, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the outputs by name, for inputs of equally many samples.

        Raises:
            ArgumentTypeError: no numbers, or of several lengths. ArgumentError: an input is missing, unknown, or of
                another shape.
        """
        if set(given) != set(self.inputs):
            raise ArgumentError(f"inputs {', '.join(sorted(given)) or 'none'}: expected {', '.join(self.inputs)}")
        arrays = {name: self._checked(name, value) for name, value in given.items()}
        rows = {len(a) for a in arrays.values()}
        if len(rows) != 1 or rows == {0}:
            lengths = ", ".join(f"{name}: {len(a)}" for name, a in arrays.items())
            raise ArgumentError(f"samples by input: {lengths}: expected the same number in each, one or more")
        (count,) = rows
        parts = [self._run(arrays, at, count) for at in range(0, count, max(self._of_size))]
        return {name: np.concatenate([part[i] for part in parts]) for i, name in enumerate(self.outputs)}

    def _checked(self, name: str, value: Any) -> np.ndarray:
        shape, dtype = self.inputs[name]
        expected = f"({', '.join(map(str, ('samples', *shape)))})"
        try:
            found = np.asarray(value, dtype)
        except (TypeError, ValueError, OverflowError) as e:
            raise ArgumentTypeError(f"input {name!r}: {e}; expected numbers of shape {expected}") from e
        if found.ndim == 0 or found.shape[1:] != shape:
            raise ArgumentError(f"input {name!r} has shape {found.shape}, expected {expected}")
        return found

    def _run(self, arrays: Mapping[str, np.ndarray], at: int, count: int) -> list[np.ndarray]:
        rows = min(count - at, max(self._of_size))
        size = next(s for s in self._of_size if s >= rows)
        batch = {}
        for name, a in arrays.items():
            batch[name] = np.zeros((size, *a.shape[1:]), a.dtype)
            batch[name][:rows] = a[at : at + rows]
        with self._lock:
            predictor = self._of_size[size]
            predictor.forward(**batch)
            return [predictor.get_output(i)[:rows] for i in range(len(self.outputs))]


class Handler(BaseHTTPRequestHandler):
    """`POST /predict`, `GET /model`, `GET /health`."""

    protocol_version = "HTTP/1.1"
    timeout = 30  # seconds in which a client must go on
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of single requests."""

    def do_GET(self) -> None:
        """Describe the model, or report that the server is alive."""
        model = self.server.model
        if self.path == "/health":
            self._tell(200, {"status": "ok"})
        elif self.path == "/model":
            inputs = {n: {"shape": [None, *shape], "dtype": dtype.name} for n, (shape, dtype) in model.inputs.items()}
            self._tell(200, {"inputs": inputs, "outputs": model.outputs, "buckets": model.buckets})
        else:
            self._refuse(404, f"{self.path}: expected /predict, /model or /health")

    def do_POST(self) -> None:
        """Answer with the outputs, in the format of the question: JSON, or NumPy's `.npz`."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            return self._refuse(411, "Content-Length is missing", close=True)
        if int(length) > self.server.most:
            return self._refuse(413, f"{length} bytes, of at most {self.server.most}", close=True)
        body = self.rfile.read(int(length))
        if self.path != "/predict":
            return self._refuse(404, f"{self.path}: expected /predict, /model or /health")
        by_numpy = self.headers.get_content_type() == _NPZ
        try:
            found = self.server.model.predict(_arrays(body, self.server.most) if by_numpy else _json(body))
        except (ArgumentError, ArgumentTypeError, FormatError) as e:
            return self._refuse(400, str(e))
        except MXNetError as e:
            print(f"dualmx serve: {e}", file=sys.stderr, flush=True)
            return self._refuse(500, str(e))
        if by_numpy:
            return self._answer(200, _packed(found), _NPZ)
        return self._tell(200, {"outputs": {name: value.tolist() for name, value in found.items()}})

    def _tell(self, status: int, what: Any) -> None:
        self._answer(status, json.dumps(what).encode() + b"\n", "application/json")

    def _refuse(self, status: int, why: str, close: bool = False) -> None:
        self.close_connection = close or self.close_connection
        self._tell(status, {"error": why})

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """Serves a model; `most` is the largest request in bytes."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], model: Model, most: int):
        super().__init__(address, Handler)
        self.model, self.most = model, most

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no reason for a traceback."""
        print(f"dualmx serve: {client_address[0]}: {sys.exc_info()[1]!r}", file=sys.stderr, flush=True)


def _packed(arrays: Mapping[str, np.ndarray]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, value in arrays.items():
            with file.open(f"{name}.npy", "w") as part:
                np.lib.format.write_array(part, value, allow_pickle=False)
    return out.getvalue()


def _json(body: bytes) -> Mapping[str, Any]:
    found = Content(body, "request", "JSON").json()
    if not isinstance(found, dict):
        raise ArgumentError('expected {"name of an input": [samples]}')
    return found


def _arrays(body: bytes, most: int) -> Mapping[str, Any]:
    found = Content(body, "request", "a .npz file of numbers").npz()
    size = sum(value.nbytes for value in found.values())
    if size > most:  # what is packed may be many times as large
        raise ArgumentError(f"{size} bytes when unpacked, of at most {most}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until interrupted; returns the exit status."""
    o = parser().parse_args(argv)
    try:
        buckets = [int(b) for b in o.buckets.split(",") if b]
    except ValueError:
        print(f"dualmx serve: --buckets {o.buckets!r}: expected batch sizes, as 1,4,16", file=sys.stderr)
        return 2
    try:
        model = Model(o.prefix, o.epoch, [parse_input(i) for i in o.input], buckets, o.output, o.device)
        server = Server((o.host, o.port), model, o.max_mb << 20)
    except (MXNetError, OSError) as e:
        print(f"dualmx serve: {e}", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(f"serving {o.prefix} on http://{server.server_address[0]}:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    return 0


__all__ = ["Model", "main", "parse_input", "parser"]
