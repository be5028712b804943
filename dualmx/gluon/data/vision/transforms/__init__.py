"""Image transforms: blocks on NDArrays, with the same computation in NumPy for data workers."""

from __future__ import annotations

from .basic import (
    Cast,
    CenterCrop,
    Compose,
    CropResize,
    HybridCompose,
    Normalize,
    RandomFlipLeftRight,
    RandomFlipTopBottom,
    Resize,
    ToTensor,
)
from .random import (
    HybridRandomApply,
    RandomApply,
    RandomBrightness,
    RandomColorJitter,
    RandomContrast,
    RandomCrop,
    RandomGray,
    RandomHue,
    RandomLighting,
    RandomResizedCrop,
    RandomRotation,
    RandomSaturation,
    Rotate,
)

__all__ = [
    "Cast",
    "CenterCrop",
    "Compose",
    "CropResize",
    "HybridCompose",
    "HybridRandomApply",
    "Normalize",
    "RandomApply",
    "RandomBrightness",
    "RandomColorJitter",
    "RandomContrast",
    "RandomCrop",
    "RandomFlipLeftRight",
    "RandomFlipTopBottom",
    "RandomGray",
    "RandomHue",
    "RandomLighting",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSaturation",
    "Resize",
    "Rotate",
    "ToTensor",
]
