"""The residual networks by name."""

from __future__ import annotations

from typing import Any

from .resnet import ResNetV1, ResNetV2, get_resnet


def resnet18_v1(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """Residual network of 18 layers, version 1; keywords as for `get_resnet`."""
    return get_resnet(1, 18, **kwargs)


def resnet34_v1(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """Residual network of 34 layers, version 1; keywords as for `get_resnet`."""
    return get_resnet(1, 34, **kwargs)


def resnet50_v1(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """Residual network of 50 layers, version 1; keywords as for `get_resnet`."""
    return get_resnet(1, 50, **kwargs)


def resnet101_v1(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """Residual network of 101 layers, version 1; keywords as for `get_resnet`."""
    return get_resnet(1, 101, **kwargs)


def resnet152_v1(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """Residual network of 152 layers, version 1; keywords as for `get_resnet`."""
    return get_resnet(1, 152, **kwargs)


def resnet18_v2(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """Residual network of 18 layers, version 2; keywords as for `get_resnet`."""
    return get_resnet(2, 18, **kwargs)


def resnet34_v2(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """Residual network of 34 layers, version 2; keywords as for `get_resnet`."""
    return get_resnet(2, 34, **kwargs)


def resnet50_v2(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """Residual network of 50 layers, version 2; keywords as for `get_resnet`."""
    return get_resnet(2, 50, **kwargs)


def resnet101_v2(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """Residual network of 101 layers, version 2; keywords as for `get_resnet`."""
    return get_resnet(2, 101, **kwargs)


def resnet152_v2(**kwargs: Any) -> ResNetV1 | ResNetV2:
    """Residual network of 152 layers, version 2; keywords as for `get_resnet`."""
    return get_resnet(2, 152, **kwargs)
