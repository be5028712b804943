"""DLPack: arrays that share their memory with other libraries."""

from __future__ import annotations

import ctypes
from typing import Any

import jax
import ml_dtypes
import numpy as np

from ..compile.devices import context_of, device_of, device_put, fully_replicated, x64
from ..core.context import Context
from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, ArgumentTypeError
from .aliasing import exposed, make_views_stale
from .exposed import Exposed
from .handle import Handle, array_from_buffer, check_writable, realize

_CPU = 1  # kDLCPU
_VERSION = (1, 0)
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_UINT, _BFLOAT = 1, 4  # type codes
# Where a capsule's structure has the code of the element type, after the pointer to the data, the device and the number
# of axes; before these a versioned capsule has its version, two pointers and flags.
_CODE_AT = {b"dltensor": 20, b"dltensor_versioned": 52}

_capsule_is = ctypes.pythonapi.PyCapsule_IsValid
_capsule_is.restype, _capsule_is.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
_structure = ctypes.pythonapi.PyCapsule_GetPointer
_structure.restype, _structure.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


class _Capsule:
    """A bare capsule, for consumers that expect the object it comes from. It does not tell its device: CPU."""

    def __init__(self, capsule: Any):
        self.capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_CPU, 0)


class _Memory:
    """NumPy's description of memory, for a view that may be written to."""

    def __init__(self, values: np.ndarray):
        self._values = values
        self.__array_interface__ = {**values.__array_interface__, "data": (values.ctypes.data, False)}


def _kind(capsule: Any) -> bytes | None:
    return next((name for name in _CODE_AT if _capsule_is(capsule, name)), None)


def _code_of(capsule: Any, kind: bytes) -> ctypes.c_uint8:
    return ctypes.c_uint8.from_address(_structure(capsule, kind) + _CODE_AT[kind])


def is_host(ctx: Context) -> bool:
    """Whether arrays on `ctx` lie in the processor's memory, whole."""
    return ctx.mesh is None and device_of(ctx).platform == "cpu"


def export(a: Any, what: str, for_writing: bool = False) -> np.ndarray:
    """Return NumPy's view of the memory of `a`, which is shared until nothing holds the result any more.

    What is written there is seen by each operation that is called afterwards, and what is written to `a` is seen there.
    `a` is moved to memory of its own first: other arrays may have the same value, and programs rely on it.

    Raises:
        ArgumentError: the memory of `a` cannot be written to from outside, or not as `a` has its elements.
        MXNetError: `for_writing`, and `a` is part of a recorded graph.
    """
    if a.is_sparse:
        raise ArgumentTypeError(
            f"{what}: a {a.stype} array has no memory of its dense values; export its data and indices, or "
            "tostype('default')"
        )
    if not is_host(a.context):
        raise ArgumentError(
            f"{what}: an array on {a.context} is immutable to XLA, so what is written outside would be lost or seen by "
            "other arrays; write to a copy on the CPU (as_in_context), or use the result of x[:] = …"
        )
    if for_writing:
        check_writable(a, what)
    x = a._extra()
    root, window = (a, ()) if x.view_base is None else (x.view_base, x.view_ops)
    memory = exposed(root)
    if root._extra().error is not None:
        raise root._extra().error
    if root._trace is not None or memory is None:
        data = root._data if root._data is not None else realize(root)
        memory = exposed(root)
        if memory is None:
            values = root._block_on(lambda: np.asarray(fully_replicated(data)))
            memory = root._extra().exposed = Exposed.copied(values)
            memory.recorded = data if root._extra().tape_value is not None else None
            make_views_stale(root)
            root._trace, root._data, root._value = None, None, root._value.aval
    if for_writing:
        root._extra().tape_value = None
        if not memory.writable:
            raise ArgumentError(f"{what}: the memory that the array was made of is read-only; export a copy()")
    try:
        return memory.export(window)
    except ValueError as e:
        raise ArgumentError(f"{what}: a view of shape {a.shape} cannot be exported: {e}; export a copy()") from None


def to_capsule(a: Any, what: str, for_writing: bool = False, **kwargs: Any) -> Any:
    """Return a DLPack capsule of the memory of `a`, see `export`; `kwargs` are those of `__dlpack__`."""
    shown = export(a, what, for_writing)
    if shown.dtype != _BFLOAT16:
        return shown.__dlpack__(**kwargs)
    capsule = shown.view(np.uint16).__dlpack__(**kwargs)  # NumPy cannot export a type that is not its own
    kind = _kind(capsule)
    assert kind is not None
    _code_of(capsule, kind).value = _BFLOAT
    return capsule


def adopt(memory: np.ndarray, ctx: Context) -> Any:
    """Return an array on the CPU that shares `memory` with everybody else who sees it."""
    made = array_from_buffer(memory, ctx)
    made._data = None
    made._extra().exposed = Exposed(memory)
    return made


def from_dlpack(dlpack: Any, copy: bool | None = None) -> Any:
    """Return an array that shares the memory of an object with `__dlpack__`, or of a DLPack capsule.

    What the other library writes is seen by each operation that is called afterwards, and what is written to the array
    is seen by the other library. The values of JAX arrays never change, so they are copied; so is the memory of
    accelerators, whose later changes are then not seen.

    Args:
        dlpack: an array of PyTorch, CuPy, NumPy, JAX, …, or a capsule, which can be read once and is taken to be of
            the CPU.
        copy: True never shares memory; False raises where it cannot be shared.

    Raises:
        ArgumentTypeError: the object or capsule cannot be read. ArgumentError: `copy=False`, and it must be copied.

    Example:
        >>> import numpy as np
        >>> values = np.array([1.5, 2.5], "float32")
        >>> x = from_dlpack(values)
        >>> values[0] = 7
        >>> x.asnumpy().tolist()
        [7.0, 2.5]
    """
    ctx = dlpack._value.ctx if isinstance(dlpack, Handle) else Context("cpu", 0)
    try:
        shared = not isinstance(dlpack, jax.Array) and _device(dlpack) == _CPU
        if shared:
            values = _read(dlpack)
            as_dtype(values.dtype)
            return array_from_buffer(device_put(values, ctx), ctx) if copy else adopt(values, ctx)
        if copy is False:
            where = "JAX arrays never change" if isinstance(dlpack, jax.Array) else "it is not the processor's memory"
            raise ArgumentError(f"from_dlpack: copy=False: {where}; expected copy=None or True")
        with x64():
            value = dlpack if isinstance(dlpack, jax.Array) else jax.dlpack.from_dlpack(dlpack)
        where = context_of(value)
        return array_from_buffer(device_put(value, where), where)
    except ArgumentError:
        raise
    except (TypeError, ValueError, RuntimeError, BufferError, AttributeError) as e:
        kind = type(dlpack).__name__
        raise ArgumentTypeError(f"from_dlpack: dlpack of type {kind} cannot be read: {str(e).strip()}") from None


def _device(dlpack: Any) -> int:
    return int(dlpack.__dlpack_device__()[0]) if hasattr(dlpack, "__dlpack_device__") else _CPU


def _read(dlpack: Any) -> np.ndarray:
    """Return NumPy's view of what an object or a capsule exports, writable unless it says that it must not be."""
    capsule = dlpack
    if hasattr(dlpack, "__dlpack__"):
        try:
            capsule = dlpack.__dlpack__(max_version=_VERSION)
        except TypeError:  # an older protocol
            capsule = dlpack.__dlpack__()
    kind = _kind(capsule)
    if kind is None:
        raise ValueError("it is no capsule, or one that was read before")
    code = _code_of(capsule, kind)
    is_bfloat16 = code.value == _BFLOAT
    if is_bfloat16:
        code.value = _UINT
    values = np.from_dlpack(_Capsule(capsule))
    if kind == b"dltensor":  # without a version nothing tells whether it is read-only, and NumPy assumes so
        values = np.asarray(_Memory(values))
    return values.view(_BFLOAT16) if is_bfloat16 else values


__all__ = ["adopt", "export", "from_dlpack", "is_host", "to_capsule"]
