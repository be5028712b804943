"""Train a network whose parameters fit into no single device's budget: they are cut over a mesh.

python examples/parallel/sharded.py              # a mesh of 2 x 4 virtual devices on the CPU
"""

import argparse
import os

parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
parser.add_argument("--data", type=int, default=2, help="devices along the axis over which batches are cut")
parser.add_argument("--model", type=int, default=4, help="devices along the axis over which parameters are cut")
parser.add_argument("--hidden", type=int, default=2048)
parser.add_argument("--budget", type=float, default=12.0, help="MiB of parameters, gradients and states per device")
parser.add_argument("--steps", type=int, default=20)
args = parser.parse_args()
os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count={args.data * args.model}")

import numpy as np  # noqa: E402

import dualmx as mx  # noqa: E402
from dualmx.gluon import nn  # noqa: E402

mesh = mx.parallel.Mesh({"data": args.data, "model": args.model})
net = nn.HybridSequential(prefix="net_")
with net.name_scope():
    net.add(nn.Dense(args.hidden, activation="relu", in_units=512), nn.Dense(512, in_units=args.hidden))
net.shard(
    [
        ("dense0_weight$", ("model", None)),  # each device computes some of the hidden units ...
        ("dense0_bias$", ("model",)),
        ("dense1_weight$", (None, "model")),  # ... and their share of the outputs, which XLA sums
    ]
)
net.initialize(mx.init.Xavier(), ctx=mesh)
net.hybridize()
trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0, "momentum": 0.9})
draw = np.random.RandomState(0)
x = draw.randn(64, 512).astype("float32")
y = np.roll(x, 1, axis=1)
for step in range(args.steps):
    (a,), (b,) = (mx.gluon.utils.split_and_load(v, [mesh]) for v in (x, y))
    with mx.autograd.record():
        loss = mx.gluon.loss.L2Loss()(net(a), b)
    loss.backward()
    trainer.step(len(x))
    if step in (0, args.steps - 1):
        print(f"step {step}: loss {loss.mean().asscalar():.4f}")

params = net.collect_params().values()
held = [p.data() for p in params], [p.grad() for p in params], trainer.updaters[0].states
total = 3 * sum(np.prod(p.shape) * 4 for p in params) / 2**20
parts = {device: n / 2**20 for device, n in mx.parallel.device_bytes(held).items()}
print(f"parameters, gradients and momenta: {total:.1f} MiB; on each device")
for device, part in parts.items():
    print(f"  {device}: {part:.1f} MiB of {args.budget:.1f} MiB")
assert max(parts.values()) <= args.budget < total
