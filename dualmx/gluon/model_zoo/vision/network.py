"""What the networks of the zoo share: the forward pass, trained parameters, and functions for their usual sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ....context import Context, cpu
from ...hybrid import HybridBlock
from ..model_store import load_pretrained

Net = TypeVar("Net", bound=HybridBlock)


class Network(HybridBlock):
    """Base of networks made of `features` and an `output`."""

    features: HybridBlock
    output: HybridBlock

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return class scores (N, classes) of images (N, 3, H, W)."""
        return self.output(self.features(x))


def with_pretrained(net: Net, pretrained: bool, name: str, root: str, ctx: Context | None) -> Net:
    """Return a network, if `pretrained` with the trained parameters of the model `name`."""
    if pretrained:
        load_pretrained(net, name, root, ctx or cpu())
    return net


def preset(build: Callable[..., Net], name: str, what: str, *args: Any, **settings: Any) -> Callable[..., Net]:
    """Return a function called `name` that makes `what`: `build` with some arguments given."""

    def builder(**kwargs: Any) -> Net:
        return build(*args, **settings, **kwargs)

    builder.__name__ = builder.__qualname__ = name
    builder.__module__ = build.__module__
    builder.__doc__ = f"{what}; keywords as for `{build.__name__}`."
    builder.__annotations__ = {"kwargs": "Any", "return": build.__annotations__["return"]}
    return builder
