"""One of four processes on two pretended hosts: sums within hosts come first, and fewer bytes travel between them."""

from __future__ import annotations

import os
import subprocess
import sys

if "PRETENDED" not in os.environ:  # a host is told by the identity of its boot
    host = int(os.environ["DMLC_TASK_ID"]) // 2
    identity = os.path.join(os.environ["HOSTS"], f"boot{host}")
    with open(identity, "w") as f:
        f.write(f"host{host}\n")
    mount = f"mount --bind {identity} /proc/sys/kernel/random/boot_id && exec {sys.executable} {__file__}"
    sys.exit(subprocess.call(["unshare", "-m", "sh", "-c", mount], env={**os.environ, "PRETENDED": "1"}))

import numpy as np

import dualmx as mx
import dualmx.horovod as hvd
from dualmx.ps import peer_links

hvd.init()
r = hvd.rank()
assert (hvd.size(), hvd.cross_size(), hvd.local_size()) == (4, 2, 2)
nodes = mx.parallel.all_gather_object(hvd.cross_rank())
sent = 0
send = peer_links.PeerLinks.send


def counted(self: peer_links.PeerLinks, to: int, channel: str, head: object, payload: object = ()) -> None:
    global sent
    if nodes[to] != nodes[r]:
        sent += sum(memoryview(p).nbytes for p in payload)  # type: ignore[union-attr]
    send(self, to, channel, head, payload)  # type: ignore[arg-type]


peer_links.PeerLinks.send = counted  # type: ignore[method-assign]
x = np.arange(500_000, dtype=np.float64).reshape(1000, 500)
for op, expected in (
    (hvd.Sum, 4 * x + 6),
    (hvd.Average, x + 1.5),
    (hvd.Max, x + 3),
    (hvd.Min, x),
    (hvd.Product, x * (x + 1) * (x + 2) * (x + 3)),
):
    sent = 0
    got = hvd.allreduce(mx.nd.array(x + r, dtype="float64"), op=op).asnumpy()
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    there = sum(mx.parallel.all_gather_object(sent)) / x.nbytes
    # Four processes send two quarters twice each; two leaders send half of the array twice.
    assert round(there, 3) == (4.0 if os.environ.get("HOROVOD_HIERARCHICAL_ALLREDUCE") == "0" else 2.0), there
    assert len({bytes(g[:3]) for g in mx.parallel.all_gather_object(got)}) == 1
assert hvd.allreduce(mx.nd.array([r, 1.0]), op=hvd.Sum).asnumpy().tolist() == [6.0, 4.0]
hvd.shutdown()
print("finished", flush=True)
