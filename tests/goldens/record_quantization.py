"""Record how MXNet 1.9.1 quantizes the networks of `quantization_cases.py`, into `quantization.json`.

Run with a Python that has MXNet: `python tests/goldens/record_quantization.py` from the repository root.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import mxnet as mx  # pyright: ignore[reportMissingImports]

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from mxnet.contrib.quantization import quantize_model  # noqa: E402  # pyright: ignore[reportMissingImports]

from tests.goldens.quantization_cases import described, networks  # noqa: E402


def main() -> None:
    """Record every network."""
    logging.disable(logging.CRITICAL)
    found = {name: described(mx, quantize_model, network, params) for name, network, params in networks(mx)}
    text = json.dumps(found, separators=(",", ":")).replace('],"', '],\n"')
    (HERE / "quantization.json").write_text(text + "\n")
    print(len(found), "networks")


if __name__ == "__main__":
    main()
