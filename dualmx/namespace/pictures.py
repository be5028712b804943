"""Functions on encoded images in the array namespace, and `CachedOp`, a graph called like a function."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray.array import NDArray
from ..ndarray.trace import local
from ..symbol.stepwise import execute, lower_or_fallback
from ..symbol.symbol import Symbol


def _image() -> Any:
    return importlib.import_module("dualmx.image")  # it builds on this room


def imdecode(
    str_img: Any, clip_rect: Sequence[int] = (0, 0, 0, 0), out: NDArray | None = None, index: int = 0,
    channels: int = 3, mean: NDArray | None = None,
) -> NDArray:  # fmt: skip
    """Decode an image to float32 channels first; `mx.image.imdecode` is the newer function.

    Args:
        str_img: bytes of the file.
        clip_rect: (x0, y0, x1, y1) to cut out; all 0 for the whole image.
        out: array (c, h, w), or (n, c, h, w) of which slice `index` is written.
        index: see `out`.
        channels: 3, or 1 for grey.
        mean: image to subtract.

    Raises:
        ArgumentError: the window is empty.
    """
    picture = _image().imdecode(str_img, 0 if channels == 1 else 1)
    x0, y0, x1, y1 = clip_rect
    if any(clip_rect):
        if not (0 <= x0 < x1 <= picture.shape[1] and 0 <= y0 < y1 <= picture.shape[0]):
            raise ArgumentError(f"imdecode: clip_rect={tuple(clip_rect)}: expected a window of {picture.shape[:2]}")
        picture = picture[y0:y1, x0:x1]
    found = picture.astype("float32").transpose((2, 0, 1))
    if mean is not None:
        found = found - mean
    if out is None:
        return found
    target = out[index] if out.ndim == 4 else out
    target[:] = found
    return out


def _cvimdecode(buf: Any, flag: int = 1, to_rgb: bool = True, out: Any = None, name: str | None = None) -> NDArray:
    """Decode an image; see `mx.image.imdecode`."""
    return _image().imdecode(buf, flag, to_rgb, out)


def _cvimread(filename: str, flag: int = 1, to_rgb: bool = True, out: Any = None, name: str | None = None) -> NDArray:
    """Read and decode an image file; see `mx.image.imread`."""
    return _image().imread(filename, flag, to_rgb, out)


def _cvimresize(src: Any, w: int, h: int, interp: int = 1, out: Any = None, name: str | None = None) -> NDArray:
    """Resize an image; see `mx.image.imresize`."""
    return _image().imresize(src, w, h, interp, out)


def _cvcopyMakeBorder(
    src: Any, top: int, bot: int, left: int, right: int, type: int = 0, value: float = 0.0, values: Any = (),
    out: Any = None, name: str | None = None,
) -> NDArray:  # fmt: skip
    """Add rows and columns around an image; see `mx.image.copyMakeBorder`."""
    found = _image().copyMakeBorder(src, top, bot, left, right, type, value, values)
    if out is None:
        return found
    out[:] = found
    return out


def get_oshape_of_gather_nd_op(dshape: Sequence[int], ishape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of `gather_nd` of data of shape `dshape` and indices of shape `ishape`."""
    return (*ishape[1:], *dshape[ishape[0] :])


class CachedOp:
    """A graph that is called with arrays for its arguments and states, in the order of `list_inputs`.

    Args:
        sym: the graph.
        flags: accepted.

    Example:
        >>> double = mx.nd.CachedOp(mx.sym.var("x") * 2)
        >>> double(mx.nd.ones(2)).asnumpy().tolist()
        [2.0, 2.0]
    """

    def __init__(self, sym: Symbol, flags: Any = ()):
        if not isinstance(sym, Symbol):
            raise ArgumentTypeError(f"CachedOp: sym={sym!r}: expected a Symbol")
        self.symbol, self._calls = sym, dict[bool, Any]()
        names = sym.list_inputs()
        self._order = [names.index(n) for n in (*sym.list_arguments(), *sym.list_auxiliary_states())]

    def __call__(self, *args: NDArray, out: Any = None, **kwargs: Any) -> Any:
        """Run the graph and return its output, or a list of several.

        Raises:
            ArgumentError: another number of arrays than the graph has inputs.
        """
        if len(args) != len(self._order):
            raise ArgumentError(f"CachedOp: got {len(args)} arrays: expected {len(self._order)}")
        train = local.training
        if train not in self._calls:
            self._calls[train] = lower_or_fallback(self.symbol, train, states_only=not train)
        inputs = [args[i] for i in self._order]
        outs = list(execute(self._calls[train], inputs, args[0].context))[: len(self.symbol.entries)]
        if out is None:
            return outs[0] if len(outs) == 1 else outs
        for target, value in zip(out if isinstance(out, (list, tuple)) else [out], outs, strict=True):
            target[:] = value
        return out


def populate(top: ModuleType) -> None:
    """Put the functions into the array namespace."""
    for made in (imdecode, get_oshape_of_gather_nd_op, CachedOp):
        setattr(top, made.__name__, made)
    top.op.CachedOp = top._internal.CachedOp = CachedOp
    for made in (_cvimdecode, _cvimread, _cvimresize, _cvcopyMakeBorder):
        setattr(top._internal, made.__name__, made)
        setattr(top._internal, f"_npi{made.__name__}", made)
