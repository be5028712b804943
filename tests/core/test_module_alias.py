"""The package under a second name: scripts that import `mxnet` run unchanged."""

from __future__ import annotations

from tests import jobs

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
    done = jobs.run(jobs.PYTHON, "-c", SCRIPT)
    assert done.stdout == "No module named 'dualmx.nothing'\n"


FORMS = """
import mxnet.gluon.data.vision.datasets
from mxnet.gluon.data.vision import transforms
import mxnet.gluon.nn as nn
from mxnet.gluon import nn as layers
from mxnet import gluon, nd, autograd, np, npx, kv, mod, init
from mxnet.ndarray import NDArray, sparse
import mxnet.ndarray.linalg, mxnet.symbol.contrib, mxnet.numpy.random
from mxnet.gluon.model_zoo import vision
from mxnet.gluon.contrib.estimator import Estimator
from mxnet.contrib import amp, text
from mxnet.io.io import NDArrayIter
import mxnet.optimizer.optimizer as optimizers
import mxnet as mx
"""
IDENTITY = """
import sys
import dualmx
sys.modules["mxnet"] = dualmx
{forms}
import dualmx.gluon.nn
assert nn is layers is dualmx.gluon.nn and isinstance(nn.Dense(2), dualmx.gluon.Block) and mx is dualmx
assert NDArray is dualmx.nd.NDArray and NDArrayIter is dualmx.io.NDArrayIter and optimizers.SGD is dualmx.optimizer.SGD
loaded = {{}}
for name, module in sys.modules.items():
    file = getattr(module, "__file__", None)
    if file and name.partition(".")[0] in ("mxnet", "dualmx"):
        loaded.setdefault(file, set()).add(id(module))
assert loaded and all(len(modules) == 1 for modules in loaded.values())
assert all(sys.modules["dualmx" + n[5:]] is m for n, m in list(sys.modules.items()) if n.startswith("mxnet."))
"""


def test_every_form_of_import_gives_the_one_module() -> None:
    script = IDENTITY.format(forms=FORMS)
    jobs.run(jobs.PYTHON, "-W", "error", "-c", script)
