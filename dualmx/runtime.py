"""Features of this installation.

Example:
    >>> import dualmx as mx
    >>> mx.runtime.Features().is_enabled("CUDA") == (mx.num_gpus() > 0)
    True
"""

from __future__ import annotations

import importlib.util
from collections import OrderedDict
from typing import NamedTuple

from .compile.cpu.onednn.bindings import WHEEL
from .compile.devices import local_devices
from .core.errors import MXNetError, suggest


class Feature(NamedTuple):
    """A feature and whether it is there."""

    name: str
    enabled: bool

    def __repr__(self) -> str:
        return f"{'✔' if self.enabled else '✖'} {self.name}"


# MXNet's names for parts that XLA or dualmx replaces, or that do not exist here.
_ABSENT = (
    "CUDNN", "NCCL", "CUDA_RTC", "TENSORRT", "CPU_SSE", "CPU_SSE2", "CPU_SSE3", "CPU_SSE4_1", "CPU_SSE4_2",
    "CPU_SSE4A", "CPU_AVX", "CPU_AVX2", "OPENMP", "SSE", "F16C", "JEMALLOC", "BLAS_OPEN", "BLAS_ATLAS", "BLAS_MKL",
    "BLAS_APPLE", "LAPACK", "CAFFE", "CXX14", "DEBUG", "TVM_OP",
)  # fmt: skip


def _there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _installed(wheel: str) -> bool:
    from importlib import metadata  # slow to import

    try:
        return bool(metadata.version(wheel))
    except metadata.PackageNotFoundError:
        return False


def feature_list() -> list[Feature]:
    """Return all features; devices are looked for, libraries are not loaded."""
    gpus = local_devices("gpu")
    # ROCm devices are GPUs too; only NVIDIA's platform calls itself CUDA.
    cuda = any("cuda" in str(d).lower() or "nvidia" in d.device_kind.lower() for d in gpus)
    found = {
        "JAX": True,
        "XLA": True,
        "CPU": bool(local_devices("cpu")),
        "CUDA": cuda,
        "ROCM": bool(gpus) and not cuda,
        "TPU": bool(local_devices("tpu")),
        "FLAX": _there("flax"),
        "OPTAX": _there("optax"),
        "PROFILER": True,
        "DIST_KVSTORE": _there("dualmx.kvstore.server_updates"),
        "INT64_TENSOR_SIZE": True,
        "MKLDNN": _installed(WHEEL),
        "OPENCV": _there("cv2"),
        "SIGNAL_HANDLER": False,
        **dict.fromkeys(_ABSENT, False),
    }
    return [Feature(name, enabled) for name, enabled in found.items()]


class Features(OrderedDict):
    """The features by name."""

    def __init__(self) -> None:
        super().__init__((f.name, f) for f in feature_list())

    def __repr__(self) -> str:
        return str(list(self.values()))

    def is_enabled(self, feature_name: str) -> bool:
        """Return whether a feature (in any case) is there; `MXNetError` if there is none of that name."""
        name = feature_name.upper()
        if name not in self:
            raise MXNetError(f"Features: feature {feature_name!r} is unknown; {suggest(name, self)}")
        return self[name].enabled


__all__ = ["Feature", "Features", "feature_list"]
