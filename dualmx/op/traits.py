"""What the rooms above must know of an operator beyond its schema and its body: how it is differentiated, stored, kept.

A new operator says it where it is registered, `@op(traits=Traits(...))`, and nothing else has to be touched. Rooms ask
`call.op.traits` and never look for the name of an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Traits:
    """Traits of an operator.

    Attributes:
        is_loss: it defines its own gradient, so `backward` needs no head gradient for it.
        is_constant: no gradient flows through it, so `backward` needs none either.
        is_cast: it changes the type only; the gradient of integers is the one that comes in.
        is_amp_cast: mixed precision inserts it, and files need not have it.
        combines_floats: it combines floats, and only the result is cut to `dtype`; integers have its gradient.
        is_lookup: it looks up rows, by ids that are its first input, of a table that is the second.
        is_window: it shows a box of its input.
        keeps_result: it takes long or makes something small, so its result is kept when others are made again.
        fill: the element of which it makes an array, from the parameters; None for all others.
        initializers: the `__init__` attributes of the variables of its inputs, by name.
        storage: how it computes on sparse arrays; None if densely.
        zero_stays: for `StorageRule.SCALAR`, whether 0 and a number give 0.
        row_update: how it updates a weight by a row_sparse gradient.
    """

    is_loss: bool = False
    is_constant: bool = False
    is_cast: bool = False
    is_amp_cast: bool = False
    combines_floats: bool = False
    is_lookup: bool = False
    is_window: bool = False
    keeps_result: bool = False
    fill: Callable[[Mapping[str, Any]], float] | None = None
    initializers: Mapping[str, str] = field(default_factory=dict)
    storage: StorageRule | None = None
    zero_stays: Callable[[float], bool] | None = None
    row_update: RowUpdate = RowUpdate.DENSE


NO_TRAITS = Traits()
LOSS = Traits(is_loss=True)
CONSTANT = Traits(is_constant=True)
KEPT_RESULT = Traits(keeps_result=True)
BY_ROW = Traits(row_update=RowUpdate.BY_ROW)
FLOAT_COMBINATION = Traits(combines_floats=True)
MOVING_STATISTICS = Traits(initializers={"moving_var": ONE})


def stored(rule: StorageRule, **more: Any) -> Traits:
    """Return the traits of an operator with a storage rule."""
    return Traits(storage=rule, **more)
