"""One of two processes that exchange while settings are tried out."""

from __future__ import annotations

import dualmx as mx
import dualmx.horovod as hvd

hvd.init()
for step in range(40):
    arrays = [mx.nd.full((100 * (k + 1),), hvd.rank() + step) for k in range(5)]
    handles = [hvd.allreduce_async_(a, name=f"a{k}", op=hvd.Sum) for k, a in enumerate(arrays)]
    assert [hvd.synchronize(h).asnumpy()[0] for h in handles] == [2 * step + 1] * 5
hvd.shutdown()
print("finished", flush=True)
