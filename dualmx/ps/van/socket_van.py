"""The van over TCP, and over unix sockets within a host; one thread at a time moves all bytes.

It sends heartbeats on idle links and breaks links that are silent too long or whose bytes are malformed. Messages are
delivered on the io thread, so receivers must be quick. That is the van's own thread, unless a thread that waits for a
message drives meanwhile, which saves a thread switch per reply.
"""

from __future__ import annotations

import errno
import logging
import os
import random
import selectors
import socket
import ssl
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core.errors import FormatError, MXNetError
from .admission import BACKLOG, SECONDS, Admission
from .encryption import CHUNK, OVERHEAD, RECORD, Encryption
from .frame import (
    MOST_BUFFERS,
    PAYLOAD_CHUNK,
    PING,
    REPLY,
    Decoder,
    Message,
    ShareFn,
    StreamedFrame,
    consume,
    encode_for_link,
)  # fmt: skip
from .handshake import HandshakeError, HandshakeResult, Steps, Unanswered, client_handshake, complete, server_handshake
from .shared_memory import MIN_MAPPED_BYTES, MIN_SHARED_BYTES, Arena, ContiguousMapper, available
from .sockets import (
    TICK,
    connect_socket,
    exchange_shared_memory,
    host_identity,
    peer_pid,
    set_socket_options,
    thread_seconds,
)
from .van import NO_HEARTBEAT, AddressInUse, ConnectionRefused, Van

SOON, LATER = 0.2, 1.0  # most seconds between two tries to connect: to nobody yet, and to one that has too much to do
ATTEMPTS = 3  # to pass a handshake, whose bytes may be damaged on their way
SCRATCH = 64 << 10
MAX_COMMITTED = 256 << 10  # bytes of frames that are sent in their order, whatever comes
WAKE_BYTES = 1 << 20  # bytes that are worth waking for, where more are to come
COMPUTING = 0.02  # of a core, by one thread: threads that wait for Python's lock use a quarter of it
DRIVER_LINGER = 0.02  # seconds that the van's own thread leaves to the next one that waits
INTERRUPTED = "interrupted"
_UNREACHABLE = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH)
_log = logging.getLogger("dualmx.dist")
_vans: weakref.WeakSet[SocketVan] = weakref.WeakSet()
_jitter = random.Random()  # so that those who start together do not all try again together


class Link:
    """A socket with what waits to be sent by it, and a decoder of what is received.

    Attributes:
        share: see `Arena.lend`, for this link's peer; None without shared memory.
        xxh3, tls: what both ends have agreed on.
        last_received, last_sent: when bytes came and were sent last. pulsed: when a sign of life was.
        low_watermark: bytes that the system waits for before it wakes this process.
        poll_events: events that the selector waits for.
        broken: why nothing can be sent any more.
    """

    def __init__(self, number: int, sock: socket.socket, met: HandshakeResult, lend: ShareFn | None, decoder: Decoder):
        self.number, self.sock, self.share, self.decoder = number, sock, lend, decoder
        self.xxh3, self.tls = met
        self._out: deque[memoryview] = deque()  # of frames that are begun
        self._late: StreamedFrame | None = None  # that is begun
        self._frames: deque[tuple[int | None, Sequence[memoryview] | StreamedFrame]] = deque()  # with their priorities
        self.lock = threading.Lock()
        self.low_watermark = 1
        self.last_received = self.last_sent = self.last_heartbeat = time.monotonic()
        self.poll_events = selectors.EVENT_READ
        self.broken = ""
        self._silent_process: tuple[int, float, dict[str, float]] | None = None  # what it had computed when

    def seconds_dead(self, now: float, timeout: float) -> float:
        """For how long the other end was silent if it is dead or stopped, else 0.

        A process of this host that computes is alive: one long call holds Python's lock, so that it cannot send.
        """
        silence = now - self.last_received
        if silence <= timeout / 2:
            self._silent_process = None
        elif self._silent_process is None:
            process = peer_pid(self.sock)
            self._silent_process = process, now, thread_seconds(process)
        elif silence > timeout and (elapsed := now - self._silent_process[1]) >= timeout / 4:
            process, _, before = self._silent_process
            used = (seconds - before.get(thread, 0.0) for thread, seconds in thread_seconds(process).items())
            if max(used, default=0.0) <= COMPUTING * elapsed + TICK:
                return silence
            self.last_received = now - timeout / 2
        return 0.0

    def set_low_watermark(self, nbytes: int) -> None:
        """Wake when so many bytes have arrived, or `WAKE_BYTES`: each wake costs a thread switch.

        Unix sockets do not know this.
        """
        if self.tls is not None:
            nbytes -= RECORD + OVERHEAD  # so much of it may have come, of a record whose end is missing
        nbytes = max(1, min(nbytes, WAKE_BYTES))
        if nbytes != self.low_watermark and self.sock.family != socket.AF_UNIX:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, nbytes)
            self.low_watermark = nbytes

    @property
    def has_output(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._out or self._late or self._frames or (self.tls is not None and self.tls.unsent))

    def send_or_queue(self, frame: Sequence[memoryview] | StreamedFrame, priority: int | None) -> bool:
        """Send a frame, or what the socket accepts of it now; True when nothing is left. Lock held."""
        if self._out or self._late or self._frames:
            self.enqueue(frame, priority)
            return False
        if isinstance(frame, StreamedFrame) or self.tls is not None or len(frame) > 1:
            self.enqueue(frame, priority)
            return self.flush()
        (only,) = frame
        try:
            n = self.sock.send(only)
        except (BlockingIOError, InterruptedError):
            n = 0
        if n == only.nbytes:
            return True
        self._out.append(only[n:])
        return False

    def enqueue(self, frame: Sequence[memoryview] | StreamedFrame, priority: int | None) -> None:
        """Queue a frame before those at the end of lower priority that may be overtaken. Lock held."""
        frames = self._frames
        at = len(frames)
        while priority is not None and at and (before := frames[at - 1][0]) is not None and before < priority:
            at -= 1
        frames.insert(at, (priority, frame))

    def _begin(self) -> None:
        size = sum(b.nbytes for b in self._out)
        while self._frames and size < MAX_COMMITTED and self._late is None:
            _, frame = self._frames.popleft()
            if isinstance(frame, StreamedFrame):
                self._late = frame
                break
            self._out.extend(frame)
            size += sum(b.nbytes for b in frame)

    def flush(self) -> bool:
        """Send what the socket accepts; True when nothing is left. Lock held."""
        while self.has_output:
            if self._frames:
                self._begin()
            late = None if self._out else self._late
            some = late.next() if late else [self._out[i] for i in range(min(len(self._out), MOST_BUFFERS))]
            try:
                n = self.sock.sendmsg(some) if self.tls is None else self.tls.sendmsg(some)
            except (BlockingIOError, InterruptedError):
                return False
            if late is None:
                consume(self._out, n)
            elif late.sent(n):
                self._late = None
        return True


class SocketVan(Van):
    """Links over sockets.

    Args:
        secret: of the job; both ends prove that they know it.
        interval: seconds between signs of life on an idle link.
        timeout: seconds of silence after which a link is broken; 0 for never.
        memory: most bytes of memory that is shared with other processes of this host; 0 for none.
        tcp: use no unix sockets.
        encrypt: see `Encryption`.
    """

    def __init__(
        self, secret: bytes, interval: float = 1.0, timeout: float = 4.0, memory: int = 4 << 30, tcp: bool = False,
        encrypt: str = "auto",
    ):  # fmt: skip
        self._secret, self._interval, self._timeout, self._tcp = secret, interval, timeout, tcp
        self._encryption = Encryption(secret, encrypt)
        self._arena = Arena(memory) if memory and available() else None
        self._windows = ContiguousMapper()
        self._scratch = memoryview(bytearray(SCRATCH))
        self._cipher: memoryview | None = None  # scratch for what is encrypted, made at first use
        self._unread: list[Link] = []  # of which more was taken from the socket than is read
        self._links: dict[int, Link] = {}
        self._lends = False
        self._numbers = iter(range(1, 1 << 62))
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._admission = Admission(partial(self._join, how=server_handshake))
        self._to_register: deque[Link] = deque()
        self._wakeup_r, self._wakeup_w = socket.socketpair()
        for s in (self._wakeup_r, self._wakeup_w):
            s.setblocking(False)
        self._selector.register(self._wakeup_r, selectors.EVENT_READ, None)
        self._closing: float | None = None
        self._io_lock, self._driver_lock = threading.Lock(), threading.Lock()
        self._external_driver = self._driver_waiting = False
        self._driver_left_at = 0.0  # when the last guest left
        self._wake_event = threading.Event()
        self._needs_attention: deque[Link] = deque()  # have something left to send, or are broken
        self._poll_interval = min(interval, timeout or interval, 1.0) / 4
        self._watched = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="dualmx-van", daemon=True)
        self._runs, self._ident = True, 0
        _vans.add(self)

    def start(self) -> None:
        """Begin moving bytes; `on_message` and `on_down` are set by then."""
        self._thread.start()
        self._ident = self._thread.ident or 0

    # -- links

    def listen(self, host: str, port: int) -> dict[str, Any]:
        try:
            tcp = socket.create_server((host, port), backlog=BACKLOG)
        except OSError as e:
            kind = AddressInUse if e.errno == errno.EADDRINUSE else MXNetError
            raise kind(f"cannot listen on {host}:{port}: {e.strerror or e}") from None
        address: dict[str, Any] = {"host": host, "port": tcp.getsockname()[1]}
        self._listen_on(tcp)
        identity = "" if self._tcp else host_identity()
        if identity and hasattr(socket, "AF_UNIX") and os.name == "posix" and os.path.exists("/proc"):
            name = f"dualmx-{os.getpid()}-{os.urandom(8).hex()}"
            unix = socket.socket(socket.AF_UNIX)
            unix.bind("\0" + name)
            unix.listen(BACKLOG)
            self._listen_on(unix)
            address |= {"unix": name, "boot": identity}
        return address

    def _listen_on(self, sock: socket.socket) -> None:
        with self._lock:
            self._admission.listen(sock)
        self._wake()

    def connect(self, address: dict[str, Any], timeout: float, patient: bool = True) -> int:
        until = time.monotonic() + timeout
        where = f"{address.get('host')}:{address.get('port')}"
        pause, refused = 0.05, 0
        while True:
            try:
                sock = connect_socket(address, max(until - time.monotonic(), 0.05), self._tcp)
                try:
                    return complete(sock, self._join(sock, client_handshake), time.monotonic() + SECONDS)
                except BaseException:
                    sock.close()
                    raise
            except HandshakeError as e:
                refused += 1
                if refused == ATTEMPTS:
                    raise MXNetError(f"cannot join {where}: {e}") from None
            except OSError as e:
                if not patient and isinstance(e, ConnectionRefusedError):
                    raise ConnectionRefused(f"nobody listens at {where} any more") from None
                if time.monotonic() >= until:
                    raise MXNetError(f"cannot connect to {where} within {timeout:g} s: {e.strerror or e}") from None
                time.sleep(min(_jitter.uniform(pause / 2, pause), max(until - time.monotonic(), 0.0)))
                pause = min(pause * 1.5, LATER if isinstance(e, Unanswered | ConnectionResetError) else SOON)

    def alloc(self, nbytes: int) -> np.ndarray:
        block = self._arena.alloc(nbytes) if self._arena is not None and nbytes >= MIN_SHARED_BYTES else None
        return np.empty(nbytes, np.uint8) if block is None else block

    def _receive_buffer(self, link: int, kind: int, request: int, nbytes: int) -> np.ndarray | None:
        """Memory for what arrives: where it is awaited, or a block."""
        wanted = (
            self.receive_buffer_for(link, request, nbytes)
            if kind == REPLY and self.receive_buffer_for is not None
            else None
        )
        return wanted if wanted is not None or self._arena is None else self._arena.alloc(nbytes)

    def take_shared(self, nbytes: int) -> np.ndarray | None:
        """Return shared memory that other processes of this host read in place, if there is some."""
        return self._arena.alloc(nbytes) if self._arena is not None else None

    def has_shm_readers(self) -> bool:
        return self._lends

    def shares_memory_with(self, link: int) -> bool:
        held = self._links.get(link)
        return held is not None and held.share is not None and held.decoder.remote_arena is not None

    def map_contiguous(self, pieces: Sequence[memoryview]) -> np.ndarray | None:
        lenders = [remote for k in list(self._links.values()) if (remote := k.decoder.remote_arena) is not None]
        return self._windows.map(pieces, lenders) if sum(p.nbytes for p in pieces) >= MIN_MAPPED_BYTES else None

    def _join(self, sock: socket.socket, how: Callable[..., Steps[HandshakeResult]]) -> Steps[int]:
        """Shake hands by a socket, and return the new link's number."""
        met = yield from how(sock, self._secret, self._encryption)
        lend, remote = yield from exchange_shared_memory(sock, self._arena)
        number = next(self._numbers)
        decoder = Decoder(remote, partial(self._receive_buffer, number))
        set_socket_options(sock, self._timeout)
        with self._lock:
            if self._closing is not None:
                sock.close()
                raise OSError("the van is closed")
            link = Link(number, sock, met, lend, decoder)
            self._links[link.number] = link
            self._lends = self._lends or lend is not None
            self._to_register.append(link)
        self._wake()
        return link.number

    def send(self, link: int, message: Message) -> bool:
        held = self._links.get(link)
        if held is None or held.broken:
            return False
        frame = encode_for_link(message, held.xxh3, held.share, late=True)
        with held.lock:
            held.last_sent = time.monotonic()
            try:
                # On the caller's thread, as far as the socket accepts it: waking the van's costs more than a send.
                if held.send_or_queue(frame, message.priority):
                    return True
            except OSError as e:
                held.broken = self._break_reason(held, e)
        self._needs_attention.append(held)
        self._wake()
        return True

    def drop(self, link: int) -> None:
        held = self._links.pop(link, None)
        if held is not None:
            held.broken = held.broken or "dropped"
            with self._lock:
                self._to_register.append(held)  # the thread that watches the socket closes it
            self._wake()

    def begin_to_close(self) -> None:
        if self._closing is None:
            self._closing = time.monotonic() + 2.0
            self._wake()

    def close(self) -> None:
        self.begin_to_close()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(5.0)

    def drive(self, done: Callable[[], bool], timeout: float) -> bool:
        if threading.get_ident() == self._ident or not self._driver_lock.acquire(blocking=False):
            self._driver_waiting = True
            return False
        try:
            self._external_driver = True
            # The van's own thread holds the lock while it waits in its selector, and lets go when it is woken.
            if not self._io_lock.acquire(blocking=False):
                self._wake()
                self._io_lock.acquire()
            until = time.monotonic() + timeout
            try:
                while not done() and self._closing is None and self._runs:
                    left = until - time.monotonic()
                    if left <= 0:
                        break
                    self._poll_once(min(left, self._poll_interval))
            except BaseException:
                for link in list(self._links.values()):  # what was being read is lost, and must come again
                    link.broken = link.broken or INTERRUPTED
                    self._needs_attention.append(link)
                raise
            finally:
                self._io_lock.release()
        finally:
            self._external_driver, self._driver_left_at = False, time.monotonic()
            self._driver_lock.release()
            if self._driver_waiting:
                self._driver_waiting, self._driver_left_at = False, 0.0
                self._wake_event.set()
        return True

    def send_heartbeats(self) -> None:
        now = time.monotonic()
        for link in list(self._links.values()):
            self._send_heartbeat(link, now)

    def _send_heartbeat(self, link: Link, now: float) -> None:
        """Give a sign of life by a link that is idle, or whose sign says something."""
        if now - link.last_heartbeat >= self._interval and not link.has_output and not link.broken:
            said = self.heartbeat_payload(link.number)
            if said or now - link.last_sent >= self._interval:
                link.last_heartbeat = now
                self.send(link.number, Message(PING, 0, said))

    # -- the thread that moves bytes

    def _wake(self) -> None:
        self._wake_event.set()
        try:
            self._wakeup_w.send(b"!")
        except OSError:
            pass

    def _run(self) -> None:
        try:
            self._io_loop()
        finally:
            self._runs = False
        self._end()

    def _io_loop(self) -> None:
        while True:
            if self._closing is None and (
                self._external_driver or time.monotonic() - self._driver_left_at < DRIVER_LINGER
            ):
                called = self._wake_event.wait(DRIVER_LINGER)
                self._wake_event.clear()
                if not called or self._external_driver:
                    continue
            with self._io_lock:
                if self._closing is not None:
                    pending = any(k.has_output and not k.broken for k in list(self._links.values()))
                    if not pending or time.monotonic() > self._closing:
                        break
                self._poll_once(self._poll_interval)

    def _poll_once(self, timeout: float) -> None:
        if self._to_register:
            self._register_links()
        for key, events in self._selector.select(0 if self._unread else timeout):
            if key.data is None:
                try:
                    self._wakeup_r.recv(4096)
                except OSError:
                    pass
            else:
                self._serve(key.data, events)
        if self._unread:
            links, self._unread = self._unread, []
            for link in links:
                if link.number in self._links:
                    self._serve(link, selectors.EVENT_READ)
        now = time.monotonic()
        if self._needs_attention or self._to_register or now - self._watched >= self._poll_interval:
            self._needs_attention.clear()
            self._register_links()
            self._check_timeouts(now, slept=self._timeout > 0 and now - self._watched > self._timeout / 2)
            self._watched = now

    def _register_links(self) -> None:
        while self._to_register:
            link = self._to_register.popleft()
            if link.number in self._links:
                self._selector.register(link.sock, link.poll_events, link)
                if link.tls is not None:  # its first frames may have come with the end of the handshake
                    self._unread.append(link)
            else:
                self._close_link(link)

    def _close_link(self, link: Link) -> None:
        try:
            self._selector.unregister(link.sock)
        except (KeyError, ValueError):
            pass
        link.sock.close()
        if link.decoder.remote_arena is not None:
            self._windows.forget(link.decoder.remote_arena)

    def _serve(self, link: Link, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                with link.lock:
                    if link.flush():
                        self._needs_attention.append(link)
            if events & selectors.EVENT_READ:
                self._read(link)
        except (OSError, FormatError) as e:
            self._fail_link(link, self._break_reason(link, e))
        except Exception as e:  # of a receiver, or no memory: this thread must go on, as all links live by it
            _log.exception("a message could not be received")
            self._fail_link(link, f"a message could not be received ({type(e).__name__}: {e})")

    def _break_reason(self, link: Link, e: BaseException) -> str:
        """Why a link broke: the system's own timeout, which follows from this van's, is silence as well."""
        silence = time.monotonic() - link.last_received
        gone = isinstance(e, OSError) and e.errno in _UNREACHABLE
        return f"{NO_HEARTBEAT} for {silence:.1f} s" if gone and 0 < self._timeout < silence * 2 else _reason(e)

    def _read(self, link: Link) -> None:
        decoder, scratch = link.decoder, self._scratch
        for _ in range(64):  # then the other links have their turn
            room = scratch if decoder.idle else decoder.buffer()
            direct = room is not scratch and room.nbytes >= SCRATCH
            try:
                n = self._take_in(link, room[:PAYLOAD_CHUNK] if direct else scratch)
            except (BlockingIOError, InterruptedError):
                link.set_low_watermark(room.nbytes if direct else 1)
                return
            if n == 0:
                raise OSError("closed the connection" + ("" if decoder.idle else " in the middle of a frame"))
            link.last_received = time.monotonic()
            if link.last_received - self._watched > self._interval:
                self.send_heartbeats()  # much is read at once, and the other links would be silent meanwhile
            if direct:
                self._receive(link, decoder.advance(n))
            else:
                message, size = decoder.decode_complete(scratch[:n])
                if size:
                    self._receive(link, message)
                if size < n:
                    self._feed(link, scratch[size:n])
                if n < SCRATCH:
                    rest = 1 if decoder.idle else decoder.buffer().nbytes
                    rest = rest if rest >= SCRATCH else 1
                    if rest != link.low_watermark:
                        link.set_low_watermark(rest)
                    return
        link.set_low_watermark(1)
        if link.tls is not None and link.tls.unread:
            self._unread.append(link)

    def _take_in(self, link: Link, room: memoryview) -> int:
        """Receive bytes, at once; see `socket.recv_into`."""
        if link.tls is None:
            return link.sock.recv_into(room)
        if self._cipher is None:
            self._cipher = memoryview(bytearray(CHUNK))
        try:
            return link.tls.recv_into(room, self._cipher)
        except BlockingIOError:
            if link.tls.arrived:
                link.last_received = time.monotonic()  # a part of a record is a sign of life, too
            raise
        finally:
            link.tls.arrived = False

    def _feed(self, link: Link, data: memoryview) -> None:
        while data.nbytes:
            message, size = link.decoder.decode_complete(data)
            if size:
                self._receive(link, message)
                data = data[size:]
                continue
            room = link.decoder.buffer()
            some = min(room.nbytes, data.nbytes)
            room[:some] = data[:some]
            data = data[some:]
            self._receive(link, link.decoder.advance(some))

    def _receive(self, link: Link, message: Message | None) -> None:
        if message is not None and (message.kind != PING or message.meta) and link.number in self._links:
            self.on_message(link.number, message)

    def _check_timeouts(self, now: float, slept: bool) -> None:
        for link in list(self._links.values()):
            if link.broken:
                if link.broken != INTERRUPTED:  # what the other end said before it went still counts, as its leave
                    self._serve(link, selectors.EVENT_READ)
                self._fail_link(link, link.broken)
                continue
            if slept:  # this process was stopped, the others were not silent
                link.last_received = now
            if self._timeout and (silence := link.seconds_dead(now, self._timeout)):
                self._fail_link(link, f"{NO_HEARTBEAT} for {silence:.1f} s")
                continue
            if now - link.last_received >= self._poll_interval:
                link.set_low_watermark(1)  # few bytes that come slowly are signs of life too
            self._send_heartbeat(link, now)
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if link.has_output else 0)
            if wanted != link.poll_events and link not in self._to_register:
                link.poll_events = wanted
                self._selector.modify(link.sock, wanted, link)

    def _fail_link(self, link: Link, reason: str) -> None:
        link.broken = link.broken or reason
        if self._links.pop(link.number, None) is not None:
            self._close_link(link)
            self.on_down(link.number, reason)

    def _end(self) -> None:
        links = list(self._links.values())
        self._links = {}
        for link in links:  # a socket closed with unread bytes would make the peer lose what was sent last
            try:
                link.sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        until = time.monotonic() + 0.5
        for link in links:
            try:
                link.sock.settimeout(max(until - time.monotonic(), 0.001))
                while time.monotonic() < until and link.sock.recv(65536):
                    pass
            except OSError:
                pass
            self._close_link(link)
        self._admission.close()
        for s in (self._wakeup_r, self._wakeup_w):
            s.close()
        self._selector.close()

    def after_fork(self) -> None:
        """In a child: let go of the sockets, which belong to the parent, so that its end is seen by its peers."""
        self._admission.release()
        for sock in [*(k.sock for k in self._links.values()), self._wakeup_r, self._wakeup_w]:
            sock.close()
        self._links, self._runs = {}, False


def _reason(e: BaseException) -> str:
    if isinstance(e, ssl.SSLError):
        return f"sent encrypted bytes that do not open ({e.reason})"
    return (e.strerror if isinstance(e, OSError) and e.strerror else str(e)) or type(e).__name__


def _after_fork() -> None:
    for van in list(_vans):
        van.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

__all__ = ["Link", "SocketVan"]
