"""Record what MXNet 1.9.1 answers to the programs of tests/ndarray/snippets.py; run with MXNet's Python."""

import json
import math
import sys
from pathlib import Path

import mxnet as mx
import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "ndarray"))
import snippets  # noqa: E402


def answer(text):
    scope = {"mx": mx, "nd": mx.nd, "np": np}
    try:
        exec(snippets.program(text), scope)
        out = snippets.describe(scope["out"], mx.nd.NDArray)
        mx.nd.waitall()
        return {"out": out}
    except Exception as e:
        return {"error": type(e).__name__}


def clean(v):
    """JSON has no NaN."""
    if isinstance(v, float) and not math.isfinite(v):
        return str(v)
    if isinstance(v, list):
        return [clean(x) for x in v]
    if isinstance(v, dict):
        return {k: clean(x) for k, x in v.items()}
    return v


if __name__ == "__main__":
    found = {s: clean(answer(s)) for s in snippets.SNIPPETS}
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
    (HERE / "ndarray.json").write_text("{\n" + lines + "\n}\n")
    print(len(found), "programs,", sum("error" in v for v in found.values()), "errors")
