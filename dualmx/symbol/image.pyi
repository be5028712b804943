# Written by `python -m dualmx.namespace.stubs`. Generated, so its length has no bound.
"""Types of `mx.sym.image`."""

from collections.abc import Mapping
from typing import Any

from ..core.argcheck import Floats, Shape
from .symbol import Symbol

__all__ = [
    "adjust_lighting", "crop", "flip_left_right", "flip_top_bottom", "normalize", "random_brightness",
    "random_color_jitter", "random_contrast", "random_flip_left_right", "random_flip_top_bottom", "random_hue",
    "random_lighting", "random_saturation", "resize", "to_tensor",
]  # fmt: skip

def adjust_lighting(
    data: Symbol | None = None,
    alpha: Floats = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Add Σ αᵢ·√λᵢ·vᵢ to an (H, W, 3) image, λ and v the principal components of ImageNet's colours; greys stay."""

def crop(
    data: Symbol | None = None,
    x: int = ...,
    y: int = ...,
    width: int = ...,
    height: int = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Return the `width` by `height` window whose upper left corner is column `x`, row `y`."""

def flip_left_right(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Mirror the images about the vertical axis."""

def flip_top_bottom(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Mirror the images about the horizontal axis."""

def normalize(
    data: Symbol | None = None,
    mean: Floats = (0.0,),
    std: Floats = (1.0,),
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Return (data - mean) / std, per channel, of a (C, H, W) image or an (N, C, H, W) batch of floating type."""

def random_brightness(
    data: Symbol | None = None,
    min_factor: float = ...,
    max_factor: float = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Multiply an (H, W, C) image by a factor drawn from [min_factor, max_factor)."""

def random_color_jitter(
    data: Symbol | None = None,
    brightness: float = ...,
    contrast: float = ...,
    saturation: float = ...,
    hue: float = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Change brightness, contrast and saturation of an (H, W, C) image by factors of 1 ± each, the hue by ± `hue`."""

def random_contrast(
    data: Symbol | None = None,
    min_factor: float = ...,
    max_factor: float = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Return f·x + (1 − f)·(mean grey) of an (H, W, C) image, f drawn from [min_factor, max_factor)."""

def random_flip_left_right(
    data: Symbol | None = None,
    p: float = 0.5,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Mirror the images about the vertical axis with probability `p`, all or none of a batch."""

def random_flip_top_bottom(
    data: Symbol | None = None,
    p: float = 0.5,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Mirror the images about the horizontal axis with probability `p`, all or none of a batch."""

def random_hue(
    data: Symbol | None = None,
    min_factor: float = ...,
    max_factor: float = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Turn the hue of an (H, W, 3) image by a number of circles drawn from [min_factor, max_factor)."""

def random_lighting(
    data: Symbol | None = None,
    alpha_std: float = 0.05,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`adjust_lighting` with three coefficients drawn from N(0, alpha_std²)."""

def random_saturation(
    data: Symbol | None = None,
    min_factor: float = ...,
    max_factor: float = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Return f·x + (1 − f)·grey of an (H, W, 3) image, f drawn from [min_factor, max_factor); grey images stay."""

def resize(
    data: Symbol | None = None,
    size: Shape = (),
    keep_ratio: bool = False,
    interp: int = 1,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Return the images in `size` = (width, height), pixel centres at .5."""

def to_tensor(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Return (C, H, W) float32 in [0, 1] of an (H, W, C) image with values 0 to 255; batches likewise."""
