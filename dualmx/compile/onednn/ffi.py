"""The functions that XLA calls for what oneDNN computes: in C where that can be compiled, else written with ctypes.

Source: XLA's foreign function interface, whose C structures (`xla/ffi/api/c_api.h`) are a stable binary interface.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import threading
from typing import Any

import jax

from ...core import knobs
from .library import Library
from .plan import Plans, Products

CONVOLUTION, PRODUCT, KEEP = "dualmx_onednn_convolution", "dualmx_onednn_product", "dualmx_keep"
_VERSION = (0, 3)  # of the interface that the structures below describe

Pointer, Int, Long = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64


class _List(ctypes.Structure):
    _fields_ = [("size", Long), ("next", Pointer), ("count", Long), ("types", Pointer), ("items", Pointer)]


class _Attributes(ctypes.Structure):
    _fields_ = [*_List._fields_[:4], ("names", Pointer), ("items", Pointer)]


class _Frame(ctypes.Structure):
    _fields_ = [
        ("size", Long),
        ("extension", Pointer),
        ("api", Pointer),
        ("context", Pointer),
        ("stage", Int),
        ("args", _List),
        ("rets", _List),
        ("attrs", _Attributes),
    ]


class _Extension(ctypes.Structure):
    _fields_ = [("size", Long), ("type", Int), ("next", Pointer), ("metadata", Pointer)]


class _Metadata(ctypes.Structure):
    _fields_ = [("size", Long), ("version_size", Long), ("extension", Pointer), ("major", Int), ("minor", Int)]


class _Buffer(ctypes.Structure):
    _fields_ = [("size", Long), ("extension", Pointer), ("dtype", Int), ("data", Pointer)]


class _Span(ctypes.Structure):
    _fields_ = [("data", Pointer), ("size", ctypes.c_size_t)]


class _Api(ctypes.Structure):
    _fields_ = [
        *_Metadata._fields_[:1],
        ("extension", Pointer),
        ("version", Long * 3),
        ("internal", Pointer),
        ("fail", Pointer),
    ]


class _Failure(ctypes.Structure):
    _fields_ = [("size", Long), ("extension", Pointer), ("message", ctypes.c_char_p), ("code", Int)]


_ITEMS, _FIRST = _List.items.offset, _Buffer.data.offset
_METADATA, _INTERNAL = 1, 13


def _word(address: int) -> int:
    return Pointer.from_address(address).value or 0


def _failure(frame: int, message: str) -> int | None:
    """An error of XLA's own kind."""
    api = _Api.from_address(_word(frame + _Frame.api.offset))
    create = ctypes.CFUNCTYPE(Pointer, Pointer)(api.fail)
    text = _Failure(ctypes.sizeof(_Failure), None, message.encode(), _INTERNAL)
    return create(ctypes.addressof(text))


def _handler(what: Plans | Products) -> Any:
    """The function for XLA, which tells `what` the attribute and the addresses of two operands and the result."""
    args, rets = _Frame.args.offset + _ITEMS, _Frame.rets.offset + _ITEMS
    attrs, extension = _Frame.attrs.offset + _Attributes.items.offset, _Frame.extension.offset

    def call(frame: int) -> int | None:
        at = _word(frame + extension)
        if at:
            found = _Extension.from_address(at)
            if found.type == _METADATA:
                metadata = _Metadata.from_address(found.metadata)
                metadata.major, metadata.minor = _VERSION
                return None
        try:
            items = _word(frame + args)
            first, second = _word(_word(items) + _FIRST), _word(_word(items + 8) + _FIRST)
            out = _word(_word(_word(frame + rets)) + _FIRST)
            span = _Span.from_address(_word(_word(frame + attrs)))
            what.run(ctypes.string_at(span.data, span.size), first, second, out)
        except Exception as e:  # an exception cannot cross XLA
            return _failure(frame, f"{e}; MXNET_MKLDNN_ENABLED=0 leaves all work to XLA")
        return None

    return ctypes.CFUNCTYPE(Pointer, Pointer)(call)


@functools.cache
def _registered() -> bool:
    """Load oneDNN and tell XLA of it, once; False where that cannot be done."""
    from .native import handlers  # slow to import

    try:
        library, one_at_a_time = Library(), threading.Lock()
        compiled = handlers(library)
        if compiled:
            functions = {CONVOLUTION: compiled.convolution, PRODUCT: compiled.product, KEEP: compiled.keep}
        else:
            made = {CONVOLUTION: Plans, PRODUCT: Products}
            functions = {target: _handler(what(library, one_at_a_time)) for target, what in made.items()}
        _kept.extend((library, compiled, functions))
        for target, function in functions.items():
            jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(function), platform="cpu")
    except ImportError:
        return False
    except Exception as e:  # a library that cannot be loaded, an XLA with another interface
        logging.getLogger("dualmx").info("convolutions and products are left to XLA: %s", e)
        return False
    _targets.update(functions)
    return True


_targets: set[str] = set()
_kept: list[Any] = []  # XLA holds the bare address


def available(target: str = PRODUCT) -> bool:
    """True if XLA can call a target in programs on the CPU, and the user has not switched oneDNN off."""
    return knobs.ONEDNN.read() == "1" and _registered() and target in _targets
