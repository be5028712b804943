"""Bridges to Flax, Optax and plain JAX; see `dualmx.gluon.bridge`."""

from __future__ import annotations

from .gluon.bridge import *  # noqa: F403
