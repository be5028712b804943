"""Send and receive arrays between two processes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.context import Context
from ..core.errors import ArgumentError
from ..ndarray import NDArray
from ..ndarray.interop import array_from_numpy, with_mode_class
from .collectives import as_list, as_numpy, rank_in_group
from .mailbox import Handle
from .process_group import ProcessGroup
from .world import group_of, mailbox_of


def _tag(what: str, tag: Any) -> int:
    if not isinstance(tag, int) or isinstance(tag, bool):
        raise ArgumentError(f"{what}: tag={tag!r}: expected an int")
    return tag


def _other(group: ProcessGroup, what: str, name: str, number: Any) -> int:
    if rank_in_group(group, what, name, number) == group.rank:
        raise ArgumentError(f"{what}: {name}={number}: is this process itself")
    return number


def send(data: NDArray, to: int, tag: int = 0, group: ProcessGroup | None = None) -> None:
    """Send an array to process `to`; returns when it is on its way, whether or not the other one waits for it.

    Args:
        data: of any shape and dtype.
        to: number of the process in the group.
        tag: tells streams of arrays apart; those of one tag arrive in order.
        group: the processes; all by default.

    Raises:
        ArgumentError: no such process. MXNetError: it is gone.
    """
    _send_array("parallel.send", data, to, tag, group)


def _send_array(what: str, data: NDArray, to: int, tag: int, group: ProcessGroup | None) -> None:
    (x,), _ = as_list(what, [data])
    members = group_of(group, what)
    mailbox_of(members).send(as_numpy(x), _other(members, what, "to", to), _tag(what, tag), what)


def isend(data: NDArray, to: int, tag: int = 0, group: ProcessGroup | None = None) -> Handle:
    """`send` that returns a `Handle`; the array may be changed at once.

    Raises:
        ArgumentError: no such process. MXNetError: it is gone.
    """
    _send_array("parallel.isend", data, to, tag, group)
    return Handle(lambda: None, lambda: True)


class RecvHandle(Handle):
    """A receive that was begun.

    Attributes:
        source: number of the sender in the group, None until `wait` has returned.
    """

    source: int | None = None


def irecv(
    source: int | None = None,
    tag: int = 0,
    out: NDArray | None = None,
    group: ProcessGroup | None = None,
    ctx: Context | None = None,
) -> RecvHandle:
    """Start receiving an array; `wait()` of the `RecvHandle` returns it, and its `source` is the sender.

    Args:
        source: number of the sender in the group; any by default.
        tag: that the array was sent with.
        out: array of the same shape and dtype that gets the values.
        group: the processes; all by default.
        ctx: where a new array is put; the current context by default.

    Raises:
        ArgumentError: no such process; from `wait`: the array does not fit into `out`. MXNetError: from `wait`: the
            sender is gone.
    """
    return _post_receive("parallel.irecv", source, tag, out, group, ctx)


def _post_receive(
    what: str, source: int | None, tag: int, out: NDArray | None, group: ProcessGroup | None, ctx: Context | None
) -> RecvHandle:
    members = group_of(group, what)
    if out is not None:
        as_list(what, out)
    if source is None:
        sources = [r for r in range(members.size) if r != members.rank]
        if not sources:
            raise ArgumentError(f"{what}: this process is alone")
    else:
        sources = [_other(members, what, "source", source)]
    mail, number = mailbox_of(members), _tag(what, tag)
    wanted = mail.post_receive(sources, number, None if out is None else np.empty(out.shape, np.dtype(out.dtype)))

    def finish() -> NDArray:
        receipt.source, value = mail.complete_receive(wanted, number, what)
        if out is None:
            return with_mode_class(array_from_numpy(np.array(value), ctx, copy=None))
        array_from_numpy(value, out.context, copy=None).copyto(out)
        return out

    receipt = RecvHandle(finish, lambda: mail.can_complete(wanted, number))
    return receipt


def recv(
    source: int | None = None,
    tag: int = 0,
    out: NDArray | None = None,
    group: ProcessGroup | None = None,
    ctx: Context | None = None,
) -> NDArray:
    """Wait for an array from process `source`, or from any; see `irecv` for the arguments.

    Raises:
        ArgumentError: no such process, or the array does not fit into `out`. MXNetError: the sender is gone.
    """
    return _post_receive("parallel.recv", source, tag, out, group, ctx).wait()


__all__ = ["RecvHandle", "irecv", "isend", "recv", "send"]
