"""Ask MXNet 1.9.1 again: `PYTHON tests/goldens/record.py NAME...`, with an interpreter that has it.

Each name is one of `RECORDINGS`. `operators` is followed by the file that `export_operators.py` wrote.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.goldens.store import save  # noqa: E402

NAMED = (
    "contrib control edge elementwise gluon graph image losses metric module nn np npx operators optimizer "
    "quantization recurrent shape signature sparse vision zoo"
).split()
# A name, and the module that says how it is recorded.
RECORDINGS = {name: f"tests.goldens.{name}_cases" for name in NAMED} | {
    "hooks": "tests.goldens.hooks_spy",
    "ndarray": "tests.ndarray.snippets",
    "symbol": "tests.goldens.symbol_facts",
}


def main(names: list[str]) -> None:
    """Record what is named."""
    import mxnet as mx  # pyright: ignore[reportMissingImports]

    while names:
        name = names.pop(0)
        more = [names.pop(0)] if name == "operators" else []
        save(name, importlib.import_module(RECORDINGS[name]).record(mx, *more))
        print(name, "recorded")


if __name__ == "__main__":
    main(sys.argv[1:])
