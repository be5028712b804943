"""The operator registry: `@op` makes an `Op` of an annotated function; a `Call` is an op with its parameters bound."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from types import SimpleNamespace
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, Unpack, get_args, get_origin

import jax
import numpy as np

from ..core.dtypes import is_dtype, is_float
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, suggest
from .schema import AUX, TENSOR, UNTYPED, Axes, Input, ParamField, read_schema, to_floats
from .shape_functions import Results, ShapeFunctions
from .symbolic_sizes import Avals
from .traits import NO_TRAITS, StorageRule, Traits


@cache
def key_aval() -> jax.ShapeDtypeStruct:
    """The abstract value of a random key."""
    return jax.eval_shape(lambda: jax.random.key(0))


RuntimeForm = Callable[[Mapping[str, Any], tuple[int, ...], np.dtype], "tuple[Call, tuple[float, ...]] | None"]


def _always_writes(p: Any, train: bool) -> bool:
    """Every call changes the auxiliary inputs, in either mode."""
    return True


class OpOptions(TypedDict, total=False):
    """What an operator may say of itself beside its body.

    Attributes:
        aliases: further names under which front ends and JSON find it.
        outputs: number of outputs (auxiliary next values follow them and are not counted), or a function of the
        parameters.
        visible: how many of the outputs front ends show, all of them if None, or a function of the parameters.
        output_names: their names.
        complete: `(p, shapes: dict) -> dict` of input shapes deduced from known ones; see `graph.infer`.
        complete_dtype: likewise for dtypes.
        writes_aux: `(p, train) -> bool`; when false the body's next auxiliary values are dropped.
        dynamic: output shapes depend on values, so it runs at once and outside compiled programs.
        mutates: `p -> input positions` written back from the results after the outputs, before the auxiliary ones.
        floating: `Tensor` inputs must be of a floating type.
        is_collective: `(p, train) -> bool`; whether the call exchanges values with other contexts.
        paired_inputs: names of further inputs of a variadic op for each one that `num_args` counts; they follow the
        latter.
        input_names_of: `p -> names` of all inputs of a variadic op where its parameters settle them, `()` elsewhere.
        parts: `call -> parts` that together compute what the call does, `()` for none; see `Part`.
        traits: what the rooms above must know of it, see `Traits`.
        method: name of the method that arrays and symbols have for it, `""` for none.
    """

    aliases: Sequence[str]
    outputs: int | Callable[[Any], int]
    visible: int | Callable[[Any], int] | None
    output_names: Sequence[str]
    complete: Callable[..., Mapping[str, tuple[int, ...]]] | None
    complete_dtype: Callable[..., Mapping[str, str]] | None
    writes_aux: Callable[[Any, bool], bool]
    dynamic: bool
    mutates: Callable[[Any], Sequence[int]] | None
    floating: bool
    is_collective: Callable[[Any, bool], bool] | None
    paired_inputs: Sequence[str]
    input_names_of: Callable[[Any], Sequence[str]] | None
    parts: Callable[[Call], Sequence[Part]] | None
    traits: Traits
    method: str


class Op:
    """An operator: a pure JAX function plus its schema, which is read from the annotations when first needed.

    Attributes:
        name: MXNet's registry name.
        fn: body; takes the inputs by position, hidden arguments and parameters by keyword.
        inputs: tensor inputs, auxiliary ones included, in order.
        params: typed parameters by name.
        key_name, train_name: the hidden arguments for a random key and the training flag, `""` if there is none.
        calls: the interned calls.
        runtime_form: turns parameters of a call on data of some shape and dtype into the call, and its runtime inputs,
        that computes the same; None where those, float32, would not be exact.
        variant_of: name of the operator of which this is the form with numbers at run time, None for all others.
        outputs, visible and the others: see `OpOptions`.
    """

    aliases: tuple[str, ...] = ()
    outputs: int | Callable[[Any], int] = 1
    visible: int | Callable[[Any], int] | None = None
    output_names: tuple[str, ...] = ()
    complete: Callable[..., Mapping[str, tuple[int, ...]]] | None = None
    complete_dtype: Callable[..., Mapping[str, str]] | None = None
    writes_aux: Callable[[Any, bool], bool] = staticmethod(_always_writes)
    dynamic: bool = False
    mutates: Callable[[Any], Sequence[int]] | None = None
    floating: bool = False
    is_collective: Callable[[Any, bool], bool] | None = None
    paired_inputs: tuple[str, ...] = ()
    input_names_of: Callable[[Any], Sequence[str]] | None = None
    parts: Callable[[Call], Sequence[Part]] | None = None
    traits: Traits = NO_TRAITS
    method: str = ""
    variant_of: str | None = None
    runtime_form: RuntimeForm | None = None
    inputs: tuple[Input, ...]
    params: Mapping[str, ParamField]
    key_name: str
    train_name: str

    def __init__(
        self,
        name: str,
        fn: Callable[..., Any],
        inputs: tuple[Input, ...] | None = None,
        params: Mapping[str, ParamField] | None = None,
        *,
        key_name: str = "",
        train_name: str = "",
        **options: Unpack[OpOptions],
    ):
        if unknown := options.keys() - OpOptions.__annotations__.keys():
            raise TypeError(f"op {name!r}: unknown options {sorted(unknown)}")
        self.name, self.fn = name, fn
        self.calls: dict[Any, Call] = {}
        self.__dict__.update((n, tuple(v) if isinstance(v, list) else v) for n, v in options.items())
        if inputs is not None:
            self.inputs, self.params, self.key_name, self.train_name = inputs, params or {}, key_name, train_name

    def __getattr__(self, name: str) -> Any:
        # Reading four hundred signatures would be half of the import time, and a script uses a few dozen.
        if name in ("inputs", "params", "key_name", "train_name"):
            self.inputs, self.params, self.key_name, self.train_name = read_schema(self.fn)
            return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<Op {self.name}>"

    @property
    def has_key(self) -> bool:
        """True if the body draws random numbers."""
        return bool(self.key_name)

    @property
    def has_train(self) -> bool:
        """True if the body depends on the training flag."""
        return bool(self.train_name)

    @property
    def variadic(self) -> bool:
        """True if the op takes any number of inputs."""
        return bool(self.inputs) and self.inputs[0].variadic

    @property
    def inputs_per_arg(self) -> int:
        """How many inputs of a variadic op `num_args` counts as one."""
        return 1 + len(self.paired_inputs)

    @cached_property
    def runtime(self) -> tuple[str, ...]:
        """Names of the parameters that are runtime inputs."""
        return tuple(f.name for f in self.params.values() if f.runtime)

    def runtime_values(self, params: Mapping[str, Any]) -> tuple[float, ...]:
        """The runtime parameters of parsed `params`, tuples flattened, in the order `Call.apply` takes them."""
        out: list[float] = []
        for n in self.runtime:
            out.extend(params[n]) if self.params[n].vector else out.append(params[n])
        return tuple(out)

    def parse(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Validate user keywords into canonical parameters; errors name op, parameter, value and expectation."""
        for k in kwargs:
            if k not in self.params:
                raise ArgumentError(f"{self.name}: unknown parameter {k!r}; {suggest(k, self.params)}")
        out = {}
        for f in self.params.values():
            if f.name not in kwargs:
                if f.required:
                    raise ArgumentError(f"{self.name}: missing required parameter {f.name!r}")
                out[f.name] = f.default
                continue
            given = kwargs[f.name]
            if given is None and f.default == ():
                given = ()
            try:
                out[f.name] = f.convert(given)
            except (ValueError, TypeError, KeyError, OverflowError) as e:
                kind = ArgumentError if f.name != "dtype" or is_dtype(given) else ArgumentTypeError
                raise kind(f"{self.name}: {f.name}={given!r}: {e}") from None
        return out

    def bind(self, params: Mapping[str, Any], train: bool = False) -> Call:
        """Return the interned `Call` of already parsed `params`; runtime parameters keep their value out of it."""
        train = train and self.has_train
        key = (train, *(_identity_key(v) for n, v in params.items() if not self.params[n].runtime))
        if self.runtime:
            key = (*key, *(len(params[n]) for n in self.runtime if self.params[n].vector))
        # Calls are compared by identity, so that a step of the trie hashes no parameters: there must be one of each.
        call = self.calls.get(key)
        if call is None:
            call = self.calls.setdefault(key, Call(self, dict(params), train))
        return call

    def call(self, train: bool = False, /, **kwargs: Any) -> Call:
        """Parse and bind in one step."""
        return self.bind(self.parse(kwargs), train)

    def input_names(self, params: Mapping[str, Any], count: int | None = None) -> list[str]:
        """Names of the inputs that exist under `params` (optional ones excluded unless `count` reaches them)."""
        if self.variadic:
            settled = self.fixed_input_names(params)
            if settled:
                return settled[:count]
            first = self.inputs[0].name
            n = count if count is not None else int(params.get("num_args") or 0) * self.inputs_per_arg
            rest = [i.name for i in self.inputs[1:]]
            if self.paired_inputs:
                return self.variadic_input_names(n)
            return [f"{first.rstrip('s') if first == 'args' else first}{i}" for i in range(n - len(rest))] + rest
        must = [i for i in self.inputs if i.when is None or i.when.holds(dict(params))]
        if count is None:
            return [i.name for i in must if not i.optional]
        return [i.name for i in must][:count]

    def fixed_input_names(self, params: Mapping[str, Any]) -> list[str]:
        """Names of all inputs of a variadic op whose parameters settle them; empty for others."""
        return list(self.input_names_of(SimpleNamespace(**params))) if self.input_names_of else []

    def variadic_input_names(self, count: int) -> list[str]:
        """MXNet's names of `count` inputs: `arg0`, `arg1`, …, then what is attached to each."""
        n = -(-count // self.inputs_per_arg)
        return [*(f"arg{i}" for i in range(n)), *(f"arg{i}_{end}" for i in range(n) for end in self.paired_inputs)][
            :count
        ]


def _identity_key(v: Any) -> Any:
    """A hashable stand-in under which equal-but-different parameter values (0.0 and -0.0, 1 and True) stay apart."""
    if type(v) is float:
        return (v, str(v)) if v == 0.0 or v != v else v
    return (bool, v) if type(v) is bool else v


class Part(NamedTuple):
    """A call that computes some results of another one from some of its inputs.

    Attributes:
        call: what computes them.
        ins, scalars, outs: positions of its inputs, runtime scalars and results among those of the other.
        is_flat: its inputs and results have one shape, of which only the number of elements matters.
    """

    call: Call
    ins: tuple[int, ...]
    scalars: tuple[int, ...]
    outs: tuple[int, ...]
    is_flat: bool = False

    def avals(self, avals: Sequence[Any]) -> tuple[Any, ...]:
        """Return the shapes and dtypes of its inputs, given those of the other's; flat arrays have one axis."""
        own = [avals[i] for i in self.ins]
        return tuple([((math.prod(shape),), dtype) for shape, dtype in own] if self.is_flat else own)


class Call:
    """An op with parameters bound; compared by identity, because `Op.bind` interns it.

    Attributes:
        op: the operator.
        params: canonical parameters, runtime ones included with the value first seen.
        train: training flag frozen into the call.
        n_outputs, n_visible, n_aux: counts of outputs, of those front ends show, of auxiliary next values.
        n_runtime: count of runtime scalars (see `Op.runtime_values`).
        is_simple: one result, no state, no random key, nothing decided at run time; recording it can be short.
        aux_offsets: where the auxiliary inputs are, as indices into the input list (negative: from its end).
        joint: it exchanges values with the same call on other contexts.
    """

    __slots__ = (
        "op", "params", "train", "n_outputs", "n_visible", "n_aux", "n_results", "n_runtime", "aux_offsets", "static",
        "avals", "shape_functions", "other_mode", "has_key", "n_keys", "is_simple", "joint", "_parts",
        "__weakref__",
    )  # fmt: skip

    def __init__(self, op: Op, params: dict[str, Any], train: bool):
        self.op, self.params, self.train = op, params, train
        # All that recording asks is computed here once: a call is interned, and recorded many times.
        ns = SimpleNamespace(**params)
        self.n_outputs = op.outputs(ns) if callable(op.outputs) else op.outputs
        shown = op.visible(ns) if callable(op.visible) else op.visible
        self.n_visible = self.n_outputs if shown is None else shown
        self.n_runtime = len(op.runtime_values(params))
        self.static = {n: v for n, v in params.items() if n not in op.runtime}
        aux = [i.name for i in op.inputs if i.role is AUX]
        self.n_aux = len(aux) if aux and op.writes_aux(ns, train) else 0
        names = [i.name for i in op.inputs if i.when is None or i.when.holds(params)]
        self.aux_offsets = tuple(names.index(n) - len(names) for n in aux) if self.n_aux else ()
        if op.mutates is not None:
            self.aux_offsets = (*op.mutates(ns), *self.aux_offsets)
            self.n_aux = len(self.aux_offsets)
        self.n_results = self.n_outputs + self.n_aux
        self.has_key = op.has_key
        self.n_keys = int(op.has_key)
        self.is_simple = self.n_results == 1 and not (self.n_aux or self.n_keys or self.n_runtime or op.dynamic)
        self.joint = op.is_collective is not None and op.is_collective(ns, train)
        self.avals: dict[Any, Results] = {}
        self.shape_functions: ShapeFunctions | None = None
        self.other_mode: Call | None = None
        self._parts: Sequence[Part] | None = None

    def __reduce__(self) -> Any:
        return _bound, (self.op.name, self.params, self.train)

    def __repr__(self) -> str:
        changed = {n: v for n, v in self.static.items() if v != self.op.params[n].default}
        return f"{self.op.name}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"

    @property
    def chooses_storage(self) -> bool:
        """Whether the storage type of the result does not follow from the inputs."""
        return self.op.traits.storage is StorageRule.CAST or bool(self.params.get("forward_stype"))

    def in_mode(self, train: bool) -> Call:
        """Return the same call in the given mode."""
        if train == self.train or not self.op.has_train:
            return self
        if self.other_mode is None:
            self.other_mode = self.op.bind(self.params, train)
            self.other_mode.other_mode = self
        return self.other_mode

    def apply(self, inputs: Sequence[Any], key: Any = None, runtime: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Run the body on JAX values; returns outputs, then next auxiliary values if this call writes them."""
        kw = dict(self.static)
        for name, (at, axis) in self.op.traits.stated_sizes.items():
            if kw[name] == _STATED:
                kw[name] = inputs[at].shape[axis]
        if self.n_runtime:
            kw.update(self._runtime_keywords(runtime or self.op.runtime_values(self.params)))
        if self.op.has_key:
            kw[self.op.key_name] = key
        if self.op.has_train:
            kw[self.op.train_name] = self.train
        if self.op.variadic:
            out = self.op.fn(*inputs, **kw)
        else:
            names = [i.name for i in self.op.inputs if i.when is None or i.when.holds(self.params)]
            out = self.op.fn(**dict(zip(names, inputs, strict=False)), **kw)
        out = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        return out[: self.n_results]

    def apply_keys(self, inputs: Sequence[Any], keys: Sequence[Any], runtime: Sequence[Any]) -> tuple[Any, ...]:
        """Like `apply`, with the call's random keys (`n_keys` of them) as a sequence."""
        return self.apply(inputs, keys[0] if keys else None, runtime)

    @property
    def parts(self) -> Sequence[Part]:
        """Calls that together compute what this one does; empty if it is not made of such."""
        if self._parts is None:
            self._parts = tuple(self.op.parts(self)) if self.op.parts is not None else ()
        return self._parts

    def aux_positions(self, n_inputs: int) -> tuple[int, ...]:
        """Indices, from 0, of the inputs that the results after `n_outputs` are written back to."""
        return tuple(i % n_inputs for i in self.aux_offsets)

    def _runtime_keywords(self, flat: Sequence[Any]) -> dict[str, Any]:
        left = iter(flat)
        return {
            n: tuple(next(left) for _ in self.params[n]) if self.op.params[n].vector else next(left)
            for n in self.op.runtime
        }

    def without_stated_sizes(self, avals: Avals) -> Call:
        """Return the call that takes from its inputs the sizes that parameters of this one repeat, if they do.

        One trace of it serves for all such parameters: to a trace they would be numbers.
        """
        stated = self.op.traits.stated_sizes
        if not stated:
            return self
        for name, (at, axis) in stated.items():
            if at >= len(avals) or axis >= len(avals[at][0]) or avals[at][0][axis] != self.params[name]:
                return self
        return self.op.bind({**self.params, **dict.fromkeys(stated, _STATED)}, self.train)

    def infer(self, avals: tuple[Any, ...]) -> Results:
        """Shapes and dtypes of all results for inputs given as `(shape, dtype)` pairs; cached; raises `MXNetError`."""
        got = self.avals.get(avals)
        if got is None:
            plain = self.without_stated_sizes(avals)
            if plain is not self:
                try:
                    got = self.avals[avals] = plain.infer(avals)
                    return got
                except MXNetError:
                    pass  # it is told below with the parameters as they were given
            self.check_dtypes(avals)
            rates = [jax.ShapeDtypeStruct((), np.float32)] * self.n_runtime
            keys = [key_aval()] if self.op.has_key else []

            def body(ins: list[Any]) -> Any:
                return jax.eval_shape(lambda i, r, k: self.apply(i, k[0] if k else None, r), ins, rates, keys)

            if self.parts:
                got = self._infer_by_parts(avals)
            elif self.op.traits.fill is not None:
                got = self._infer_filled()
            elif (arrangement := self.op.traits.arrangement) is not None and avals:
                try:
                    shapes = arrangement.shapes(self.params, [shape for shape, _ in avals])
                except MXNetError as e:
                    raise self._named(e) from None
                got = tuple([(shape, avals[0][1]) for shape in shapes])
            elif not self.joint:
                if self.shape_functions is None:
                    self.shape_functions = ShapeFunctions(self.avals, self)
                got = self.shape_functions.infer(avals, body)
            if got is None or any(n < 0 for shape, _ in got for n in shape):
                try:
                    got = self._infer_by_trace(avals, body)
                except MXNetError:
                    if self.shape_functions is not None:
                        self.shape_functions.note_refusal(avals)
                    raise
            self._check_states(avals, got)
            self.avals[avals] = got
        return got

    def _infer_filled(self) -> Results | None:
        """What an operator that fills an array yields; None if the parameters may be wrong, which its body tells."""
        fill, shape = self.op.traits.fill, self.params["shape"]
        # Every dtype has 0 and 1.
        if fill is None or fill(self.params) not in (0, 1) or any(n < 0 for n in shape):
            return None
        return ((shape, np.dtype(self.params["dtype"])),)

    def _infer_by_parts(self, avals: tuple[Any, ...]) -> Results | None:
        """Infer part by part; None if the inputs are wrong, which the body of the whole tells best."""
        if len(avals) != 1 + max(max(part.ins) for part in self.parts):
            return None
        found: dict[int, Any] = {}
        try:
            for part in self.parts:
                results = part.call.infer(part.avals(avals))
                if part.is_flat:
                    (shape, *others) = {avals[i][0] for i in part.ins}
                    if others:
                        return None
                    results = tuple([(shape, dtype) for _, dtype in results])
                found.update(zip(part.outs, results, strict=True))
        except MXNetError:
            return None
        return tuple([found[i] for i in range(self.n_results)])

    def _infer_by_trace(self, avals: tuple[Any, ...], body: Callable[[list[Any]], Any]) -> Results:
        """Infer by a trace with these sizes, whose errors name the operator and its inputs."""
        try:
            with jax.enable_x64(True):
                res = body([jax.ShapeDtypeStruct(s, d) for s, d in avals])
        except MXNetError as e:
            raise self._named(e) from None
        except (TypeError, ValueError, IndexError, ZeroDivisionError, NotImplementedError, KeyError) as e:
            raise ArgumentError(self.describe(avals, str(e).split("\n\n")[0])) from e
        got = tuple((tuple(r.shape), np.dtype(r.dtype)) for r in res)
        if any(n < 0 for shape, _ in got for n in shape):
            raise ArgumentError(self.describe(avals, f"the result would have shape {got[0][0]}"))
        return got

    def _named(self, error: MXNetError) -> MXNetError:
        """Return an error of its body with the name of the operator in front."""
        name, text = self.op.variant_of or self.op.name, str(error)
        return type(error)(text if text.startswith(name) else f"{name}: {text}")

    def _check_states(self, avals: Sequence[Any], results: Sequence[Any]) -> None:
        for at, new in zip(self.aux_offsets, results[self.n_outputs :], strict=True):
            if avals[at] != new:
                (old_shape, old_dtype), (shape, dtype) = avals[at], new
                found, want = f"{old_dtype}{list(old_shape)}", f"{dtype}{list(shape)}"
                raise ArgumentError(self.describe(avals, f"input {at % len(avals)}, a state, is {found}, not {want}"))

    def describe(self, avals: Sequence[Any], problem: str) -> str:
        """Text of an error about these inputs: op, parameters, input names with shapes and dtypes, the problem."""
        names = self.op.input_names(self.params, len(avals))
        shown = ", ".join(f"{n}: {d}{list(s)}" for n, (s, d) in zip(names, avals, strict=False))
        return f"{self!r} on ({shown}): {problem}"

    def check_dtypes(self, avals: Sequence[Any]) -> None:
        """Raise `ArgumentError` unless inputs of these shapes and dtypes are as many and of the types it takes."""
        if self.op.variadic:
            names = self.op.input_names(self.params, len(avals))
            strict = (
                [(n, d) for n, (_, d) in zip(names, avals, strict=False)] if self.op.inputs[0].role is TENSOR else []
            )
        else:
            live = [i for i in self.op.inputs if i.when is None or i.when.holds(self.params)]
            if len(avals) > len(live) or len(avals) < sum(not i.optional for i in live):
                want = ", ".join(i.name + ("=None" if i.optional else "") for i in live)
                raise ArgumentError(f"{self.op.name}: got {len(avals)} inputs, expected {len(live)}: ({want})")
            strict = [(i.name, d) for i, (_, d) in zip(live, avals, strict=False) if i.role is TENSOR]
        for name, dtype in strict if self.op.floating else ():
            if not is_float(dtype):
                problem = f"input {name!r} has dtype {dtype}: expected a floating dtype; cast with .astype()"
                raise ArgumentError(self.describe(avals, problem))
        if len({dtype for _, dtype in strict}) > 1:
            raise ArgumentError(
                self.describe(avals, "inputs have different dtypes, and there is no promotion; cast with .astype()")
            )


OPS: dict[str, Op] = {}


def op(*, name: str | None = None, **options: Unpack[OpOptions]) -> Callable[[Callable[..., Any]], Op]:
    """Register the decorated function as an operator; roles and types are read from its annotations.

    Args:
        name: registry name, the function's own by default.
        options: see `OpOptions`.

    Raises:
        TypeError: no docstring. KeyError: name taken.
    """

    def register(fn: Callable[..., Any]) -> Op:
        if not (fn.__doc__ or "").strip():
            raise TypeError(f"{fn.__name__}: an op needs a docstring")
        made = Op(name or fn.__name__, fn, **options)
        for n in (made.name, *made.aliases):
            if n in OPS:
                raise KeyError(f"op {n!r} is already registered")
            OPS[n] = made
        return made

    return register


def get_op(name: str) -> Op:
    """Return the op called `name`; `ArgumentError` suggests near names otherwise."""
    try:
        return OPS[name]
    except KeyError:
        raise ArgumentError(f"unknown operator {name!r}; {suggest(name, OPS)}") from None


def _bound(name: str, params: dict[str, Any], train: bool) -> Call:
    """The call that a pickle stands for: the one that this process has interned."""
    return get_op(name).bind(params, train)


_STATED = 0  # stands for a parameter that repeats a size of an input

_TYPE_NAMES = {int: "int", float: "float", bool: "boolean", str: "string"}


class OperatorArguments(NamedTuple):
    """What an operator takes: how many arguments, their names, and what each of them may be."""

    narg: int
    names: list[str]
    types: list[str]


def operator_arguments(op: Op) -> OperatorArguments:
    """Return the inputs of `op`, then its parameters."""
    names = [i.name for i in op.inputs] + list(op.params)
    kinds = ["NDArray-or-Symbol[]" if i.variadic else "NDArray-or-Symbol" for i in op.inputs]
    return OperatorArguments(len(names), names, kinds + [_text(f) for f in op.params.values()])


def _text(field: ParamField) -> str:
    word, plain = _word(field.type)
    if field.required:
        return f"{word}, required"
    # MXNet leaves out the space after the choices of an enumeration.
    return f"{word},{'' if word.startswith('{') else ' '}optional, default={_shown(field.default, plain)}"


def _word(t: Any) -> tuple[str, Any]:
    """MXNet's word for an annotation, and the plain type below it."""
    if t is Axes:
        return "Shape or None", tuple
    if get_origin(t) is Annotated:
        base, *marks = get_args(t)
        if base is tuple:
            return ("tuple of <float>" if to_floats in marks else "Shape(tuple)"), tuple
        return _word(base)
    if get_origin(t) is Literal:
        return "{" + ", ".join(sorted(repr(c) for c in get_args(t))) + "}", str
    if get_origin(t) in (typing.Union, types.UnionType):
        word, plain = _word(next(a for a in get_args(t) if a is not type(None)))
        return (word.replace("{", "{None, ", 1) if word.startswith("{") else f"{word} or None"), plain
    return _TYPE_NAMES.get(t, getattr(t, "__name__", str(t))), t


def _shown(value: Any, plain: Any) -> str:
    if value is None:
        return "'None'" if plain in (int, str) else "None"
    if isinstance(value, (tuple, list)):
        return "[" + ",".join("None" if v is None else f"{v:g}" for v in value) + "]"
    if isinstance(value, bool):
        return str(int(value))
    return f"{np.float32(value):.9g}" if plain is float else f"'{value}'"


__all__ = [
    "AUX", "Call", "OPS", "Op", "OperatorArguments", "Part", "RuntimeForm", "TENSOR", "UNTYPED", "get_op", "op",
    "operator_arguments",
]  # fmt: skip
