"""Train a small language model whose layers are divided over a mesh of devices, and whose states are cut further.

python examples/parallel/transformer.py                                  # 8 virtual devices: 2 x 2 x 2
python examples/parallel/transformer.py --context 1 --model 4            # no cut sequences, heads over 4 devices
"""

import argparse
import os

parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
parser.add_argument("--data", type=int, default=2, help="devices over which batches are divided")
parser.add_argument("--model", type=int, default=2, help="devices over which heads, units and vocabulary are divided")
parser.add_argument("--context", type=int, default=2, help="devices over which sequences are divided")
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--units", type=int, default=32)
parser.add_argument("--length", type=int, default=16)
parser.add_argument("--steps", type=int, default=60)
args = parser.parse_args()
count = args.data * args.model * args.context
os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count={count}")

import numpy as np  # noqa: E402

import dualmx as mx  # noqa: E402
from dualmx.gluon import nn, parallel  # noqa: E402

VOCABULARY = 16
mesh = mx.parallel.Mesh({"data": args.data, "context": args.context, "model": args.model})
net = nn.HybridSequential()
net.add(parallel.VocabParallelEmbedding(VOCABULARY, args.units))
for _ in range(args.layers):
    net.add(parallel.ParallelTransformerCell(args.units, 4 * args.units, heads=4, causal=True, ring="context"))
net.add(nn.LayerNorm(in_channels=args.units), nn.Dense(VOCABULARY, flatten=False, in_units=args.units))
net.initialize(mx.init.Xavier(), ctx=mesh)
net.hybridize()
trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01}, shard_states="data")
loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
draw = np.random.RandomState(0)
for step in range(args.steps):
    text = np.zeros((16, args.length + 1), "float32")
    text[:, 0] = draw.randint(0, VOCABULARY, 16)
    for k in range(args.length):
        text[:, k + 1] = (5 * text[:, k] + 3) % VOCABULARY  # each token tells the next
    x, y = (mx.parallel.shard(v, ("data", "context"), mesh) for v in (text[:, :-1].copy(), text[:, 1:].copy()))
    with mx.autograd.record():
        loss = loss_of(net(x), y)
    loss.backward()
    trainer.step(16)
    if step in (0, args.steps - 1):
        print(f"step {step}: loss {loss.mean().asscalar():.3f}")
params = net.collect_params().values()
weights = mx.parallel.device_bytes([p.data() for p in params])
states = mx.parallel.device_bytes(trainer.updaters[0].states)
total = sum(np.prod(p.shape) * 4 for p in params)
print(f"whole: {total / 1024:.0f} KiB of parameters, {2 * total / 1024:.0f} KiB of states; on each device")
for device in weights:
    print(f"  {device}: {weights[device] / 1024:.0f} KiB, {states[device] / 1024:.0f} KiB")
