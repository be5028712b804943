"""Remote procedure calls by registered name, with plain data and arrays."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.deprecated import former_names
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, suggest
from ..core.module_alias import load
from .mailbox import Handle
from .object_codec import decode, encode
from .process_group import ProcessGroup
from .world import new_group, rank, size

_functions: dict[str, Callable[..., Any]] = {}
# Modules that register functions of a prefix, and that a process which only answers may not have imported.
_LATER = {"block": "gluon.parallel.remote_block"}
_KINDS: dict[str, type[MXNetError]] = {"ArgumentError": ArgumentError, "ArgumentTypeError": ArgumentTypeError}


def register(name: str, function: Callable[..., Any] | None = None) -> Any:
    """Let other processes call a function; without `function`, a decorator.

    The function is called in a thread of its own, with what `call` was given: numbers, texts, arrays, and lists,
    tuples, sets and dicts of them. It returns such values, too. Functions are never sent.

    Raises:
        ArgumentError: another function has the name. ArgumentTypeError: not a function.

    Example:
        >>> import dualmx as mx
        >>> @mx.parallel.rpc.register("add")
        ... def add(a, b):
        ...     return a + b
        >>> mx.parallel.rpc.call(0, "add", 1, mx.nd.ones((2,))).asnumpy().tolist()
        [2.0, 2.0]
    """
    if function is None:
        return lambda f: register(name, f)
    if not callable(function):
        raise ArgumentTypeError(f"rpc.register: {name!r}: a {type(function).__name__}: expected a function")
    if name in _functions and _origin(_functions[name]) != _origin(function):
        raise ArgumentError(f"rpc.register: {name!r}: another function has that name")
    _functions[name] = function
    return function


def _origin(function: Callable[..., Any]) -> tuple[str, str]:
    """Where a function was written: the same for a module that is run once more."""
    return str(getattr(function, "__module__", "")), str(getattr(function, "__qualname__", ""))


def registered(name: str) -> Callable[..., Any]:
    """Return the function of a name.

    Raises:
        ArgumentError: there is none.
    """
    if name not in _functions and name.split(".")[0] in _LATER:
        load(_LATER[name.split(".")[0]])
    if name not in _functions:
        raise ArgumentError(f"no function {name!r} is registered; {suggest(name, _functions)}")
    return _functions[name]


class Reference:
    """Reference to a value in the process that made it; functions there receive the value.

    Attributes:
        owner: number of the process.
        number: of the value there.
    """

    def __init__(self, owner: int, number: int):
        self.owner, self.number = owner, number

    def __repr__(self) -> str:
        return f"Reference(owner={self.owner}, number={self.number})"

    def get(self) -> Any:
        """Return a copy of the value.

        Raises:
            MXNetError: it was released, cannot be sent, or its process is gone.
        """
        return call(self.owner, "rpc.value", self)

    def release(self) -> None:
        """Let the owner forget the value."""
        call(self.owner, "rpc.release", self.number)


class _Service:
    """What this process does for others."""

    def __init__(self) -> None:
        self.group: ProcessGroup | None = None
        self.thread: threading.Thread | None = None
        self.over = False
        self.numbers = itertools.count()
        self.values: dict[int, Any] = {}
        self.sending = threading.Lock()

    def store_value(self, value: Any) -> int:
        """Return the number under which a value is kept from now on."""
        number = next(self.numbers)
        self.values[number] = value
        return number

    def value(self, number: int) -> Any:
        """Return a value that is kept."""
        if number not in self.values:
            raise ArgumentError(f"rpc: process {rank()} has no value {number}; it was released")
        return self.values[number]

    def handle_call(self, request: dict[str, Any]) -> np.ndarray:
        """Call the requested function, and return the reply."""
        name = str(request.get("name"))
        try:
            args, named = request["args"], request["named"]
            for k in request["kept"]:
                table = args if isinstance(k, int) else named
                table[k] = self.value(table[k])
            result = registered(name)(*args, **named)
            return encode({"value": self.store_value(result) if request["keep"] else result}, f"result of {name!r}")
        except Exception as e:  # whatever a function raises is told to the caller
            text = str(e) if isinstance(e, MXNetError) else f"{type(e).__name__}: {e}"
            return encode({"error": f"process {rank()}, {name!r}: {text}", "kind": type(e).__name__}, "rpc")

    def run(self, group: ProcessGroup) -> None:
        """Serve until stopped, or all others are gone."""
        peers = group.peers
        assert peers is not None
        channel, members = f"{group.name}:rpc", range(group.size)
        while not self.over:
            if not peers.can_receive(channel, group.ranks):
                with peers.changed:
                    peers.changed.wait(0.1)
                continue
            try:
                member, data = group.receive(members, channel, "rpc")
                request = decode(data)
                if isinstance(request, dict):
                    said = self.handle_call(request)
                    group.send(member, f"{group.name}:{request.get('reply')}:answer", _head(said), said)
            except MXNetError:
                # The caller is gone, or what came was no request; others may still come.
                if all(r in peers.lost_ranks for r in group.ranks if r != rank()):
                    return


_service = _Service()


def _head(data: np.ndarray) -> dict[str, Any]:
    return {"d": data.dtype.name, "s": list(data.shape)}


def start() -> None:
    """Begin to answer calls of other processes; all processes of the job do this, after `parallel.init`.

    Example:
        >>> start()
        >>> stop()
    """
    if _service.group is None and size() > 1:
        group = _service.group = new_group()
        _service.over = False
        _service.thread = threading.Thread(target=_service.run, args=(group,), name="dualmx-rpc", daemon=True)
        _service.thread.start()


def stop() -> None:
    """Serve until all processes have stopped, then drop kept values.

    Raises:
        MXNetError: a process is gone.
    """
    group, thread = _service.group, _service.thread
    if group is not None and thread is not None:
        try:
            group.barrier("rpc.stop")
        finally:
            _service.over = True
            thread.join(5)
            _service.group = _service.thread = None
    _service.values.clear()


def call_async(to: int, name: str, *args: Any, **named: Any) -> Handle:
    """Begin to call a function in process `to`; `wait()` of the `Handle` returns the result. See `call`."""
    return _send_call(to, name, args, named, False)


def call(to: int, name: str, *args: Any, **named: Any) -> Any:
    """Call a function of another process, and wait for its result.

    A process answers one call at a time, in the order in which they come.

    Args:
        to: number of the process; may be this one.
        name: that the function is registered with there.
        args, named: numbers, texts, arrays, containers of them; references to values of process `to`.

    Raises:
        ArgumentError: no such process or function. ArgumentTypeError: something that cannot be sent.
        MXNetError: the function raised an error, or the process is gone.
    """
    return _send_call(to, name, args, named, False).wait()


def call_remote(to: int, name: str, *args: Any, **named: Any) -> Reference:
    """Call a function of another process, and leave its result there; see `call`.

    Example:
        >>> import dualmx as mx
        >>> _ = mx.parallel.rpc.register("table", lambda n: list(range(n)))
        >>> _ = mx.parallel.rpc.register("length", len)
        >>> table = mx.parallel.rpc.call_remote(0, "table", 5)
        >>> mx.parallel.rpc.call(0, "length", table), table.get()
        (5, [0, 1, 2, 3, 4])
    """
    return Reference(to, _send_call(to, name, args, named, True).wait())


def _send_call(to: int, name: str, args: Sequence[Any], named: dict[str, Any], keep: bool) -> Handle:
    what = f"rpc.call({to}, {name!r})"
    if not isinstance(to, int) or not 0 <= to < size():
        raise ArgumentError(f"{what}: expected the number of a process below {size()}")
    places = [*enumerate(args), *named.items()]
    references = [(k, v) for k, v in places if isinstance(v, Reference)]
    for _, v in references:
        if v.owner != to:
            raise ArgumentError(f"{what}: {v!r} belongs to another process")
    plain = {k: v.number if isinstance(v, Reference) else v for k, v in places}
    number = next(_service.numbers)
    request = {
        "name": name,
        "args": [plain[k] for k in range(len(args))],
        "named": {k: plain[k] for k in named},
        "kept": [k for k, _ in references],
        "keep": keep,
        "reply": number,
    }
    data = encode(request, what)
    group = _service.group
    if group is None:
        if size() > 1:
            raise MXNetError(f"{what}: call rpc.start() first, in all processes")
        reply = _service.handle_call(decode(data))
        return Handle(lambda: _decode_result(reply), lambda: True)
    with _service.sending:
        group.send(to, f"{group.name}:rpc", _head(data), data)
    channel = f"{group.name}:{number}:answer"

    def finish() -> Any:
        return _decode_result(group.receive([to], channel, what)[1])

    def ready() -> bool:
        assert group.peers is not None
        return group.peers.can_receive(channel, [group.ranks[to]])

    return Handle(finish, ready)


def _decode_result(reply: np.ndarray) -> Any:
    found = decode(reply)
    if "error" in found:
        raise _KINDS.get(found["kind"], MXNetError)(found["error"])
    return found["value"]


def _value(value: Any) -> Any:
    return value


register("rpc.value", _value)
register("rpc.release", lambda number: _service.values.pop(number, None) and None)

__all__ = ["Reference", "call", "call_async", "call_remote", "register", "registered", "start", "stop"]

__getattr__ = former_names(__name__, {"begin": "call_async", "keep": "call_remote"})
