"""Model zoo: `vision` has image models, `model_store` their pretrained parameters."""

from . import model_store, vision

__all__ = ["model_store", "vision"]
