"""Configure, start, stop and dump the profiler."""

from __future__ import annotations

import atexit
import os
import warnings
from collections.abc import Callable
from typing import Any

from ..compile.events import listeners
from ..core import knobs
from ..core.errors import ArgumentError, ArgumentKeyError, ArgumentTypeError, suggest
from ..ndarray.recorder import engine
from ..ndarray.save_load import waitall
from . import chrome_trace, summary
from .recorder import Recorder

_DEFAULTS: dict[str, Any] = {
    "profile_all": False,
    "profile_symbolic": True,
    "profile_imperative": False,
    "profile_memory": False,
    "profile_api": False,
    "filename": "profile.json",
    "continuous_dump": False,
    "dump_period": 1.0,
    "aggregate_stats": False,
    "profile_process": "worker",
    "mode": "program",
    "max_events": 500_000,
}
_MODES = ("program", "per_op")


class _Profiler:
    """The profiler of this process: its settings, whether it runs, and what it restores when it stops."""

    def __init__(self) -> None:
        self.settings = dict(_DEFAULTS)
        self.recorder = Recorder(_DEFAULTS["max_events"])
        self.running = self.paused = False
        self.was_naive = False
        self.unsaved = False
        self.at_exit = False
        self.store: Any = None  # whose servers can be profiled

    @property
    def active(self) -> bool:
        """True while events are kept."""
        return self.running and not self.paused

    def start(self) -> None:
        """Start to watch; what was recorded before runs first, so that it is not counted."""
        waitall()
        s = self.settings
        self.recorder.single = s["profile_imperative"] or s["mode"] == "per_op"
        self.recorder.times_operators = not self.recorder.single  # which are told of as programs
        self.recorder.memory = s["profile_memory"] or s["profile_all"]
        self.recorder.last_end_by_thread.clear()
        self.was_naive = engine.naive
        if self.recorder.single:
            engine.naive = True
        listeners.append(self.recorder)
        self.unsaved = True

    def stop(self) -> None:
        """Stop to watch; pending work of this thread still counts."""
        try:
            waitall()
        finally:
            engine.naive = self.was_naive
            listeners.remove(self.recorder)


control = _Profiler()


def set_config(**kwargs: Any) -> None:
    """Configure the profiler; call it before `set_state("run")`.

    A flush runs its operations as one program. Until that is compiled, each operator and its backward pass has a time
    in the trace; the parts of a compiled program are not timed. The program's time is shown, and its arguments count
    the operators by name and by user line (where the same sequence of operations was first recorded). With
    `profile_imperative=True` (or `mode="per_op"`) each operation runs by itself while the profiler runs, as under
    `NaiveEngine`, so that each has a measured time, in which nothing is compiled; the whole is slower.

    Args:
        filename: where `dump` writes, `"profile.json"` by default.
        profile_imperative: measure each operation by itself.
        mode: `"program"` or `"per_op"` (the same as `profile_imperative=True`).
        profile_memory, profile_all: also record the bytes in use after each program, on devices that count them.
        max_events: entries of the trace that are kept; later ones are only counted. 500,000 by default.
        profile_process: `"server"` configures the servers of a distributed store instead; see `set_kvstore_handle`.
        profile_symbolic, profile_api, aggregate_stats, continuous_dump, dump_period: accepted; programs and totals are
            always recorded, and the file is written by `dump` and at exit.

    Raises:
        ArgumentError: an unknown setting, or a value out of range.

    Example:
        >>> import dualmx as mx
        >>> mx.profiler.set_config(filename="/tmp/trace.json", mode="program")
    """
    if _forward_to_servers(kwargs.get("profile_process", "worker"), "set_config", kwargs):
        return
    for name, value in kwargs.items():
        if name not in _DEFAULTS:
            raise ArgumentError(f"profiler.set_config: unknown setting {name!r}; {suggest(name, _DEFAULTS)}")
        _check(name, value)
    if control.running and {"mode", "profile_imperative"} & set(kwargs):
        raise ArgumentError("profiler.set_config: stop the profiler before the mode is changed")
    control.settings.update(kwargs)
    control.recorder.capacity = control.settings["max_events"]


def _check(name: str, value: Any) -> None:
    if name == "filename":
        if not isinstance(value, (str, os.PathLike)):
            raise ArgumentTypeError(f"profiler.set_config: filename={value!r}: expected a path")
    elif name == "mode" and value not in _MODES:
        raise ArgumentError(f"profiler.set_config: mode={value!r}: expected one of {', '.join(_MODES)}")
    elif name == "profile_process":
        _check_process(value)
    elif name == "max_events" and (not isinstance(value, int) or value < 1):
        raise ArgumentError(f"profiler.set_config: max_events={value!r}: expected an integer of 1 or more")


def _check_process(value: Any) -> None:
    if value not in ("worker", "server"):
        raise ArgumentKeyError(f"profiler: profile_process={value!r}: expected 'worker' or 'server'")


def set_kvstore_handle(handle: Any) -> None:
    """Set the store whose servers `profile_process="server"` means; distributed stores call this themselves.

    A server writes its trace to the configured file with `rank<r>_` before its name. Any worker can ask for it; it is
    enough that one does.

    Args:
        handle: a distributed store, or None.
    """
    control.store = handle


def _forward_to_servers(process: Any, call: str, arguments: dict[str, Any]) -> bool:
    """Forward a call to the servers if it is for them."""
    _check_process(process)
    if process != "server":
        return False
    if control.store is None:
        raise ArgumentError("profiler: profile_process='server': there is no distributed store whose servers are meant")
    given = {k: os.fspath(v) if isinstance(v, os.PathLike) else v for k, v in arguments.items()}
    given.pop("profile_process", None)
    control.store.profile_servers(call, given)
    return True


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Start (`"run"`) or stop (`"stop"`) the profiler. While it runs, each flush is waited for."""
    if state not in ("run", "stop"):
        raise ArgumentKeyError(f"profiler.set_state: state={state!r}: expected 'run' or 'stop'")
    if _forward_to_servers(profile_process, "set_state", {"state": state}):
        return
    if (state == "run") == control.running:
        return
    if state == "run":
        control.start()
        control.running, control.paused = True, False
        return
    control.running = False
    if not control.paused:
        control.stop()


def pause(profile_process: str = "worker") -> None:
    """Record nothing until `resume`."""
    if _forward_to_servers(profile_process, "pause", {}):
        return
    if control.active:
        control.paused = True
        control.stop()


def resume(profile_process: str = "worker") -> None:
    """Resume recording after `pause`."""
    if _forward_to_servers(profile_process, "resume", {}):
        return
    if control.running and control.paused:
        control.start()
        control.paused = False


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Write the Chrome trace to the configured file.

    Args:
        finished: forget the events afterwards; otherwise the next `dump` writes them again with those that follow.
        profile_process: `"server"` lets the servers of a distributed store write theirs.

    Raises:
        MXNetError: the file cannot be written; the events are kept.
    """
    if _forward_to_servers(profile_process, "dump", {"finished": bool(finished)}):
        return
    if control.active:
        waitall()
    chrome_trace.write(control.recorder, os.fspath(control.settings["filename"]))
    control.unsaved = control.active
    if finished:
        control.recorder.clear()


def dumps(reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False) -> str:
    """Return the totals per name.

    Args:
        reset: start the totals again.
        format: `"table"` or `"json"`.
        sort_by: `"total"`, `"avg"`, `"min"`, `"max"` or `"count"`.
        ascending: smallest first.
    """
    writers: dict[str, Callable[[Recorder, str, bool], str]] = {"table": summary.summary_table, "json": summary.as_json}
    if format not in writers:
        raise ArgumentError(f"profiler.dumps: format={format!r}: expected 'table' or 'json'")
    if sort_by not in summary.KEYS:
        raise ArgumentError(f"profiler.dumps: sort_by={sort_by!r}: expected one of {', '.join(summary.KEYS)}")
    if control.active:
        waitall()
    found = writers[format](control.recorder, sort_by, ascending)
    if reset:
        control.recorder.forget_totals()
    return found


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """Deprecated form of `set_config`; `mode` is `"symbolic"`, `"imperative"`, `"api"`, `"memory"` or `"all"`."""
    _deprecated("profiler_set_config", "set_config")
    set_config(**{f"profile_{mode}": True, "filename": filename})


def profiler_set_state(state: str = "stop") -> None:
    """Deprecated form of `set_state`."""
    _deprecated("profiler_set_state", "set_state")
    set_state(state)


def dump_profile() -> None:
    """Deprecated form of `dump`."""
    _deprecated("dump_profile", "dump")
    dump(True)


def _deprecated(old: str, new: str) -> None:
    warnings.warn(f"profiler.{old} is deprecated; use profiler.{new}", DeprecationWarning, stacklevel=3)


def start_with_process() -> None:
    """Profile from now to the end of the process, and write the file then (`MXNET_PROFILER_AUTOSTART=1`)."""
    if knobs.PROFILER_MODE.read() == "1":
        set_config(profile_imperative=True)
    set_state("run")
    if not control.at_exit:
        control.at_exit = True
        atexit.register(_write_at_exit)


def _write_at_exit() -> None:
    # A forked child inherits the events, but they are not its own.
    if control.unsaved and control.recorder.owner == os.getpid():
        set_state("stop")
        dump()


__all__ = [
    "dump", "dump_profile", "dumps", "pause", "profiler_set_config", "profiler_set_state", "resume", "set_config",
    "set_kvstore_handle", "set_state", "start_with_process",
]  # fmt: skip
