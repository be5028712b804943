"""dualmx: MXNet's imperative and symbolic programming model on JAX/XLA.

`import dualmx as mx` takes the place of `import mxnet as mx`.

Example:
    >>> import dualmx as mx
    >>> (mx.nd.ones((2, 2)) + 1).asnumpy().tolist()
    [[2.0, 2.0], [2.0, 2.0]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import (
    autograd,
    context,
    engine,
    namespace,  # noqa: F401  (fills nd and sym)
    ndarray,
    random,
    symbol,
)
from . import ndarray as nd
from . import random as rnd
from . import symbol as sym
from .context import Context, cpu, cpu_pinned, current_context, gpu, num_gpus, tpu
from .core import knobs as _accepted
from .core import knobs as _knobs
from .core.errors import MXNetError
from .core.module_alias import install_finder as _install_finder
from .core.module_alias import lazy_names as _lazy_names
from .ndarray import NDArray, waitall
from .symbol import AttrScope, Symbol

if TYPE_CHECKING:
    from . import (  # noqa: F401
        attribute,
        base,
        bridge,
        callback,
        contrib,
        debug,
        error,
        executor,
        executor_manager,
        gluon,
        horovod,
        image,
        initializer,
        io,
        keras,
        kvstore,
        libinfo,
        library,
        lightning,
        log,
        lr_scheduler,
        metric,
        model,
        module,
        monitor,
        name,
        numpy,
        numpy_dispatch_protocol,
        numpy_extension,
        onnx,
        operator,
        optimizer,
        parallel,
        predictor,
        profiler,
        recordio,
        registry,
        rnn,
        rtc,
        runtime,
        spark,
        test_utils,
        util,
        visualization,
    )
    from . import image as img  # noqa: F401
    from . import initializer as init  # noqa: F401
    from . import kvstore as kv  # noqa: F401
    from . import module as mod  # noqa: F401
    from . import monitor as mon  # noqa: F401
    from . import numpy as np  # noqa: F401
    from . import numpy_extension as npx  # noqa: F401
    from . import optimizer as opt  # noqa: F401
    from . import visualization as viz  # noqa: F401

__version__ = "0.1.0"

# Modules that a script may not need are imported when they are first named, so that `import dualmx` stays quick. They
# are those that type checkers have been told above, which cannot read them from here.
_LAZY = {
    **{name: name for name in (
        "attribute base bridge callback contrib debug error executor executor_manager gluon horovod image initializer "
        "io keras kvstore libinfo library lightning log lr_scheduler metric model module monitor name numpy "
        "numpy_dispatch_protocol numpy_extension onnx operator optimizer parallel predictor profiler recordio registry "
        "rnn rtc runtime spark test_utils util visualization"
    ).split()},
    "img": "image", "init": "initializer", "kv": "kvstore", "mod": "module", "mon": "monitor", "np": "numpy",
    "npx": "numpy_extension", "opt": "optimizer", "viz": "visualization",
}  # fmt: skip

# The switches of NumPy semantics, which are in `mx.util`.
_MODES = (
    "is_np_array", "is_np_shape", "np_array", "np_shape", "set_np_shape", "use_np", "use_np_array", "use_np_shape",
)  # fmt: skip


if not TYPE_CHECKING:  # a type checker would take any name for one of these
    __getattr__, __dir__ = _lazy_names(__name__, _LAZY | {name: f"util:{name}" for name in _MODES})

_install_finder()
_accepted.warn_unknown()

if _knobs.PROFILER_AUTOSTART.read() == "1":
    from . import profiler

    profiler.start_with_process()

if _knobs.ROLE.read() != "worker":  # a server or scheduler of a distributed job runs nothing of the script
    from .kvstore.kvstore_server import init_kvstore_server_module

    init_kvstore_server_module()

__all__ = [
    "AttrScope", "Context", "MXNetError", "NDArray", "Symbol", "autograd", "context", "cpu", "cpu_pinned",
    "current_context", "engine", "gpu", "nd", "ndarray", "num_gpus", "random", "rnd", "sym", "symbol", "tpu", "waitall",
]  # fmt: skip
