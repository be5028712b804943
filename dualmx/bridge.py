"""Alias of `dualmx.gluon.bridge`: bridges to Flax, Optax and plain JAX."""

from __future__ import annotations

from .gluon.bridge import *  # noqa: F403
