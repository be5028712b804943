"""Train a network whose halves live in two other processes; none of them has it all.

dualmx-launch -n 3 -s 0 --launcher local python examples/parallel/remote.py
"""

import argparse

import numpy as np

import dualmx as mx
from dualmx.gluon import nn, parallel

parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
parser.add_argument("--units", type=int, default=64)
parser.add_argument("--steps", type=int, default=60)
args = parser.parse_args()
rpc = mx.parallel.rpc


@rpc.register("half")
def half(units: int, in_units: int, outputs: int) -> nn.HybridSequential:
    """A part of the network, made in the process that holds it."""
    net = nn.HybridSequential()
    net.add(nn.Dense(units, activation="tanh", in_units=in_units), nn.Dense(outputs, in_units=units))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net


mx.parallel.init()
rpc.start()
if mx.parallel.rank() == 0:
    others = [k % mx.parallel.size() for k in (1, 2)]
    halves = [
        parallel.RemoteBlock(others[0], "half", args.units, 8, args.units),
        parallel.RemoteBlock(others[1], "half", args.units, args.units, 2),
    ]
    for block in halves:
        block.train_with("adam", learning_rate=0.01)
    draw = np.random.RandomState(0)
    x = mx.nd.array(draw.randn(128, 8))
    y = mx.nd.array(np.sin(x.asnumpy()[:, :2] * 2))
    for step in range(args.steps):
        with mx.autograd.record():
            loss = mx.gluon.loss.L2Loss()(halves[1](halves[0](x)), y)
        loss.backward()  # gradients travel back through both processes
        for block in halves:
            block.step(len(x))
        if step in (0, args.steps - 1):
            print(f"step {step}: loss {loss.mean().asscalar():.4f}", flush=True)
rpc.stop()
