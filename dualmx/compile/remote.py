"""Programs over devices of several processes: they run one at a time, and whoever waits learns of lost processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from ..core.errors import MXNetError
from ..core.knobs import DIST_TIMEOUT
from .x64 import x64

# Functions that say which processes are known to be gone, "" for none; asked while others are waited for.
failure_detectors: list[Callable[[], str]] = []
GRACE = 1.0  # seconds that a program has to end here after others have left


def wait_or_raise_lost(results: Sequence[Any]) -> None:
    """Wait for the results of a program in which other processes take part.

    Several such programs must not be under way at once: each process could wait in another one.

    Raises:
        MXNetError: a process died, or did not come in time.
    """
    limit, began, pause, noticed = DIST_TIMEOUT.integer() or float("inf"), time.monotonic(), 2e-5, 0.0
    for r in results:
        while not r.is_ready():
            time.sleep(pause)
            pause, now = min(2 * pause, 5e-3), time.monotonic()
            gone = next((text for text in (w() for w in failure_detectors) if text), "")
            # The program may be about to end here, with the others gone after it.
            noticed = noticed or (now if gone else 0.0)
            if not gone and now - began > limit:
                gone = f"the others did not take part within {limit:.0f} s (DUALMX_DIST_TIMEOUT)"
            elif now - noticed < GRACE:
                gone = ""
            if gone:
                raise MXNetError(f"process {jax.process_index()} of {jax.process_count()} lost another one: {gone}")
    jax.block_until_ready(results)


@cache
def _mover(sharding: NamedSharding) -> Any:
    return jax.jit(jnp.copy, out_shardings=sharding)


def reshard(data: Any, sharding: NamedSharding) -> Any:
    """Return a copy that lies on the devices of a mesh in another way."""
    with x64():
        data = _mover(sharding)(data)
    wait_or_raise_lost([data])
    return data


def fully_replicated(data: Any) -> Any:
    """Return an array whose values this process can read: the whole, if other processes have parts of it.

    All processes that share the array must do this.

    Raises:
        MXNetError: a process died, or did not come in time.
    """
    if not isinstance(data, jax.Array) or data.is_fully_addressable:
        return data
    if not data.is_fully_replicated:
        assert isinstance(data.sharding, NamedSharding)
        data = reshard(data, NamedSharding(data.sharding.mesh, PartitionSpec()))
    return data.addressable_data(0)


def broadcast_number(mesh: Any, number: int) -> int:
    """Return the number that the process of the first device of a mesh has; all its processes must ask."""
    grid = mesh.mesh
    parts = NamedSharding(grid, PartitionSpec(grid.axis_names))
    given = jax.make_array_from_callback((mesh.size,), parts, lambda at: np.full(1, number, np.uint32))
    return int(np.asarray(fully_replicated(given))[0])
