"""Alias of `dualmx.gluon.bridge`: bridges to Flax, Optax and plain JAX."""

from .gluon.bridge import *  # noqa: F403
