"""Record the cases of `recurrent_cases.py` from MXNet 1.9.1: arrays into `recurrent.npz`, names into `.json`.

Run with a Python that has MXNet: `python tests/goldens/record_recurrent.py` from the repository root.
"""

from __future__ import annotations

import json
import os
import sys

import mxnet as mx  # pyright: ignore[reportMissingImports]
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import recurrent_cases as cases  # noqa: E402


def main() -> None:
    """Record every case."""
    arrays: dict[str, np.ndarray] = {}
    facts: dict[str, object] = {"graph": cases.graph(mx)}

    def keep(name: str, found: dict[str, np.ndarray]) -> None:
        arrays.update({f"{name}|{k}": v for k, v in found.items()})

    for name in cases.LAYERS:
        found, facts[name] = cases.run_layer(mx, name)
        keep(f"layer_{name}", found)
    for name, how in cases.PAIRS:
        keep(f"cell_{name}_{how}", cases.run_cell(mx, name, how))
    for name in cases.CONVOLUTIONS:
        keep(name, cases.run_convolution(mx, name))
    layer = mx.gluon.rnn.LSTM(2, 2, input_size=3, bidirectional=True, prefix="lstm_")
    layer.initialize(mx.init.Uniform(0.5))
    layer.save_parameters(os.path.join(HERE, "recurrent.params"))
    arrays["file|out"] = layer(mx.nd.ones((2, 1, 3))).asnumpy()
    np.savez_compressed(os.path.join(HERE, "recurrent.npz"), **arrays)
    with open(os.path.join(HERE, "recurrent.json"), "w") as f:
        json.dump(facts, f, indent=None, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
