"""Synchronous SGD as a script of equal processes, in the style of torch.distributed and MPI: five steps per batch.

dualmx-launch -n 2 -s 0 python examples/coming_from/mpi_loop.py
mpiexec -n 2 python examples/coming_from/mpi_loop.py
"""

import argparse

import numpy as np

import dualmx as mx
from dualmx.gluon.parallel import sync_gradients, sync_initial_weights

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--rows", type=int, default=16, help="of a batch of all processes together")
parser.add_argument("--save", help="write the weights of the first process to this file")
args = parser.parse_args()

mx.parallel.init()  # joins the processes
rank, replicas = mx.parallel.rank(), mx.parallel.size()

draw = np.random.RandomState(0)
x = draw.randn(512, 8)
y = np.tanh(x @ draw.randn(8, 1)) + 0.01 * draw.randn(512, 1)

mx.random.seed(rank)  # every process draws its own weights: those of the first one are taken
net = mx.gluon.nn.HybridSequential()
net.add(mx.gluon.nn.Dense(16, activation="tanh", in_units=8), mx.gluon.nn.Dense(1, in_units=16))
net.cast("float64")
net.initialize(mx.init.Xavier())
sync_initial_weights(net)
trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.3, "momentum": 0.9}, kvstore=None)

own = args.rows // replicas
loss = mx.nd.zeros((own,))
for step in range(args.steps):
    begin = step * args.rows % len(x) + rank * own  # 1. every replica takes its part of the batch
    data, label = (mx.nd.array(v[begin : begin + own], dtype="float64") for v in (x, y))
    with mx.autograd.record():  # 2. forward
        loss = mx.gluon.loss.L2Loss()(net(data), label)
    loss.backward()  # 3. backward
    sync_gradients(net)  # 4. the mean of all replicas' gradients
    trainer.step(own)  # 5. every replica makes the same update
print(f"process {rank} of {replicas}: loss {loss.mean().asscalar():.4f}", flush=True)
if rank == 0 and args.save:
    np.savez(args.save, *[p.data().asnumpy() for p in net.collect_params().values()])
