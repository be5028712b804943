"""Record the losses of 20 training steps by the real MXNet 1.9.1 into `losses.json` beside this file.

Run from the repository root with an interpreter that has MXNet: `PYTHON tests/goldens/record_losses.py`.
"""

import json
import sys
from pathlib import Path

import mxnet as mx

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.loops import GluonLoop, ModuleLoop
from benchmarks.networks import batches

# Images are scaled down so that training is smooth: a chaotic start would amplify rounding beyond any comparison.
STEPS, SIZE, SCALE = 20, 32, 0.25


def losses(loop):
    """Mean loss of each step."""
    found = []
    for _ in range(STEPS):
        loop.step()
        found.append(loop.loss())
    return found


def main():
    """All networks in MXNet's three ways of running them."""
    recorded = {"mxnet": mx.__version__, "steps": STEPS, "batch": SIZE, "scale": SCALE}
    for network in ("mlp", "lenet"):
        data = [(SCALE * x, y) for x, y in batches(network, SIZE)[:4]]
        recorded[network] = {
            "imperative": losses(GluonLoop(mx, network, data, hybrid=False)),
            "hybrid": losses(GluonLoop(mx, network, data, hybrid=True)),
            "symbolic": losses(ModuleLoop(mx, network, data)),
        }
    Path(__file__).with_name("losses.json").write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
