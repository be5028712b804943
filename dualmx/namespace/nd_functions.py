"""Handwritten functions of `mx.nd`: those that prepare arguments, encoded images, `Custom`, `CachedOp`, `nd.sparse`."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..core.argcheck import integer, require_instance
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.module_alias import load
from ..ndarray.custom_op import CustomOpSpec, nonzero_rows
from ..ndarray.handle import invoke, invoke_out
from ..ndarray.interop import array_from_numpy
from ..ndarray.ndarray import NDArray
from ..ndarray.recorder import local
from ..op.registry import OPS
from ..sparse import (
    BaseSparseNDArray,
    CSRNDArray,
    NotSupportedForSparseNDArray,
    RowSparseNDArray,
    array,
    csr_matrix,
    empty,
    row_sparse_array,
    zeros,
)
from ..symbol.lowering import execute, lower_or_fallback
from ..symbol.symbol import Symbol
from .generate import as_input


def split_v2(ary: NDArray, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> Any:
    """Split an array into equal sections, or at the given indices; a single part is an array, several are a list.

    Args:
        ary: the array.
        indices_or_sections: number of equal parts, or the positions along `axis` where parts begin.
        axis: axis to split.
        squeeze_axis: drop the axis from parts of length 1.

    Raises:
        ArgumentError: the axis does not divide into that many parts.
    """
    require_instance("split_v2", "ary", ary, NDArray, "an NDArray")
    axis = integer("split_v2", "axis", axis)
    if not -len(ary.shape) <= axis < len(ary.shape):
        raise ArgumentError(f"split_v2: axis={axis}: expected an axis of shape {ary.shape}")
    if isinstance(indices_or_sections, (int, np.integer)):
        sections = int(indices_or_sections)
        if sections < 1 or ary.shape[axis] % sections:
            raise ArgumentError(
                f"split_v2: indices_or_sections={sections}: axis {axis} of length {ary.shape[axis]} does not divide"
            )
        call = OPS["_split_v2"].call(indices=(), axis=axis, squeeze_axis=squeeze_axis, sections=sections)
    else:
        given = require_instance("split_v2", "indices_or_sections", indices_or_sections, (list, tuple, np.ndarray),
                         "a number of parts or a list of positions")  # fmt: skip
        at = (0, *(integer("split_v2", "indices_or_sections", i) for i in given))
        call = OPS["_split_v2"].call(indices=at, axis=axis, squeeze_axis=squeeze_axis)
    parts = invoke(call, (ary,))
    return parts[0] if len(parts) == 1 else parts


def histogram(a: NDArray, bins: Any = 10, range: tuple[float, float] | None = None) -> Sequence[NDArray]:
    """Count the elements of `a` in each bin.

    Args:
        a: values of any shape.
        bins: number of equal bins, or an array of increasing edges.
        range: lowest and highest edge when `bins` is a number; by default the least and greatest element.

    Returns:
        Counts (int64; float32 where the range is that of the elements) and bin edges.
    """
    require_instance("histogram", "a", a, NDArray, "an NDArray")
    if isinstance(bins, NDArray):
        return invoke(OPS["_histogram"].call(), (a, bins))
    bins = integer("histogram", "bins", bins, 1)
    if range is None:
        # Only NumPy knows the range before the bins are made; MXNet hands the counts back as it makes any array.
        counts, limits = np.histogram(a.asnumpy(), int(bins))
        return array_from_numpy(counts.astype(np.float32), a.context), array_from_numpy(
            limits.astype(np.float32), a.context
        )
    edges = array_from_numpy(np.linspace(range[0], range[1], int(bins) + 1).astype(a.aval.dtype), a.context)
    return invoke(OPS["_histogram"].call(bin_cnt=int(bins), range=range), (a, edges))


def boolean_mask(
    data: Any = None, index: Any = None, axis: int = 0, out: Any = None, name: str | None = None
) -> NDArray:
    """Select the slices of `data` along `axis` whose element of `index` is not 0.

    The length of the result depends on the values of `index`, which are waited for. Gradients go to the selected slices
    of `data`.

    Args:
        data: array of shape (..., n, ...).
        index: mask of shape (n,), of any dtype.
        axis: axis to select along.
        out: array to write to; its shape must be that of the result.

    Raises:
        ArgumentError: `index` is not a vector as long as the axis, or the axis does not exist.

    Example:
        >>> import dualmx as mx
        >>> mx.nd.contrib.boolean_mask(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([0, 1])).asnumpy().tolist()
        [[3.0, 4.0]]
    """
    op = OPS["take"]
    data = as_input(data, op, "data", None)
    index = as_input(index, op, "index", data)
    rows = nonzero_rows(data, index, axis)
    call = op.call(axis=axis)
    if out is not None:
        invoke_out(call, (data, rows), (out,))
        return out
    return invoke(call, (data, rows))[0]


def populate(top: ModuleType) -> None:
    """Put the functions into the array namespace."""
    for fn in (split_v2, histogram):
        setattr(top, fn.__name__, fn)
    top.contrib.boolean_mask = boolean_mask
    # The operator itself, computed at once, has no gradient.
    for name in ("_contrib_boolean_mask", "_npi_boolean_mask"):
        setattr(top._internal, name, boolean_mask)


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
    picture = load("image").imdecode(str_img, 0 if channels == 1 else 1)
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
    return load("image").imdecode(buf, flag, to_rgb, out)


def _cvimread(filename: str, flag: int = 1, to_rgb: bool = True, out: Any = None, name: str | None = None) -> NDArray:
    """Read and decode an image file; see `mx.image.imread`."""
    return load("image").imread(filename, flag, to_rgb, out)


def _cvimresize(src: Any, w: int, h: int, interp: int = 1, out: Any = None, name: str | None = None) -> NDArray:
    """Resize an image; see `mx.image.imresize`."""
    return load("image").imresize(src, w, h, interp, out)


def _cvcopyMakeBorder(
    src: Any, top: int, bot: int, left: int, right: int, type: int = 0, value: float = 0.0, values: Any = (),
    out: Any = None, name: str | None = None,
) -> NDArray:  # fmt: skip
    """Add rows and columns around an image; see `mx.image.copyMakeBorder`."""
    found = load("image").copyMakeBorder(src, top, bot, left, right, type, value, values)
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


def populate_image(top: ModuleType) -> None:
    """Put the functions into the array namespace."""
    for made in (imdecode, get_oshape_of_gather_nd_op, CachedOp):
        setattr(top, made.__name__, made)
    top.op.CachedOp = top._internal.CachedOp = CachedOp
    for made in (_cvimdecode, _cvimread, _cvimresize, _cvcopyMakeBorder):
        setattr(top._internal, made.__name__, made)
        setattr(top._internal, f"_npi{made.__name__}", made)


def _inputs(op_type: str, names: list[str], args: Sequence[Any], named: dict[str, NDArray]) -> list[NDArray]:
    found = dict(zip(names, args, strict=False))
    if len(args) > len(names) or found.keys() & named.keys() or found.keys() | named.keys() != set(names):
        shown = f"{len(args)} by position" + (f" and {sorted(named)}" if named else "")
        raise ArgumentError(f"Custom({op_type!r}): got inputs {shown}: expected {names}")
    found |= named
    for name in names:
        if not isinstance(found[name], NDArray):
            kind = type(found[name]).__name__
            raise ArgumentTypeError(f"Custom({op_type!r}): {name} is a {kind}: expected an NDArray")
    return [found[name] for name in names]


def Custom(*args: Any, op_type: str = "", out: Any = None, name: str | None = None, **kwargs: Any) -> Any:
    """Call the custom operator registered as `op_type`.

    Args:
        args: its inputs, then its states; or by their names as keywords.
        op_type: name given to `mx.operator.register`.
        out: array to write to, or a list of them for several outputs; it is returned.
        name: accepted.
        kwargs: parameters, handed to the `CustomOpProp` as text.

    Returns:
        The output, or a list of several.

    Raises:
        ArgumentError: unknown `op_type`, inputs that its `list_arguments` does not name, shapes that its `infer_shape`
            contradicts, another number of arrays in `out`. MXNetError: the operator raised; the error is also of the
            type that it raised, and carries its traceback.
    """
    if not op_type:
        raise ArgumentError("Custom: op_type is missing: expected the name given to mx.operator.register")
    named = {k: v for k, v in kwargs.items() if isinstance(v, NDArray)}
    layout = CustomOpSpec.from_kwargs(op_type, {k: v for k, v in kwargs.items() if k not in named})
    outs = layout.run(_inputs(op_type, [*layout.arguments, *layout.states], args, named))
    if out is not None:
        targets = out if isinstance(out, (list, tuple)) else [out]
        if len(targets) != len(outs):
            raise ArgumentError(f"Custom({op_type!r}): out: expected {len(outs)} array(s), got {len(targets)}")
        for target, value in zip(targets, outs, strict=True):
            invoke_out(OPS["_copy"].call(), (value,), (target,))
        return out
    return outs[0] if len(outs) == 1 else outs


def populate_custom(top: ModuleType) -> None:
    """Put `Custom` into the array namespace and its room of operators."""
    for room in (top, top.op):
        setattr(room, Custom.__name__, Custom)


OWN = (
    BaseSparseNDArray, CSRNDArray, NDArray, NotSupportedForSparseNDArray, RowSparseNDArray, array, csr_matrix, empty,
    row_sparse_array, zeros,
)  # fmt: skip


def populate_sparse(top: ModuleType) -> None:
    """Put the functions into the namespace of sparse arrays."""
    room = top.sparse
    for made in OWN:
        setattr(room, made.__name__, made)
    room.integer_types = (int, np.int32, np.int64)
    room.numeric_types = (float, int, np.generic)
    room.__all__ = [made.__name__ for made in OWN if made is not NDArray]


__all__ = ["Custom"]
