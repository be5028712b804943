"""`mx.operator`: custom operators in Python (`CustomOp`, `CustomOpProp`, `register`); the arguments of operators."""

from __future__ import annotations

from .ndarray.custom_op import REGISTRY, CustomOp, CustomOpProp, register
from .op.registry import OPS, Op, OperatorArguments, get_op, operator_arguments
from .op.schema import UntypedTensor
from .symbol.python_ops import NDArrayOp, NumpyOp, PythonOp


def _custom(data: UntypedTensor, *, op_type: str) -> None:
    """Arguments of `Custom`, which front ends call without a body in the registry."""


_CUSTOM = Op("Custom", _custom)


def get_all_registered_operators() -> list[str]:
    """Names of all operators: the built-in ones, `Custom`, and those given to `register`.

    Example:
        >>> "FullyConnected" in mx.operator.get_all_registered_operators()
        True
    """
    return sorted({*OPS, _CUSTOM.name, *REGISTRY})


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """Return count, names and types of the arguments of an operator, its inputs first.

    Args:
        op_name: one of `get_all_registered_operators()` that `register` did not make.

    Raises:
        ArgumentError: unknown name.

    Example:
        >>> found = mx.operator.get_operator_arguments("Flatten")
        >>> found.narg, found.names, found.types
        (1, ['data'], ['NDArray-or-Symbol'])
    """
    return operator_arguments(_CUSTOM if op_name == _CUSTOM.name else get_op(op_name))


__all__ = [
    "CustomOp",
    "CustomOpProp",
    "NDArrayOp",
    "NumpyOp",
    "OperatorArguments",
    "PythonOp",
    "get_all_registered_operators",
    "get_operator_arguments",
    "register",
]
