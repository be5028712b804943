"""Operator definitions by theme; importing this package fills the registry."""

from . import (  # noqa: F401
    activation,
    conv,
    dense,
    dropout,
    loss_output,
    norm,
    optimizer_adamw,
    optimizer_adaptive,
    optimizer_lamb,
    optimizer_multi,
    optimizer_update,
    pool,
    sequence,
    softmax,
    window,
)
