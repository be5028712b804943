"""Ready models: `vision` for images, `model_store` for their trained parameters in files."""

from __future__ import annotations

from . import model_store, vision

__all__ = ["model_store", "vision"]
