"""Image models with MXNet's names, structure and parameter names.

Example:
    >>> import dualmx as mx
    >>> net = mx.gluon.model_zoo.vision.get_model("squeezenet1.1", classes=10)
    >>> net.initialize()
    >>> net(mx.nd.zeros((1, 3, 224, 224))).shape
    (1, 10)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core.errors import ArgumentError
from ...hybrid import HybridBlock
from .alexnet import AlexNet, alexnet
from .densenet import DenseNet, densenet121, densenet161, densenet169, densenet201, get_densenet
from .inception import Inception3, inception_v3
from .mobilenet import (
    MobileNet,
    MobileNetV2,
    get_mobilenet,
    get_mobilenet_v2,
    mobilenet0_5,
    mobilenet0_25,
    mobilenet0_75,
    mobilenet1_0,
    mobilenet_v2_0_5,
    mobilenet_v2_0_25,
    mobilenet_v2_0_75,
    mobilenet_v2_1_0,
)
from .resnet import (
    BasicBlockV1,
    BasicBlockV2,
    BottleneckV1,
    BottleneckV2,
    ResNetV1,
    ResNetV2,
    get_resnet,
    resnet18_v1,
    resnet18_v2,
    resnet34_v1,
    resnet34_v2,
    resnet50_v1,
    resnet50_v2,
    resnet101_v1,
    resnet101_v2,
    resnet152_v1,
    resnet152_v2,
)
from .squeezenet import SqueezeNet, get_squeezenet, squeezenet1_0, squeezenet1_1
from .vgg import VGG, get_vgg, vgg11, vgg11_bn, vgg13, vgg13_bn, vgg16, vgg16_bn, vgg19, vgg19_bn

MODELS: dict[str, Callable[..., HybridBlock]] = {
    f.__name__: f
    for f in (
        alexnet, densenet121, densenet161, densenet169, densenet201, resnet18_v1, resnet34_v1, resnet50_v1,
        resnet101_v1, resnet152_v1, resnet18_v2, resnet34_v2, resnet50_v2, resnet101_v2, resnet152_v2, vgg11, vgg13,
        vgg16, vgg19, vgg11_bn, vgg13_bn, vgg16_bn, vgg19_bn,
    )
}  # fmt: skip
MODELS |= {
    "inceptionv3": inception_v3, "squeezenet1.0": squeezenet1_0, "squeezenet1.1": squeezenet1_1,
    "mobilenet1.0": mobilenet1_0, "mobilenet0.75": mobilenet0_75, "mobilenet0.5": mobilenet0_5,
    "mobilenet0.25": mobilenet0_25, "mobilenetv2_1.0": mobilenet_v2_1_0, "mobilenetv2_0.75": mobilenet_v2_0_75,
    "mobilenetv2_0.5": mobilenet_v2_0_5, "mobilenetv2_0.25": mobilenet_v2_0_25,
}  # fmt: skip


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


__all__ = [
    "AlexNet", "BasicBlockV1", "BasicBlockV2", "BottleneckV1", "BottleneckV2", "DenseNet", "Inception3", "MobileNet",
    "MobileNetV2", "ResNetV1", "ResNetV2", "SqueezeNet", "VGG", "alexnet", "densenet121", "densenet161",
    "densenet169", "densenet201", "get_densenet", "get_mobilenet", "get_mobilenet_v2", "get_model", "get_resnet",
    "get_squeezenet", "get_vgg", "inception_v3", "mobilenet0_25", "mobilenet0_5", "mobilenet0_75", "mobilenet1_0",
    "mobilenet_v2_0_25", "mobilenet_v2_0_5", "mobilenet_v2_0_75", "mobilenet_v2_1_0", "resnet101_v1", "resnet101_v2",
    "resnet152_v1", "resnet152_v2", "resnet18_v1", "resnet18_v2", "resnet34_v1", "resnet34_v2", "resnet50_v1",
    "resnet50_v2", "squeezenet1_0", "squeezenet1_1", "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn",
    "vgg19", "vgg19_bn",
]  # fmt: skip
