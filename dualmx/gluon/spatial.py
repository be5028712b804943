"""Layers that differ in their number of spatial axes: one family, of which each layer is a member."""

from __future__ import annotations

from typing import Any

from ..core.argcheck import defaults_of, with_defaults

LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
_AXES = {1: "W", 2: "H, W", 3: "D, H, W"}


class SpatialFamily:
    """Base of a family: `class Conv2D(ConvLayer, ndim=2)` is its member for two spatial axes.

    A member's constructor is that of the family with the defaults of `ndim` axes. Its docstring is its own first line
    with the family's `_details`, in whose {fields} the number of axes shows.

    Attributes:
        _ndim: number of spatial axes.
        _details: what docstrings say behind their first line.
        _sizes: parameters whose default is one number in the family, and `ndim` numbers in a member.
        _tuples_in_1d: they are tuples for one axis too.
    """

    _ndim: int
    _details = ""
    _sizes: tuple[str, ...] = ()
    _tuples_in_1d = False

    def __init_subclass__(cls, ndim: int = 0, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not ndim:  # a family, or a subclass of a user
            return
        cls._ndim = ndim
        defaults = defaults_of(cls.__init__)
        layout = next(name for name in defaults if name.endswith("layout"))
        own: dict[str, Any] = {layout: LAYOUTS[ndim]}
        if ndim > 1 or cls._tuples_in_1d:
            own.update((name, (defaults[name],) * ndim) for name in cls._sizes)
        cls.__init__ = with_defaults(cls.__init__, f"{cls.__qualname__}.__init__", **own)
        details = cls._details.format(
            name=cls.__name__, data=_AXES[ndim], layout=LAYOUTS[ndim], eights=", ".join(["8"] * ndim),
            seventeens=", ".join(["17"] * ndim), numbers="1 number" if ndim == 1 else f"{ndim} numbers",
            channels_last="" if ndim == 1 else " or channels last",
        )  # fmt: skip
        cls.__doc__ = f"{cls.__doc__}\n{details}" if details else cls.__doc__
