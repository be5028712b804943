"""One of two processes of a job that is not elastic: the second one is killed, and the first one tells what it sees."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import dualmx as mx
import dualmx.horovod as hvd

hvd.init()
x = mx.nd.ones((3,))
hvd.allreduce(x)
if hvd.rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)


def told(name: str, call: Callable[[], Any]) -> None:
    try:
        call()
    except hvd.elastic.HorovodInternalError as e:
        print(f"{name}: lost: {e}", flush=True)


@hvd.elastic.run
def train(state: hvd.elastic.ObjectState) -> None:
    hvd.allreduce(x, name="again")


told("first", lambda: hvd.allreduce(x, name="first"))
told("in place", lambda: hvd.allreduce_(mx.nd.ones((2,)), name="second").asnumpy())
told("begun", lambda: hvd.synchronize(hvd.allgather_async(x, name="third")))
told("object", lambda: hvd.broadcast_object("x"))
told("barrier", hvd.barrier)
told("run", lambda: train(hvd.elastic.ObjectState(step=0)))
