"""Python source on NumPy arrays from jaxprs, whose sizes may be symbols."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.core import Tracer

from ....op.symbolic_sizes import size_source, sizes_source
from ...first_tier import Unsupported
from .jaxprs import CALLED_JAXPRS, IDENTITIES, is_literal, live_equations, uniform_draw

Names = list[str]
Rule = Callable[["SourceWriter", Any, Names], Names]

RULES: dict[str, Rule] = {}
_NAME = re.compile(r"\b[vxs]\d+\b")


def rule(*primitives: str) -> Callable[[Rule], Rule]:
    """Register the decorated function for primitives: it writes an equation and returns the names of its results."""

    def register(fn: Rule) -> Rule:
        RULES.update(dict.fromkeys(primitives, fn))
        return fn

    return register


class _Line:
    """One statement.

    Attributes:
        outs: names it gives values.
        source: its expression, or the lines of a nested function.
        type: shape and dtype of its result, if that is memory of its own or seen through `base` only.
        ins: names and types of inputs whose memory it can write into, by `out=`.
        base: the input that its result is a view of, empty if it is none.
    """

    __slots__ = ("outs", "source", "type", "ins", "base")

    def __init__(self, outs: Names, source: str, type: Any = None, ins: Sequence[tuple[str, Any]] = (), base: str = ""):
        self.outs, self.source, self.type, self.ins, self.base = outs, source, type, ins, base

    def reads(self) -> set[str]:
        return set(_NAME.findall(self.source))


class SourceWriter:
    """The source of functions on NumPy arrays, in which `np` is NumPy, `K` the functions of `primitives.py`.

    Attributes:
        constants: values by the names that they have in the source.
        zeros: names of values that are zero everywhere.
        paddings: for names of values with zeros around them what is inside, and the configuration of the padding.
        negations: for names of values those that they are the negatives of.
    """

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {}
        self.zeros: set[str] = set()
        self.paddings: dict[str, tuple[str, str]] = {}
        self.negations: dict[str, str] = {}
        self._functions: list[str] = []
        self._lines: list[_Line] = []
        self._count = self._depth = 0

    @property
    def source(self) -> str:
        """The functions written so far."""
        return "\n".join(self._functions)

    def add_function(self, name: str, jaxpr: Any, sizes: Sequence[str]) -> None:
        """Write `name(sizes, *arrays) -> tuple` for a closed jaxpr."""
        args = [f"x{i}" for i in range(len(jaxpr.jaxpr.invars))]
        self._lines = []
        outs = self.inline(jaxpr, args)
        self._drop_unread(set(outs))
        self._reuse_dead_memory(set(outs))
        head = f"def {name}(sizes{''.join(', ' + a for a in args)}):"
        unpack = [f" {''.join(n + ',' for n in sizes)} = sizes"] if sizes else []
        body = [self._statement(line) for line in self._lines]
        self._functions += [head, *unpack, *body, f" return ({''.join(o + ',' for o in outs)})"]

    def _statement(self, line: _Line) -> str:
        return (
            f" {', '.join(line.outs)}{',' if len(line.outs) != 1 else ''} = {line.source}" if line.outs else line.source
        )

    def inline(self, jaxpr: Any, args: Sequence[str]) -> Names:
        """Write the equations of a closed jaxpr that its results need, and return the names of these."""
        consts = jaxpr.consts if hasattr(jaxpr, "consts") else ()
        jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
        names: dict[Any, str] = dict(zip(jaxpr.invars, args, strict=True))
        names.update((var, self.literal(c)) for var, c in zip(jaxpr.constvars, consts, strict=True))

        def name_of(v: Any) -> str:
            return self.literal(v.val, v.aval.dtype) if is_literal(v) else names[v]

        for eqn in live_equations(jaxpr):
            write = RULES.get(eqn.primitive.name)
            if write is None:
                raise Unsupported(eqn.primitive.name)
            names.update(zip(eqn.outvars, write(self, eqn, [name_of(v) for v in eqn.invars]), strict=True))
        return [name_of(v) for v in jaxpr.outvars]

    def literal(self, value: Any, dtype: Any = None) -> str:
        """Return the name of a constant array or scalar; numbers of Python have no dtype of their own."""
        if isinstance(value, Tracer):
            raise Unsupported("a constant that is traced")
        array = np.asarray(value, dtype if isinstance(value, (bool, int, float, complex)) else None)
        if array.dtype.kind == "V" and array.dtype.name == "float0":
            raise Unsupported("float0")
        name = self.constant(array[()] if array.ndim == 0 else array)
        if array.ndim == 0 and array.dtype.kind in "iuf" and not array and not np.signbit(array):
            self.zeros.add(name)
        return name

    def constant(self, value: Any) -> str:
        """Return the name of a new constant."""
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def dtype(self, dtype: Any) -> str:
        """Return the name of a dtype."""
        dtype = np.dtype(dtype)
        for name, value in self.constants.items():
            if isinstance(value, np.dtype) and value == dtype:
                return name
        return self.constant(dtype)

    def new_name(self) -> str:
        """Return a name that is not yet in use."""
        self._count += 1
        return f"v{self._count}"

    def let(self, source: str, own: Any = None, base: str = "") -> Names:
        """Write the one result of an expression.

        Args:
            source: the expression.
            own: the variable of a result that is memory of its own, or a view that only may be written.
            base: what it is a view of.
        """
        name = self.new_name()
        self._lines.append(_Line([name], source, None if own is None else _type(own), base=base))
        return [name]

    def zeros_like(self, ins: Names, outs: Names) -> Names:
        """Note that the results are zero if the input is, and return them."""
        self.zeros.update(outs if ins[0] in self.zeros else ())
        return outs

    def let_many(self, count: int, source: str) -> Names:
        """Write the results of an expression that yields `count` values."""
        if count == 1:
            return self.let(f"{source}[0]")
        names = [self.new_name() for _ in range(count)]
        self._lines.append(_Line(names, source))
        return names

    def elementwise(self, ufunc: str, eqn: Any, ins: Names) -> Names:
        """Write a function that takes `out=`, so that it may write into the memory of an input."""
        return self.overwrite(f"{ufunc}({','.join(ins)})", eqn, list(zip(ins, eqn.invars, strict=True)))

    def overwrite(self, source: str, eqn: Any, ins: Sequence[tuple[str, Any]]) -> Names:
        """Write a call that can take `out=`, one of the inputs `ins` with their variables."""
        name = self.new_name()
        line = _Line([name], source)
        if not self._depth and eqn.outvars[0].aval.shape:
            names = _NAME.findall(source)
            line.type, line.ins = _type(eqn.outvars[0]), [(n, _type(v)) for n, v in ins if names.count(n) == 1]
        self._lines.append(line)
        return [name]

    def function(self, jaxpr: Any, n_args: int) -> str:
        """Write a nested function of a closed jaxpr and return its name."""
        name = self.new_name()
        args = [f"{name}_{i}" for i in range(n_args)]
        outer, self._lines = self._lines, []
        self._depth += 1
        outs = self.inline(jaxpr, args)
        self._depth -= 1
        inner, self._lines = self._lines, outer
        body = "\n".join(
            "".join(f" {row}\n" for row in self._statement(line).split("\n")).rstrip("\n") for line in inner
        )
        source = f" def {name}({', '.join(args)}):\n{body}\n  return ({''.join(o + ',' for o in outs)})"
        self._lines.append(_Line([], source))
        return name

    def _drop_unread(self, results: set[str]) -> None:
        """Drop statements whose values nothing needs."""
        needed, kept = set(results), []
        for line in reversed(self._lines):
            if not line.outs or not needed.isdisjoint(line.outs):
                kept.append(line)
                needed |= line.reads()
        self._lines = kept[::-1]

    def _reuse_dead_memory(self, results: set[str]) -> None:
        """Let elementwise functions write into inputs that were computed here and that nothing reads any more.

        Results without a type may be views of their inputs, which live as long as they do.
        """
        last: dict[str, int] = dict.fromkeys(results, len(self._lines))
        readers: Counter[str] = Counter(results)
        for number, line in enumerate(self._lines):
            readers.update(line.reads())
            for name in line.reads():
                last[name] = max(last.get(name, 0), number)
        for number in range(len(self._lines) - 1, -1, -1):
            line = self._lines[number]
            if line.type is None or line.base:
                until = max((last.get(name, number) for name in line.outs), default=len(self._lines))
                for name in line.reads():
                    last[name] = max(last[name], until)
        own: dict[str, Any] = {}
        for number, line in enumerate(self._lines):
            if line.type is None or (line.base and (line.base not in own or readers[line.base] > 1)):
                continue
            own[line.outs[0]] = line.type
            for name, kind in line.ins:
                if own.get(name) == line.type == kind and last[name] == number:
                    line.source = f"{line.source[:-1]},out={name})"
                    break


def _type(v: Any) -> tuple[str, Any]:
    return sizes_source(v.aval.shape), v.aval.dtype


# -- calls of jaxprs


@rule(*CALLED_JAXPRS)
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    jaxpr = CALLED_JAXPRS[eqn.primitive.name](eqn.params)
    places = uniform_draw(jaxpr)
    if places is None:
        return w.inline(jaxpr, ins)
    (out,) = eqn.outvars
    return w.let(f"K.random_uniform({','.join(ins[i] for i in places)},{sizes_source(out.aval.shape)})", out)


@rule(*IDENTITIES)
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return ins


# -- elementwise

_UFUNCS = {
    "add": "np.add", "add_any": "np.add", "sub": "np.subtract", "mul": "np.multiply", "max": "np.maximum",
    "min": "np.minimum", "neg": "np.negative", "exp": "np.exp", "log": "np.log", "tanh": "np.tanh",
    "sqrt": "np.sqrt", "log1p": "np.log1p", "expm1": "np.expm1", "abs": "np.abs", "square": "np.square",
    "sin": "np.sin", "cos": "np.cos", "logistic": "K.logistic", "rsqrt": "K.rsqrt", "erf": "K.erf",
    "erf_inv": "K.erf_inv",
}  # fmt: skip
_EXPRESSIONS = {
    "sign": "np.sign({0})", "floor": "np.floor({0})", "ceil": "np.ceil({0})", "exp2": "np.exp2({0})",
    "tan": "np.tan({0})", "asin": "np.arcsin({0})", "acos": "np.arccos({0})", "atan": "np.arctan({0})",
    "sinh": "np.sinh({0})", "cosh": "np.cosh({0})", "asinh": "np.arcsinh({0})", "acosh": "np.arccosh({0})",
    "atanh": "np.arctanh({0})", "cbrt": "np.cbrt({0})", "is_finite": "np.isfinite({0})", "not": "~{0}",
    "real": "np.real({0})", "imag": "np.imag({0})", "conj": "np.conj({0})",
    "erfc": "K.erfc({0})", "lgamma": "K.lgamma({0})", "digamma": "K.digamma({0})",
    "random_seed": "K.random_seed({0})", "pow": "K.power({0},{1})", "atan2": "np.arctan2({0},{1})",
    "nextafter": "np.nextafter({0},{1})", "and": "{0}&{1}", "or": "{0}|{1}", "xor": "{0}^{1}", "eq": "{0}=={1}",
    "ne": "{0}!={1}", "lt": "{0}<{1}", "le": "{0}<={1}", "gt": "{0}>{1}", "ge": "{0}>={1}",
    "lt_to": "{0}<{1}", "le_to": "{0}<={1}", "shift_left": "K.shift_left({0},{1})",
    "shift_right_logical": "K.shift_right_logical({0},{1})",
    "shift_right_arithmetic": "K.shift_right_arithmetic({0},{1})", "rem": "K.remainder({0},{1})",
    "random_fold_in": "K.fold_in({0},{1})", "complex": "{0}+1j*{1}", "clamp": "K.clamp({0},{1},{2})",
}  # fmt: skip

# Primitives whose results depend on the elements of the inputs in the same place only.
ELEMENTWISE = frozenset(
    {*_UFUNCS, *_EXPRESSIONS, "div", "integer_pow", "round", "reduce_precision", "convert_element_type", "select_n"}
    - {"random_seed", "random_fold_in"}
)
_TAKES_OUT = re.compile(
    rf"( (v\d+) = (?:{'|'.join(map(re.escape, sorted({*_UFUNCS.values(), 'np.divide'})))})\(.*?)(?:,out=v\d+)?\)"
)


def writing_into(source: str, name: str) -> str:
    """Return the function `name` of generated source as one that writes some results into memory it is given.

    It takes `outs`, memory or None for each result, before the arrays. The others are returned as before.
    """
    lines = source.split("\n")
    heads = [i for i, line in enumerate(lines) if line.startswith("def ")]
    start = next(i for i in heads if lines[i].startswith(f"def {name}("))
    end = min([i for i in heads if i > start], default=len(lines))
    body = lines[start:end]
    results = body[-1].removeprefix(" return (").removesuffix(")").split(",")[:-1]
    for i, line in enumerate(body):
        if (found := _TAKES_OUT.fullmatch(line)) and results.count(found[2]) == 1:
            body[i] = f"{found[1]},out=outs[{results.index(found[2])}])"
    return "\n".join([body[0].replace("(sizes", "(sizes,outs", 1), *body[1:]])


@rule(*_UFUNCS)
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    if eqn.primitive.name in ("add", "add_any") and ins[1] in w.paddings:
        inside, config = w.paddings[ins[1]]
        return w.overwrite(f"K.add_inside({ins[0]},{inside},{config})", eqn, [(ins[0], eqn.invars[0])])
    outs = w.elementwise(_UFUNCS[eqn.primitive.name], eqn, ins)
    if eqn.primitive.name == "neg":
        w.negations[outs[0]] = ins[0]
    return outs


@rule(*_EXPRESSIONS)
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return w.let(_EXPRESSIONS[eqn.primitive.name].format(*ins))


@rule("platform_index")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    index = next(i for i, names in enumerate(eqn.params["platforms"]) if names is None or "cpu" in names)
    return w.let(f"np.int32({index})")


@rule("div")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    if eqn.invars[0].aval.dtype.kind in "iu":
        return w.let(f"K.integer_divide({ins[0]},{ins[1]})")
    return w.elementwise("np.divide", eqn, ins)


@rule("integer_pow")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return w.let(f"K.integer_power({ins[0]},{int(eqn.params['y'])})")


@rule("round")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    to_even = int(eqn.params["rounding_method"]) == 1
    return w.let(f"np.rint({ins[0]})" if to_even else f"K.round_away_from_zero({ins[0]})")


@rule("reduce_precision")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return w.let(f"K.reduce_precision({ins[0]},{eqn.params['exponent_bits']},{eqn.params['mantissa_bits']})")


@rule("convert_element_type")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    old, new = eqn.invars[0].aval.dtype, np.dtype(eqn.params["new_dtype"])
    if old == new:
        return ins
    is_plain = (old.kind in "fb" and new.kind == "f") or (old.kind in "iub" and new.kind in "iuf")
    out = w.let(f"{ins[0]}.astype({w.dtype(new)})" if is_plain else f"K.convert({ins[0]},{w.dtype(new)})")
    return w.zeros_like(ins, out)


@rule("bitcast_convert_type")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return w.let(f"K.bitcast({ins[0]},{w.dtype(eqn.params['new_dtype'])})")


@rule("select_n")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    if eqn.invars[0].aval.dtype == np.bool_ and len(ins) == 3:
        if ins[1] in w.zeros:
            return w.let(f"K.keep({ins[0]},{ins[2]})", eqn.outvars[0])
        if ins[2] in w.zeros:
            return w.let(f"K.drop({ins[0]},{ins[1]})", eqn.outvars[0])
        return w.let(f"np.where({ins[0]},{ins[2]},{ins[1]})", eqn.outvars[0])
    return w.let(f"K.select({','.join(ins)})")


# -- shapes


def _shape(aval: Any) -> str:
    """The shape of an array; keys have a last axis of two words."""
    key = "2," if str(aval.dtype).startswith("key") else ""
    return f"{sizes_source(aval.shape)[:-1]}{key})"


@rule("broadcast_in_dim")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    shape, axes, old = eqn.params["shape"], eqn.params["broadcast_dimensions"], eqn.invars[0].aval
    if len(eqn.invars) > 1:
        raise Unsupported("broadcast to sizes that are values")
    if not shape:
        return ins
    if not old.ndim:
        return w.zeros_like(ins, w.let(f"np.broadcast_to({ins[0]},{sizes_source(shape)})"))
    sizes = ["1"] * len(shape)
    for axis, size in zip(axes, old.shape, strict=True):
        sizes[axis] = size_source(size)
    in_place = tuple(axes) == tuple(range(len(shape))) and old.ndim == len(shape)
    source = ins[0] if in_place else f"{ins[0]}.reshape({','.join(sizes)})"
    wanted = [size_source(n) for n in shape]
    return w.let(source if sizes == wanted else f"np.broadcast_to({source},{sizes_source(shape)})")


@rule("reshape")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    order = eqn.params.get("dimensions")
    value = ins[0] if order is None else f"{ins[0]}.transpose({tuple(order)})"
    return w.let(f"np.reshape({value},{_shape(eqn.outvars[0].aval)})", eqn.outvars[0], base=ins[0])


@rule("squeeze", "expand_dims")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return w.let(f"np.reshape({ins[0]},{_shape(eqn.outvars[0].aval)})", eqn.outvars[0], base=ins[0])


@rule("empty", "empty2")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    aval = eqn.outvars[0].aval
    return w.let(f"np.zeros({sizes_source(aval.shape)},{w.dtype(aval.dtype)})")


@rule("transpose")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    order = eqn.params["permutation"]
    source = f"{ins[0]}.transpose({','.join(map(str, order))})"
    return w.let(source, eqn.outvars[0], base=ins[0]) if order else ins


@rule("rev")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return w.let(f"np.flip({ins[0]},{tuple(eqn.params['dimensions'])})")


@rule("concatenate")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return w.let(f"np.concatenate(({','.join(ins)},),{eqn.params['dimension']})")


@rule("stack")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return w.let(f"np.stack(({','.join(ins)},),{eqn.params.get('axis', eqn.params.get('dimension', 0))})")


@rule("unstack")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    axis = eqn.params.get("axis", 0)
    return w.let_many(len(eqn.outvars), f"np.moveaxis({ins[0]},{axis},0)")


@rule("split")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    at, cuts = "0", []
    for size in eqn.params["sizes"][:-1]:
        at = f"{at}+{size_source(size)}"
        cuts.append(at)
    return w.let_many(len(eqn.outvars), f"np.split({ins[0]},[{','.join(cuts)}],{eqn.params['axis']})")


@rule("tile")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return w.let(f"np.tile({ins[0]},{sizes_source(eqn.params['reps'])})")


@rule("pad")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    configs = [sizes_source(c) for c in eqn.params["padding_config"]]
    if set(configs) == {sizes_source((0, 0, 0))}:
        return ins[:1]
    config = f"({_listed(configs)})"
    out = w.let(f"K.pad({ins[0]},{ins[1]},{config})", eqn.outvars[0])
    if ins[1] in w.zeros:
        w.paddings[out[0]] = ins[0], config
    return out


@rule("slice")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    p, shape = eqn.params, eqn.invars[0].aval.shape
    parts = []
    for start, stop, step, size in zip(
        p["start_indices"], p["limit_indices"], p["strides"] or (1,) * len(shape), shape, strict=True
    ):
        start, stop, step, size = map(size_source, (start, stop, step, size))
        is_full = start == "0" and stop == size and step == "1"
        parts.append(":" if is_full else f"{start}:{stop}" + (f":{step}" if step != "1" else ""))
    return w.let(f"{ins[0]}[{','.join(parts)}]") if parts else ins


@rule("dynamic_slice")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return w.let(f"K.dynamic_slice({ins[0]},({_listed(ins[1:])}),{sizes_source(eqn.params['slice_sizes'])})")


@rule("dynamic_update_slice")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return w.let(f"K.dynamic_update_slice({ins[0]},{ins[1]},({_listed(ins[2:])}))")


@rule("iota")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    p = eqn.params
    return w.let(f"K.iota({w.dtype(p['dtype'])},{sizes_source(p['shape'])},{p['dimension']})")


@rule("dim_as_value")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return w.let(f"{w.dtype(eqn.outvars[0].aval.dtype)}.type({size_source(eqn.params['dim'])})")


def _listed(names: Sequence[str]) -> str:
    return "".join(n + "," for n in names)


# -- reductions

_REDUCTIONS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum", "xor": "bitwise_xor"}


@rule("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_xor")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    kind, axes, dtype = eqn.primitive.name[7:], tuple(eqn.params["axes"]), eqn.invars[0].aval.dtype
    if not axes:
        return ins
    if kind == "sum":
        if ins[0] in w.negations:  # of fewer elements, with the same bits
            total = w.let(f"K.reduce_sum({w.negations[ins[0]]},{axes})")
            return w.let(f"np.negative({total[0]})")
        return w.let(f"K.reduce_sum({ins[0]},{axes})")
    if kind == "prod":
        return w.let(f"K.reduce_prod({ins[0]},{axes})")
    if kind in ("max", "min"):
        first = "lowest" if kind == "max" else "highest"
        return w.let(f"K.reduce_extreme(np.{_REDUCTIONS[kind]},{ins[0]},{axes},K.{first}({w.dtype(dtype)}))")
    ufunc = _REDUCTIONS.get(kind) or ("logical_" if dtype == np.bool_ else "bitwise_") + kind
    return w.let(f"np.{ufunc}.reduce({ins[0]},axis={axes})")


@rule("argmax", "argmin")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    p = eqn.params
    return w.let(f"np.{eqn.primitive.name}({ins[0]},axis={p['axes'][0]}).astype({w.dtype(p['index_dtype'])})")


_CUMULATIVE = {
    "cumsum": "add", "cumprod": "multiply", "cummax": "maximum", "cummin": "minimum", "cumlogsumexp": "logaddexp",
}  # fmt: skip


@rule(*_CUMULATIVE)
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    p = eqn.params
    return w.let(f"K.accumulate(np.{_CUMULATIVE[eqn.primitive.name]},{ins[0]},{p['axis']},{p['reverse']})")


@rule("sort")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    p = eqn.params
    return w.let_many(len(ins), f"K.sort(({_listed(ins)}),{p['dimension']},{p['num_keys']})")


@rule("top_k")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    p = eqn.params
    return w.let_many(2, f"K.top_k({ins[0]},{size_source(p['k'])},{p.get('axis', -1)})")


@rule("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    p, dtype = eqn.params, w.dtype(eqn.outvars[0].aval.dtype)
    kind = eqn.primitive.name[14:]
    first = {"sum": "0", "max": f"K.lowest({dtype})", "min": f"K.highest({dtype})"}[kind]
    padding = "".join(sizes_source(c) + "," for c in p["padding"])
    names = ("window_dimensions", "window_strides", "base_dilation", "window_dilation")
    size, stride, base, dilation = (sizes_source(p[n]) for n in names)
    return w.let(
        f"K.reduce_window(np.{_REDUCTIONS[kind]},{ins[0]},{first},{size},{stride},({padding}),{base},{dilation})"
    )


# -- products, indexing


@rule("dot_general")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    (left, right), (left_batch, right_batch) = eqn.params["dimension_numbers"]
    a, b, out = eqn.invars[0].aval, eqn.invars[1].aval, eqn.outvars[0].aval
    total = np.dtype(eqn.params["preferred_element_type"] or out.dtype)
    if total.name in ("bfloat16", "float16"):
        total = np.dtype(np.float32)
    if a.dtype == b.dtype == total == out.dtype and not left_batch and len(left) == 1 and a.ndim == b.ndim == 2:
        x = ins[0] if left[0] == 1 else ins[0] + ".T"
        y = ins[1] if right[0] == 0 else ins[1] + ".T"
        return w.let(f"K.matmul({x},{y})", eqn.outvars[0])
    axes = ",".join(str(tuple(axes)) for axes in (left, right, left_batch, right_batch))
    return w.let(f"K.dot_general({ins[0]},{ins[1]},{axes},{w.dtype(total)},{w.dtype(out.dtype)})")


@rule("conv_general_dilated")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    p = eqn.params
    padding = "".join(sizes_source(c) + "," for c in p["padding"])
    sizes = ",".join(sizes_source(p[n]) for n in ("window_strides", "lhs_dilation", "rhs_dilation"))
    groups = f"{size_source(p['feature_group_count'])},{size_source(p['batch_group_count'])}"
    numbers = w.constant(p["dimension_numbers"])
    return w.let(f"K.convolution({ins[0]},{ins[1]},({padding}),{sizes},{groups},{numbers})", eqn.outvars[0])


@rule("gather")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    p, dtype = eqn.params, eqn.invars[0].aval.dtype
    mode = "clip" if "CLIP" in str(p["mode"]) else "fill" if "FILL" in str(p["mode"]) else "inside"
    fill = p["fill_value"]
    if fill is None:
        is_float = dtype.kind == "f" or dtype.name == "bfloat16"
        fill = (
            np.nan
            if is_float
            else np.iinfo(dtype).min
            if dtype.kind == "i"
            else dtype.kind == "u" and np.iinfo(dtype).max
        )
    shape, part = sizes_source(eqn.outvars[0].aval.shape), sizes_source(p["slice_sizes"])
    return w.let(
        f"K.gather({ins[0]},{ins[1]},{shape},{part},{w.constant(p['dimension_numbers'])},{mode!r},{w.constant(fill)})"
    )


@rule("scatter", "scatter-add", "scatter-mul", "scatter-min", "scatter-max", "scatter-sub",
      "scatter_add", "scatter_mul", "scatter_min", "scatter_max", "scatter_sub")  # fmt: skip
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    p = eqn.params
    how, mode = eqn.primitive.name[8:] or "set", "clip" if "CLIP" in str(p["mode"]) else "drop"
    return w.let(f"K.scatter({ins[0]},{ins[1]},{ins[2]},{w.constant(p['dimension_numbers'])},{mode!r},{how!r})")


# -- layers


@rule("normalize_batch")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    eps = w.constant(np.float32(eqn.params["eps"]))
    return w.let_many(4, f"K.normalize_batch({','.join(ins)},{eps},{eqn.params['axis']})")


@rule("normalize_batch_vjp")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return w.let_many(3, f"K.normalize_batch_vjp({','.join(ins)},{eqn.params['axis']})")


@rule("max_pool")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    win = eqn.params["win"]
    sizes = ",".join(sizes_source(n) for n in (win.kernel, win.stride, win.low, win.out))
    return w.let(f"K.max_pool({ins[0]},{win.first},{sizes})", eqn.outvars[0])


@rule("max_pool_vjp")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    win = eqn.params["win"]
    sizes = ",".join(sizes_source(n) for n in (win.kernel, win.stride, win.low))
    return w.let(f"K.max_pool_vjp({','.join(ins)},{win.first},{sizes})", eqn.outvars[0])


# -- random numbers


@rule("random_bits")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return w.let(f"K.random_bits({ins[0]},{eqn.params['bit_width']},{sizes_source(eqn.outvars[0].aval.shape)})")


@rule("random_split")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return w.let(f"K.random_split({ins[0]},{sizes_source(eqn.params['shape'])})")


# -- control flow


@rule("while")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    p = eqn.params
    n, m = p["cond_nconsts"], p["body_nconsts"]
    test, body = w.function(p["cond_jaxpr"], len(ins) - m), w.function(p["body_jaxpr"], len(ins) - n)
    return w.let_many(
        len(eqn.outvars),
        f"K.while_loop({test},{body},({_listed(ins[:n])}),({_listed(ins[n : n + m])}),({_listed(ins[n + m :])}))",
    )


@rule("scan")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    p = eqn.params
    n, m = p["num_consts"], p["num_carry"]
    stacked = "".join(f"({sizes_source(v.aval.shape[1:])},{w.dtype(v.aval.dtype)})," for v in eqn.outvars[m:])
    groups = ",".join(f"({_listed(part)})" for part in (ins[:n], ins[n : n + m], ins[n + m :]))
    body = w.function(p["jaxpr"], len(ins))
    return w.let_many(
        len(eqn.outvars), f"K.scan({body},{size_source(p['length'])},{p['reverse']},{groups},({stacked}))"
    )


@rule("cond")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    branches = [w.function(b, len(ins) - 1) for b in eqn.params["branches"]]
    return w.let_many(len(eqn.outvars), f"K.branch({ins[0]},({_listed(branches)}),({_listed(ins[1:])}))")


@rule("cholesky")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return w.let(f"K.cholesky({ins[0]})")


@rule("lu")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    return w.let_many(3, f"K.lu({ins[0]})")


@rule("triangular_solve")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    names = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
    flags = ",".join(f"{n}={bool(eqn.params[n])}" for n in names)
    return w.let(f"K.triangular_solve({ins[0]},{ins[1]},{flags})")


@rule("qr")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    if eqn.params["pivoting"]:
        raise Unsupported("qr with pivoting")
    return w.let_many(2, f"K.qr({ins[0]},{eqn.params['full_matrices']})")


@rule("svd")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    p = eqn.params
    if p["subset_by_index"] is not None:
        raise Unsupported("svd of a subset")
    return w.let_many(len(eqn.outvars), f"K.svd({ins[0]},{p['full_matrices']},{p['compute_uv']})")


@rule("eigh")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    if eqn.params["subset_by_index"] is not None:
        raise Unsupported("eigh of a subset")
    return w.let_many(2, f"K.eigh({ins[0]},{eqn.params['lower']})")


@rule("fft")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    kind = getattr(eqn.params["fft_type"], "name", str(eqn.params["fft_type"]))
    return w.let(f"K.fft({ins[0]},{kind!r},{sizes_source(eqn.params['fft_lengths'])})")


@rule("custom_linear_solve")
def _(w: SourceWriter, eqn: Any, ins: Names) -> Names:
    counts = eqn.params["const_lengths"]
    start = counts.matvec + counts.vecmat
    end = start + counts.solve
    return w.inline(eqn.params["jaxprs"].solve, [*ins[start:end], *ins[end + counts.transpose_solve :]])
