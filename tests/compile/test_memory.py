"""Memory of programs: given back to the system, or kept for the next run."""

from __future__ import annotations

import ctypes

import pytest

from tests import jobs

CODE = """
import resource
import dualmx as mx

x = mx.nd.random.normal(shape=(3200, 8))

def run():
    return mx.nd.dot(mx.nd.dot(x, x, transpose_b=True), x).sum().asscalar()  # 40 MB in between

for _ in range(4):
    run()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    run()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 4)
"""


def faults(**env: str) -> int:
    """Pages that the system has to map for one run."""
    done = jobs.run(jobs.PYTHON, "-c", CODE, env={"GLIBC_TUNABLES": None, **env})
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="only the GNU C library can be told")
def test_kept_memory_is_not_mapped_again():
    given_back = faults(DUALMX_KEEP_MEMORY="0")
    assert 2 * faults(DUALMX_KEEP_MEMORY="some") < given_back
    assert 2 * faults(DUALMX_KEEP_MEMORY="all") < given_back
