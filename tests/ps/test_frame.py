"""Frames, slices and words on the wire."""

from __future__ import annotations

import json
import random
import time
import zlib
from typing import Any

import numpy as np
import pytest
import xxhash

from dualmx.core.errors import FormatError
from dualmx.ps.codecs import Codec
from dualmx.ps.sharding import MAX_SLICE, home_server, slice_key
from dualmx.ps.van import frame
from dualmx.ps.van.frame import Decoder, Message, encode, encode_for_link
from dualmx.ps.van.socket_van import SocketVan


def decode(raw: bytes, chunk: int = 7) -> list[Message]:
    decoder, found = Decoder(), []
    while raw:
        room = decoder.buffer()
        n = min(room.nbytes, chunk, len(raw))
        room[:n] = raw[:n]
        raw = raw[n:]
        message = decoder.advance(n)
        if message is not None:
            found.append(message)
    assert decoder.idle
    return found


@pytest.mark.parametrize("fast", [False, True])
def test_frames_come_back_as_they_were_sent(fast: bool) -> None:
    numbers = np.arange(20, dtype=np.float32)
    first = Message(frame.REQUEST, 7, {"op": "push", "key": "wéight"}, (numbers[:5].view(np.uint8), numbers[5:].data))
    second = Message(frame.PING)
    raw = b"".join(b"".join(encode(m, fast)) for m in (first, second))
    one, two = decode(raw)
    assert (one.kind, one.request, one.meta) == (frame.REQUEST, 7, first.meta)
    assert np.frombuffer(one.data(), np.float32).tolist() == numbers.tolist()
    assert (two.kind, two.meta, list(two.payload)) == (frame.PING, {}, [])


def test_a_flipped_bit_anywhere_is_noticed() -> None:
    raw = b"".join(encode(Message(frame.NOTICE, 3, {"op": "x"}, (np.arange(4.0),))))
    for at in range(len(raw)):
        damaged = bytearray(raw)
        damaged[at] ^= 1 << at % 8
        with pytest.raises(
            FormatError, match="not a frame of dualmx|damaged frame: the (header|content) does not match its checksum"
        ):
            decode(bytes(damaged), 1000)


def test_random_bytes_are_refused_at_the_first_header() -> None:
    rng = random.Random(0)
    for _ in range(200):
        with pytest.raises(FormatError, match="not a frame of dualmx"):
            decode(rng.randbytes(200), 200)


def header(version: int = frame.VERSION, kind: int = 0, meta: int = 0, payload: int = 0) -> bytes:
    head = frame.HEADER.pack(frame.MAGIC, version, kind, 0, 0, meta, payload, 0)
    return head + zlib.crc32(head).to_bytes(4, "little")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (header(version=2), "version 2"),
        (header(kind=9), "out of bounds"),
        (header(meta=frame.MAX_META + 1), "out of bounds"),
        (header(payload=frame.MAX_PAYLOAD + 1), "out of bounds"),
    ],
)
def test_headers_out_of_bounds_allocate_nothing(raw: bytes, text: str) -> None:
    decoder = Decoder()
    decoder.buffer()[:] = raw
    with pytest.raises(FormatError, match=text):
        decoder.advance(len(raw))


@pytest.mark.parametrize("text", [b"[1]", b"nonsense", b"[" * 100_000])
def test_meta_data_must_be_an_object(text: bytes) -> None:
    head = frame.HEADER.pack(frame.MAGIC, frame.VERSION, frame.NOTICE, 0, 0, len(text), 0, zlib.crc32(text))
    with pytest.raises(FormatError, match="JSON"):
        decode(head + zlib.crc32(head).to_bytes(4, "little") + text, 10_000)


def test_too_large_to_send() -> None:
    with pytest.raises(FormatError, match="at most"):
        encode(Message(frame.NOTICE, 0, {"text": "x" * (frame.MAX_META + 1)}))


def test_values_of_meta_data_are_checked() -> None:
    message = Message(frame.NOTICE, 0, json.loads('{"op": "x", "rank": true, "store": "0"}'))
    for name in ("rank", "store", "missing"):
        with pytest.raises(FormatError, match=name):
            message.field(name, int)


@pytest.mark.parametrize("size", [1, 2, 5, 7, 8, 9, 100, 1001])
@pytest.mark.parametrize("servers", [1, 2, 3, 7])
def test_slices_cover_an_array_once(size: int, servers: int) -> None:
    slices = slice_key("w", size, 4, servers, bound=8)
    assert [s.number for s in slices] == list(range(len(slices)))
    assert slices[0].start == 0 and slices[-1].stop == size
    assert all(a.stop == b.start for a, b in zip(slices, slices[1:], strict=False))
    assert all(s.stop > s.start and 0 <= s.server < servers for s in slices)
    assert len(slices) == (min(servers, size) if size >= 8 else 1)
    assert len(slice_key("w", size, 4, servers, bound=8, unsliced=True)) == 1


def test_placement_follows_mxnet_for_int_keys_and_bounds_slices() -> None:
    assert [home_server(k, 2) for k in range(4)] == [0, 1, 0, 1]
    huge = slice_key(3, 100_000_000, 4, 1, bound=10)
    assert max(s.stop - s.start for s in huge) * 4 <= MAX_SLICE + 4


def test_two_bit_words() -> None:
    values = np.array([0.5, 0, -0.5, 0.5, 0, 0, 0, -0.5, 0.5], np.float32)
    code = Codec("2bit", 0.5)
    words = code.pack(values)
    assert words.tolist() == [0b11001011, 0b00000010, 0b11000000, 0] and code.size(9) == 4 and code.size(17) == 8
    assert code.unpack(words, 9).tolist() == values.tolist()


@pytest.mark.parametrize("n", [1, 31, 32, 33])
def test_one_bit_and_half_words(n: int) -> None:
    values = np.where(np.arange(n) % 3 == 0, 1, -1).astype(np.float32)
    one, half = Codec("1bit", 0.0), Codec("fp16", 0.0)
    words = one.pack(values)
    assert words.nbytes == one.size(n) == -(-n // 32) * 4 and one.unpack(words, n).tolist() == values.tolist()
    assert words[0] == (0b10010010 if n > 1 else 0b10000000)
    assert half.pack(values * 0.1).nbytes == 2 * n
    assert (half.unpack(half.pack(values * 0.1), n) == (values * 0.1).astype(np.float16)).all()


@pytest.mark.parametrize("fast", [True, False])
def test_requests_for_a_slice_are_known_again(fast: bool) -> None:
    """What is known but for its round says the same as JSON that is read, and what only looks like it does not."""
    plain = {"op": "pushpull", "store": 3, "parts": [["w,]1", 0, 7]]}
    form = frame.HeaderTemplate({"op": "pushpull", "store": 3}, "w,]1", 0)
    decoder = Decoder()

    def read(meta: dict) -> Message:
        message, size = decoder.decode_complete(
            memoryview(b"".join(encode(Message(frame.REQUEST, 5, meta, [b"abcd"]), fast)))
        )
        assert message is not None and size and bytes(message.data()) == b"abcd" and message.size == 4
        return message

    assert read(plain).form is None  # the first one is read
    for turn in (8, 9, 1 << 40):
        again = read(form.with_round(turn))
        assert again.meta == {**plain, "parts": [["w,]1", 0, turn]]} == form.with_round(turn)
        assert again.form is not None and (again.form.key, again.form.number) == ("w,]1", 0)
    for other in (
        {**plain, "store": 4}, {**plain, "op": "push"}, {**plain, "parts": [["w,]1", 1, 7]]},
        {**plain, "priority": 3}, {**plain, "parts": [["w,]1", 0, -7]]}, {**plain, "parts": [["w,]1", 0, 7.0]]},
        {**plain, "parts": [["w,]1", 0, True]]}, {**plain, "parts": [["w,]1", 0, 7], ["w,]1", 0, 8]]},
    ):  # fmt: skip
        assert read(other).meta == other and read(other).meta["parts"] == other["parts"]


def test_a_payload_for_several_has_its_checksum_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.arange(1 << 14, dtype=np.float32)
    plain = [b"".join(encode(Message(frame.REPLY, n, {"n": n // 2}, (numbers,)), True)) for n in range(4)]
    taken = []
    found = frame.checksum
    monkeypatch.setattr(frame, "checksum", lambda parts, fast: taken.append(1) or found(parts, fast))
    repeated = frame.SharedPayload((numbers,))
    assert [b"".join(encode(Message(frame.REPLY, n, {"n": n // 2}, repeated), True)) for n in range(4)] == plain
    assert len(taken) == 2  # once for each JSON before it


def streamed(message: Message, taken: int = 1 << 30) -> bytes:
    """The bytes of a frame whose checksum comes last, for a socket that takes at most so many of them at once."""
    late = encode_for_link(message, True, late=True)
    assert isinstance(late, frame.StreamedFrame)
    raw = b""
    while True:
        some = b"".join(late.next())[:taken]
        raw += some
        if late.sent(len(some)):
            return raw


@pytest.mark.parametrize("taken", [99_991, frame.PAYLOAD_CHUNK, 1 << 30])
@pytest.mark.parametrize("sizes", [(1 << 20,), (frame.PAYLOAD_CHUNK,), (300_000, 4, 1 << 19, 64), (4096,) * 200])
def test_a_checksum_behind_a_large_frame_is_that_of_its_bytes(sizes: tuple[int, ...], taken: int) -> None:
    parts = [np.random.default_rng(n).integers(0, 256, size).astype(np.uint8) for n, size in enumerate(sizes)]
    message = Message(frame.REQUEST, 7, {"op": "push"}, parts)
    raw = streamed(message, taken)
    summed = b"".join(encode(message, True))
    assert raw[frame.SIZE : -8] == summed[frame.SIZE :]
    assert frame.TRAILER.unpack(raw[-8:])[0] == frame.HEADER.unpack_from(summed)[-1]
    first, second = decode(raw + raw, 50_000)
    for found in (first, second):
        pieces = found.pieces()
        assert all((np.frombuffer(pieces.read(p.nbytes), np.uint8) == p).all() for p in parts)


def test_what_was_changed_while_it_was_sent_is_noticed() -> None:
    numbers = np.zeros(1 << 20, np.uint8)
    late = encode_for_link(Message(frame.NOTICE, 0, {}, (numbers,)), True, late=True)
    assert isinstance(late, frame.StreamedFrame)
    raw = b"".join(late.next())
    numbers[5] = 1
    done = late.sent(len(raw))
    while not done:
        some = b"".join(late.next())
        raw += some
        done = late.sent(len(some))
    with pytest.raises(FormatError, match="damaged"):
        decode(raw, 100_000)


def test_a_checksum_that_came_late_is_known_to_the_next_receiver() -> None:
    repeated = frame.SharedPayload((np.arange(1 << 17),))
    raw = [streamed(Message(frame.REPLY, 0, {"n": 1}, repeated))]
    raw.append(b"".join(encode(Message(frame.REPLY, 0, {"n": 1}, repeated), True)))
    assert decode(raw[0], 1 << 20)[0].data() == decode(raw[1], 1 << 20)[0].data()
    assert isinstance(
        encode_for_link(Message(frame.REPLY, 0, {"n": 2}, repeated), True, late=True), frame.StreamedFrame
    )
    assert not isinstance(
        encode_for_link(Message(frame.REPLY, 0, {"n": 1}, repeated), True, late=True), frame.StreamedFrame
    )


def test_only_xxh3_comes_late_and_frames_of_any_size_may_have_it_so() -> None:
    with pytest.raises(FormatError, match="out of bounds"):
        decode(forged({}, b"", frame.TRAILING_CHECKSUM))
    small = streamed(Message(frame.NOTICE, 0, {"op": "x"}, (np.zeros(1 << 18, np.uint8),)))
    head = frame.HEADER.pack(frame.MAGIC, frame.VERSION, frame.NOTICE, frame.XXH3 | frame.TRAILING_CHECKSUM, 0, 0, 0, 0)
    none = head + zlib.crc32(head).to_bytes(4, "little") + frame.TRAILER.pack(xxhash.xxh3_64_intdigest(b""))
    assert [m.data().nbytes for m in decode(none + small + none, 1000)] == [0, 1 << 18, 0]
    assert Decoder().decode_complete(memoryview(none)) == (None, 0)


@pytest.mark.parametrize("chunk", [100_000, 300_000, 1 << 20])
@pytest.mark.parametrize("late", [False, True])
def test_a_flipped_bit_of_a_large_frame_is_noticed_wherever_it_is(chunk: int, late: bool) -> None:
    message = Message(frame.REQUEST, 1, {"op": "push"}, (np.arange(1 << 17),))
    raw = streamed(message) if late else b"".join(encode(message, True))
    assert decode(raw, chunk)[0].data().nbytes == 1 << 20
    for at in (*range(frame.SIZE, len(raw), 99_991), len(raw) - 1):
        damaged = bytearray(raw)
        damaged[at] ^= 4
        with pytest.raises(FormatError, match="damaged"):
            decode(bytes(damaged), chunk)


@pytest.mark.parametrize(
    "sizes", [(40_000, 4, 60_000), (4, 40_000), (64, 40_000, 100, 128, 40_001), (10, 20, 50_000, 7)]
)
def test_parts_of_odd_sizes_begin_where_programs_take_them(sizes: tuple[int, ...]) -> None:
    parts = [np.random.default_rng(n).integers(0, 256, n).astype(np.uint8) for n in sizes]
    raw = b"".join(encode(Message(frame.REQUEST, 7, {"op": "push"}, parts), fast=True))
    memory = np.zeros(200_000, np.uint8)
    base = -memory.ctypes.data % 64
    decoder = Decoder(None, lambda kind, request, size: memory[base : base + size])
    message = None
    while message is None:
        room = decoder.buffer()
        n = min(room.nbytes, 9_999, len(raw))
        room[:n] = raw[:n]
        raw = raw[n:]
        message = decoder.advance(n)
    assert not raw and message.meta == {"op": "push"}
    pieces = message.pieces()
    taken = [np.frombuffer(pieces.read(n), np.uint8) for n in sizes]
    assert pieces.left == 0 and all((t == p).all() for t, p in zip(taken, parts, strict=True))
    assert all(t.ctypes.data % 64 == 0 and np.shares_memory(t, memory) for t in taken)


def forged(meta: object, payload: bytes, flags: int) -> bytes:
    raw = json.dumps(meta).encode()
    checksum = zlib.crc32(payload, zlib.crc32(raw))
    head = frame.HEADER.pack(frame.MAGIC, frame.VERSION, frame.NOTICE, flags, 0, len(raw), len(payload), checksum)
    return head + zlib.crc32(head).to_bytes(4, "little") + raw + payload


@pytest.mark.parametrize("layout", [None, 3, [0], [-1], [65], [10], [64, 1], ["a"], [[0, 0, 8]], [1.5], [None]])
def test_layouts_that_do_not_fit_are_refused(layout: object) -> None:
    assert len(decode(forged({"~": [10, 1]}, bytes(65), frame.ALIGNED))[0].payload) == 2
    for flags in (frame.ALIGNED, frame.SHARED):
        with pytest.raises(FormatError, match="frame with.*(layout|shared memory)"):
            decode(forged({"~": layout}, bytes(64 if layout != [10] else 65), flags))


@pytest.mark.parametrize("encrypt", ["0", "1"])
@pytest.mark.parametrize("nbytes, late", [(1 << 20, True), (100, False)])
def test_links_send_checksums_of_large_frames_last(
    encrypt: str, nbytes: int, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[bool] = []

    def noted(message: Message, *args: Any, **more: Any) -> Any:
        sent = encode_for_link(message, *args, **more)
        if message.kind == frame.REQUEST:
            made.append(isinstance(sent, frame.StreamedFrame))
        return sent

    monkeypatch.setattr("dualmx.ps.van.socket_van.encode_for_link", noted)
    secret = b"a secret of the tests, long enough"
    reader, writer = (SocketVan(secret, memory=0, tcp=True, encrypt=encrypt) for _ in range(2))
    heard: list[bytes] = []
    try:
        for van in (reader, writer):
            van.on_message = lambda link, message: heard.append(b"".join(map(bytes, message.payload)))
            van.on_down = lambda link, reason: None
            van.start()
        data = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
        link = writer.connect(reader.listen("127.0.0.1", 0), 5.0)
        assert writer.send(link, Message(frame.REQUEST, 1, {}, [data]))
        until = time.monotonic() + 5
        while not heard and time.monotonic() < until:
            time.sleep(0.01)
    finally:
        for van in (reader, writer):
            van.close()
    assert made == [late] and heard == [data.tobytes()]


def test_codes_of_messages_are_checked() -> None:
    assert Codec.from_meta(None) is None
    for told in (["2bit", 1e-3], ["1bit", 0.0], ["fp16", 0.0]):
        assert Codec.from_meta(told) == Codec(*told)
    for told in (["2bit", 0.0], ["2bit", -0.5], ["2bit", float("nan")]):
        with pytest.raises(FormatError, match="threshold above 0"):
            Codec.from_meta(told)
    with pytest.raises(FormatError, match="expected one of 2bit"):
        Codec.from_meta(["3bit", 0.5])
