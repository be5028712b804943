"""Records, with the real MXNet 1.9.1, the dtypes and some values of `mx.np` into np.json.

python tests/goldens/record_np.py            # run by an interpreter that has mxnet
"""

from __future__ import annotations

import json
from pathlib import Path

import np_cases


def main() -> None:
    import mxnet
    import numpy as onp

    mxnet.npx.set_np()
    table = {}
    for name, expression in np_cases.EXPRESSIONS.items():
        try:
            table[name] = np_cases.described(np_cases.evaluate(expression, mxnet.np, onp), onp)
        except Exception:  # what MXNet refuses is not compared
            continue
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(table.items()))
    Path(__file__).with_name("np.json").write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
