"""Symbols, inference calls and executor runs that `record.py` records from MXNet and the tests replay.

Every function takes the framework module (`mx`), so that the same code builds the graph in both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Build = Callable[[Any], Any]


def mlp(mx: Any) -> Any:
    """Two dense layers with batch normalization and dropout, and a softmax loss."""
    net = mx.sym.Variable("data")
    net = mx.sym.FullyConnected(net, num_hidden=8, name="fc1")
    net = mx.sym.BatchNorm(net, name="bn1", fix_gamma=False)
    net = mx.sym.Activation(net, act_type="relu")
    net = mx.sym.FullyConnected(net, num_hidden=3, name="fc2")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def convnet(mx: Any) -> Any:
    """Convolution, pooling, flatten and a loss, with automatic names."""
    net = mx.sym.Variable("data")
    net = mx.sym.Convolution(net, kernel=(3, 3), num_filter=4, pad=(1, 1), stride=(2, 2), no_bias=True)
    net = mx.sym.BatchNorm(net, eps=2e-5, momentum=0.9)
    net = mx.sym.LeakyReLU(net, act_type="leaky", slope=0.1)
    net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max")
    net = mx.sym.Flatten(net)
    net = mx.sym.FullyConnected(net, num_hidden=5)
    return mx.sym.SoftmaxOutput(net, name="softmax", multi_output=False, use_ignore=True, ignore_label=-1)


def residual(mx: Any) -> Any:
    """A residual unit: a shared input and operators on symbols."""
    x = mx.sym.Variable("data")
    y = mx.sym.FullyConnected(x, num_hidden=6, name="a")
    z = mx.sym.FullyConnected(y, num_hidden=6, name="b", no_bias=True)
    return mx.sym.Activation(y + z, act_type="tanh") * 0.5 - 1


def attributes(mx: Any) -> Any:
    """Attribute scopes, hidden keys and variables with attributes."""
    with mx.AttrScope(ctx_group="dev1", __note__="n"):
        w = mx.sym.Variable("w", shape=(3, 0), lr_mult=2, wd_mult=0.5, dtype="float32", init=mx.init.Xavier())
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), weight=w, num_hidden=3, name="fc")
    with mx.AttrScope(ctx_group="dev2"):
        return mx.sym.Activation(net, act_type="sigmoid", name="act", attr={"__extra__": "q"}, lr_mult="3")


def prefixed(mx: Any) -> Any:
    """Names under a prefix."""
    with mx.name.Prefix("net_"):
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3)
        net = mx.sym.FullyConnected(net, num_hidden=2, name="head")
    return net + 1


def grouped(mx: Any) -> Any:
    """A group of several outputs, one of a split."""
    x = mx.sym.Variable("x")
    parts = mx.sym.SliceChannel(x, num_outputs=3, name="cut")
    return mx.sym.Group([parts[1], mx.sym.Concat(parts[0], parts[2], dim=1, name="cat"), mx.sym.BlockGrad(x)])


def shared_states(mx: Any) -> Any:
    """Two batch normalizations over the same moving averages."""
    mean, var = mx.sym.Variable("mean"), mx.sym.Variable("var")
    net = mx.sym.BatchNorm(mx.sym.Variable("x"), moving_mean=mean, moving_var=var, name="one")
    return mx.sym.BatchNorm(net, moving_mean=mean, moving_var=var, name="two")


def many_inputs(mx: Any) -> Any:
    """More than ten inputs, which changes the layout of the lists."""
    return mx.sym.Concat(*[mx.sym.Variable(f"v{i}") for i in range(12)], name="cat")


def recurrent(mx: Any) -> Any:
    """The fused RNN and its initial states made by zeros of unknown batch size."""
    x = mx.sym.Variable("x")
    state = mx.sym.zeros((1, 0, 4), name="begin")
    return mx.sym.RNN(x, state=state, state_size=4, num_layers=1, mode="gru", state_outputs=True, name="rnn")


def composed(mx: Any) -> Any:
    """A graph put in place of a variable of another."""
    inner = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="inner")
    outer = mx.sym.Activation(mx.sym.Variable("z"), act_type="relu", name="outer")
    return outer(z=inner, name="whole")


def quoted(mx: Any) -> Any:
    """Names and attributes with characters that JSON escapes."""
    return mx.sym.Variable('a"b\\c\né\t/', attr={"k": 'é"\\\n/'})


BUILDS: dict[str, Build] = {
    f.__name__: f
    for f in (
        mlp, convnet, residual, attributes, prefixed, grouped, shared_states, many_inputs, recurrent, composed, quoted,
    )
}  # fmt: skip

# One node each, on variables x, y, z: checks op names, automatic names, attributes and output names.
EXPRESSIONS: tuple[str, ...] = (
    "x+y", "x-y", "x*y", "x/y", "x%y", "x**y", "x+1", "1+x", "x-1", "1-x", "x*2", "2*x", "x/2", "2/x", "x%2", "2%x",
    "x**2", "2**x", "-x", "abs(x)", "x==y", "x!=y", "x>y", "x>=y", "x<y", "x<=y", "x==1", "x!=1", "x>1", "x>=1", "x<1",
    "x<=1", "1>x", "x+1.5", "x*1e-05", "sym.maximum(x,y)", "sym.maximum(x,2)", "sym.minimum(2,x)", "sym.hypot(x,y)",
    "sym.pow(x,2)", "sym.power(2,x)", "sym.pow(x,y)", "sym.zeros((2,3))", "sym.ones((2,))", "sym.full((2,),3.5)",
    "sym.arange(5)", "sym.arange(1,5,2,repeat=2,name='r',dtype='int32')", "sym.linspace(0,1,5)", "sym.eye(3)",
    "sym.split_v2(x,2)", "sym.split_v2(x,(1,3),axis=1)", "x.reshape((2,3))", "x.reshape(shape=(0,-1),reverse=True)",
    "x.sum()", "x.sum(axis=1)", "x.sum(1)", "x.transpose()", "x.transpose((1,0))", "x.astype('float16')",
    "x.astype('int32')", "x.expand_dims(1)", "x.squeeze()", "x.squeeze(1)", "x.flatten()", "x.diag()",
    "x.split(num_outputs=2)", "x.clip(0,1)", "x.slice_axis(axis=0,begin=1,end=None)",
    "x.slice(begin=(0,None),end=(1,2))", "x.take(y)", "x.one_hot(3)", "x.pick(y)", "x.topk(k=2)", "x.norm()",
    "x.softmax()", "x.swapaxes(0,1)", "x.flip(axis=0)", "x.tile((2,2))", "x.repeat(2)",
    "x.mean(axis=(0,1),keepdims=True)",
    "sym.random.uniform(shape=3)", "sym.random.normal(0,1,shape=(2,))", "sym.random.normal(x,y,shape=(2,))",
    "sym.random_uniform(0,1)", "sym.random.gamma(alpha=2)", "sym.random.exponential(2)", "sym.sum(x,axis=None)",
    "sym.Reshape(x,shape=(2,))", "sym.flatten(x)", "sym.Flatten(x)", "sym.cast(x,dtype='float32')", "sym.identity(x)",
    "sym.stop_gradient(x)", "sym.BlockGrad(x)", "sym.negative(x)", "sym.broadcast_plus(x,y)", "sym.elemwise_add(x,y)",
    "sym.SwapAxis(x)", "sym.make_loss(x)", "sym.MakeLoss(x)", "sym.where(x,x,y)", "sym.Dropout(x,p=0.3)",
    "sym.Pooling(x,kernel=(2,2),pool_type='max')", "sym.linalg.gemm2(x,y)", "sym.topk(x,ret_typ='both')",
    "sym.BatchNorm(x,name='bn',output_mean_var=True)", "sym.LayerNorm(x)", "sym.InstanceNorm(x)", "sym.LRN(x,nsize=3)",
    "sym.Embedding(x,input_dim=3,output_dim=2)", "sym.SoftmaxOutput(x,name='softmax')", "sym.SoftmaxOutput(x)",
    "sym.LinearRegressionOutput(x)", "sym.LogisticRegressionOutput(x)", "sym.MAERegressionOutput(x)",
    "sym.LeakyReLU(x,slope=0.1)", "sym.LeakyReLU(x,act_type='prelu',name='p')", "sym.SequenceMask(x,name='s')",
    "sym.SequenceMask(x,use_sequence_length=True,name='s')", "sym.Concat(x,y,dim=1)", "sym.concat(x,y,z)",
    "sym.add_n(x,y)", "sym.ElementWiseSum(x,y)", "sym.stack(x,y,axis=1)",
    "sym.Convolution(x,kernel=[3,3],num_filter=2)",
    "sym.Deconvolution(x,kernel=(3,3),num_filter=2)", "sym.FullyConnected(num_hidden=3,name='a')",
    "sym.FullyConnected(x,bias=y,num_hidden=3,name='a')", "sym.FullyConnected(x,None,y,num_hidden='3')",
    "sym.RNN(x,state_size=3,num_layers=1,mode='lstm',state_outputs=True,name='r')",
    "sym.RNN(x,state_size=3,num_layers=1,mode='gru',state_outputs=True,name='r')",
    "sym.UpSampling(x,scale=2,sample_type='nearest')",
    "sym._internal._plus_scalar(x,scalar=3)", "sym.dot(x,y)", "sym.batch_dot(x,y,transpose_a=True)",
    "sym.CTCLoss(x,name='c')",
)  # fmt: skip

FC = "sym.FullyConnected(x,num_hidden=3,name='fc')"
# expression, method, keywords; errors are recorded as such
INFERENCES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (FC, "infer_shape", {}),
    (FC, "infer_shape_partial", {}),
    (FC, "infer_shape", {"x": (2, 4)}),
    (FC, "infer_shape", {"x": (0, 4)}),
    (FC, "infer_shape_partial", {"x": (0, 4)}),
    (FC, "infer_shape", {"x": (2, 4), "fc_weight": (3, 5)}),
    (FC, "infer_shape", {"nope": (2, 3)}),
    (FC, "infer_shape", {"x": [2, 3]}),
    (FC, "infer_shape", {"fc_weight": (3, 7)}),
    (FC, "infer_shape_partial", {"fc_weight": (3, 7)}),
    (FC, "infer_type", {}),
    (FC, "infer_type_partial", {}),
    (FC, "infer_type", {"x": "float16"}),
    (FC, "infer_type", {"fc_weight": "float16"}),
    (FC, "infer_type", {"x": "float16", "fc_bias": "float32"}),
    (FC, "infer_type", {"nope": "float32"}),
    ("x+y", "infer_type", {"x": "float16"}),
    ("x+y", "infer_type", {}),
    ("sym.relu(x)+y", "infer_type", {"y": "float16"}),
    ("sym.Cast(x,dtype='float16')", "infer_type", {"x": "int32"}),
    ("sym.Cast(x,dtype='float16')", "infer_type", {}),
    ("sym.Embedding(x,input_dim=3,output_dim=2)", "infer_type", {"x": "int32"}),
    ("sym.zeros((2,))", "infer_type", {}),
    ("sym.BatchNorm(x)", "infer_type", {"x": "float16"}),
    ("sym.SoftmaxOutput(x)", "infer_type", {"x": "float16"}),
    ("x", "infer_type", {}),
    ("x", "infer_shape", {}),
    ("x", "infer_shape_partial", {}),
    ("sym.var('s',shape=(2,3))", "infer_shape", {}),
    ("sym.relu(sym.var('s',shape=(2,0)))", "infer_shape", {"s": (0, 3)}),
    ("sym.relu(sym.var('s',shape=(2,3)))", "infer_shape", {"s": (4, 3)}),
    ("sym.relu(sym.var('s',dtype='float16'))", "infer_type", {}),
    ("sym.zeros((0,3))+y", "infer_shape", {"y": (2, 3)}),
    ("sym.zeros((0,3))+y", "infer_shape", {"y": (2, 4)}),
    ("x+y", "infer_shape", {"x": (2, 3)}),
    ("x+y", "infer_shape", {"x": (2, 3), "y": (3,)}),
    ("x+y", "infer_shape", {"x": (2, 3), "y": (1, 3)}),
    ("x+y", "infer_shape", {"x": (2, 0), "y": (0, 3)}),
    ("x*2+y", "infer_shape", {"y": (3,)}),
    ("sym.relu(sym.tanh(x))*y", "infer_shape", {"y": (3, 2)}),
    ("sym.broadcast_add(x,y)", "infer_shape", {"x": (2, 3)}),
    ("sym.broadcast_add(x,y)", "infer_shape_partial", {"x": (0, 3), "y": (2, 1)}),
    ("sym.dot(x,y)", "infer_shape_partial", {"x": (2, 3)}),
    ("sym.Convolution(x,kernel=(3,3),num_filter=4,name='c')", "infer_shape", {"x": (2, 3, 8, 8)}),
    ("sym.Convolution(x,kernel=(3,3),num_filter=4,name='c')", "infer_shape_partial", {"x": (0, 3, 8, 8)}),
    ("sym.Convolution(x,kernel=(3,3),num_filter=4,name='c')", "infer_shape_partial", {"x": (2, 3, 0, 8)}),
    ("sym.Deconvolution(x,kernel=(3,3),num_filter=4,num_group=2,name='c')", "infer_shape", {"x": (2, 4, 8, 8)}),
    ("sym.BatchNorm(x,name='b')", "infer_shape", {"x": (2, 3, 4)}),
    ("sym.BatchNorm(x,name='b',axis=2)", "infer_shape", {"x": (2, 3, 4)}),
    ("sym.SoftmaxOutput(x,name='s')", "infer_shape", {"x": (2, 3)}),
    ("sym.SoftmaxOutput(x,name='s',multi_output=True)", "infer_shape", {"x": (2, 3, 4)}),
    ("sym.LinearRegressionOutput(x,name='s')", "infer_shape", {"x": (2, 3)}),
    ("sym.where(x,y,x)", "infer_shape", {"x": (2, 3)}),
    ("sym.split(x,num_outputs=2)", "infer_shape", {"x": (2, 4)}),
    ("sym.transpose(x)", "infer_shape_partial", {"x": (0, 3)}),
    ("sym.mean(x,axis=1)", "infer_shape_partial", {"x": (0, 3)}),
    ("sym.sum(x)", "infer_shape_partial", {"x": (0, 3)}),
    ("sym.Embedding(x,input_dim=30,output_dim=2,name='e')", "infer_shape", {"x": (4, 5)}),
    ("sym.RNN(x,state_size=3,num_layers=2,mode='lstm',bidirectional=True,name='r')", "infer_shape", {"x": (7, 2, 5)}),
    ("sym.RNN(x,state_size=3,num_layers=1,mode='gru',state_outputs=True,name='r')", "infer_shape", {"x": (7, 2, 5)}),
    ("sym.LayerNorm(x,name='l')", "infer_shape", {"x": (2, 3)}),
    ("sym.Concat(x,y,dim=1)", "infer_shape", {"x": (2, 3), "y": (2, 4)}),
    ("sym.take(x,y)", "infer_shape", {"x": (3, 2)}),
    ("sym.Flatten(x)", "infer_shape", {"x": (2, 3, 4)}),
    ("sym.Group([x*2,sym.relu(y)])", "infer_shape_partial", {"x": (2, 3)}),
)

# Executor runs: builder, shapes, gradient request; inputs are drawn from a fixed stream.
RUNS: dict[str, tuple[str, dict[str, tuple[int, ...]], str]] = {
    "mlp": ("mlp", {"data": (4, 5)}, "write"),
    "mlp_add": ("mlp", {"data": (4, 5)}, "add"),
    "convnet": ("convnet", {"data": (2, 3, 8, 8)}, "write"),
    "residual": ("residual", {"data": (3, 4)}, "write"),
    "grouped": ("grouped", {"x": (2, 6)}, "write"),
}
