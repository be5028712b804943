"""Contexts, and how many devices there are."""

from __future__ import annotations

from .compile.devices import device_of, local_devices
from .core.context import Context, cpu, cpu_pinned, current_context, gpu, tpu
from .core.errors import MXNetError


def num_gpus() -> int:
    """Return how many GPUs this process can use."""
    return len(local_devices("gpu"))


def num_tpus() -> int:
    """Return how many TPU cores this process can use."""
    return len(local_devices("tpu"))


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Return (free, total) bytes of a GPU's memory.

    Raises:
        MXNetError: there is no such GPU, or its driver does not tell.
    """
    stats = device_of(gpu(device_id)).memory_stats()
    if not stats or "bytes_limit" not in stats:
        raise MXNetError(f"gpu_memory_info: gpu({device_id}) does not report its memory")
    return stats["bytes_limit"] - stats["bytes_in_use"], stats["bytes_limit"]


__all__ = ["Context", "cpu", "cpu_pinned", "current_context", "gpu", "gpu_memory_info", "num_gpus", "num_tpus", "tpu"]
