"""Optimizers, by MXNet's names and with its arithmetic.

Each update is an operator of the registry (`sgd_mom_update`, `adam_update`, …): it is recorded lazily like any other
operation, so that forward, backward and the updates of all parameters compile to one program with donated buffers,
and the same operators run on parameter servers. The arithmetic is written out there rather than composed from Optax
transformations, because MXNet's order of clipping, decay and rounding differs from Optax's and must hold to the last
digits, and because a transformation works on whole trees at once, where MXNet's interface updates single indices.
Optax itself is one argument away: `gluon.Trainer(params, optax.adam(1e-3))`, through `gluon.bridge.OptaxOptimizer`.
"""

from . import contrib, optimizer
from .adaptive import FTML, AdaDelta, AdaGrad, Adam, Adamax, Ftrl, Nadam, RMSProp
from .large_batch import LAMB, LARS, LBSGD
from .optimizer import Optimizer, Test, create, register
from .sgd import DCASGD, NAG, SGD, SGLD, Signum, ccSGD
from .updater import Updater, get_updater

__all__ = [
    "DCASGD",
    "FTML",
    "LAMB",
    "LARS",
    "LBSGD",
    "NAG",
    "SGD",
    "SGLD",
    "AdaDelta",
    "AdaGrad",
    "Adam",
    "Adamax",
    "Ftrl",
    "Nadam",
    "Optimizer",
    "RMSProp",
    "Signum",
    "Test",
    "Updater",
    "ccSGD",
    "contrib",
    "create",
    "get_updater",
    "optimizer",
    "register",
]
