"""Which contexts are meant by the ways in which scripts name devices, and contexts that get no rows of a batch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ...compile.devices import local_devices
from ...core.context import Context
from ...core.errors import ArgumentError, ArgumentTypeError
from ..parameter import Parameter

_NAMED = re.compile(r"(?:.*/)?(?:device:)?(cpu|gpu|tpu|cuda)[:(](\d+)\)?", re.IGNORECASE)


def devices(wanted: Any = None, what: str = "devices") -> list[Context]:
    """Return contexts.

    Args:
        wanted: `None` for all accelerators, or all devices that the CPU is split into if there are none; a number of
            these; or contexts, numbers of accelerators (of CPU devices without one) or names such as `"gpu:0"`,
            `"/gpu:0"`, `"cuda:0"` in a list.
        what: the argument that errors name.

    Raises:
        ArgumentError: a device that is not there, one named twice, or another text. ArgumentTypeError: something else.

    Example:
        >>> devices(["cpu:0"])
        [cpu(0)]
        >>> devices([mx.cpu(0), mx.cpu(1)])
        [cpu(0), cpu(1)]
    """
    kind = next((k for k in ("gpu", "tpu") if local_devices(k)), "cpu")
    if wanted is None:
        return [Context(kind, i) for i in range(len(local_devices(kind)))]
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        if wanted < 1:
            raise ArgumentError(f"{what}: {wanted}: expected a number of 1 or more, or a list")
        return [_present(Context(kind, i), f"{wanted} devices", what) for i in range(wanted)]
    listed = [wanted] if isinstance(wanted, (str, Context)) else list(wanted) if isinstance(wanted, Iterable) else None
    if listed is None:
        raise ArgumentTypeError(f"{what}: {wanted!r}: expected contexts, numbers or names such as 'gpu:0' in a list")
    if not listed:
        raise ArgumentError(f"{what}: []: expected at least one device")
    found = [_context(one, kind, what) for one in listed]
    twice = [c for c in found if found.count(c) > 1]
    if twice:
        raise ArgumentError(f"{what}: {twice[0]} is named twice")
    return found


def _context(one: Any, kind: str, what: str) -> Context:
    if isinstance(one, Context):
        # MXNet lets CPU contexts share devices.
        return one if one.device_type.startswith("cpu") else _present(one, repr(str(one)), what)
    if isinstance(one, int) and not isinstance(one, bool):
        return _present(Context(kind, one), repr(one), what)
    if not isinstance(one, str):
        raise ArgumentTypeError(f"{what}: {one!r}: expected a context, a number or a name such as 'gpu:0'")
    match = _NAMED.fullmatch(one.strip())
    if not match:
        raise ArgumentError(f"{what}: {one!r}: expected a name such as 'cpu:0', 'gpu:1' or '/gpu:1'")
    named = match[1].lower().replace("cuda", "gpu")
    return _present(Context(named, int(match[2])), repr(one), what)


def _present(ctx: Context, said: str, what: str) -> Context:
    if ctx.device_id < len(local_devices(ctx.device_type)):
        return ctx
    there = ", ".join(f"{len(local_devices(k))} {k}" for k in ("cpu", "gpu", "tpu") if local_devices(k))
    remedy = "name one of these"
    if ctx.device_type == "cpu":
        remedy = (
            f"set XLA_FLAGS=--xla_force_host_platform_device_count={ctx.device_id + 1} before the program starts to "
            "split the CPU into more"
        )
    raise ArgumentError(f"{what}: {said}: there is no such device; this process has {there}. Please {remedy}")


def rest(params: Iterable[Parameter], contexts: Iterable[Context]) -> None:
    """Let contexts that get no rows of a batch contribute nothing to its gradients, which counts as a backward pass.

    Call it before the backward pass of the other contexts.

    Args:
        params: initialized parameters.
        contexts: those without rows.
    """
    idle = list(contexts)
    for param in params if idle else ():
        if param.grad_req != "null":
            for ctx in idle:
                array = param.data(ctx)
                if param.grad_req == "write":
                    param.grad(ctx)[:] = 0
                array._fresh_grad = True
