"""Commands that a server takes from workers: so far those of its profiler."""

from __future__ import annotations

import json
import logging
import os

from .. import profiler
from ..core.errors import ArgumentError
from ..profiler.control import control
from ..ps.frame import Message
from ..ps.server import Record

_log = logging.getLogger("dualmx.dist")
OPTIMIZER, PROFILER = 0, 5
CALLS = ("set_config", "set_state", "pause", "resume", "dump")


def handle_command(message: Message) -> Record:
    """Do what a worker asks for by `send_command_to_servers`.

    Raises:
        ArgumentError: an optimizer as a pickle, or no call of the profiler.
    """
    head, body = message.field("head", int), message.field("body", str)
    if head == PROFILER:
        _profile(body)
    elif head == OPTIMIZER:
        raise ArgumentError("command 0: servers take no pickled optimizers; use set_optimizer")
    else:
        _log.warning("server %s: unknown command (%d, %r)", os.environ.get("DMLC_RANK", "?"), head, body[:200])
    return {}, []


def _profile(body: str) -> None:
    try:
        asked = json.loads(body)
        call, arguments = asked["call"], asked["arguments"]
    except (ValueError, TypeError, KeyError):
        raise ArgumentError(f"profiler command: {body[:200]!r}: expected JSON with call and arguments") from None
    if call not in CALLS or not isinstance(arguments, dict):
        raise ArgumentError(f"profiler command: call={call!r}: expected one of {', '.join(CALLS)}")
    if isinstance(arguments.get("filename"), str):
        folder, name = os.path.split(arguments["filename"])
        arguments["filename"] = os.path.join(folder, f"rank{os.environ.get('DMLC_RANK', '0')}_{name}")
    if call == "dump" and not control.unsaved:
        return  # another worker has asked for it already
    try:
        getattr(profiler, call)(**arguments)
    except TypeError as e:
        raise ArgumentError(f"profiler command: {e}") from None


__all__ = ["handle_command"]
