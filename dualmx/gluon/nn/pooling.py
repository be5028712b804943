"""Pooling layers."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentError
from ..hybrid import HybridBlock
from ..spatial import SpatialFamily
from .op_layer import OpLayer

_LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def as_tuple(who: str, what: str, value: Any, ndim: int) -> tuple[int, ...]:
    """Return an int as a tuple of `ndim` equal ones, and check the length of a tuple."""
    values = (value,) * ndim if isinstance(value, int) else tuple(value)
    if len(values) != ndim:
        raise ArgumentError(f"{who}: {what}={value}: expected a number or {ndim} numbers")
    return values


class _Pooling(OpLayer):
    _ndim: int

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: Any,
        ceil_mode: bool,
        global_pool: bool,
        pool_type: str,
        layout: str,
        count_include_pad: bool | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        who, n = type(self).__name__, self._ndim
        if layout not in _LAYOUTS[n]:
            raise ArgumentError(f"{who}: layout={layout!r}: expected one of {', '.join(_LAYOUTS[n])}")
        pool_size = as_tuple(who, "pool_size", pool_size, n)
        settings = {
            "kernel": pool_size,
            "stride": pool_size if strides is None else as_tuple(who, "strides", strides, n),
            "pad": as_tuple(who, "padding", padding, n),
            "global_pool": global_pool,
            "pool_type": pool_type,
            "layout": layout,
            "pooling_convention": "full" if ceil_mode else "valid",
        }
        if count_include_pad is not None:
            settings["count_include_pad"] = count_include_pad
        self._prepare("Pooling", **settings)

    def _alias(self) -> str:
        return "pool"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Pool."""
        return F.Pooling(x, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        v = self._kwargs
        return (
            f"{type(self).__name__}(size={v['kernel']}, stride={v['stride']}, padding={v['pad']}, "
            f"ceil_mode={v['pooling_convention'] == 'full'}, global_pool={v['global_pool']}, "
            f"pool_type={v['pool_type']}, layout={v['layout']})"
        )


class MaxPoolLayer(_Pooling, SpatialFamily):
    """Family of the layers that take the largest value of windows."""

    _sizes = ("pool_size",)
    _details = """
    Args:
        pool_size: window.
        strides: step between windows; `pool_size` if `None`.
        padding: on both sides of each spatial axis.
        layout: `"{layout}"` or channels last.
        ceil_mode: round the output size up instead of down.

    Raises:
        ArgumentError: a size that does not have {numbers}, or an unknown layout.
    """

    def __init__(
        self,
        pool_size: int | tuple[int, ...] = 2,
        strides: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        layout: str = "",
        ceil_mode: bool = False,
        **kwargs: Any,
    ):
        super().__init__(pool_size, strides, padding, ceil_mode, False, "max", layout, **kwargs)


class MaxPool1D(MaxPoolLayer, ndim=1):
    """Take the largest value of each window of (N, C, W)."""


class MaxPool2D(MaxPoolLayer, ndim=2):
    """Take the largest value of each window of (N, C, H, W)."""


class MaxPool3D(MaxPoolLayer, ndim=3):
    """Take the largest value of each window of (N, C, D, H, W)."""

    # MXNet has ceil_mode before layout here.
    def __init__(
        self,
        pool_size: int | tuple[int, ...] = 2,
        strides: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        ceil_mode: bool = False,
        layout: str = "",
        **kwargs: Any,
    ):
        super().__init__(pool_size, strides, padding, layout, ceil_mode, **kwargs)


class AvgPoolLayer(_Pooling, SpatialFamily):
    """Family of the layers that take the mean of windows."""

    _sizes = ("pool_size",)
    _details = MaxPoolLayer._details.replace(
        "of down.\n", "of down.\n        count_include_pad: count padding in the divisor.\n"
    )

    def __init__(
        self,
        pool_size: int | tuple[int, ...] = 2,
        strides: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        ceil_mode: bool = False,
        layout: str = "",
        count_include_pad: bool = True,
        **kwargs: Any,
    ):
        super().__init__(pool_size, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs)


class AvgPool1D(AvgPoolLayer, ndim=1):
    """Take the mean of each window of (N, C, W)."""

    # MXNet has layout before ceil_mode here.
    def __init__(
        self,
        pool_size: int | tuple[int, ...] = 2,
        strides: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        layout: str = "",
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        **kwargs: Any,
    ):
        super().__init__(pool_size, strides, padding, ceil_mode, layout, count_include_pad, **kwargs)


class AvgPool2D(AvgPoolLayer, ndim=2):
    """Take the mean of each window of (N, C, H, W)."""


class AvgPool3D(AvgPoolLayer, ndim=3):
    """Take the mean of each window of (N, C, D, H, W)."""


class GlobalPoolLayer(_Pooling, SpatialFamily):
    """Family of the layers that pool all spatial positions."""

    _pool_type: str
    _details = """
    Args:
        layout: `"{layout}"` or channels last.
    """

    def __init__(self, layout: str = "", **kwargs: Any):
        super().__init__(1, None, 0, True, True, self._pool_type, layout, **kwargs)


class GlobalMaxPool1D(GlobalPoolLayer, ndim=1):
    """Take the largest value over all spatial positions of (N, C, W), which become 1."""

    _pool_type = "max"


class GlobalMaxPool2D(GlobalPoolLayer, ndim=2):
    """Take the largest value over all spatial positions of (N, C, H, W), which become 1."""

    _pool_type = "max"


class GlobalMaxPool3D(GlobalPoolLayer, ndim=3):
    """Take the largest value over all spatial positions of (N, C, D, H, W), which become 1."""

    _pool_type = "max"


class GlobalAvgPool1D(GlobalPoolLayer, ndim=1):
    """Take the mean over all spatial positions of (N, C, W), which become 1."""

    _pool_type = "avg"


class GlobalAvgPool2D(GlobalPoolLayer, ndim=2):
    """Take the mean over all spatial positions of (N, C, H, W), which become 1."""

    _pool_type = "avg"


class GlobalAvgPool3D(GlobalPoolLayer, ndim=3):
    """Take the mean over all spatial positions of (N, C, D, H, W), which become 1."""

    _pool_type = "avg"


class ReflectionPad2D(HybridBlock):
    """Pad height and width of (N, C, H, W) with the values mirrored at the border.

    Args:
        padding: one width for all four sides, or 8 numbers: before and after for each axis.

    Raises:
        ArgumentError: neither an int nor 8 numbers.

    Example:
        >>> import dualmx as mx
        >>> mx.gluon.nn.ReflectionPad2D(1)(mx.nd.ones((1, 1, 4, 4))).shape
        (1, 1, 6, 6)
    """

    def __init__(self, padding: int | tuple[int, ...] = 0, **kwargs: Any):
        super().__init__(**kwargs)
        widths = (0, 0, 0, 0, *(padding,) * 4) if isinstance(padding, int) else tuple(padding)
        if len(widths) != 8:
            raise ArgumentError(f"ReflectionPad2D: padding={padding}: expected an int or 8 numbers")
        self._padding = widths

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Pad."""
        return F.pad(x, mode="reflect", pad_width=self._padding)


__all__ = [
    "AvgPool1D", "AvgPool2D", "AvgPool3D", "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalAvgPool3D", "GlobalMaxPool1D",
    "GlobalMaxPool2D", "GlobalMaxPool3D", "MaxPool1D", "MaxPool2D", "MaxPool3D", "ReflectionPad2D",
]  # fmt: skip
