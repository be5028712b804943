"""Split an LSTM over devices: each layer is a group, and each group has a device of its own.

python examples/parallel/lstm_groups.py                 # 2 layers on 2 virtual devices of the CPU
"""

import argparse
import os

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--steps", type=int, default=8, help="length of a sequence")
parser.add_argument("--hidden", type=int, default=32)
parser.add_argument("--batches", type=int, default=60)
args = parser.parse_args()
os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count={args.layers}")

import numpy as np  # noqa: E402

import dualmx as mx  # noqa: E402


def layer(sequence: list, number: int) -> list:
    """One LSTM layer, unrolled."""
    wx, wh, b = (mx.sym.var(f"lstm{number}_{name}") for name in ("x_weight", "h_weight", "bias"))
    h = c = None
    outputs = []
    for x in sequence:
        gates = mx.sym.FullyConnected(x, wx, b, num_hidden=4 * args.hidden)
        if h is not None:
            gates = gates + mx.sym.FullyConnected(h, wh, num_hidden=4 * args.hidden, no_bias=True)
        i, f, g, o = mx.sym.split(gates, num_outputs=4, axis=1)
        new = mx.sym.sigmoid(i) * mx.sym.tanh(g)
        c = new if c is None else new + mx.sym.sigmoid(f) * c
        h = mx.sym.sigmoid(o) * mx.sym.tanh(c)
        outputs.append(h)
    return outputs


sequence = list(mx.sym.split(mx.sym.var("data"), num_outputs=args.steps, axis=1, squeeze_axis=True))
for k in range(args.layers):
    with mx.AttrScope(ctx_group=f"layer{k}"):
        sequence = layer(sequence, k)
with mx.AttrScope(ctx_group=f"layer{args.layers - 1}"):
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(sequence[-1], num_hidden=2, name="out"), name="softmax")

module = mx.mod.Module(net, context=mx.cpu(0), group2ctxs={f"layer{k}": mx.cpu(k) for k in range(args.layers)})
shape = (32, args.steps, 4)
module.bind([("data", shape)], [("softmax_label", shape[:1])])
module.init_params(mx.init.Xavier())
module.init_optimizer("local", "adam", {"learning_rate": 0.01})
draw = np.random.RandomState(0)
metric = mx.metric.Accuracy()
for n in range(args.batches):
    x = draw.randn(*shape)
    y = (x[:, :, 0].sum(axis=1) > 0).astype("float32")  # the sign of a sum over the sequence
    batch = mx.io.DataBatch([mx.nd.array(x)], [mx.nd.array(y)])
    module.forward_backward(batch)
    module.update()
    if n >= args.batches - 10:
        module.update_metric(metric, batch.label)
print(f"accuracy of the last 10 batches: {metric.get()[1]:.2f}")
