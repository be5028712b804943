"""Point-to-point messages and object lists of `torch.distributed`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import parallel
from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray import NDArray
from ..ndarray.interop import array_from_numpy
from ..parallel import ProcessGroup
from ..parallel.object_codec import decode, encode
from .collectives import Work, require_array
from .process_groups import get_process_group_ranks, group_rank, is_not_member


def send(
    tensor: NDArray,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send an array to process `dst`, or `group_dst` of the group; returns when it is on its way.

    Raises:
        ArgumentError: no such process, or this one. MXNetError: it is gone.
    """
    if not is_not_member("send", group):
        parallel.send(
            require_array("send", "tensor", tensor), group_rank("send", "dst", dst, group, group_dst), tag, group
        )


def recv(
    tensor: NDArray,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Write to an array what process `src` (`group_src` of the group) sends, or any.

    Returns:
        The number of the sender, -1 outside of the group.

    Raises:
        ArgumentError: no such process, or an array of another shape or dtype. MXNetError: it is gone.
    """
    if is_not_member("recv", group):
        return -1
    source = _source("recv", src, group, group_src)
    receipt = parallel.irecv(source, tag, require_array("recv", "tensor", tensor), group)
    receipt.wait()
    assert receipt.source is not None
    return get_process_group_ranks(group)[receipt.source]


def _source(what: str, src: int | None, group: ProcessGroup | None, group_src: int | None) -> int | None:
    """The number in a group of the process to receive from, None for any."""
    return None if src is None and group_src is None else group_rank(what, "src", src, group, group_src)


def isend(
    tensor: NDArray,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """`send` that returns a `Work`; the array may be changed at once."""
    if is_not_member("isend", group):
        return None
    parallel.isend(
        require_array("isend", "tensor", tensor), group_rank("isend", "dst", dst, group, group_dst), tag, group
    )
    return Work(lambda: None, lambda: True)


def irecv(
    tensor: NDArray,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """`recv` that returns a `Work`, whose `wait` writes the array."""
    if is_not_member("irecv", group):
        return None
    source = _source("irecv", src, group, group_src)
    receipt = parallel.irecv(source, tag, require_array("irecv", "tensor", tensor), group)
    return Work(receipt.wait, receipt.is_completed)


def send_object_list(
    object_list: Sequence[Any], dst: int | None = None, group: ProcessGroup | None = None, device: Any = None,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """Send the values of a list to process `dst`, or `group_dst` of the group; see `all_gather_object`."""
    if not is_not_member("send_object_list", group):
        root = group_rank("send_object_list", "dst", dst, group, group_dst)
        parallel.send(array_from_numpy(encode(list(object_list), "send_object_list")), root, group=group)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: ProcessGroup | None = None, device: Any = None,
    group_src: int | None = None,
) -> int:  # fmt: skip
    """Replace the elements of a list by those that process `src` sends with `send_object_list`, or any.

    Returns:
        The number of the sender, -1 outside of the group.

    Raises:
        ArgumentError: no such process, or a list of another length. MXNetError: it is gone.
    """
    what = "recv_object_list"
    if is_not_member(what, group):
        return -1
    receipt = parallel.irecv(_source(what, src, group, group_src), group=group)
    _filled(what, "object_list", object_list, decode(receipt.wait().asnumpy()))
    assert receipt.source is not None
    return get_process_group_ranks(group)[receipt.source]


class P2POp:
    """A send or receive for `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor, peer, group, tag, group_peer: see these.
    """

    def __init__(
        self, op: Callable[..., Any], tensor: NDArray, peer: int | None = None, group: ProcessGroup | None = None,
        tag: int = 0, group_peer: int | None = None,
    ):  # fmt: skip
        if op not in (isend, irecv):
            raise ArgumentError(f"P2POp: op={op!r}: expected isend or irecv")
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        self.peer, self.group_peer = peer, group_peer


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Begin several sends and receives; returns a `Work` for each."""
    if not p2p_op_list or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ArgumentTypeError("batch_isend_irecv: expected a list of P2POps")
    return [p.op(p.tensor, p.peer, p.group, p.tag, p.group_peer) for p in p2p_op_list]


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Write the values of all processes to a list: plain data and arrays, never code.

    Raises:
        ArgumentError: a list of another length. ArgumentTypeError: something that cannot be sent.
    """
    if not is_not_member("all_gather_object", group):
        found = parallel.all_gather_object(obj, group)
        _filled("all_gather_object", "object_list", object_list, found)


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """Write the values of all processes to a list in process `dst` (0); see `all_gather_object`."""
    if not is_not_member("gather_object", group):
        root = group_rank("gather_object", "dst", dst, group, group_dst, 0)
        found = parallel.all_gather_object(obj, group)
        if parallel.rank(group) == root:
            _filled("gather_object", "object_gather_list", object_gather_list, found)


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: ProcessGroup | None = None, device: Any = None,
    group_src: int | None = None,
) -> None:  # fmt: skip
    """Replace the elements of a list by those of process `src` (0); see `all_gather_object`."""
    if not is_not_member("broadcast_object_list", group):
        root = group_rank("broadcast_object_list", "src", src, group, group_src, 0)
        found = parallel.broadcast_object(list(object_list), root, group)
        _filled("broadcast_object_list", "object_list", object_list, found)


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None, group: ProcessGroup | None = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """Write to the first place of a list this process's element of the list of process `src` (0)."""
    what = "scatter_object_list"
    if is_not_member(what, group):
        return
    root = group_rank(what, "src", src, group, group_src, 0)
    found = parallel.broadcast_object(scatter_object_input_list and list(scatter_object_input_list), root, group)
    if not isinstance(found, list) or len(found) != parallel.size(group):
        raise ArgumentError(f"{what}: process {root} has no list of {parallel.size(group)} values")
    if not scatter_object_output_list:
        raise ArgumentError(f"{what}: scatter_object_output_list: expected a list of at least one element")
    scatter_object_output_list[0] = found[parallel.rank(group)]


def _filled(what: str, name: str, target: Any, values: Sequence[Any]) -> None:
    if not isinstance(target, list) or len(target) != len(values):
        raise ArgumentError(f"{what}: {name}: expected a list of {len(values)} elements")
    target[:] = values


__all__ = [
    "P2POp", "all_gather_object", "batch_isend_irecv", "broadcast_object_list", "gather_object", "irecv", "isend",
    "recv", "recv_object_list", "scatter_object_list", "send", "send_object_list",
]  # fmt: skip
