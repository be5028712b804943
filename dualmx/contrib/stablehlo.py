"""Export networks as StableHLO programs, which run with JAX alone or any StableHLO runtime."""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax import export as jax_export

from ..compile.devices import x64
from ..compile.executable import export_stablehlo
from ..core.errors import ArgumentError, MXNetError
from ..core.reader import Content
from ..gluon.bridge import functional
from ..ndarray import NDArray, array, from_jax
from ..ndarray.serialize import write_file

_MARK = b"dualmx sha256 "  # before the checksum at the end, which JAX does not look at
_NEEDS = "contrib.stablehlo needs the package flatbuffers: pip install 'dualmx[stablehlo]' ({})"


def export_model(
    path: str | os.PathLike[str],
    source: Any,
    *example: Any,
    params: Mapping[str, Any] | None = None,
    platforms: Sequence[str] | None = None,
) -> None:
    """Write what a network computes in prediction mode, with its parameters, to a file.

    The file holds a serialized `jax.export.Exported`. It is read by `import_model`; or without dualmx by
    `jax.export.deserialize(content).call(*inputs)`, whose `mlir_module()` is the StableHLO text.

    Args:
        path: the file.
        source: a block whose `hybrid_forward` runs on symbols, or a symbol.
        example: example inputs, whose shapes and types the program is for.
        params: for a symbol, parameters and states by name; the other arguments are the inputs, in order.
        platforms: where it is to run, such as `("cpu", "cuda", "tpu")`; on this process's platform by default.

    Raises:
        ArgumentError: inputs are missing, or the network draws random numbers. MXNetError: the file cannot be written,
            or flatbuffers is not installed.

    Example:
        >>> net = mx.gluon.nn.Dense(2, in_units=3)
        >>> net.initialize()
        >>> mx.contrib.stablehlo.export_model("dense.stablehlo", net, mx.nd.ones((1, 3)))
        >>> mx.contrib.stablehlo.import_model("dense.stablehlo")(mx.nd.ones((1, 3))).shape
        (1, 2)
    """
    if not example:
        raise ArgumentError("stablehlo.export_model: give example inputs, whose shapes the program is for")
    inputs = [(x if isinstance(x, NDArray) else array(x)).as_jax() for x in example]
    fn, values = functional(source, *example, params=params)
    program = export_stablehlo(lambda *xs: fn(values, *xs), inputs, platforms)
    try:
        content = program.serialize()
    except ImportError as e:
        raise MXNetError(_NEEDS.format(e)) from None
    write_file(path, bytes(content) + _MARK + hashlib.sha256(content).digest())


def import_model(path: str | os.PathLike[str], checked: bool = True) -> Any:
    """Return a function of NDArrays that runs a program from a file; outputs are NDArrays, nested as the network's.

    A program is code, so load only those of people you trust. What `export_model` writes ends with a checksum, because
    JAX's parser ends the process at a damaged program.

    Args:
        path: the file.
        checked: False takes files without a checksum, such as those that `jax.export` writes.

    Raises:
        MXNetError: the file cannot be read. FormatError: it is damaged, or holds no program. ArgumentError (by the
            function): inputs of other shapes or types.
    """
    content = Content.of_file(path, "a program that this JAX reads")
    data, mark, digest = bytes(content.data).rpartition(_MARK)
    if mark and hashlib.sha256(data).digest() != digest:
        raise content.error("its checksum is that of another program", len(data))
    if not mark and checked:
        content.remedy = "if jax.export wrote it, and you are sure that it is whole, pass checked=False"
        raise content.error("no checksum at its end")
    try:
        importlib.import_module("flatbuffers")
    except ImportError as e:
        raise MXNetError(_NEEDS.format(e)) from None
    with content.parsing(Exception):  # whatever a damaged buffer leads to
        program = jax_export.deserialize(bytearray(data if mark else content.data))

    def run(*inputs: Any) -> Any:
        given = [(x if isinstance(x, NDArray) else array(x)).as_jax() for x in inputs]
        found, expected = [(x.shape, x.dtype.name) for x in given], [(a.shape, a.dtype.name) for a in program.in_avals]
        if found != expected:
            raise ArgumentError(f"stablehlo: inputs {found}: the program is for {expected}")
        with x64():
            return jax.tree.map(from_jax, program.call(*given))

    return run


__all__ = ["export_model", "import_model"]
