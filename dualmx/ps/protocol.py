"""What the processes of a job tell each other and their journals: records, and their form as the JSON of messages.

A record is read by the types of its fields: what is missing or of another type is refused before anybody sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from ..core.errors import FormatError
from ..core.job_status import MOST as MOST_METRICS
from .van.frame import NOTICE, Message

R = TypeVar("R", bound=tuple)
OP = "op"  # the word of a message that tells which record it is
NULL = "sent as null"  # marks fields that are sent where they are None; others are left out then
JSON = frozenset((str, int, float, bool, list, dict, NoneType))
MAX_AWAITED = 64  # workers for whom one waits that are told
_ABSENT: Any = object()


class Limit(NamedTuple):
    """Least and greatest value of a number, or length of a text or list."""

    least: int
    most: int

    def check(self, value: Any) -> Any:
        """Return a value within the limits; `ValueError` for another one."""
        if self.least <= (value if isinstance(value, int | float) else len(value)) <= self.most:
            return value
        raise ValueError


def _of_type(kinds: tuple[type, ...], value: Any) -> Any:
    if type(value) in kinds or (isinstance(value, kinds) and not isinstance(value, bool)):  # which is an int as well
        return value
    raise ValueError


def _reader(hint: Any) -> Callable[[Any], Any]:
    """What makes the value of a field from JSON; it raises `ValueError` if the type `hint` has no such values."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        read, limits = _reader(parts[0]), [one for one in parts[1:] if one != NULL]
        return (lambda value: limits[0].check(read(value))) if limits else read
    if hint in JSON or JSON.issuperset(parts) and origin in (Union, UnionType):
        return partial(_of_type, parts or (hint,))
    if origin in (Union, UnionType):  # of something and None, which is the default: nobody says that
        return _reader(parts[0])
    if origin is list:
        read = _reader(parts[0])
        return lambda value: list(map(read, _of_type((list, tuple), value)))
    if origin is tuple:
        reads = [_reader(part) for part in parts]
        return lambda row: tuple([r(v) for r, v in zip(reads, _of_type((list, tuple), row), strict=True)])
    return hint if issubclass(hint, StrEnum) else partial(parse, hint)


@cache
def _fields(kind: Any) -> list[tuple[str, Callable[[Any], Any], Any, bool]]:
    """Of each field the word in JSON, what reads it, its default, whether None is sent."""
    hints, defaults = get_type_hints(kind, include_extras=True), kind._field_defaults
    return [
        (name.rstrip("_"), _reader(hints[name]), defaults.get(name, _ABSENT), NULL in get_args(hints[name]))
        for name in kind._fields
    ]


def parse(kind: type[R], meta: Any, op: str = "") -> R:
    """Return the record that JSON tells of; other words of it are left alone.

    Raises:
        FormatError: a field is missing or of another type.
    """
    found = []
    for word, read, default, _ in _fields(kind):
        value = meta.get(word, default) if isinstance(meta, dict) else None
        if value is not default or default is _ABSENT:
            try:
                value = read(value)
            except (ValueError, OverflowError):
                shown = None if value is _ABSENT else value
                raise FormatError(f"message {op or kind.__name__!r}: {word}={shown!r:.80}: not as expected") from None
        found.append(value)
    return kind(*found)


def header(record: Any) -> dict[str, Any]:
    """Return the JSON that tells of a record.

    Example:
        >>> header(Rejoin("worker", rank=1, life=7))
        {'op': 'rejoin', 'role': 'worker', 'rank': 1, 'life': 7}
    """
    kind = type(record)
    meta: dict[str, Any] = {OP: _OPS[kind]} if kind in _OPS else {}
    for (word, _, _, is_null_sent), value in zip(_fields(kind), record, strict=True):
        if value is not None or is_null_sent:
            meta[word] = value
    return meta


def notice(record: Any) -> Message:
    """Return the message that tells of a record and has no answer."""
    return Message(NOTICE, 0, header(record))


_OPS: dict[type, str] = {}


class Messages:
    """The records that one reader takes, by their words.

    Example:
        >>> SCHEDULER_REQUESTS.read(Message(1, 1, {"op": "history", "start": 7}))
        HistoryRequest(start=7)
    """

    def __init__(self, kinds: Mapping[str, Any]):
        self.kinds = kinds
        _OPS.update({kind: op for op, kind in kinds.items() if OP not in kind._fields})

    def read(self, message: Message) -> Any:
        """Return the record that a message tells of.

        Raises:
            FormatError: none of these, or its fields are not as expected.
        """
        op = message.field(OP, str)
        if op not in self.kinds:
            raise FormatError(f"unknown request {op!r:.80}")
        return parse(self.kinds[op], message.meta, op)


# -- words


class MemberState(StrEnum):
    """Whether a member is there: `lost` may be there again at any moment."""

    ALIVE = "alive"
    LOST = "lost"
    LEFT = "left"
    DEAD = "dead"


class MemberEvent(StrEnum):
    """What the scheduler tells of a member; `asks`: it wants to take part in exchanges, `waits`: for others."""

    GONE = "gone"
    LOST = "lost"
    BACK = "back"
    NEW = "new"
    ASKS = "asks"
    WAITS = "waits"


Key = int | str
Natural = Annotated[int, Limit(0, (1 << 63) - 1)]
Rank = int
Address = dict  # JSON of where a process listens
Mark = tuple[Annotated[str, Limit(0, 100)], int, int]  # name of an order of samples, epoch, its first batch
Change = tuple[int, list[int], list[int], list[int]]  # batch, ranks that joined, that went, that did not count


# -- what the scheduler is told


class Register(NamedTuple):
    """A process wants to be a member, with the rank `wish` if it can; `life` tells it from others of its rank."""

    role: str
    wish: int
    life: int
    workers: int
    servers: int
    address: Address
    policy: dict | None = None


class Rejoin(NamedTuple):
    """A member has another connection."""

    role: str
    rank: Rank
    life: int


class BarrierRequest(NamedTuple):
    """A worker waits at a barrier; see `WorkerNode.barrier`."""

    name: str
    number: int
    at: int = 0
    idle: bool = False
    skips: bool = False


class BarrierSkip(NamedTuple):
    """A worker that came back goes on behind the barriers up to position `at`."""

    at: int
    early: bool


class BatchRequest(NamedTuple):
    """A worker has ended batch `ended` and asks for the next."""

    ended: int
    marks: list[Mark]


class HistoryRequest(NamedTuple):
    """A newcomer asks for the batches from number `start` on."""

    start: int


class AddressRequest(NamedTuple):
    """A worker listens at an address, and asks for those of all others."""

    address: Address


class GroupRequest(NamedTuple):
    """A worker of an elastic job leaves a group, and asks for the next one for `patience` seconds."""

    group: int
    address: Address
    patience: int | float


class CoordinatorRequest(NamedTuple):
    """A worker asks where XLA's processes meet."""


class StatusRequest(NamedTuple):
    """Somebody asks what the job, or a server, is doing."""


class Leave(NamedTuple):
    """A member takes its leave; a server tells the greatest rank that it knows."""

    newest: int | None = None


class LeaveAck(NamedTuple):
    """A member knows that its leave was taken note of."""


class Crash(NamedTuple):
    """A process is about to end by an error."""

    text: str


class WaitStatus(NamedTuple):
    """What a worker waits in, and for whom."""

    seconds: Annotated[int | float, Limit(-(1 << 63), 1 << 63)]
    in_: str
    for_: Annotated[list[Rank], Limit(0, MAX_AWAITED)]


class Heartbeat(NamedTuple):
    """A worker's sign of life: its clock, counts, the wait under way, figures that were reported."""

    at: Annotated[int | float, Limit(0, (1 << 63) - 1)]
    rounds: Natural
    sent: Natural
    received: Natural
    wait: dict | None = None  # `WaitStatus`
    figures: Annotated[dict, Limit(0, MOST_METRICS)] | None = None


SCHEDULER_REQUESTS = Messages(
    {
        "register": Register, "rejoin": Rejoin, "barrier": BarrierRequest, "past": BarrierSkip, "batch": BatchRequest,
        "history": HistoryRequest, "meet": AddressRequest, "assemble": GroupRequest, "coordinator": CoordinatorRequest,
        "status": StatusRequest, "bye": Leave,
    }
)  # fmt: skip
SCHEDULER_NOTICES = Messages({"bye": Leave, "parted": LeaveAck, "crash": Crash})
SCHEDULER_PINGS = Messages({"pulse": Heartbeat})


# -- what the scheduler tells


class MemberNotice(NamedTuple):
    """What has become of a member; those who know the same are not told."""

    op: MemberEvent
    role: str
    rank: Rank
    text: str = ""
    address: Address | None = None
    dead: bool | None = None


class WaitNotice(NamedTuple):
    """What a request waits for."""

    text: str
    request: int


MEMBER_NOTICES = Messages({**dict.fromkeys(MemberEvent, MemberNotice), "waiting": WaitNotice})


class MemberList(NamedTuple):
    """What a member must know of the others, whatever news it has missed."""

    servers: list[Address]
    gone: list[tuple[str, Rank, str, bool]]
    workers: list[Rank]


class GroupReply(NamedTuple):
    """Workers that exchange arrays, and where they listen."""

    group: int
    workers: list[Rank]
    addresses: list[Address]


class BatchReply(NamedTuple):
    """The next batch, who takes part in it, and whose pushes counted in the one before."""

    batch: int
    members: list[Rank]
    used: list[Rank]


class HistoryPage(NamedTuple):
    """Changes of the members of batches, and the first batch of the next page, 0 for none.

    The page on which the history begins has its first batch `since`, the members `before` that, and marks.
    """

    changes: list[Change]
    next: int
    since: int | None = None
    before: list[Rank] | None = None
    marks: list[Mark] | None = None

    def first_batches(self) -> dict[str, tuple[int, int]]:
        """By the name of an order of samples, the epoch under way and its first batch."""
        return {name: (epoch, first) for name, epoch, first in self.marks or ()}


# -- the scheduler's journal


class JobRecord(NamedTuple):
    """Members that the job has, by role."""

    wanted: dict


class MemberRecord(NamedTuple):
    """A member; see `Member`."""

    role: str
    rank: Rank
    life: int
    address: Address
    state: MemberState
    end: str
    back: bool
    past: int
    early: bool
    skipped: int


class BeginRecord(NamedTuple):
    """All members are there: what `MemberRecord` tells of each."""

    members: list[dict]


class BarrierRecord(NamedTuple):
    """Names of barriers that were passed, and position and number of the last one without a name."""

    passed: list[str]
    last: tuple[int, int]


class BatchRecord(NamedTuple):
    """A batch begins, after one in which the pushes of `used` count."""

    members: list[Rank]
    used: list[Rank]
    marks: list[Mark]


class RoundsRecord(NamedTuple):
    """The batch under way; a page of the history is told with it."""

    number: int
    members: list[Rank]
    used: list[Rank]


SCHEDULER_RECORDS = Messages(
    {
        "job": JobRecord, "begin": BeginRecord, "member": MemberRecord, "barriers": BarrierRecord, "batch": BatchRecord,
        "attendance": RoundsRecord,
    }
)  # fmt: skip
