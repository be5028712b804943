"""Record the calls of `graph_cases.py` from MXNet 1.9.1 into `graph.json`.

Run with a Python that has MXNet: `python tests/goldens/record_graph.py` from the repository root.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import mxnet as mx  # pyright: ignore[reportMissingImports]

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from mxnet.ndarray.numpy import _internal  # noqa: E402  # pyright: ignore[reportMissingImports]

from tests.goldens.graph_cases import DRAWS, graphs, masks, numpy_nodes  # noqa: E402


def node(name: str, *arrays: Any, **params: Any) -> Any:
    """Results of one of NumPy's internal operators; drawn ones by shape."""
    given = [a.copy() for a in arrays]
    if "assign" in name:
        params["out"] = given[0]
    found = getattr(_internal, name)(*given, **params)
    outs = found if isinstance(found, (list, tuple)) else [found]
    return [[str(o.dtype), list(o.shape), None if name in DRAWS else o.asnumpy().tolist()] for o in outs]


def main() -> None:
    """Record every call."""
    found = {name: call() for cases in (graphs(mx), masks(mx)) for name, call in cases}
    mx.npx.set_np()
    found |= {name: call() for name, call in numpy_nodes(mx, node)}
    text = json.dumps(found, separators=(",", ":")).replace('],"', '],\n"')
    (HERE / "graph.json").write_text(text + "\n")
    print(len(found), "calls")


if __name__ == "__main__":
    main()
