"""Image models with MXNet's names, structure and parameter names.

Example:
    >>> import dualmx as mx
    >>> net = mx.gluon.model_zoo.vision.get_model("squeezenet1.1", classes=10)
    >>> net.initialize()
    >>> net(mx.nd.zeros((1, 3, 224, 224))).shape
    (1, 10)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ....core.errors import ArgumentError
from ...hybrid import HybridBlock
from . import densenet, mobilenet, resnet, squeezenet, vgg
from .alexnet import AlexNet, alexnet
from .densenet import *
from .inception import Inception3, inception_v3
from .mobilenet import *
from .resnet import *
from .squeezenet import *
from .vgg import *

MODELS: dict[str, Callable[..., HybridBlock]] = {"alexnet": alexnet, "inceptionv3": inception_v3}
for _module in (densenet, resnet, vgg, squeezenet, mobilenet):
    for _name in _module.__all__:
        if _name.islower() and not _name.startswith("get_"):
            # The file of `mobilenet_v2_0_25` is "mobilenetv2_0.25".
            MODELS[re.sub(r"(\d)_(\d+)$", r"\1.\2", _name).replace("net_v", "netv")] = getattr(_module, _name)


def get_model(name: str, **kwargs: Any) -> HybridBlock:
    """Return a new model by its name.

    Args:
        name: such as `"resnet50_v1"`, in any case.
        kwargs: `classes`, `pretrained`, `ctx`, `root` and the arguments of the model's class.

    Raises:
        ArgumentError: no model of this name; the text lists all.
    """
    if name.lower() not in MODELS:
        options = "\n\t".join(sorted(MODELS))
        raise ArgumentError(f"Model {name} is not supported. Available options are\n\t{options}")
    return MODELS[name.lower()](**kwargs)


__all__ = ["AlexNet", "Inception3", "alexnet", "get_model", "inception_v3"]
__all__ += densenet.__all__
__all__ += mobilenet.__all__
__all__ += resnet.__all__
__all__ += squeezenet.__all__
__all__ += vgg.__all__
