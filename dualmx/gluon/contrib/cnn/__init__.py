"""Deformable convolutions as layers."""

from __future__ import annotations

from . import conv_layers
from .deformable import DeformableConvolution, ModulatedDeformableConvolution

__all__ = ["DeformableConvolution", "ModulatedDeformableConvolution", "conv_layers"]
