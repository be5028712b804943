"""dualmx: MXNet's imperative and symbolic programming model on JAX/XLA.

`import dualmx as mx` takes the place of `import mxnet as mx`.
"""

from . import namespace  # noqa: F401
from . import autograd, random
from . import ndarray
from . import ndarray as nd
from . import symbol
from . import symbol as sym
from .core import context, errors
from .core.context import Context, cpu, cpu_pinned, current_context, gpu, tpu
from .core.errors import MXNetError

__version__ = "0.1.0"
