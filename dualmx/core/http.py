"""HTTP GET with proxies, certificate checks, bounded redirects and byte ranges."""

from __future__ import annotations

import base64
import http.client
import os
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit, urlunsplit

from .errors import without_password

_REDIRECTS = (301, 302, 303, 307, 308)
_MAX_REDIRECTS = 10
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)
_MAX_PAUSE_SECONDS = 60.0  # seconds that a server may ask for by Retry-After
_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)")


class TransferError(Exception):
    """One attempt failed.

    Attributes:
        lasting: another attempt would fail in the same way.
        restart: the next attempt has to begin at the first byte.
        pause: seconds that the server asked to wait for.
    """

    def __init__(self, text: str, lasting: bool = False, restart: bool = False, pause: float = 0.0):
        super().__init__(text)
        self.lasting, self.restart, self.pause = lasting, restart, pause


@dataclass
class Reply:
    """What a server answered.

    Attributes:
        start: position of the first byte that `read` yields.
        total: bytes of the whole file, where the server says so.
        validator: what names this version of the file in a later request; empty if nothing does.
        read: `read(n)` returns at most `n` bytes, none at the end.
        close: ends the connection.
    """

    start: int
    total: int | None
    validator: str
    read: Callable[[int], bytes]
    close: Callable[[], None]


def get(url: str, offset: int = 0, validator: str = "", verify: bool = True, timeout: float = 30.0) -> Reply:
    """Request the file at `url` from byte `offset` on.

    Args:
        url: of scheme http or https; a user and password in it are sent to its own host only.
        offset: bytes that are there already; the reply may begin at 0 all the same.
        validator: that of the reply from which they came; the file has to be the same version.
        verify: check the certificate of a https server.
        timeout: seconds without a byte after which the connection counts as dead.

    Raises:
        TransferError: no usable answer.
    """
    opener = _opener(verify)
    headers = {"User-Agent": "dualmx", "Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
        if validator:
            headers["If-Range"] = validator
    seen: list[str] = []
    while True:
        address, credentials = _plain(url)
        request = urllib.request.Request(address, headers={**headers, **credentials})
        response = _open(opener, request, timeout)
        if response.status not in _REDIRECTS:
            return _reply(response, offset)
        response.close()
        seen.append(url)
        url = _next(url, response.headers.get("Location"), response.status)
        if url in seen:
            raise TransferError(f"redirects in a circle, by {without_password(url)}", lasting=True)
        if len(seen) > _MAX_REDIRECTS:
            raise TransferError(f"redirects more than {_MAX_REDIRECTS} times", lasting=True)


def _opener(verify: bool) -> urllib.request.OpenerDirector:
    # Corporate networks name their certificates by the variables of curl and requests; OpenSSL reads SSL_CERT_FILE.
    bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
    try:
        context = ssl.create_default_context(cafile=bundle or None)
    except OSError as e:
        raise TransferError(f"cannot read the certificates in {bundle!r}: {e.strerror or e}", lasting=True) from None
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    proxies = urllib.request.getproxies()
    for scheme in ("http", "https"):
        if "all" in proxies:
            proxies.setdefault(scheme, proxies["all"])
        proxy = proxies.get(scheme, "")
        if "://" in proxy and not proxy.startswith(("http://", "https://")):
            shown = without_password(proxy)
            raise TransferError(f"the proxy {shown} of the environment is not one of http", lasting=True)
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(proxies),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(context=context),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


def split(url: str) -> SplitResult:
    """Return the parts of an address.

    Raises:
        TransferError: it is none.
    """
    try:
        return urlsplit(url)
    except ValueError as e:
        raise TransferError(f"not an address: {e}", lasting=True) from None


def _plain(url: str) -> tuple[str, dict[str, str]]:
    """Return the address in ASCII, and the header for the user and password in it."""
    parts = split(url)
    user, _, host = parts.netloc.rpartition("@")
    try:
        if not host.isascii():
            host = host.encode("idna").decode("ascii")
        parts.port  # noqa: B018  (raises on a port that is no number)
    except ValueError as e:
        raise TransferError(f"not an address: {e}", lasting=True) from None
    if not host:
        raise TransferError("not an address: it names no host", lasting=True)
    path, query = quote(parts.path, safe="/%:=&?~+!$,;'@()*[]"), quote(parts.query, safe="/%:=&?~+!$,;'@()*[]")
    credentials = {}
    if user:
        token = base64.b64encode(unquote(user).encode()).decode("ascii")
        credentials["Authorization"] = f"Basic {token}"
    return urlunsplit((parts.scheme, host, path, query, "")), credentials


def _next(url: str, location: str | None, status: int) -> str:
    if not location:
        raise TransferError(f"HTTP {status} without a place to go to", lasting=True)
    try:
        target = urljoin(url, location)
    except ValueError as e:
        raise TransferError(f"is redirected to {location!r}, which is not an address: {e}", lasting=True) from None
    old, new = split(url).scheme, split(target).scheme
    if new not in ("http", "https") or (old == "https" and new == "http"):
        raise TransferError(f"is redirected from {old} to {without_password(target)}: refused", lasting=True)
    return target


def _open(opener: urllib.request.OpenerDirector, request: urllib.request.Request, timeout: float) -> Any:
    host = request.host
    try:
        return opener.open(request, timeout=timeout)
    except (OSError, http.client.HTTPException, ValueError) as e:
        cause = e.reason if isinstance(e, urllib.error.URLError) and isinstance(e.reason, Exception) else e
        # A handler of `opener` has put the proxy, without its password, in place of the host.
        raise failure(cause, "" if request.host == host else f", by the proxy {request.host}") from None


def failure(cause: Exception, by: str = "") -> TransferError:
    """Return the error for what a connection raised; `by` says through whom it went."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        return TransferError(
            f"the server's certificate is not trusted ({cause.verify_message}); name the certificates of your network "
            "in SSL_CERT_FILE, or pass verify_ssl=False",
            lasting=True,
        )
    if isinstance(cause, TimeoutError):
        return TransferError(f"no byte within the time-out (DUALMX_DOWNLOAD_TIMEOUT){by}")
    text = (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__
    return TransferError(text + by, lasting=isinstance(cause, ValueError) and not isinstance(cause, OSError))


def _reply(response: Any, offset: int) -> Reply:
    status, headers = response.status, response.headers
    extent = _RANGE.fullmatch(headers.get("Content-Range", ""))
    etag = headers.get("ETag", "")
    validator = etag if etag and not etag.startswith("W/") else headers.get("Last-Modified", "")
    if status == 200:
        return Reply(0, response.length, validator, response.read1, response.close)
    if status == 206 and offset and extent and extent[1] == str(offset):
        rest = response.length
        total = int(extent[2]) if extent[2] != "*" else None if rest is None else offset + rest
        return Reply(offset, total, validator, response.read1, response.close)
    response.close()
    if status == 416 and offset and extent and extent[2] == str(offset):  # what is there is the whole file
        return Reply(offset, offset, validator, lambda n: b"", response.close)
    if status in (206, 416):
        raise TransferError(f"HTTP {status} for the rest of the file", restart=True, lasting=not offset)
    raise TransferError(
        f"HTTP {status} {response.reason}".rstrip(), lasting=status not in _TRANSIENT, pause=_pause(headers)
    )


def _pause(headers: Any) -> float:
    asked = headers.get("Retry-After", "")
    return min(float(asked), _MAX_PAUSE_SECONDS) if asked.isascii() and asked.isdigit() else 0.0


__all__ = ["Reply", "TransferError", "failure", "get", "split"]
