"""Record loops and branches over symbols: JSON text, outputs and gradients. Run with MXNet 1.9.1; see conftest.

python tests/goldens/record_control.py
"""

from __future__ import annotations

import json
import os

import mxnet as mx
from control_cases import CASES, inputs

RECORD = {}
for name, build in CASES.items():
    with mx.name.NameManager():
        symbol = build(mx.sym)
    args = {k: mx.nd.array(v) for k, v in inputs(name).items()}
    grads = {k: mx.nd.zeros(v.shape) for k, v in args.items()}
    outs = []
    # 1.9.1 cannot differentiate some graphs, as when a loop reads a weight twice, and cannot run some nested ones.
    for train in (True, False):
        try:
            exe = symbol.bind(mx.cpu(), args, grads if train else None)
            outs = exe.forward(is_train=train)
            if train:
                exe.backward([mx.nd.full(o.shape, i + 1) for i, o in enumerate(outs)])
            outs = [o.asnumpy().tolist() for o in outs]
            grads = {k: g.asnumpy().tolist() for k, g in grads.items()} if train else {}
            break
        except mx.base.MXNetError:
            outs = []
    RECORD[name] = {"json": symbol.tojson(), "outputs": outs, "grads": grads if outs else {}}
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "control.json"), "w") as f:
    json.dump(RECORD, f, indent=0)
