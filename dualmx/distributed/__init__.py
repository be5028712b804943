"""`torch.distributed` on dualmx arrays: `import dualmx.distributed as dist`.

Collectives write in place, as torch's do. `mx.parallel` has the same ones with returned results.

Example:
    >>> import dualmx as mx
    >>> import dualmx.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> x = mx.nd.ones((2,))
    >>> dist.all_reduce(x)
    >>> dist.get_rank(), dist.get_world_size(), x.asnumpy().tolist()
    (0, 1, [1.0, 1.0])
    >>> dist.destroy_process_group()
"""

from . import collectives, p2p, process_groups, store
from .collectives import *
from .p2p import *
from .process_groups import *
from .store import *

__all__: list[str] = []
__all__ += collectives.__all__
__all__ += p2p.__all__
__all__ += process_groups.__all__
__all__ += store.__all__
