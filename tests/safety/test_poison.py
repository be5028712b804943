"""Memory that is released to be used again has no old values left when it is asked to be poisoned."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import jobs

ROOT = Path(__file__).resolve().parents[2]

SEEN = """
import ctypes, gc, importlib
import numpy as np
import dualmx as mx

def spoiled(address, count):
    return bool(np.isnan((ctypes.c_float * count).from_address(address)).all())

flush = importlib.import_module("dualmx.ndarray.execute")
found = {}

x = mx.nd.ones((64, 64))
shown = np.from_dlpack(x)
address = shown.ctypes.data
kept = x._meta.exposed.memory  # so that nothing else is put there
del shown
total = x.sum().asscalar()
found["memory of other libraries"] = spoiled(address, 4096)

x = mx.nd.ones((64, 64)) + 0
x.realize()  # as XLA's memory
late = mx.nd.dot(x, x)
buffers = [x._data]
x._data = None
late.wait_to_read()
like = mx.nd.zeros((64, 64))._value.aval
taken = flush._take_donated([like], buffers, [like])
found["recycled buffers"] = spoiled(taken[0].unsafe_buffer_pointer(), 4096)

from dualmx.parallel.buffer_pool import pool
block = pool.empty((1 << 20,), np.dtype("float32"))
block[:] = 1
address = block.ctypes.data
del block
gc.collect()
other = pool.empty((1 << 20,), np.dtype("float32"))
found["memory for results"] = other.ctypes.data == address and spoiled(address, 1 << 20)

from dualmx.ps.van.shared_memory import Arena
arena = Arena(1 << 24)
block = arena.alloc(1 << 16)
block[:] = 0
address = block.ctypes.data
del block
other = arena.alloc(1 << 16)
found["memory shared by processes"] = other.ctypes.data == address and spoiled(address, 1 << 14)
print(total, late[0, 0].asscalar(), found)
"""


@pytest.mark.slow
@pytest.mark.parametrize("poison", ["0", "1"])
def test_released_memory_is_poisoned(poison: str) -> None:
    run = jobs.run(jobs.PYTHON, "-c", SEEN, env={"DUALMX_POISON": poison, "DUALMX_CACHE_DIR": ""})
    places = ("memory of other libraries", "recycled buffers", "memory for results", "memory shared by processes")
    assert run.stdout == f"4096.0 64.0 {dict.fromkeys(places, poison == '1')}\n"
