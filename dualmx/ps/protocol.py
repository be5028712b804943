"""What the processes of a job tell each other and their journals: records, and their form as the JSON of messages.

A record is read by the types of its fields: what is missing or of another type is refused before anybody sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache, partial
from itertools import product
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from ..core.errors import FormatError
from ..core.job_status import MAX_METRICS
from .van.frame import NOTICE, Message

R = TypeVar("R", bound=tuple)
OP = "op"  # the word of a message that tells which record it is
NULL = "sent as null"  # marks fields that are sent where they are None; others are left out then
JSON = frozenset((str, int, float, bool, list, dict, NoneType))
MAX_AWAITED = 64  # workers for whom one waits that are told
UNCHANGED: Any = object()  # stands for a field that is left out, where None says something
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
        kinds = [get_args(part) or (part,) for part in parts]
        plain = (
            set(product(*kinds)) if JSON.issuperset(sum(kinds, ())) else ()
        )  # types of rows that are good as they are
        reads = [_reader(part) for part in parts]
        return lambda row: (
            tuple(row)
            if type(row) is list and tuple(map(type, row)) in plain
            else tuple([read(value) for read, value in zip(reads, _of_type((list, tuple), row), strict=True)])
        )
    if hint is Any:
        return partial(_of_type, tuple(JSON))
    return hint if issubclass(hint, StrEnum) else partial(parse, hint)


class _Field(NamedTuple):
    """A field of a record: its word in JSON, what reads it, its default."""

    word: str
    read: Callable[[Any], Any]
    default: Any
    is_null_sent: bool


@cache
def _fields(kind: Any) -> list[_Field]:
    hints, defaults = get_type_hints(kind, include_extras=True), kind._field_defaults
    return [
        _Field(
            name.rstrip("_"), _reader(hints[name]), defaults.get(name, _ABSENT),
            name not in defaults or NULL in get_args(hints[name]),
        )
        for name in kind._fields
    ]  # fmt: skip


def parse(kind: type[R], meta: Any, op: str = "") -> R:
    """Return the record that JSON tells of; other words of it are left alone.

    Raises:
        FormatError: a field is missing or of another type.
    """
    found = []
    for word, read, default, _ in _fields(kind):
        value = meta.get(word, default) if isinstance(meta, dict) else _ABSENT
        try:
            found.append(value if value is default and value is not _ABSENT else read(value))
        except (ValueError, OverflowError):
            shown = None if value is _ABSENT else value
            raise FormatError(f"message {op or kind.__name__!r}: {word}={shown!r:.80}: not as expected") from None
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
        if value is not UNCHANGED and (value is not None or is_null_sent):
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
Factor = tuple[Key, float, float, str]  # key, lr_mult, wd_mult, name
Change = tuple[int, list[int], list[int], list[int]]  # batch, ranks that joined, that went, that did not count


# -- what the scheduler is told


class Register(NamedTuple):
    """A process wants to be a member, of rank `wanted_rank` if it can; `life` tells it from others of its rank."""

    role: str
    wanted_rank: int
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
    """A worker of an elastic job leaves a group, and asks for the next one for `timeout` seconds."""

    group: int
    address: Address
    timeout: int | float


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
    figures: Annotated[dict, Limit(0, MAX_METRICS)] | None = None


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


# -- what servers are told


class PutMode(StrEnum):
    """Whether a slice is stored only if it is not there yet, anew, or as another value of what is there."""

    INIT = "init"
    FRESH = "fresh"
    RESET = "reset"


class PushOp(StrEnum):
    """Whether the answer to a push is empty, or has the values after it."""

    PUSH = "push"
    PUSHPULL = "pushpull"


class Departure(StrEnum):
    """Why a worker sends nothing any more: it leaves the job, moves to another group, or ends by an error."""

    LEAVE = "bye"
    MOVE = "moves"
    CRASH = "crash"


class Hello(NamedTuple):
    """A worker has another connection."""

    rank: Rank
    life: int


class Open(NamedTuple):
    """Make a store, unless it is there; `back`: the worker takes the place of one that died. See `Store`."""

    store: int
    sync: bool
    slack: Annotated[Annotated[int, Limit(0, 1 << 62)] | None, NULL] = None
    back: bool = False


class Put(NamedTuple):
    """Store slices: key, number, dtype, elements, shape of the whole array; `tables` are row_sparse."""

    store: int
    parts: list[tuple[Key, int, str, int, list]]
    mode: PutMode = PutMode.INIT
    tables: list[Key] | None = None
    step: int | None = None


class Push(NamedTuple):
    """Gradients of slices: key, number, round; `apart`: of as many terms, `code`: packed, see `Codec`."""

    op: PushOp
    store: int
    parts: list[tuple[Key, int, int]]
    apart: int | None = None
    code: tuple[str, float] | None = None
    priority: int | None = None


class PushRows(NamedTuple):
    """Gradients of rows of slices: key, number, round, number of rows."""

    store: int
    parts: list[tuple[Key, int, int, int]]
    priority: int | None = None


class Pull(NamedTuple):
    """The values of slices after a round: key, number, round."""

    store: int
    parts: list[tuple[Key, int, int]]
    priority: int | None = None


class PullRows(NamedTuple):
    """Rows of slices after a round: key, number, round, number of rows or `ALL`."""

    store: int
    parts: list[tuple[Key, int, int, int]]
    priority: int | None = None


class Drop(NamedTuple):
    """Forget slices: key, number."""

    store: int
    parts: list[tuple[Key, int]]
    step: int | None = None


class BatchEnd(NamedTuple):
    """A batch of an elastic job is over, in which the pushes of `used` count."""

    store: int
    batch: int
    used: list[Rank]


class OptimizerRequest(NamedTuple):
    """What concerns a store's optimizer, and is read by who knows optimizers."""

    op: str
    store: int
    step: int | None = None


class SetOptimizer(NamedTuple):
    """Update by an optimizer from now on; one that is a `default` only where there is none."""

    store: int
    config: Any
    factors: list[Factor]
    order: list[Key]
    step: int | None = None
    default: bool = False


class UpdateOptimizer(NamedTuple):
    """Settings that have changed."""

    store: int
    settings: Any
    factors: list[Factor]
    schedule: Annotated[Any, NULL] = UNCHANGED
    order: list[Key] | None = None


class StatesRequest(NamedTuple):
    """A worker asks for the optimizer's states."""

    store: int


class LoadStates(NamedTuple):
    """States of the optimizer: key, number, count of updates, form of the state."""

    store: int
    states: list[tuple[Key, int, int, Any]]
    num_update: int
    step: int | None = None


class Command(NamedTuple):
    """See `KVStore.send_command_to_servers`."""

    store: int
    head: int
    body: str


OPTIMIZER_REQUESTS = Messages(
    {
        "optimizer": SetOptimizer, "set": UpdateOptimizer, "states": StatesRequest, "load": LoadStates,
        "command": Command,
    }
)  # fmt: skip
NEVER_DROPPED = ("register", "rejoin", "hello", "bye")  # by these, processes introduce themselves and take leave
SERVER_NOTICES = Messages({"bye": Leave, "crash": Crash})
ROUND_OPS = ("push", "push rows", "pushpull", "pull", "pull rows")
STORE_CHANGES = {"open": Open, "put": Put, "drop": Drop, "end": BatchEnd}
STORE_CHANGES |= dict.fromkeys(OPTIMIZER_REQUESTS.kinds, OptimizerRequest)
SERVER_REQUESTS = Messages(
    {
        "hello": Hello, "status": StatusRequest, "push": Push, "pushpull": Push, "push rows": PushRows, "pull": Pull,
        "pull rows": PullRows, **STORE_CHANGES,
    }
)  # fmt: skip


# -- a server's journal


class ClientRecord(NamedTuple):
    """Numbers of the last requests of a worker that were answered."""

    rank: Rank
    life: int
    numbers: list[int]


class RemovalRecord(NamedTuple):
    """The job goes on without a worker."""

    rank: Rank
    text: str


class StoreRecord(NamedTuple):
    """A store: whether keys are in one piece, one-time preparations by rank, the last batch."""

    store: int
    is_unsliced: bool
    steps: list[tuple[Rank, int]]
    batch: int


class ShardRecord(NamedTuple):
    """A slice; `two`: its value before the last round is here as well, `seen`: last rounds by rank. See `Shard`."""

    store: int
    key: Key
    number: int
    dtype: str
    shape: list[int]
    two: bool
    closed: int
    seen: list[tuple[Rank, int]]
    table: bool


class ContributionRecord(NamedTuple):
    """What a worker has pushed for a round that is not over; of some rows if it tells how many."""

    store: int
    key: Key
    number: int
    round: int
    rank: Rank
    dtype: str
    rows: int | None = None


class SumRecord(NamedTuple):
    """Rounds that are over: key, number, round, rank or -1, dtype, and of some rows how many."""

    store: int
    parts: list[list]


class ClientRequest(NamedTuple):
    """Whose request a record was: rank, life, number."""

    by: tuple[Rank, int, int] | None = None


SERVER_RECORDS = Messages(
    {
        "answered": ClientRecord, "exclude": RemovalRecord, "prepared": StoreRecord, "slice": ShardRecord,
        "seated": ContributionRecord, "closed": SumRecord, "push": Push, "push rows": PushRows,
        **STORE_CHANGES,
    }
)  # fmt: skip


# -- a worker's journal


class ResidualRecord(NamedTuple):
    """What compression keeps back of a push; the numbers are with it."""

    key: Key
    round: int
    shape: list[int]


RESIDUAL_RECORDS = Messages({"total": ResidualRecord})


# -- what workers tell each other


class PeerHello(NamedTuple):
    """A worker has connected, as a rank of a group."""

    rank: Rank
    group: int = 0


class PeerMessage(NamedTuple):
    """Something on a channel; the channel's readers know what else is said."""

    c: str


class PeerCancel(NamedTuple):
    """What others wait for on a channel will not come."""

    c: str
    text: str


class PeerLeave(NamedTuple):
    """A worker leaves the job, moves to another group, or is about to end by an error."""

    op: Departure
    text: str


PEER_NOTICES = Messages(
    {"peer": PeerHello, "to": PeerMessage, "off": PeerCancel, **dict.fromkeys(Departure, PeerLeave)}
)
