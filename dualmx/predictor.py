"""Inference from an exported network: MXNet's C predict API, without training code."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .checkpoint import split_params
from .context import Context
from .core.dtypes import as_dtype
from .core.errors import ArgumentError, ArgumentKeyError, ArgumentTypeError, FormatError
from .core.reader import Content, read_file
from .ndarray import NDArray, array, load_frombuffer, zeros
from .symbol import Group, Symbol, load_json
from .symbol import load as load_symbol

Shapes = Mapping[str, Sequence[int]]


class Predictor:
    """A network with its parameters, for inputs of given shapes.

    Arguments of the network that are neither inputs nor parameters must be labels, which play no part in inference.

    Args:
        symbol_file: the network: a path of a `-symbol.json` file, or its text.
        param_raw_bytes: the parameters: the content of a `.params` file, or its path.
        input_shapes: shapes of the inputs by name.
        dev_type: `"cpu"`, `"gpu"` or `"tpu"`.
        dev_id: which device of the kind.
        type_dict: dtypes of inputs by name; float32 by default.
        output_names: what to return instead of the network's outputs: names of inner outputs, or of nodes with one.

    Raises:
        FormatError: a file is truncated or altered. ArgumentKeyError: a parameter is missing, an input or output is
            unknown. ArgumentError: shapes that do not fit.

    Example:
        >>> import dualmx as mx
        >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, no_bias=True, name="fc")
        >>> params = mx.nd.save_tobuffer({"arg:fc_weight": mx.nd.array([[1, 2]])})
        >>> predictor = Predictor(net.tojson(), params, {"data": (1, 2)})
        >>> predictor.forward(data=[[3, 4]])
        >>> predictor.get_output(0).tolist()
        [[11.0]]
    """

    def __init__(
        self,
        symbol_file: str | Path,
        param_raw_bytes: bytes | str | Path,
        input_shapes: Shapes,
        dev_type: str = "cpu",
        dev_id: int = 0,
        type_dict: Mapping[str, Any] | None = None,
        output_names: Sequence[str] = (),
    ):
        text = str(symbol_file)
        network = load_json(text) if text.lstrip().startswith("{") else load_symbol(text)
        if isinstance(param_raw_bytes, bytes):
            raw, source = param_raw_bytes, "param_raw_bytes"
        else:
            raw, source = read_file(param_raw_bytes), repr(str(param_raw_bytes))
        self._symbol = _inner(network, output_names) if output_names else network
        self._ctx = Context(dev_type, dev_id)
        try:
            saved = load_frombuffer(raw)
        except FormatError as e:
            raise e.within(source, source) from None
        params, states = split_params(saved, source)
        self._params = {name: value.as_in_context(self._ctx) for name, value in params.items()}
        self._states = {name: value.as_in_context(self._ctx) for name, value in states.items()}
        self._types = {name: as_dtype(t) for name, t in (type_dict or {}).items()}
        self._bind(input_shapes)

    def _bind(self, input_shapes: Shapes) -> None:
        known = self._symbol.list_arguments()
        shapes = {name: tuple(shape) for name, shape in input_shapes.items()}
        unknown = [name for name in (*shapes, *self._types) if name not in known]
        if unknown:
            inputs = [name for name in known if name not in self._params]
            raise ArgumentKeyError(f"Predictor: input {unknown[0]!r} is none of the network's: {', '.join(inputs)}")
        need = [name for name in known if name not in self._params and name not in shapes]
        missing = [name for name in need if not name.endswith("label")]
        missing += [name for name in self._symbol.list_auxiliary_states() if name not in self._states]
        if missing:
            raise ArgumentKeyError(
                f"Predictor: {', '.join(missing)}: neither among the parameters nor in input_shapes; are these the "
                "parameters of this network?"
            )
        given = {name: value.shape for name, value in self._params.items() if name in known and name not in shapes}
        found, _, _ = self._symbol.infer_shape(**given, **shapes)
        self._inputs = {n: zeros(s, self._ctx, self._types.get(n, np.dtype("float32"))) for n, s in shapes.items()}
        labels = {n: zeros(s, self._ctx) for n, s in zip(known, found or [], strict=False) if n in need}
        args = {n: v for n, v in self._params.items() if n in given} | labels | self._inputs
        states = {name: self._states[name] for name in self._symbol.list_auxiliary_states()}
        self._executor = self._symbol.bind(self._ctx, args, grad_req="null", aux_states=states)
        self._ran = False

    @property
    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the inputs by name."""
        return {name: value.shape for name, value in self._inputs.items()}

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return self._symbol.list_outputs()

    def forward(self, **kwargs: Any) -> None:
        """Run the network; inputs that are not given keep their values.

        Args:
            kwargs: inputs by name: arrays, or nested lists, of the shapes that were given.

        Raises:
            ArgumentKeyError: there is no such input. ArgumentError: an input has another shape.
        """
        for name, value in kwargs.items():
            if name not in self._inputs:
                raise ArgumentKeyError(f"Predictor.forward: input {name!r} is none of {', '.join(self._inputs)}")
            place = self._inputs[name]
            value = value if isinstance(value, NDArray) else _as_array(name, value, place)
            if value.shape != place.shape:
                raise ArgumentError(
                    f"Predictor.forward: input {name!r} has shape {value.shape}, expected {place.shape}; call reshape"
                )
            place[:] = value
        self._executor.forward(is_train=False)
        self._ran = True

    def get_output(self, index: int) -> np.ndarray:
        """Return output number `index` of the last `forward`.

        Raises:
            ArgumentError: there is no such output, or `forward` was not called.
        """
        if not 0 <= index < len(self.output_names):
            raise ArgumentError(
                f"Predictor.get_output: index={index}: the network has {len(self.output_names)} outputs"
            )
        if not self._ran:
            raise ArgumentError("Predictor.get_output: call forward first")
        return self._executor.outputs[index].asnumpy()

    def reshape(self, input_shapes: Shapes) -> None:
        """Take inputs of other shapes from now on; programs of earlier shapes are kept.

        Raises:
            ArgumentKeyError, ArgumentError: see the class.
        """
        self._bind({**self.input_shapes, **input_shapes})

    def reshaped(self, input_shapes: Shapes) -> Predictor:
        """Return another one for inputs of other shapes, with the same parameters in memory."""
        other = object.__new__(Predictor)
        vars(other).update(vars(self))
        other.reshape(input_shapes)
        return other


def _as_array(name: str, value: Any, place: NDArray) -> NDArray:
    try:
        return array(np.asarray(value, place.dtype), place.context, place.dtype)
    except (TypeError, ValueError) as e:
        raise ArgumentTypeError(f"Predictor.forward: input {name!r}: {e}; expected numbers of {place.shape}") from e


def _inner(network: Symbol, names: Sequence[str]) -> Symbol:
    inner = network.get_internals()
    known = inner.list_outputs()
    found = [name if name in known else f"{name}_output" for name in names]
    unknown = [name for name, full in zip(names, found, strict=True) if full not in known]
    if unknown:
        some = ", ".join(n for n in known if n.endswith("_output"))
        raise ArgumentKeyError(f"Predictor: output_names={unknown[0]!r}: no such output; the network has {some}")
    return Group([inner[name] for name in found])


def load_ndarray_file(nd_bytes: bytes) -> dict[str, np.ndarray] | list[np.ndarray]:
    """Return the arrays in the content of a file that `mx.nd.save` wrote, such as a mean image.

    Raises:
        FormatError: it is truncated or altered.

    Example:
        >>> import dualmx as mx
        >>> load_ndarray_file(mx.nd.save_tobuffer({"mean": mx.nd.ones((2,))}))["mean"].tolist()
        [1.0, 1.0]
    """
    found = load_frombuffer(nd_bytes)
    content = Content(nd_bytes, "nd_bytes", "what mx.nd.save writes")
    for value in found.values() if isinstance(found, dict) else found:
        nbytes = math.prod(value.shape) * np.dtype(value.dtype).itemsize  # sparse arrays get all their zeros
        content.reserve(nbytes, "its arrays")
    if isinstance(found, dict):
        return {name: value.asnumpy() for name, value in found.items()}
    return [value.asnumpy() for value in found]


__all__ = ["Predictor", "load_ndarray_file"]
