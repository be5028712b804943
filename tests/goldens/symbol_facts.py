"""What MXNet says of the symbols of `symbol_cases.py`: names, JSON, inference results, executor runs."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import numpy as np

from tests.goldens.symbol_cases import BUILDS, EXPRESSIONS, INFERENCES, RUNS
from tests.goldens.symbol_random import random_graph


def facts(symbol: Any) -> dict[str, Any]:
    """Everything a symbol says of itself."""
    return {
        "json": symbol.tojson(),
        "name": symbol.name,
        "arguments": symbol.list_arguments(),
        "outputs": symbol.list_outputs(),
        "states": symbol.list_auxiliary_states(),
        "internals": symbol.get_internals().list_outputs(),
        "attr_dict": symbol.attr_dict(),
        "debug_str": symbol.debug_str(),
    }


def evaluate(mx: Any, text: str) -> Any:
    """The symbol of one expression, named as if it were the first of the program."""
    with mx.name.NameManager():
        scope = {"sym": mx.sym, **{n: mx.sym.Variable(n) for n in "xyz"}}
        return eval(text, scope)


def infer(mx: Any, text: str, method: str, kwargs: dict[str, Any]) -> Any:
    """The result of an inference method, dtypes by name, errors as the text `error`."""
    try:
        lists = getattr(evaluate(mx, text), method)(**kwargs)
    except Exception:
        return "error"
    return [None if part is None else [plain(v) for v in part] for part in lists]


def plain(value: Any) -> Any:
    """A shape or dtype as JSON."""
    return None if value is None else list(value) if isinstance(value, tuple) else np.dtype(value).name


def run(mx: Any, build: str, shapes: dict[str, tuple[int, ...]], grad_req: str) -> dict[str, Any]:
    """Two steps forward and backward: outputs, gradients, states."""
    with mx.name.NameManager():
        symbol = BUILDS[build](mx)
    exe = symbol.simple_bind(mx.cpu(), grad_req=grad_req, **shapes)
    rng = np.random.RandomState(7)
    for name in sorted(exe.arg_dict):
        exe.arg_dict[name][:] = rng.uniform(-1, 1, exe.arg_dict[name].shape).astype(np.float32)
    for name, array in exe.aux_dict.items():
        array[:] = 1 if name.endswith("var") else 0
    steps = []
    for _ in range(2):
        exe.forward(is_train=True)
        heads = [mx.nd.array(rng.uniform(0.5, 1.5, o.shape)) for o in exe.outputs]
        exe.backward(heads)
        steps.append(
            {
                "outputs": [o.asnumpy().tolist() for o in exe.outputs],
                "grads": {n: g.asnumpy().tolist() for n, g in exe.grad_dict.items()},
                "states": {n: a.asnumpy().tolist() for n, a in exe.aux_dict.items()},
            }
        )
    return {"steps": steps, "inference": [o.asnumpy().tolist() for o in exe.forward()]}


def random_case(mx: Any, seed: int) -> dict[str, Any]:
    """A random graph, and what MXNet infers of it."""
    with mx.name.NameManager():
        symbol, given = random_graph(mx, seed)
    graph = json.dumps(json.loads(symbol.tojson()), separators=(",", ":"))
    found = []
    for method in ("infer_shape", "infer_shape_partial"):
        try:
            lists = getattr(symbol, method)(**given)
            found.append([None if part is None else [list(s) for s in part] for part in lists])
        except Exception:
            found.append("error")
    return {"graph": graph, "given": given, "full": found[0], "partial": found[1]}


def registered_names(mx: Any) -> dict[str, str]:
    """Registry name of every operator name: one that fails to load tells it in its error, another in its JSON."""
    import ctypes

    from mxnet.base import _LIB, check_call, py_str  # pyright: ignore[reportMissingImports]

    count, names = ctypes.c_uint(), ctypes.POINTER(ctypes.c_char_p)()
    check_call(_LIB.MXListAllOpNames(ctypes.byref(count), ctypes.byref(names)))
    return {name: found for name in sorted(py_str(names[i]) for i in range(count.value)) if (found := ask(mx, name))}


def ask(mx: Any, name: str) -> str:
    """Registry name of one operator, asked in a child process because some operators crash on missing inputs."""
    end, start = os.pipe()
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        node = {"op": name, "name": "n", "inputs": []}
        heads = {"arg_nodes": [], "heads": [[0, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}}
        try:
            found = json.loads(mx.sym.load_json(json.dumps({"nodes": [node], **heads})).tojson())["nodes"][0]["op"]
        except Exception as e:
            match = re.search(r"in operator ([^(\s]+)\(", str(e))
            found = match.group(1) if match else ""
        os.write(start, found.encode())
        os._exit(0)
    os.close(start)
    found = os.read(end, 1 << 16).decode()
    os.close(end)
    os.waitpid(child, 0)
    return found


def record(mx: Any) -> Any:
    """Everything."""
    graphs, nodes = {}, {}
    for name, build in BUILDS.items():
        with mx.name.NameManager():
            graphs[name] = facts(build(mx))
    for text in EXPRESSIONS:
        s = evaluate(mx, text)
        nodes[text] = {"json": s.tojson(), "outputs": s.list_outputs(), "name": s.name}
    return {
        "graphs": dict(sorted(graphs.items())),
        "nodes": dict(sorted(nodes.items())),
        "inference": [[t, m, k, infer(mx, t, m, k)] for t, m, k in INFERENCES],
        "runs": dict(sorted((name, run(mx, *case)) for name, case in RUNS.items())),
        "random": [random_case(mx, seed) for seed in range(150)],
        "names": registered_names(mx),
    }
