"""Generated functions as data, which can be stored and is verified before it becomes source again.

What is stored is a list of statements whose expressions are nested lists of JSON. Reading makes source of those kinds
of nodes and of those names only that are listed here, so that a file can name no other function, attribute or module.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from inspect import CO_VARARGS
from typing import Any

from ..core.syntax import parse

_NAME = re.compile(r"[vxcd]\d{1,6}(_\d{1,6})?")
_STRING = re.compile(r"[A-Za-z_]{1,24}")
_MAX_DEPTH, _MAX_STATEMENTS, _MAX_ITEMS = 60, 20_000, 10_000
_MAX_INTEGER = 2**64

_OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&", ast.BitOr: "|",
    ast.BitXor: "^", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Invert: "~", ast.USub: "-",
}  # fmt: skip
_BINARY = frozenset(_OPERATORS.values()) - {"~"}
_MODULES = frozenset({"np", "K"})
_METHODS = frozenset({"astype", "reshape", "transpose", "type"})
_KEYWORDS = frozenset({
    "axis", "conjugate_a", "dtype", "left_side", "lower", "out", "transpose_a", "unit_diagonal",
})  # fmt: skip
_NUMPY = (
    "abs add arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin bitwise_and bitwise_or bitwise_xor "
    "broadcast_to cbrt ceil concatenate conj cos cosh divide exp exp2 expm1 flip floor imag int32 int64 isfinite log "
    "log1p logaddexp logical_and logical_or logical_xor matmul maximum minimum moveaxis multiply negative nextafter "
    "power real reshape rint sign sin sinh split sqrt square stack subtract tan tanh tile where zeros"
)
NUMPY_FUNCTIONS = frozenset(f"np.{name}" for name in _NUMPY.split())
_REDUCED = frozenset(f"{name}.reduce" for name in NUMPY_FUNCTIONS)
_COMMON_FUNCTIONS = NUMPY_FUNCTIONS | _REDUCED | {"max", "min"}

Data = Any


class FormatError(Exception):
    """Source, or stored data, with something that the format does not have."""


# What reading, compiling and trying stored data may raise.
UNUSABLE = (FormatError, ArithmeticError, LookupError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError)


# -- from source to data


def encode_expression(source: str) -> Data:
    """Return an expression as data.

    Example:
        >>> encode_expression("np.add(x0,c1)"), encode_expression("(d0+1)//2 >= d1")
        (['call', 'np.add', 'x0', 'c1'], ['>=', ['//', ['+', 'd0', 1], 2], 'd1'])

    Raises:
        FormatError: the format does not have such expressions.
    """
    return _encode(parse(source, "eval").body)


def encode_functions(source: str) -> list[Data]:
    """Return the functions of a source as data: for each its name, arguments, statements and results."""
    return [_encode_function(node) for node in parse(source).body if isinstance(node, ast.FunctionDef)]


def _encode_function(node: ast.FunctionDef) -> Data:
    *body, last = node.body
    if not isinstance(last, ast.Return):
        raise FormatError(ast.unparse(last))
    return [node.name, [a.arg for a in node.args.args], [_encode_statement(s) for s in body], _encode(last.value)]


def _encode_statement(node: ast.stmt) -> Data:
    if isinstance(node, ast.FunctionDef):
        return {"function": _encode_function(node)}
    if not isinstance(node, ast.Assign):
        raise FormatError(ast.unparse(node))
    (target,) = node.targets
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    outs = [n.id for n in names if isinstance(n, ast.Name)]
    return [outs if isinstance(target, ast.Tuple) else outs[0], _encode(node.value)]


def _encode(node: Any) -> Data:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Constant(value=bool() | int() | None as value):
            return value
        case ast.Constant(value=str() as text):
            return ["string", text]
        case ast.Constant(value=complex() as number) if number == 1j:
            return ["imaginary"]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return -value
        case ast.UnaryOp(op=operator, operand=a) if type(operator) in _OPERATORS:
            return [_OPERATORS[type(operator)], _encode(a)]
        case ast.BinOp(left=a, op=operator, right=b) if type(operator) in _OPERATORS:
            return [_OPERATORS[type(operator)], _encode(a), _encode(b)]
        case ast.Compare(left=a, ops=[operator], comparators=[b]) if type(operator) in _OPERATORS:
            return [_OPERATORS[type(operator)], _encode(a), _encode(b)]
        case ast.Tuple(elts=items):
            return ["tuple", *map(_encode, items)]
        case ast.List(elts=items):
            return ["list", *map(_encode, items)]
        case ast.Attribute(value=a, attr="T"):
            return ["T", _encode(a)]
        case ast.Attribute():
            return ["function", ast.unparse(node)]
        case ast.Subscript(value=a, slice=ast.Tuple(elts=items)):
            return ["index", _encode(a), *map(_encode, items)]
        case ast.Subscript(value=a, slice=at):
            return ["index", _encode(a), _encode(at)]
        case ast.Slice(lower=a, upper=b, step=c):
            return ["slice", *(None if part is None else _encode(part) for part in (a, b, c))]
        case ast.Call(func=ast.Attribute(value=a, attr=name)) if name in _METHODS and ast.unparse(a) not in _MODULES:
            return ["method", name, _encode(a), *_encode_arguments(node)]
        case ast.Call(func=function):
            return ["call", ast.unparse(function), *_encode_arguments(node)]
    raise FormatError(ast.unparse(node))


def _encode_arguments(node: ast.Call) -> list[Data]:
    named = {str(k.arg): _encode(k.value) for k in node.keywords}
    return [*map(_encode, node.args), *([named] if named else [])]


# -- from data to source


class SourceReader:
    """Makes source of data that it verifies.

    Args:
        known: operands that are known everywhere, as constants are.
        sizes: what the different sizes are called.
        functions: what expressions may call or mention by its name, besides NumPy's functions that are listed above.
    """

    def __init__(
        self,
        known: Iterable[str] = (),
        sizes: Sequence[str] = (),
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ):
        self._known = {self._new_name(name) for name in known}
        self._sizes = list(sizes)
        self._functions = functions or {}
        self._n_statements = 0

    def expression(self, data: Data, depth: int = 0) -> str:
        """Return the source of an expression.

        Raises:
            FormatError: it is none of the format.
        """
        kind = type(data)
        if kind is str:
            return self._name(data)
        if kind is int and abs(data) < _MAX_INTEGER:
            return str(data) if data >= 0 else f"({data})"
        if kind is bool or data is None:
            return str(data)
        if kind is not list or not data or depth > _MAX_DEPTH or len(data) > _MAX_ITEMS:
            raise FormatError(repr(data)[:200])
        head, *rest = data
        if type(head) is not str:
            raise FormatError(repr(data)[:200])
        if head == "call" and rest:
            return f"{self._called(rest[0], rest[1:])}({self._arguments(rest[1:], depth + 1)})"
        if head == "method" and len(rest) > 1 and rest[0] in _METHODS:
            return f"{self._primary(rest[1], depth + 1)}.{rest[0]}({self._arguments(rest[2:], depth + 1)})"
        if head == "tuple":
            return f"({''.join(self.expression(item, depth + 1) + ',' for item in rest)})"
        if head == "list":
            return f"[{','.join([self.expression(item, depth + 1) for item in rest])}]"
        if head == "index" and len(rest) > 1:
            return f"{self._primary(rest[0], depth + 1)}[{','.join([self._part(p, depth + 1) for p in rest[1:]])}]"
        if head == "T" and len(rest) == 1:
            return f"{self._primary(rest[0], depth + 1)}.T"
        if head == "function" and len(rest) == 1:
            return self._function(rest[0])
        if head == "string" and len(rest) == 1 and type(rest[0]) is str and _STRING.fullmatch(rest[0]):
            return repr(rest[0])
        if head == "imaginary" and not rest:
            return "1j"
        if head in _BINARY and len(rest) == 2:
            return f"({self.expression(rest[0], depth + 1)}{head}{self.expression(rest[1], depth + 1)})"
        if head in ("~", "-") and len(rest) == 1:
            return f"({head}{self.expression(rest[0], depth + 1)})"
        raise FormatError(repr(data)[:200])

    def function(self, data: Data, names: Collection[str], indent: str = "") -> list[str]:
        """Return the lines of a function, whose name is one of `names` or, of a nested one, that of an operand.

        The first argument of one that is not nested is called `sizes`.
        """
        name, args, statements, result = _list_of(data, 4)
        if type(name) is not str or (not _NAME.fullmatch(name) if indent else name not in names):
            raise FormatError(repr(name)[:200])
        outside = set(self._known)
        args = ["sizes" if not indent and a == "sizes" else self._let(a) for a in _list_of(args)]
        lines = [f"{indent}def {name}({', '.join(args)}):"]
        for statement in _list_of(statements):
            self._n_statements += 1
            if self._n_statements > _MAX_STATEMENTS or len(indent) > _MAX_DEPTH:
                raise FormatError("too many statements")
            if type(statement) is dict:
                if set(statement) != {"function"}:
                    raise FormatError(repr(statement)[:200])
                lines += self.function(statement["function"], (), indent + " ")
                self._let(statement["function"][0])
                continue
            outs, value = _list_of(statement, 2)
            source = "sizes" if value == "sizes" and outs == self._sizes and not indent else self.expression(value)
            target = "".join(self._let(o) + "," for o in outs) if type(outs) is list else self._let(outs)
            lines.append(f"{indent} {target} = {source}")
        lines.append(f"{indent} return {self.expression(result)}")
        self._known = outside
        return lines

    def _new_name(self, name: Data) -> str:
        if type(name) is not str or not _NAME.fullmatch(name):
            raise FormatError(repr(name)[:200])
        return name

    def _let(self, name: Data) -> str:
        self._known.add(self._new_name(name))
        return name

    def _name(self, name: str) -> str:
        if name not in self._known:
            raise FormatError(repr(name)[:200])
        return name

    def _function(self, name: Data) -> str:
        if type(name) is not str or not (name in self._functions or name in _COMMON_FUNCTIONS):
            raise FormatError(repr(name)[:200])
        return name

    def _called(self, name: Data, args: Sequence[Data]) -> str:
        """The name of a function that takes so many arguments."""
        if (fn := self._functions.get(self._function(name))) is not None:
            code, is_named = fn.__code__, bool(args) and type(args[-1]) is dict
            least, named = code.co_argcount - len(fn.__defaults__ or ()), args[-1] if is_named else {}
            most = _MAX_ITEMS if code.co_flags & CO_VARARGS else code.co_argcount
            if not least <= len(args) - is_named + len(named) <= most or not set(named) <= set(code.co_varnames[:most]):
                raise FormatError(f"{name} with {len(args)} arguments")
        return name

    def _primary(self, data: Data, depth: int) -> str:
        """An expression with something behind it: a number needs brackets there."""
        source = self.expression(data, depth)
        return f"({source})" if type(data) in (int, bool) else source

    def _part(self, data: Data, depth: int) -> str:
        if type(data) is list and data[:1] == ["slice"] and len(data) == 4:
            start, stop, step = ["" if p is None else self.expression(p, depth + 1) for p in data[1:]]
            return f"{start}:{stop}" + (f":{step}" if step else "")
        return self.expression(data, depth)

    def _arguments(self, args: Sequence[Data], depth: int) -> str:
        keywords: Data = {}
        if args and type(args[-1]) is dict:
            *args, keywords = args
            if not _KEYWORDS.issuperset(keywords):
                raise FormatError(repr(keywords)[:200])
        given = [self.expression(a, depth) for a in args]
        return ",".join([*given, *(f"{k}={self.expression(v, depth)}" for k, v in keywords.items())])


def _list_of(data: Data, length: int | None = None) -> list[Data]:
    if type(data) is not list or (len(data) != length if length is not None else len(data) > _MAX_STATEMENTS):
        raise FormatError(repr(data)[:200])
    return data


__all__ = ["Data", "FormatError", "SourceReader", "UNUSABLE", "encode_expression", "encode_functions"]
