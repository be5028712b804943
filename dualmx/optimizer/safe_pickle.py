"""Read and write the subset of pickle in optimizer-state files, without `pickle`.

Nothing is imported or called while reading: objects become inert `Record`s, which the caller turns into arrays and
optimizers of its choice. Memory is bounded by a small multiple of the file size.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from ..core.errors import ArgumentTypeError, FormatError
from ..core.reader import Content

_MARK = object()
_COST, _COSTS = 24, {b"]": 72, b"}": 80, b"\x94": 120, b"q": 120, b"r": 120, b"R": 200, b"\x81": 200}  # bytes of memory
MAX_DEPTH = 64


@dataclass(eq=False)
class Record:
    """An object in a pickle: its class by name, constructor arguments and state.

    Attributes:
        module, name: where the class lives.
        args: positional constructor arguments.
        state: what the object's `__setstate__` or `__dict__` would get.
    """

    module: str
    name: str
    args: tuple[Any, ...] = ()
    state: Any = None


@dataclass(frozen=True)
class _Global:
    module: str
    name: str


class _Reader:
    """A stack machine for pickle protocols 2 to 5, restricted to plain values and `Record`s."""

    def __init__(self, data: bytes, source: str):
        self.data, self.at = data, 0
        self.content = Content(data, source, "a readable optimizer state")
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def fail(self, problem: str) -> FormatError:
        return self.content.error(problem, self.at)

    def take(self, n: int) -> bytes:
        if n < 0 or self.at + n > len(self.data):
            raise self.fail("the data ends too early")
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, form: str) -> Any:
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))[0]

    def line(self) -> str:
        end = self.data.find(b"\n", self.at)
        text = self.take(end - self.at) if end >= 0 else self.take(-1)
        self.at += 1
        return text.decode("utf-8")

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise self.fail("a value is missing")
        return self.stack.pop()

    def top(self, kind: type) -> Any:
        if not self.stack or self.stack[-1] is _MARK or not isinstance(self.stack[-1], kind):
            raise self.fail(f"expected a {kind.__name__}")
        return self.stack[-1]

    def to_mark(self) -> list[Any]:
        for i in range(len(self.stack) - 1, -1, -1):
            if self.stack[i] is _MARK:
                out = self.stack[i + 1 :]
                del self.stack[i:]
                return out
        raise self.fail("a mark is missing")

    def tuple_of(self, n: int) -> None:
        items = [self.pop() for _ in range(n)]
        self.stack.append(tuple(reversed(items)))

    def pairs(self, items: list[Any]) -> None:
        target = self.top(dict)
        if len(items) % 2:
            raise self.fail("a key without a value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, (str, int, float, bool, type(None))):
                raise self.fail(f"a dictionary key of type {type(key).__name__}")
            target[key] = value

    def construct(self) -> None:
        args, made = self.pop(), self.pop()
        if not isinstance(args, tuple) or not isinstance(made, _Global):
            raise self.fail("expected a class and its arguments")
        where = (made.module, made.name)
        if where in (("builtins", "bytearray"), ("__builtin__", "bytearray")):
            if args == ():
                self.stack.append(b"")
            elif len(args) == 1 and isinstance(args[0], bytes):
                self.stack.append(args[0])
            elif len(args) == 2 and args[1] == "latin-1" and isinstance(args[0], str):
                self.stack.append(args[0].encode("latin-1"))
            else:
                raise self.fail("a bytearray must be made from bytes")
        elif where == ("_codecs", "encode") and len(args) == 2 and args[1] == "latin1" and isinstance(args[0], str):
            self.stack.append(args[0].encode("latin-1"))
        elif where in (("builtins", "bytes"), ("__builtin__", "bytes")) and args == ():
            self.stack.append(b"")
        elif where == ("collections", "OrderedDict") and args == ():
            self.stack.append({})
        else:
            self.stack.append(Record(made.module, made.name, args))

    def run(self) -> Any:
        try:
            while True:
                code = self.take(1)
                if code == b".":
                    return self.pop()
                self.content.reserve(_COSTS.get(code, _COST), "its values", self.at)
                self.step(code)
        except UnicodeError:
            raise self.fail("a text is not UTF-8") from None

    def step(self, code: bytes) -> None:
        push, memo = self.stack.append, self.memo
        match code:
            case b"\x80":
                if self.take(1)[0] not in range(2, 6):
                    raise self.fail("expected pickle protocol 2 to 5")
            case b"\x95":
                self.take(8)
            case b"(":
                push(_MARK)
            case b"}":
                push({})
            case b"]":
                push([])
            case b")":
                push(())
            case b"N":
                push(None)
            case b"\x88":
                push(True)
            case b"\x89":
                push(False)
            case b"K":
                push(self.number("B"))
            case b"M":
                push(self.number("H"))
            case b"J":
                push(self.number("i"))
            case b"\x8a":
                push(int.from_bytes(self.take(self.number("B")), "little", signed=True))
            case b"G":
                push(struct.unpack(">d", self.take(8))[0])
            case b"\x8c":
                push(self.take(self.number("B")).decode("utf-8"))
            case b"X":
                push(self.take(self.number("I")).decode("utf-8"))
            case b"\x8d":
                push(self.take(self.number("Q")).decode("utf-8"))
            case b"C":
                push(self.take(self.number("B")))
            case b"B":
                push(self.take(self.number("I")))
            case b"\x8e" | b"\x96":
                push(self.take(self.number("Q")))
            case b"\x85" | b"\x86" | b"\x87":
                self.tuple_of(code[0] - 0x84)
            case b"t":
                push(tuple(self.to_mark()))
            case b"a":
                item = self.pop()
                self.top(list).append(item)
            case b"e":
                items = self.to_mark()
                self.top(list).extend(items)
            case b"s":
                value, key = self.pop(), self.pop()
                self.pairs([key, value])
            case b"u":
                self.pairs(self.to_mark())
            case b"\x94":
                memo[len(memo)] = self.top(object)
            case b"q":
                memo[self.number("B")] = self.top(object)
            case b"r":
                memo[self.number("I")] = self.top(object)
            case b"h" | b"j":
                slot = self.number("B" if code == b"h" else "I")
                if slot not in memo:
                    raise self.fail(f"no value was stored as {slot}")
                push(memo[slot])
            case b"c":
                push(_Global(self.line(), self.line()))
            case b"\x93":
                name, module = self.pop(), self.pop()
                if not isinstance(name, str) or not isinstance(module, str):
                    raise self.fail("a class without a name")
                push(_Global(module, name))
            case b"R" | b"\x81":
                self.construct()
            case b"b":
                state = self.pop()
                self.top(Record).state = state
            case _:
                raise self.fail(f"opcode {code!r} has no place in such a file")


def read(data: bytes, source: str = "optimizer states") -> Any:
    """Decode `data` into None, bool, int, float, str, bytes, tuple, list, dict and `Record`.

    Raises:
        FormatError: `data` is not such a pickle; the message names `source` and the byte.
    """
    return _Reader(bytes(data), source).run()


class _Writer:
    def __init__(self) -> None:
        self.out: list[bytes] = [b"\x80\x04"]
        self.memo: dict[int, int] = {}
        self.alive: list[Any] = []

    def remember(self, value: Any) -> None:
        slot = self.memo[id(value)] = len(self.memo)
        self.alive.append(value)
        self.out.append(b"r" + struct.pack("<I", slot))

    def text(self, value: str) -> None:
        raw = value.encode("utf-8")
        self.out.append(b"X" + struct.pack("<I", len(raw)) + raw)

    def integer(self, value: int) -> None:
        if -(2**31) <= value < 2**31:
            self.out.append(b"J" + struct.pack("<i", value))
        else:
            raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            self.out.append(b"\x8a" + bytes([len(raw)]) + raw)

    def raw(self, value: bytes) -> None:
        short = len(value) < 2**32
        self.out.append((b"B" + struct.pack("<I", len(value))) if short else (b"\x8e" + struct.pack("<Q", len(value))))
        self.out.append(value)

    def global_(self, module: str, name: str) -> None:
        self.text(module)
        self.text(name)
        self.out.append(b"\x93")

    def value(self, v: Any, path: str, depth: int = 0) -> None:
        if depth > MAX_DEPTH:
            raise ArgumentTypeError(f"{path}: nested too deeply to be saved")
        if id(v) in self.memo:
            self.out.append(b"j" + struct.pack("<I", self.memo[id(v)]))
        elif v is None or isinstance(v, bool):
            self.out.append({None: b"N", True: b"\x88", False: b"\x89"}[v])
        elif isinstance(v, int):
            self.integer(v)
        elif isinstance(v, float):
            self.out.append(b"G" + struct.pack(">d", v))
        elif isinstance(v, str):
            self.text(v)
        elif isinstance(v, bytearray):
            self.global_("builtins", "bytearray")
            self.raw(bytes(v))
            self.out.append(b"\x85R")
        elif isinstance(v, bytes):
            self.raw(v)
        elif isinstance(v, tuple):
            self.items(v, path, depth)
            self.out.append(b"t")
        elif isinstance(v, list):
            self.out.append(b"]")
            self.remember(v)
            self.items(v, path, depth)
            self.out.append(b"e")
        elif isinstance(v, dict):
            self.out.append(b"}")
            self.remember(v)
            self.out.append(b"(")
            for k, item in v.items():
                self.value(k, f"{path} key", depth + 1)
                self.value(item, f"{path}[{k!r}]", depth + 1)
            self.out.append(b"u")
        elif isinstance(v, Record):
            self.global_(v.module, v.name)
            self.value(v.args, path, depth + 1)
            self.out.append(b"\x81")
            self.remember(v)
            if v.state is not None:
                self.value(v.state, path, depth + 1)
                self.out.append(b"b")
        else:
            raise ArgumentTypeError(f"{path}: a {type(v).__module__}.{type(v).__name__} cannot be saved")

    def items(self, v: tuple[Any, ...] | list[Any], path: str, depth: int) -> None:
        self.out.append(b"(")
        for i, item in enumerate(v):
            self.value(item, f"{path}[{i}]", depth + 1)


def write(value: Any, path: str = "states") -> bytes:
    """Encode what `read` returns (and bytearray) as a protocol-4 pickle.

    Raises:
        ArgumentTypeError: a value of another type; the message says where, starting from `path`.
    """
    writer = _Writer()
    writer.value(value, path)
    writer.out.append(b".")
    return b"".join(writer.out)
