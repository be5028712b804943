"""Quantization of networks to 8-bit integers, for symbols and Gluon blocks, with calibration.

Example:
    >>> import dualmx as mx
    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> weights = {"fc_weight": mx.nd.array([[1.0, -1.0], [0.5, 0.25]]), "fc_bias": mx.nd.zeros(2)}
    >>> small, args, aux = mx.contrib.quantization.quantize_model(net, weights, {}, calib_mode="none")
    >>> small.bind(mx.cpu(), {"data": mx.nd.array([[1.0, 1.0]]), **args}).forward()[0].asnumpy().round(1)
    array([[0. , 0.8]], dtype=float32)
"""

from .calibration import combine_histogram
from .gluon_nets import quantize_net, quantize_net_v2
from .models import calib_graph, quantize_graph, quantize_model, quantize_model_mkldnn

__all__ = [
    "calib_graph", "combine_histogram", "quantize_graph", "quantize_model", "quantize_model_mkldnn", "quantize_net",
    "quantize_net_v2",
]  # fmt: skip
