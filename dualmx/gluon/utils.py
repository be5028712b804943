"""MXNet's import path of functions for training loops."""

from ..core.download import check_sha1, download, replace_file
from .base_block import HookHandle
from .batch_split import clip_global_norm, split_and_load, split_data
from .parameter import shape_is_known

__all__ = [
    "HookHandle",
    "check_sha1",
    "clip_global_norm",
    "download",
    "replace_file",
    "shape_is_known",
    "split_and_load",
    "split_data",
]
