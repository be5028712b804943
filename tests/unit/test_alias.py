"""The package under a second name: scripts that import `mxnet` run unchanged."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import importlib, sys
import dualmx
sys.modules["mxnet"] = dualmx
import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from mxnet.gluon.data.vision import transforms
import mxnet.gluon.model_zoo.vision as models
assert nn is dualmx.gluon.nn and mx.nd is nd is dualmx.nd and transforms is dualmx.gluon.data.vision.transforms
assert mx.gluon is gluon is dualmx.gluon and models.resnet18_v1 is dualmx.gluon.model_zoo.vision.resnet18_v1
assert nn.__name__ == nn.__spec__.name == "dualmx.gluon.nn"
net = nn.Dense(2)
net.initialize(mx.init.One(), ctx=mx.cpu(0))
assert isinstance(net, gluon.Block)
try:
    importlib.import_module("mxnet.nothing")
except ModuleNotFoundError as e:
    print(e)
"""


def test_submodules_under_a_second_name() -> None:
    """They are the same modules; loaded twice, their classes would not know each other."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "No module named 'dualmx.nothing'\n"
