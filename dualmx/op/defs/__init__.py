"""Operator definitions by theme; importing this package fills the registry."""

from . import window  # noqa: F401
