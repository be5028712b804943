"""Functions for training loops under their customary import path."""

from .hooks import HookHandle
from .parameter import shape_is_known
from .split import check_sha1, clip_global_norm, download, replace_file, split_and_load, split_data

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
