"""`Symbol`: a named expression over variables; run by binding it to arrays."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..compile.devices import parse_spec
from ..core import np_mode
from ..core.context import Context, current_context
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, suggest
from ..core.module_alias import lazy_reexport
from ..core.reader import read_file
from ..graph.infer import is_known
from ..ndarray import NDArray
from ..op.registry import Op, get_op
from .arithmetic import NotImplementedForSymbol, binary
from .attributes import AttrScope, is_dunder, json_key, param_text, user_visible, variable_attrs
from .bind import bind, simple_bind
from .executor import Executor
from .fluent import Fluent
from .inference import Dtypes, Shapes, dtype_lists, shape_lists
from .json import from_json, to_json
from .node import Node, SymbolBase, compose, copy_graph, create_entries, split_variables

# Graph partitioners of MXNet; scripts name them, and XLA does their work without being told.
BACKENDS = ("MKLDNN", "MKLDNN_QUANTIZE", "TensorRT")


class Symbol(SymbolBase, Fluent):
    """One or several outputs of a graph of named operator nodes and variables.

    A symbol has no values. It lists the variables it needs, infers their shapes and types, and is run by binding
    arrays to it (`bind`, `simple_bind`). Symbols are made by `Variable`, by the functions of `mx.sym`, and by Python's
    operators; `x + y` adds elementwise without broadcasting.

    Args:
        entries: pairs (node, output index).

    Example:
        >>> import dualmx as mx
        >>> x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
        >>> z = (x + y) / 100
        >>> z.list_arguments()
        ['x', 'y']
        >>> z.eval(x=mx.nd.ones(2), y=mx.nd.ones(2))[0].asnumpy()
        array([0.02, 0.02], dtype=float32)
    """

    __slots__ = ("__weakref__",)
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        name = self.name
        if name is None:
            return f"<Symbol group [{', '.join(str(s.name) for s in self)}]>"
        return f"<Symbol {name}>"

    # ---- outputs

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Symbol]:
        return (Symbol([entry]) for entry in self.entries)

    def __getitem__(self, index: int | str | slice) -> Symbol:
        """Return an output by number or by name, or a group of outputs by slice.

        Raises:
            IndexError: no such number. ArgumentError: no output, or several, of that name.
        """
        if isinstance(index, slice):
            chosen = self.entries[index]
            if not chosen:
                raise IndexError(f"slice {index} of a symbol with {len(self)} outputs is empty")
            return Symbol(chosen)
        if isinstance(index, str):
            names = self.list_outputs()
            found = [i for i, name in enumerate(names) if name == index]
            if len(found) != 1:
                how = "there are several outputs" if found else "there is no output"
                raise ArgumentError(f"symbol[{index!r}]: {how} of that name; {suggest(index, names)}")
            index = found[0]
        if not isinstance(index, int):
            raise ArgumentTypeError(f"symbol[{index!r}]: expected an output's number, its name, or a slice")
        if not -len(self) <= index < len(self):
            raise IndexError(f"symbol[{index}]: it has {len(self)} outputs")
        return Symbol([self.entries[index]])

    @property
    def name(self) -> str | None:
        """Name of the node, `None` for a group of several nodes."""
        if not self.entries:
            return None
        first = self.entries[0][0]
        return first.name if all(node is first for node, _ in self.entries) else None

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return len(self.entries)

    # ---- the graph below

    def get_internals(self) -> Symbol:
        """Return a group of all nodes' outputs, variables included; pick one by name: `internals["fc1_output"]`."""
        return Symbol(self.internal_entries())

    def get_children(self) -> Symbol | None:
        """Return a group of the inputs of the node(s), `None` when there are none."""
        children = [entry for node in {id(n): n for n, _ in self.entries}.values() for entry in node.inputs]
        return Symbol(children) if children else None

    # ---- attributes

    def _only_node(self, what: str) -> Node:
        if self.name is None:
            raise MXNetError(f"{what}: expected a symbol of one node, not a group; pick an output first")
        return self.entries[0][0]

    def attr(self, key: str) -> str | None:
        """Return the text of attribute `key` of the node, `None` if it has no such attribute."""
        return user_visible(self._only_node("attr").attrs).get(key)

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """Attributes and parameters of the node as text; empty for a group. For complete graphs use `attr_dict`."""
        if recursive:
            raise DeprecationWarning("Symbol.list_attr(recursive=True) is deprecated; use attr_dict()")
        return user_visible(self.entries[0][0].attrs) if self.name is not None else {}

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Attributes and parameters of every node that has any, by node name."""
        return {node.name: user_visible(node.attrs) for node in self._order() if node.attrs}

    def _set_attr(self, **kwargs: str) -> None:
        """Set string attributes or parameters of the node.

        Raises:
            ArgumentError: a value is not a string, or the op rejects it.
        """
        node = self._only_node("_set_attr")
        attrs = dict(node.attrs)
        for key, value in kwargs.items():
            if not isinstance(value, str):
                raise ArgumentError(f"_set_attr: {key}={value!r}: attributes are strings; write {key}={str(value)!r}")
            attrs[json_key(key)] = value
        if node.op is not None:
            node.set_params(node.op.parse({k: v for k, v in attrs.items() if not is_dunder(k)}))
        node.attrs = attrs

    # ---- composition and copies

    def __call__(self, *args: Symbol, name: str | None = None, **kwargs: Symbol) -> Symbol:
        """Return a copy of the graph in which variables are replaced by other symbols, by position or by name.

        Raises:
            ArgumentTypeError: an argument is not a symbol. MXNetError: no variable of that name.

        Example:
            >>> import dualmx as mx
            >>> act = mx.sym.relu(mx.sym.var("x"), name="act")
            >>> act(x=mx.sym.var("a") + mx.sym.var("b")).list_arguments()
            ['a', 'b']
        """
        return Symbol(compose(self.entries, args, kwargs, name))

    def _compose(self, *args: Symbol, name: str | None = None, **kwargs: Symbol) -> None:
        """Replace variables of this symbol itself by other symbols, as a call does in a copy."""
        self.entries = tuple(compose(self.entries, args, kwargs, name))

    def __copy__(self) -> Symbol:
        return Symbol(copy_graph(self.entries))

    def __deepcopy__(self, _: Any = None) -> Symbol:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return (load_json, (self.tojson(remove_amp_cast=False),))

    # ---- text forms

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """Return the graph in MXNet's JSON format; `amp_cast` nodes are left out unless `remove_amp_cast` is false."""
        return to_json(self.entries, remove_amp_cast)

    def save(self, fname: str, remove_amp_cast: bool = True) -> None:
        """Write the graph to the file `fname` in MXNet's JSON format.

        Raises:
            ArgumentTypeError: `fname` is not a path. MXNetError: the file cannot be written.
        """
        if not isinstance(fname, str) and not hasattr(fname, "__fspath__"):
            raise ArgumentTypeError(f"save: fname={fname!r}: expected the path of a file")
        text = self.tojson(remove_amp_cast)
        try:
            with open(fname, "w", encoding="utf-8") as f:
                f.write(text)
        except OSError as e:
            raise MXNetError(f"save: cannot write {os.fspath(fname)!r}: {e.strerror}") from e

    # ---- operators

    def __add__(self, other: Any) -> Symbol:
        return binary("add", self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Symbol:
        return binary("sub", self, other)

    def __rsub__(self, other: Any) -> Symbol:
        return binary("sub", other, self)

    def __mul__(self, other: Any) -> Symbol:
        return binary("mul", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Symbol:
        return binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Symbol:
        return binary("div", other, self)

    def __mod__(self, other: Any) -> Symbol:
        return binary("mod", self, other)

    def __rmod__(self, other: Any) -> Symbol:
        return binary("mod", other, self)

    def __pow__(self, other: Any) -> Symbol:
        return binary("pow", self, other)

    def __rpow__(self, other: Any) -> Symbol:
        return type(self)(create_entries(get_op("_rpower_scalar"), (self,), {"scalar": other}, hint="_rpower_scalar"))

    def __neg__(self) -> Symbol:
        return binary("mul", self, -1.0)

    def __abs__(self) -> Symbol:
        return type(self)(create_entries(get_op("abs"), (self,)))

    def __eq__(self, other: Any) -> Symbol:
        return binary("eq", self, other)

    def __ne__(self, other: Any) -> Symbol:
        return binary("ne", self, other)

    def __gt__(self, other: Any) -> Symbol:
        return binary("gt", self, other)

    def __ge__(self, other: Any) -> Symbol:
        return binary("ge", self, other)

    def __lt__(self, other: Any) -> Symbol:
        return binary("lt", self, other)

    def __le__(self, other: Any) -> Symbol:
        return binary("le", self, other)

    def __iadd__(self, other: Any) -> Symbol:
        raise NotImplementedForSymbol("__iadd__")

    def __isub__(self, other: Any) -> Symbol:
        raise NotImplementedForSymbol("__isub__")

    def __imul__(self, other: Any) -> Symbol:
        raise NotImplementedForSymbol("__imul__")

    def __itruediv__(self, other: Any) -> Symbol:
        raise NotImplementedForSymbol("__itruediv__")

    def __bool__(self) -> bool:
        raise NotImplementedForSymbol("__bool__")

    # ---- inference

    def infer_shape(self, *args: Any, **kwargs: Any) -> tuple[Shapes | None, Shapes | None, Shapes | None]:
        """Infer the shapes of all arguments, outputs and auxiliary states from those of some variables.

        Args:
            args: shapes of the arguments in order, `None` for unknown.
            kwargs: shapes by variable name; 0 is an unknown dimension, under NumPy semantics (`npx.set_np`) -1.

        Returns:
            Three lists of shapes (arguments, outputs, auxiliary states), or `(None, None, None)` and a warning with the
            arguments that are missing when not all follow.

        Raises:
            MXNetError: shapes contradict each other (the text names node, argument and both shapes), or no variable
            has a given name. ArgumentTypeError: a shape is not a tuple.

        Example:
            >>> import dualmx as mx
            >>> fc = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="fc")
            >>> fc.infer_shape(x=(2, 4))
            ([(2, 4), (3, 4), (3,)], [(2, 3)], [])
        """
        lists = shape_lists(self.entries, args, kwargs)
        if all(map(is_known, sum(lists, []))):
            return lists
        arguments = split_variables(self._order())[0]
        missing = [(v.name, s) for v, s in zip(arguments, lists[0], strict=True) if not is_known(s)]
        warnings.warn(
            "Cannot decide shape for the following arguments (0s in shape means unknown dimensions). "
            "Consider providing them as input:" + "".join(f"\n\t{name}: {shape or ()}" for name, shape in missing),
            stacklevel=2,
        )
        return None, None, None

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> tuple[Shapes, Shapes, Shapes]:
        """Like `infer_shape`, but returns what follows: `()` for an unknown shape, 0 for an unknown dimension.

        Under NumPy semantics they are `None` and -1.
        """
        arguments, outputs, states = shape_lists(self.entries, args, kwargs)
        if np_mode.shape.get():
            return arguments, outputs, states
        return [s or () for s in arguments], [s or () for s in outputs], [s or () for s in states]

    def infer_type(self, *args: Any, **kwargs: Any) -> tuple[Dtypes | None, Dtypes | None, Dtypes | None]:
        """Infer the dtypes of all arguments, outputs and auxiliary states from those of some variables.

        Returns:
            Three lists of NumPy types (arguments, outputs, auxiliary states), or `(None, None, None)` when not all
            follow.

        Raises:
            MXNetError: dtypes contradict each other, or no variable has a given name.

        Example:
            >>> import dualmx as mx
            >>> fc = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="fc")
            >>> [t.__name__ for t in fc.infer_type(x="float16")[0]]
            ['float16', 'float16', 'float16']
        """
        lists = dtype_lists(self.entries, args, kwargs)
        return (None, None, None) if None in sum(lists, []) else lists

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> tuple[Dtypes, Dtypes, Dtypes]:
        """Like `infer_type`, but returns what follows, with `None` for an unknown dtype."""
        return dtype_lists(self.entries, args, kwargs)

    # ---- running

    def bind(
        self,
        ctx: Context,
        args: Any,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        group2ctx: Mapping[str, Context] | None = None,
        shared_exec: Executor | None = None,
    ) -> Executor:
        """Bind arrays to the variables and return an executor.

        Args:
            ctx: where to run.
            args: arrays of all arguments, as a list in their order or a dict by name.
            args_grad: arrays that receive the gradients, as a list or a dict; arguments without one get no gradient.
            grad_req: `"write"`, `"add"` or `"null"`, for all arguments, or a list or a dict by name.
            aux_states: arrays of all auxiliary states, as a list or a dict.
            group2ctx: contexts by `ctx_group` attribute: where the operators of a group run. Operators without a group
                run where their first input is.
            shared_exec: accepted; memory is shared by the engine itself.

        Raises:
            ArgumentError: an array is missing or superfluous, or a group is not in `group2ctx`.
            ArgumentTypeError: something is not an array.
            MXNetError: shapes or dtypes do not fit the graph, or a variable name occurs twice.

        Example:
            >>> import dualmx as mx
            >>> exe = (mx.sym.var("a") + mx.sym.var("b")).bind(mx.cpu(), {"a": mx.nd.ones(2), "b": mx.nd.ones(2)})
            >>> exe.forward()[0].asnumpy().tolist()
            [2.0, 2.0]
        """
        return bind(self, ctx, args, args_grad, grad_req, aux_states, group2ctx)

    def simple_bind(
        self,
        ctx: Context,
        grad_req: Any = "write",
        type_dict: Mapping[str, Any] | None = None,
        stype_dict: Mapping[str, str] | None = None,
        group2ctx: Mapping[str, Context] | None = None,
        shared_arg_names: Sequence[str] | None = None,
        shared_exec: Executor | None = None,
        shared_buffer: dict[str, NDArray] | None = None,
        **kwargs: Any,
    ) -> Executor:
        """Infer all shapes and dtypes, allocate the arrays, and return an executor.

        Args:
            ctx: where to run and to allocate.
            grad_req: `"write"`, `"add"` or `"null"`, for all arguments, or a list or a dict by name; every argument
                whose request is not `"null"` gets a gradient array, data and labels included.
            type_dict: dtypes by variable name; what does not follow from them is float32.
            stype_dict: storage types by variable name, instead of those the variables were made with. The storage
                types of gradients follow.
            group2ctx: contexts by `ctx_group` attribute: where the arguments of a group are allocated and its operators
                run. Operators without a group run where their first input is.
            shared_arg_names: arguments whose arrays are taken from `shared_exec`, with their gradients.
            shared_exec: executor to share these arrays and the auxiliary states with.
            shared_buffer: accepted; memory is shared by the engine itself.
            kwargs: shapes by variable name; names that the graph does not have are ignored.

        Raises:
            MXNetError: shapes do not follow (the text lists them), contradict each other, or a name occurs twice.

        Example:
            >>> import dualmx as mx
            >>> exe = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="fc").simple_bind(mx.cpu(), x=(2, 4))
            >>> exe.arg_dict["fc_weight"].shape
            (3, 4)
        """
        return simple_bind(self, ctx, kwargs, grad_req, type_dict, stype_dict, group2ctx, shared_arg_names, shared_exec)

    def eval(self, ctx: Context | None = None, **kwargs: NDArray) -> list[NDArray]:
        """Run the graph once in inference mode on arrays by variable name, and return the outputs.

        Raises:
            ArgumentError: a variable has no array.
        """
        names = self.list_auxiliary_states()
        states = {n: kwargs[n] for n in names if n in kwargs}
        return self.bind(ctx or current_context(), kwargs, aux_states=states).forward()

    # ---- what only arrays can do

    def gradient(self, wrt: Sequence[str]) -> Symbol:
        """Gradients are not symbols here: bind the symbol and call `Executor.backward`; always raises `MXNetError`."""
        raise MXNetError("Symbol.gradient is not implemented; bind the symbol and use Executor.backward")

    def asnumpy(self) -> Any:
        """Only arrays have values; always raises."""
        raise NotImplementedForSymbol("asnumpy")

    def asscalar(self) -> Any:
        """Only arrays have values; always raises."""
        raise NotImplementedForSymbol("asscalar")

    def wait_to_read(self) -> None:
        """Only arrays are computed; always raises."""
        raise NotImplementedForSymbol("wait_to_read")

    def copy(self) -> Symbol:
        """Only arrays are copied by this method (`copy.copy` copies symbols); always raises."""
        raise NotImplementedForSymbol("copy")

    def as_in_context(self, context: Any = None) -> Symbol:
        """Only arrays live in a context; always raises."""
        raise NotImplementedForSymbol("as_in_context")

    def detach(self) -> Symbol:
        """Only arrays carry recorded gradients (`BlockGrad` stops them in symbols); always raises."""
        raise NotImplementedForSymbol("detach")

    def backward(self, *args: Any, **kwargs: Any) -> None:
        """Only arrays and executors run backward; always raises."""
        raise NotImplementedForSymbol("backward")

    def as_nd_ndarray(self) -> Symbol:
        """Return the symbol itself, which is classic."""
        return self

    def get_backend_symbol(self, backend: str) -> Symbol:
        """Return the symbol itself; see `optimize_for`."""
        check_backend("get_backend_symbol", backend)
        return self

    def optimize_for(self, backend: str, *args: Any, **kwargs: Any) -> Symbol:
        """Return the symbol itself: XLA fuses complete graphs, which is what MXNet's backends are for.

        Args:
            backend: `"MKLDNN"`, `"MKLDNN_QUANTIZE"` or `"TensorRT"`.
            *args, **kwargs: arrays and options for the backend; accepted without effect.

        Raises:
            ArgumentError: an unknown backend.
        """
        check_backend("optimize_for", backend)
        return self


def check_backend(operation: str, backend: str) -> None:
    """Raise `ArgumentError`, in the name of `operation`, unless MXNet has a graph partitioner called `backend`."""
    if backend not in BACKENDS:
        raise ArgumentError(
            f"{operation}: backend={backend!r}: {suggest(backend, BACKENDS)}; XLA compiles whole graphs"
        )


def create(
    op: Op,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    hint: str | None = None,
    alias: str | None = None,
) -> Symbol:
    """Make a node of `op` and return the symbol of its visible outputs; see `compose.create_entries`."""
    return Symbol(create_entries(op, args, kwargs, name, attr, hint, alias))


def Group(symbols: Sequence[Symbol], create_fn: type[Symbol] = Symbol) -> Symbol:
    """Return one symbol with the outputs of all `symbols`, to run several heads in one executor.

    Raises:
        ArgumentTypeError: `symbols` is empty or holds something else.
    """
    if not isinstance(symbols, (list, tuple)) or not symbols or any(not isinstance(s, Symbol) for s in symbols):
        raise ArgumentTypeError(f"Group: expected a non-empty list of symbols, got {symbols!r}")
    return create_fn([entry for s in symbols for entry in s.entries])


def var(
    name: str,
    attr: Mapping[str, str] | None = None,
    shape: Any = None,
    lr_mult: float | None = None,
    wd_mult: float | None = None,
    dtype: Any = None,
    init: Any = None,
    stype: str | None = None,
    **kwargs: Any,
) -> Symbol:
    """Make a variable: an input of a graph, bound to an array by its name.

    Args:
        name: the name.
        attr: string attributes.
        shape: shape used by inference when none is given at the call; 0 is an unknown dimension.
        lr_mult, wd_mult: multipliers of the learning rate and the weight decay of this variable.
        dtype: element type used by inference.
        init: an initializer, or its name or JSON form, used instead of the default one.
        stype: storage type, `"default"`, `"row_sparse"` or `"csr"`.
        kwargs: further attributes, named `__key__`; and `shard`, how the array is cut when it is bound on a
            `parallel.Mesh`, such as `("model", None)`.

    Raises:
        ArgumentTypeError: the name is not a string. ArgumentError: an attribute that is not a string, or a keyword
        that is not of the form `__key__`.

    Example:
        >>> var("w", shape=(2, 0), lr_mult=2).attr_dict()
        {'w': {'__shape__': '(2, 0)', '__lr_mult__': '2', 'lr_mult': '2'}}
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"Variable: name={name!r}: expected a string")
    for key, value in (attr or {}).items():
        if not isinstance(value, str):
            raise ArgumentError(f"Variable: attribute {key}={value!r}: attributes are strings")
    attrs = {json_key(k): v for k, v in AttrScope.current.get(attr).items()}
    attrs.update(variable_attrs(shape, lr_mult, wd_mult, dtype, init, stype))
    if "shard" in kwargs:
        attrs["__shard__"] = str(parse_spec(kwargs.pop("shard")))
    for key, value in kwargs.items():
        if not is_dunder(key):
            raise ArgumentError(f"Variable: unknown keyword {key!r}: further attributes are named __{key}__")
        attrs[key] = param_text(value)
    return Symbol([(Node(None, name, attrs=attrs), 0)])


Variable = var


def load_json(json_str: str) -> Symbol:
    """Read a symbol from MXNet's JSON text, of any version since 0.8.

    Raises:
        ArgumentTypeError: not a string. FormatError: not a valid graph. MXNetError: unknown operator or parameter.
    """
    if not isinstance(json_str, str):
        raise ArgumentTypeError(f"load_json: expected a string, got {type(json_str).__name__}")
    return Symbol(from_json(json_str))


fromjson = load_json


def load(fname: str) -> Symbol:
    """Read a symbol from a JSON file written by `Symbol.save`, `save_checkpoint` or `HybridBlock.export`.

    Raises:
        ArgumentTypeError: `fname` is not a path. MXNetError: the file cannot be read. FormatError: it is not a valid
        graph.
    """
    if not isinstance(fname, str) and not hasattr(fname, "__fspath__"):
        raise ArgumentTypeError(f"load: fname={fname!r}: expected the path of a file")
    return Symbol(from_json(read_file(fname, "load: cannot read"), repr(str(fname))))


# The functions of `mx.sym` that MXNet has in this module.
__getattr__, __dir__ = lazy_reexport(__name__, "dualmx.symbol")


__all__ = ["Group", "Symbol", "Variable", "create", "fromjson", "load", "load_json", "var"]
