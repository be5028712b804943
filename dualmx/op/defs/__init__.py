"""Operator definitions by theme; importing this package fills the registry."""

from . import (  # noqa: F401
    optimizer_adamw,
    optimizer_adaptive,
    optimizer_lamb,
    optimizer_multi,
    optimizer_update,
    window,  # noqa: F401
)
