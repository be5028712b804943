"""Where a Trainer trains: which devices of this process, and how many processes."""

from __future__ import annotations

from typing import Any

from .. import parallel
from ..context import Context, num_gpus
from ..core.errors import ArgumentError, MXNetError
from ..gluon.parallel import devices as listed_devices

_STRATEGIES = ("auto", "ddp", "dp")
_KINDS = ("auto", "cpu", "gpu", "cuda", "tpu")


def resolve_devices(accelerator: str, devices: Any, num_nodes: int, strategy: str) -> list[Context]:
    """Return this process's devices, after joining the job's processes unless the strategy is `"dp"`.

    Raises:
        ArgumentError: an unknown name, or a device that is not there. MXNetError: another number of processes.
    """
    if strategy not in _STRATEGIES:
        raise ArgumentError(f"Trainer: strategy={strategy!r}: expected one of {', '.join(_STRATEGIES)}")
    if accelerator not in _KINDS:
        raise ArgumentError(f"Trainer: accelerator={accelerator!r}: expected one of {', '.join(_KINDS)}")
    if not isinstance(num_nodes, int) or num_nodes < 1:
        raise ArgumentError(f"Trainer: num_nodes={num_nodes!r}: expected a number of 1 or more")
    if strategy != "dp":
        parallel.init()
    size = parallel.size()
    if strategy == "dp" or (size == 1 and strategy == "auto" and num_nodes == 1):
        if num_nodes > 1:
            raise ArgumentError(f"Trainer: strategy='dp' with num_nodes={num_nodes}: one process is on one node")
        return _here(accelerator, devices)
    each = len(devices) if isinstance(devices, (list, tuple)) else devices if isinstance(devices, int) else 0
    wanted = num_nodes * (each or parallel.local_size())
    if size != wanted:
        raise MXNetError(
            f"Trainer: num_nodes={num_nodes}, devices={devices!r}: expected {wanted} processes, one for each device, "
            f"but there are {size}; start the script by dualmx-launch -n {wanted} -s 0 python ..., or take "
            "strategy='dp' for several devices in one process"
        )
    number = devices[parallel.local_rank()] if isinstance(devices, (list, tuple)) else parallel.local_rank()
    kind = _kind(accelerator)
    return listed_devices([f"{kind}:{number}" if kind != "cpu" else Context("cpu", 0)], "Trainer: devices")


def _kind(accelerator: str) -> str:
    if accelerator == "auto":
        return "gpu" if num_gpus() else "cpu"
    return accelerator.replace("cuda", "gpu")


def _here(accelerator: str, devices: Any) -> list[Context]:
    kind = _kind(accelerator)
    if devices in ("auto", -1, "-1"):
        count = len(listed_devices()) if listed_devices()[0].device_type == kind and kind != "cpu" else 1
        return [Context(kind, i) for i in range(count)]
    if isinstance(devices, (list, tuple)):
        wanted = [f"{kind}:{d}" if isinstance(d, int) else d for d in devices]
    elif isinstance(devices, int) and devices > 0:
        wanted = [f"{kind}:{i}" for i in range(devices)]
    else:
        raise ArgumentError(f"Trainer: devices={devices!r}: expected 'auto', a number, or a list of numbers")
    return listed_devices(wanted, "Trainer: devices")
