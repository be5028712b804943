"""Facts about a model of the zoo that are equal in dualmx and MXNet exactly if its files can be exchanged."""

from __future__ import annotations

import hashlib
import json
from typing import Any

NAMES = [
    "alexnet", "densenet121", "densenet161", "densenet169", "densenet201", "inceptionv3", "mobilenet0.25",
    "mobilenet0.5", "mobilenet0.75", "mobilenet1.0", "mobilenetv2_0.25", "mobilenetv2_0.5", "mobilenetv2_0.75",
    "mobilenetv2_1.0", "resnet101_v1", "resnet101_v2", "resnet152_v1", "resnet152_v2", "resnet18_v1", "resnet18_v2",
    "resnet34_v1", "resnet34_v2", "resnet50_v1", "resnet50_v2", "squeezenet1.0", "squeezenet1.1", "vgg11", "vgg11_bn",
    "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn",
]  # fmt: skip
SHAPED = ("densenet121", "mobilenet0.25", "mobilenetv2_0.25", "resnet18_v1", "resnet18_v2", "squeezenet1.1", "vgg11")


def digest(value):
    return hashlib.sha1(json.dumps(value).encode()).hexdigest()


def facts(mx, vision, name):
    """Digests of the operators with their parameters, of the parameters' names, and for some of their shapes."""
    with mx.name.NameManager():
        net = vision.get_model(name, classes=7)
        symbol = net(mx.sym.var("data"))
    nodes = json.loads(symbol.tojson())["nodes"]
    graph = [
        [n["op"], n["name"], sorted((k, v) for k, v in n.get("attrs", {}).items() if not k.startswith("__"))]
        for n in nodes
    ]
    shapes = symbol.infer_shape(data=(1, 3, 224, 224))[0] if name in SHAPED else []
    return {
        "graph": digest(graph),
        "inputs": digest([n["inputs"] for n in nodes]),
        "names": digest([[p.name, p.grad_req] for p in net.collect_params().values()]),
        "paths": digest([[k, p.name] for k, p in net._collect_params_with_prefix().items()]),
        "shapes": digest([list(s) for s in shapes]),
    }


def record(mx: Any) -> Any:
    """The facts of every model."""
    return {name: facts(mx, mx.gluon.model_zoo.vision, name) for name in NAMES}
