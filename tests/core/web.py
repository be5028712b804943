"""A web server on the loopback address whose answers tests write themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class _Handler(BaseHTTPRequestHandler):
    server: Any

    def do_GET(self) -> None:
        self.server.requests.append((self.path, dict(self.headers)))
        answer = self.server.answers.get(self.path)
        try:
            if answer is None:
                self.send_error(404)
            else:
                answer(self)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def reply(self, body: bytes, status: int = 200, length: int | None = None, **headers: str) -> None:
        """Send an answer that announces `length` bytes, by default those of `body`."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body) if length is None else length), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def serve(self, content: bytes, etag: str = '"v1"') -> None:
        """Send a file, or the rest of it, as a good server does."""
        begin = 0
        if (asked := self.headers.get("Range")) and self.headers.get("If-Range", etag) == etag:
            begin = int(asked.removeprefix("bytes=").removesuffix("-"))
        if begin >= len(content) > 0 and begin:
            return self.reply(b"", 416, Content_Range=f"bytes */{len(content)}")
        if begin:
            where = f"bytes {begin}-{len(content) - 1}/{len(content)}"
            return self.reply(content[begin:], 206, ETag=etag, Content_Range=where)
        self.reply(content, ETag=etag)


class WebServer(ThreadingHTTPServer):
    """Answers by path; `requests` are the paths and headers that came."""

    daemon_threads = True

    def __init__(self, context: Any = None):
        super().__init__(("127.0.0.1", 0), _Handler)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self.server_port}"
        self.answers: dict[str, Callable[[Any], None]] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients that go away are part of the tests

    def paths(self) -> list[str]:
        """Return what was asked for, in order."""
        return [path for path, _ in self.requests]

    def close(self) -> None:
        """Stop."""
        self.shutdown()
        self.server_close()
        self._thread.join()
