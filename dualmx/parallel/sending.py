"""Arrays from one process to another."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.context import Context
from ..core.errors import ArgumentError
from ..ndarray import NDArray
from .borrow import fresh, given
from .collectives import listed, member, values_of
from .group import Group
from .mail import Handle
from .world import group_of, world_mail


def _tag(what: str, tag: Any) -> int:
    if not isinstance(tag, int) or isinstance(tag, bool):
        raise ArgumentError(f"{what}: tag={tag!r}: expected an int")
    return tag


def _other(group: Group, what: str, name: str, number: Any) -> int:
    if member(group, what, name, number) == group.rank:
        raise ArgumentError(f"{what}: {name}={number}: is this process itself")
    return number


def send(data: NDArray, to: int, tag: int = 0, group: Group | None = None) -> None:
    """Send an array to process `to`; returns when it is on its way, whether or not the other one waits for it.

    Args:
        data: of any shape and dtype.
        to: number of the process in the group.
        tag: tells streams of arrays apart; those of one tag arrive in order.
        group: the processes; all by default.

    Raises:
        ArgumentError: no such process. MXNetError: it is gone.
    """
    _sent("parallel.send", data, to, tag, group)


def _sent(what: str, data: NDArray, to: int, tag: int, group: Group | None) -> None:
    (x,), _ = listed(what, [data])
    members = group_of(group, what)
    world_mail(members).send(values_of(x), _other(members, what, "to", to), _tag(what, tag), what)


def isend(data: NDArray, to: int, tag: int = 0, group: Group | None = None) -> Handle:
    """`send` that returns a `Handle`; the array may be changed at once.

    Raises:
        ArgumentError: no such process. MXNetError: it is gone.
    """
    _sent("parallel.isend", data, to, tag, group)
    return Handle(lambda: None, lambda: True)


class Receipt(Handle):
    """A receive that was begun.

    Attributes:
        source: number of the sender in the group, None until `wait` has returned.
    """

    source: int | None = None


def irecv(
    source: int | None = None,
    tag: int = 0,
    out: NDArray | None = None,
    group: Group | None = None,
    ctx: Context | None = None,
) -> Receipt:
    """Begin to receive an array; `wait()` of the `Receipt` returns it, and its `source` tells who sent it.

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
    return _received("parallel.irecv", source, tag, out, group, ctx)


def _received(
    what: str, source: int | None, tag: int, out: NDArray | None, group: Group | None, ctx: Context | None
) -> Receipt:
    members = group_of(group, what)
    if out is not None:
        listed(what, out)
    if source is None:
        sources = [r for r in range(members.size) if r != members.rank]
        if not sources:
            raise ArgumentError(f"{what}: this process is alone")
    else:
        sources = [_other(members, what, "source", source)]
    mail, number = world_mail(members), _tag(what, tag)
    wanted = mail.want(sources, number, None if out is None else np.empty(out.shape, np.dtype(out.dtype)))

    def finish() -> NDArray:
        receipt.source, value = mail.fetch(wanted, number, what)
        if out is None:
            return fresh(np.array(value), ctx)
        given(value, out.context).copyto(out)
        return out

    receipt = Receipt(finish, lambda: mail.ready(wanted, number))
    return receipt


def recv(
    source: int | None = None,
    tag: int = 0,
    out: NDArray | None = None,
    group: Group | None = None,
    ctx: Context | None = None,
) -> NDArray:
    """Wait for an array from process `source`, or from any; see `irecv` for the arguments.

    Raises:
        ArgumentError: no such process, or the array does not fit into `out`. MXNetError: the sender is gone.
    """
    return _received("parallel.recv", source, tag, out, group, ctx).wait()


__all__ = ["Receipt", "irecv", "isend", "recv", "send"]
