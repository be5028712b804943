"""`dualmx status --serve`: a read-only HTTP server of job status."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from ..ps.status import MIN_LATE_SECONDS
from .status_page import metrics_text, web_page

MAX_CLIENTS = 32  # that are answered at once
_TEXT = "text/plain; version=0.0.4; charset=utf-8"  # as Prometheus names its format
_PATHS = "expected /, /status.json or /metrics"
Look = Callable[[], tuple[list[dict[str, Any]], list[str]]]


class Handler(BaseHTTPRequestHandler):
    """`GET /`, `GET /status.json`, `GET /metrics`, and `HEAD` of these."""

    protocol_version = "HTTP/1.1"
    timeout = 10  # seconds in which a client must go on
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of single requests."""

    def do_GET(self) -> None:
        """Answer with what was seen last."""
        if not self.server.is_meant(self.headers.get("Host", "")):
            # By such a name a page of somewhere else, which the user's browser shows, would read what is here.
            return self._answer(403, b"Host: expected the address that is listened on\n", "text/plain")
        path = urlsplit(self.path).path
        states, problems, seen = self.server.latest
        if path == "/":
            page = web_page(states, problems, self.server.interval, MIN_LATE_SECONDS)
            return self._answer(200, page.encode(), "text/html; charset=utf-8")
        if path == "/status.json":
            reply = {"age": round(time.monotonic() - seen, 3), "jobs": states, "problems": problems}
            return self._answer(200, json.dumps(reply, allow_nan=False).encode() + b"\n", "application/json")
        if path == "/metrics":
            return self._answer(200, metrics_text(states).encode(), _TEXT)
        return self._answer(404, f"{path[:200]}: {_PATHS}\n".encode(), "text/plain; charset=utf-8")

    do_HEAD = do_GET

    def _refuse(self) -> None:
        self.close_connection = True  # a body may follow, which is not read
        self._answer(405, b"expected GET or HEAD\n", "text/plain", Allow="GET, HEAD")

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _refuse

    def _answer(self, status: int, body: bytes, kind: str, **more: str) -> None:
        headers = {
            "Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "no-store",
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", **more,
        }  # fmt: skip
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """HTTP server that queries jobs every `interval` seconds, however many clients ask.

    Args:
        address: to listen on.
        look: returns the states of jobs, and why others are not there.
        interval: seconds between two looks.

    Attributes:
        latest: states, problems, and when they were seen.

    Raises:
        OSError: the address is taken, or not of this host.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], look: Look, interval: float):
        self.interval, self._look = interval, look
        self.latest: tuple[list[dict[str, Any]], list[str], float] = [], ["not looked yet"], time.monotonic()
        self._clients = threading.Semaphore(MAX_CLIENTS)
        self._over = threading.Event()
        super().__init__(address, Handler)
        self._local = ip_address(str(self.server_address[0])).is_loopback
        threading.Thread(target=self._watch, name="dualmx-status", daemon=True).start()

    def is_meant(self, host: str) -> bool:
        """Whether a request's `Host` names this server: on the loopback address, no name but that of this host."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
            return not self._local or name == "localhost" or ip_address(name).is_loopback
        except ValueError:
            return False

    def _watch(self) -> None:
        while not self._over.is_set():
            try:
                states, problems = self._look()
            except Exception as e:  # this thread must go on, and what was seen before must not be shown for ever
                states, problems = [], [f"{type(e).__name__}: {e}"]
            self.latest = states, problems, time.monotonic()
            self._over.wait(max(self.interval, 0.1))

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, or close the connection if there are too many."""
        if not self._clients.acquire(blocking=False):
            return self.shutdown_request(request)
        return super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one client."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._clients.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no reason for a traceback."""
        print(f"dualmx status: {client_address[0]}: {sys.exc_info()[1]!r}", file=sys.stderr, flush=True)

    def server_close(self) -> None:
        """Look no more, and listen no more."""
        self._over.set()
        super().server_close()


__all__ = ["Server"]
