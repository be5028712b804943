"""Deformable convolutions as layers."""

from __future__ import annotations

from .deformable import DeformableConvolution, ModulatedDeformableConvolution

__all__ = ["DeformableConvolution", "ModulatedDeformableConvolution"]
