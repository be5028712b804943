"""Train a network whose stages are on different devices, through which micro-batches flow.

python examples/parallel/pipeline.py                          # 4 stages, 8 micro-batches, 1F1B
python examples/parallel/pipeline.py --schedule gpipe
python examples/parallel/pipeline.py --one-program            # equal stages inside of one XLA program
"""

import argparse
import os

parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
parser.add_argument("--stages", type=int, default=4)
parser.add_argument("--micro-batches", type=int, default=8)
parser.add_argument("--schedule", choices=["1f1b", "gpipe"], default="1f1b")
parser.add_argument("--one-program", action="store_true", help="equal stages, over an axis of a mesh")
parser.add_argument("--units", type=int, default=64)
parser.add_argument("--steps", type=int, default=40)
args = parser.parse_args()
os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count={args.stages}")

import numpy as np  # noqa: E402

import dualmx as mx  # noqa: E402
from dualmx.gluon import nn, parallel  # noqa: E402

mx.random.seed(1)
draw = np.random.RandomState(0)
x = draw.randn(64, args.units).astype("float32")
y = np.sin(x @ draw.randn(args.units, 4).astype("float32") / 4)
loss_of = mx.gluon.loss.L2Loss()


def stage(units: int) -> nn.HybridSequential:
    """A hidden layer with normalization."""
    net = nn.HybridSequential()
    net.add(nn.Dense(units, activation="tanh", in_units=args.units), nn.LayerNorm(in_channels=units))
    return net


if args.one_program:
    mesh = mx.parallel.Mesh({"pipe": args.stages})
    net = nn.Sequential()
    net.add(parallel.StackedPipeline(stage(args.units), args.stages, args.micro_batches))
    net.add(nn.Dense(4, in_units=args.units))
    net.initialize(mx.init.Xavier(), ctx=mesh)
    trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    for step in range(args.steps):
        a, b = mx.nd.array(x, ctx=mesh), mx.nd.array(y, ctx=mesh)
        with mx.autograd.record():
            loss = loss_of(net(a), b)
        loss.backward()
        trainer.step(len(x))
        if step in (0, args.steps - 1):
            print(f"step {step}: loss {loss.mean().asscalar():.4f}")
    schedule = net[0].schedule
    held = mx.parallel.device_bytes([p.data() for p in net[0].collect_params().values()])
else:
    blocks = [stage(args.units) for _ in range(args.stages - 1)] + [nn.Dense(4, in_units=args.units)]
    pipe = parallel.Pipeline(blocks, [mx.cpu(k) for k in range(args.stages)], args.micro_batches, args.schedule)
    pipe.initialize(mx.init.Xavier())
    pipe.hybridize()
    trainers = pipe.trainers("adam", {"learning_rate": 0.01})
    a, b = mx.nd.array(x), mx.nd.array(y)
    for step in range(args.steps):
        loss = pipe.forward_backward(a, b, loss_of)
        for trainer in trainers:
            trainer.step(len(x))
        if step in (0, args.steps - 1):
            print(f"step {step}: loss {loss.mean().asscalar():.4f}")
    schedule = pipe.schedule
    found = pipe.measure(a, b, loss_of)
    print("of the time, stages work:", ", ".join(f"{u:.0%}" for u in found["utilisation"]))
    print(
        f"of the time, they wait: {found['bubble']:.0%} by the durations measured, on devices that do not share cores"
    )
    held = mx.parallel.device_bytes([p.data() for p in pipe.collect_params().values()])
print(f"{schedule.bubble():.0%} if all passes took the same time; micro-batches held: {schedule.in_flight()}")
print(schedule)
print("parameters on each device:", ", ".join(f"{d} {n / 1024:.0f} KiB" for d, n in held.items()))
