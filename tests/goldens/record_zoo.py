"""Record what the models of MXNet 1.9.1's zoo consist of: a digest of each graph and of its parameters' names.

python tests/goldens/record_zoo.py
"""

from __future__ import annotations

import json
import os
import sys

import mxnet as mx
from mxnet.gluon.model_zoo import vision

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from zoo_facts import NAMES, facts  # noqa: E402

RECORD = {name: facts(mx, vision, name) for name in NAMES}
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "zoo.json"), "w") as f:
    json.dump(RECORD, f, indent=0)
