"""What the rooms above must know of an operator beyond its schema and its body: how it is differentiated, stored, kept.

A new operator says it where it is registered, `@op(traits=Traits(...))`, and nothing else has to be touched. Rooms ask
`call.op.traits` and never look for the name of an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

Shapes = Sequence[tuple[int, ...]]

# Initializers as they stand in the `__init__` attribute of variables.
ZERO, ONE = '["zero", {}]', '["one", {}]'


class StorageRule(Enum):
    """How an operator computes on row_sparse and csr arrays; `sparse` has a kernel for each rule.

    Operators of one rule differ in what they do to an element, not in which elements they read.
    """

    KEEPS_ZEROS = auto()  # one input: the operator on the stored elements
    PASSES_THROUGH = auto()  # likewise, but symbols promise a dense result
    SCALAR = auto()  # likewise if `zero_stays` holds for the number
    CLIP = auto()
    NO_ELEMENTS = auto()
    CAST = auto()
    RETAIN_ROWS = auto()
    SQUARE_SUM = auto()
    SUM = auto()
    MEAN = auto()
    NORM = auto()
    SLICE = auto()
    SAME_STORAGE = auto()  # two inputs of one storage type, which the result has
    SAME_STORAGE_EAGER = auto()  # likewise, but symbols promise a dense result
    PRODUCT = auto()
    SCALE_BY_BROADCAST = auto()
    DIVIDE_STORED = auto()
    ADD_ALL = auto()
    STACK_ROWS = auto()
    TABLE_LOOKUP = auto()  # ids, then the table
    TAKE_ROWS = auto()
    MATRIX_PRODUCT = auto()
    COUNT_STORED = auto()
    EDGE_ID = auto()
    ADJACENCY = auto()
    SUBGRAPH = auto()
    NEIGHBOR_SAMPLE = auto()
    WEIGHTED_NEIGHBOR_SAMPLE = auto()
    COMPACT_GRAPH = auto()


class RowUpdate(Enum):
    """How an optimizer's operator updates a weight by a row_sparse gradient."""

    DENSE = auto()  # every row is updated
    BY_ROW = auto()  # rows do not depend on each other, so those without a gradient are left alone
    SCALED_ROW = auto()  # likewise, and without decay and clipping a scaled gradient is all that is added
    BY_ROW_OF_SPARSE = auto()  # likewise if the weight is row_sparse too


class Layer(Enum):
    """What an operator is to users who look at a network, for pictures and tables of it."""

    DENSE = auto()
    CONVOLUTION = auto()
    ACTIVATION = auto()
    NORMALIZATION = auto()
    POOLING = auto()
    EMBEDDING = auto()
    ARRANGEMENT = auto()  # the elements in another order or shape


@dataclass(frozen=True, slots=True)
class Quantized:
    """The form of an operator on 8-bit integers.

    Attributes:
        name: that operator.
        starts: "smart" quantization starts from it; its inputs after the first are weights, quantized beforehand.
        is_wide: the result has 32 bits and is narrowed by a further node.
        is_calibrated: the range of its results is found by calibration.
        needs_range: which it cannot do without.
        is_table: its first input are ids and stay, the second is a table, quantized beforehand.
        data_inputs: how many of the inputs are quantized, None for all; those after them stay as they are.
        accepts: whether there is such a form for some parameters.
    """

    name: str
    starts: bool = False
    is_wide: bool = False
    is_calibrated: bool = False
    needs_range: bool = False
    is_table: bool = False
    data_inputs: int | None = None
    accepts: Callable[[Mapping[str, Any]], bool] = lambda p: True


@dataclass(frozen=True, slots=True)
class Arrangement:
    """An operator that only arranges the elements of its inputs, on NumPy arrays.

    Its body would be traced for each number among its parameters. Inputs and results have one type.

    Attributes:
        shapes: those of its results, from parameters and the shapes of its inputs; its errors are those of the body.
        run: its results, from parameters and inputs.
        pull: the gradients of its inputs, from parameters, their shapes, and the cotangents of its results.
    """

    shapes: Callable[[Mapping[str, Any], Shapes], Shapes]
    run: Callable[[Mapping[str, Any], Sequence[Any]], Sequence[Any]]
    pull: Callable[[Mapping[str, Any], Shapes, Sequence[Any]], Sequence[Any]]


class IndexRange(NamedTuple):
    """What the second input of an operator, indices, must satisfy.

    Attributes:
        lengths: what indices lie below.
        by_row: each row of indices has a length of its own, otherwise all have the first one.
        negative: they may count from the end.
        by_processor: only a processor checks them: elsewhere one would have to wait for the device.
        text: what is said of others.
    """

    lengths: tuple[int, ...]
    by_row: bool
    negative: bool
    by_processor: bool
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Traits:
    """Traits of an operator.

    Attributes:
        is_loss: it defines its own gradient, so `backward` needs no head gradient for it.
        is_constant: no gradient flows through it, so `backward` needs none either.
        is_cast: it changes the type only; the gradient of integers is the one that comes in.
        is_amp_cast: mixed precision inserts it, and files need not have it.
        combines_floats: it combines floats, and only the result is cut to `dtype`; integers have its gradient.
        compares_values: its result says which of its inputs are one value of the program.
        is_lookup: it looks up rows, by ids that are its first input, of a table that is the second.
        is_window: it shows a box of its input.
        keeps_result: it takes long or makes something small, so its result is kept when others are made again.
        fill: the element of which it makes an array, from the parameters; None for all others.
        arrangement: how it arranges the elements of its inputs, if that is all it does and sizes are its parameters.
        initializers: the `__init__` attributes of the variables of its inputs, by name.
        storage: how it computes on sparse arrays; None if densely.
        zero_stays: for `StorageRule.SCALAR`, whether 0 and a number give 0.
        row_update: how it updates a weight by a row_sparse gradient.
        not_finite: what is said if finite inputs give a result that is not; `""` where that is no error.
        index_bounds: from parameters and shapes of the inputs, what its indices must satisfy; None if nothing.
        is_mask_selection: it selects by a mask, and is `take` once the mask is known, so that it has a gradient.
        float32_parameters: its parameters stay float32 beside 16-bit data.
        layer: what it is to users who look at a network.
        quantized: its form on 8-bit integers.
        stated_sizes: parameters that repeat a size, by name: of which input, along which axis.
        has_named_output: MXNet calls its first output "output" in calibration; that of others has a number.
    """

    is_loss: bool = False
    is_constant: bool = False
    is_cast: bool = False
    is_amp_cast: bool = False
    combines_floats: bool = False
    compares_values: bool = False
    is_lookup: bool = False
    is_window: bool = False
    keeps_result: bool = False
    fill: Callable[[Mapping[str, Any]], float] | None = None
    arrangement: Arrangement | None = None
    initializers: Mapping[str, str] = field(default_factory=dict)
    storage: StorageRule | None = None
    zero_stays: Callable[[float], bool] | None = None
    row_update: RowUpdate = RowUpdate.DENSE
    not_finite: str = ""
    index_bounds: Callable[[Mapping[str, Any], Shapes], IndexRange | None] | None = None
    is_mask_selection: bool = False
    float32_parameters: bool = False
    layer: Layer | None = None
    quantized: Quantized | None = None
    stated_sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    has_named_output: bool = False


NO_TRAITS = Traits()
LOSS = Traits(is_loss=True)
CONSTANT = Traits(is_constant=True)
KEPT_RESULT = Traits(keeps_result=True)
NAMED_OUTPUT = Traits(has_named_output=True)
BY_ROW = Traits(row_update=RowUpdate.BY_ROW)
FLOAT_COMBINATION = Traits(combines_floats=True)
MOVING_STATISTICS = Traits(initializers={"moving_var": ONE}, float32_parameters=True)


def stored(rule: StorageRule, **more: Any) -> Traits:
    """Return the traits of an operator with a storage rule."""
    return Traits(storage=rule, **more)
