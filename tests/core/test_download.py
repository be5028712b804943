"""Downloads from servers on this host: good ones, and those that break off, stall, lie or send in circles."""

from __future__ import annotations

import datetime
import hashlib
import io
import ipaddress
import multiprocessing
import os
import signal
import ssl
import sys
import threading
import time
from pathlib import Path

import pytest

import dualmx as mx
from dualmx.core import progress, transfer
from dualmx.core.errors import ArgumentError, DownloadError
from dualmx.gluon.utils import download
from tests.core.web import WebServer

CONTENT = bytes(range(256)) * 1200
SHA1 = hashlib.sha1(CONTENT).hexdigest()
HALF = len(CONTENT) // 2


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name in ("DUALMX_MIRRORS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(transfer, "_FIRST_PAUSE_SECONDS", 0.001)


@pytest.fixture
def web():
    server = WebServer()
    server.answers["/good.bin"] = lambda h: h.serve(CONTENT)
    yield server
    server.close()


def in_turn(*answers):
    """Give one answer after the other, then the last one again and again."""
    rest = list(answers)

    def answer(h):
        (rest.pop(0) if len(rest) > 1 else rest[0])(h)

    return answer


def broken(h):
    h.reply(CONTENT[:HALF], length=len(CONTENT), ETag='"v1"')


def files(folder):
    return sorted(p.name for p in Path(folder).iterdir())


def test_what_comes_back_and_where_the_file_is(web, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"{web.url}/good.bin"
    assert download(url) == "good.bin" and Path("good.bin").read_bytes() == CONTENT
    assert download(url) == "good.bin" and len(web.requests) == 1
    os.mkdir("folder")
    assert download(url, "folder") == os.path.join("folder", "good.bin")
    assert download(url, os.path.join("new", "deep", "name.bin")) == os.path.join("new", "deep", "name.bin")
    assert len(web.requests) == 3
    download(url, overwrite=True)
    assert len(web.requests) == 4
    monkeypatch.setenv("HOME", str(tmp_path))
    assert download(url, "~/home.bin") == str(tmp_path / "home.bin")
    assert files(tmp_path) == ["folder", "good.bin", "home.bin", "new"]
    with pytest.raises(ArgumentError, match="without a file name"):
        download(f"{web.url}/")
    with pytest.raises(AssertionError, match="retries=-1"):
        download(url, retries=-1)


def test_a_file_with_another_checksum_is_fetched_again(web, tmp_path):
    path = tmp_path / "good.bin"
    path.write_bytes(b"old")
    assert download(f"{web.url}/good.bin", str(path), sha1_hash=SHA1.upper()) == str(path)
    assert path.read_bytes() == CONTENT
    download(f"{web.url}/good.bin", str(path), sha1_hash=SHA1)
    assert len(web.requests) == 1
    wrong = "0" * 40
    with pytest.raises(DownloadError, match=f"SHA-1 is {SHA1}, not {wrong}"):
        download(f"{web.url}/good.bin", str(tmp_path / "b.bin"), sha1_hash=wrong)
    assert len(web.requests) == 2 and files(tmp_path) == ["good.bin"]


def test_what_breaks_off_is_continued(web, tmp_path):
    web.answers["/a"] = in_turn(broken, lambda h: h.serve(CONTENT))
    assert Path(download(f"{web.url}/a", str(tmp_path / "a"))).read_bytes() == CONTENT
    (_, first), (_, second) = web.requests
    assert "Range" not in first and first["Accept-Encoding"] == "identity"
    assert second["Range"] == f"bytes={HALF}-" and second["If-Range"] == '"v1"'
    assert files(tmp_path) == ["a"]


def test_a_later_call_continues_what_is_there(web, tmp_path):
    web.answers["/a"] = broken
    with pytest.raises(DownloadError, match=rf"/a: broke off after {HALF} of {len(CONTENT)} bytes\. Put the file at"):
        download(f"{web.url}/a", str(tmp_path / "a"), retries=1)
    assert files(tmp_path) == ["a.part", "a.part.json"]
    web.answers["/a"] = lambda h: h.serve(CONTENT)
    download(f"{web.url}/a", str(tmp_path / "a"))
    assert (tmp_path / "a").read_bytes() == CONTENT and files(tmp_path) == ["a"]
    assert web.requests[-1][1]["Range"] == f"bytes={HALF}-"


def test_a_file_that_changed_meanwhile_is_fetched_whole(web, tmp_path):
    other = CONTENT[::-1]
    web.answers["/a"] = in_turn(broken, lambda h: h.serve(other, '"v2"'))
    assert Path(download(f"{web.url}/a", str(tmp_path / "a"))).read_bytes() == other


def test_a_weak_validator_and_none_are_not_trusted(web, tmp_path):
    web.answers["/a"] = in_turn(
        lambda h: h.reply(CONTENT[:HALF], length=len(CONTENT), ETag='W/"v1"'), lambda h: h.serve(CONTENT)
    )
    assert Path(download(f"{web.url}/a", str(tmp_path / "a"))).read_bytes() == CONTENT
    assert "Range" not in web.requests[1][1]
    web.answers["/b"] = in_turn(lambda h: h.reply(CONTENT[:HALF], length=len(CONTENT)), lambda h: h.serve(CONTENT))
    download(f"{web.url}/b", str(tmp_path / "b"), sha1_hash=SHA1)  # the checksum proves the whole
    assert web.requests[3][1]["Range"] == f"bytes={HALF}-" and "If-Range" not in web.requests[3][1]


def test_a_checked_file_that_was_continued_wrongly_is_fetched_whole(web, tmp_path):
    web.answers["/a"] = in_turn(
        lambda h: h.reply(b"x" * HALF, length=len(CONTENT)), lambda h: h.serve(CONTENT), lambda h: h.serve(CONTENT)
    )
    assert Path(download(f"{web.url}/a", str(tmp_path / "a"), sha1_hash=SHA1)).read_bytes() == CONTENT
    assert len(web.requests) == 3 and "Range" not in web.requests[2][1]


@pytest.mark.parametrize(
    "answer",
    [
        lambda h: h.reply(CONTENT, ETag='"v1"'),  # the range is ignored
        in_turn(
            lambda h: h.reply(CONTENT[:9], 206, Content_Range=f"bytes 0-8/{len(CONTENT)}"), lambda h: h.serve(CONTENT)
        ),
        in_turn(lambda h: h.reply(CONTENT[HALF:], 206), lambda h: h.serve(CONTENT)),
        in_turn(lambda h: h.reply(b"", 416), lambda h: h.serve(CONTENT)),
        in_turn(  # more than the file has
            lambda h: h.reply(CONTENT[HALF:] + b"more", 206, Content_Range=f"bytes {HALF}-9/{len(CONTENT)}"),
            lambda h: h.serve(CONTENT),
        ),
    ],
)
def test_wrong_answers_for_a_range(web, tmp_path, answer):
    web.answers["/a"] = in_turn(broken, answer)
    assert Path(download(f"{web.url}/a", str(tmp_path / "a"))).read_bytes() == CONTENT


def test_a_part_that_is_the_whole(web, tmp_path):
    (tmp_path / "good.bin.part").write_bytes(CONTENT)
    download(f"{web.url}/good.bin", str(tmp_path), sha1_hash=SHA1)
    assert (tmp_path / "good.bin").read_bytes() == CONTENT and web.requests[0][1]["Range"] == f"bytes={len(CONTENT)}-"


def test_a_server_that_stalls(web, tmp_path, monkeypatch):
    over = threading.Event()

    def stall(h):
        broken(h)
        over.wait(20)

    monkeypatch.setenv("DUALMX_DOWNLOAD_TIMEOUT", "0.2")
    web.answers["/a"] = in_turn(stall, lambda h: h.serve(CONTENT))
    try:
        assert Path(download(f"{web.url}/a", str(tmp_path / "a"))).read_bytes() == CONTENT
        web.answers["/b"] = lambda h: over.wait(20)
        with pytest.raises(DownloadError, match="no byte within the time-out"):
            download(f"{web.url}/b", str(tmp_path / "b"), retries=1)
    finally:
        over.set()
    assert files(tmp_path) == ["a"]


def test_lengths_that_are_not_true(web, tmp_path):
    web.answers["/short"] = lambda h: h.reply(CONTENT, length=len(CONTENT) + 1)
    with pytest.raises(DownloadError, match=rf"after {len(CONTENT)} of {len(CONTENT) + 1} bytes \(3 attempts\)"):
        download(f"{web.url}/short", str(tmp_path / "a"), retries=3)
    assert len(web.requests) == 3
    web.answers["/long"] = lambda h: h.reply(CONTENT, length=HALF)
    assert Path(download(f"{web.url}/long", str(tmp_path / "b"))).read_bytes() == CONTENT[:HALF]

    def chunks(h):
        h.protocol_version = "HTTP/1.1"
        h.send_response(200)
        h.send_header("Transfer-Encoding", "chunked")
        h.end_headers()
        h.wfile.write(b"5\r\nhello\r\n" + (b"10\r\nbroken" if h.server.requests[1:] == [] else b"0\r\n\r\n"))

    web.requests.clear()
    web.answers["/chunks"] = chunks
    assert Path(download(f"{web.url}/chunks", str(tmp_path / "c"))).read_bytes() == b"hello"
    assert len(web.requests) == 2


def test_attempts_that_get_on_do_not_count(web, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "_GAIN", 10_000)
    step = len(CONTENT) // 8

    def piecewise(h):
        begin = int(h.headers.get("Range", "bytes=0-")[6:-1])
        where = {"Content_Range": f"bytes {begin}-{len(CONTENT) - 1}/{len(CONTENT)}"} if begin else {}
        status, rest = (206 if begin else 200), len(CONTENT) - begin
        h.reply(CONTENT[begin : begin + step], status, rest, ETag='"v1"', **where)

    web.answers["/a"] = piecewise
    assert Path(download(f"{web.url}/a", str(tmp_path / "a"), retries=2)).read_bytes() == CONTENT
    assert len(web.requests) == 8


def test_size_limit(web, tmp_path, monkeypatch):
    monkeypatch.setenv("DUALMX_DOWNLOAD_MAX_MB", "1")
    web.answers["/announced"] = lambda h: h.reply(b"", length=(1 << 20) + 1)

    def endless(h):
        h.send_response(200)
        h.end_headers()
        while True:
            h.wfile.write(bytes(1 << 16))

    web.answers["/endless"] = endless
    for path in ("announced", "endless"):
        with pytest.raises(DownloadError, match="larger .* DUALMX_DOWNLOAD_MAX_MB"):
            download(f"{web.url}/{path}", str(tmp_path / "a"))
    assert web.paths() == ["/announced", "/endless"] and files(tmp_path) == []


def test_a_full_disk_is_seen_before_the_bytes_come(web, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1000}))
    with pytest.raises(DownloadError, match=f"needs {len(CONTENT)} more bytes, and the disk has 1000"):
        download(f"{web.url}/good.bin", str(tmp_path / "a"))


def test_redirects(web, tmp_path):
    def to(place, status=302):
        return lambda h: h.reply(b"", status, Location=place)

    web.answers.update({"/r1": to("/r2", 301), "/r2": to(f"{web.url}/r3", 307), "/r3": to("good.bin", 308)})
    assert Path(download(f"{web.url}/r1", str(tmp_path / "a"))).read_bytes() == CONTENT
    web.requests.clear()
    web.answers.update(
        {"/c1": to("/c2"), "/c2": to("/c1"), "/f": to("file:///etc/passwd"), "/n": to(""), "/i": to("http://[::1/a")}
    )
    web.answers.update({f"/m{i}": to(f"/m{i + 1}") for i in range(30)})
    for path, text in (
        ("/c1", "redirects in a circle"),
        ("/m0", "redirects more than 10 times"),
        ("/f", "redirected from http to file:///etc/passwd: refused"),
        ("/n", "HTTP 302 without a place"),
        ("/i", "which is not an address|not an address"),
    ):
        with pytest.raises(DownloadError, match=text):
            download(web.url + path, str(tmp_path / "b"))
    assert len(web.requests) == 2 + 11 + 1 + 1 + 1  # none is tried again
    assert files(tmp_path) == ["a"]


def test_statuses(web, tmp_path):
    with pytest.raises(
        DownloadError, match=r"/none\.bin: HTTP 404 Not Found\. Put the file at .*a, or.*DUALMX_MIRRORS"
    ):
        download(f"{web.url}/none.bin", str(tmp_path / "a"))
    assert len(web.requests) == 1
    web.answers["/busy"] = in_turn(
        lambda h: h.reply(b"", 503, Retry_After="0"), lambda h: h.reply(b"", 429), lambda h: h.serve(CONTENT)
    )
    assert Path(download(f"{web.url}/busy", str(tmp_path / "b"))).read_bytes() == CONTENT
    web.answers["/busy"] = lambda h: h.reply(b"", 500)
    with pytest.raises(DownloadError, match=r"HTTP 500 .*\(2 attempts\)"):
        download(f"{web.url}/busy", str(tmp_path / "c"), retries=2)
    web.answers["/empty"] = lambda h: h.reply(b"")
    assert Path(download(f"{web.url}/empty", str(tmp_path / "d"))).read_bytes() == b""


def test_errors_are_of_the_kinds_that_mxnet_has(tmp_path):
    for kind in (mx.MXNetError, RuntimeError, OSError, AssertionError):
        with pytest.raises(kind, match="Connection refused"):
            download("http://127.0.0.1:9/a", str(tmp_path / "a"), retries=1)
    with pytest.raises(DownloadError, match="scheme 'ftp'"):
        download("ftp://127.0.0.1/a", str(tmp_path / "a"))
    for url in ("http:///a", "http://127.0.0.1:x/a", "http://[::1/a"):
        with pytest.raises(DownloadError, match="not an address"):
            download(url, str(tmp_path / "a"))
    (tmp_path / "file").touch()
    with pytest.raises(DownloadError, match="cannot write"):
        download("http://127.0.0.1:9/a", str(tmp_path / "file" / "a"))


def test_copies(tmp_path):
    source = tmp_path / "with space %41.bin"
    source.write_bytes(CONTENT)
    assert Path(download(f"file://{source}", str(tmp_path / "a"))).read_bytes() == CONTENT
    quoted = source.as_uri().replace("file://", "file://localhost")
    assert Path(download(quoted, str(tmp_path / "b"), sha1_hash=SHA1)).read_bytes() == CONTENT
    with pytest.raises(DownloadError, match="cannot read .*none.*No such file"):
        download(f"file://{tmp_path}/none", str(tmp_path / "c"))
    with pytest.raises(DownloadError, match="SHA-1"):
        download(f"file://{source}", str(tmp_path / "c"), sha1_hash="0" * 40)
    assert files(tmp_path) == ["a", "b", source.name]


def test_mirrors_in_order(web, tmp_path, monkeypatch):
    other = WebServer()
    folder = tmp_path / "mirror" / "deep"
    folder.mkdir(parents=True)
    (folder / "here.bin").write_bytes(b"from the folder")
    try:
        other.answers["/base/deep/other.bin"] = lambda h: h.serve(b"from the other")
        monkeypatch.setenv("DUALMX_MIRRORS", f"{other.url}/base/ file://{tmp_path}/mirror")
        for name in ("other.bin", "here.bin"):
            content = Path(download(f"{web.url}/deep/{name}", str(tmp_path)))
            assert content.read_text().startswith("from the")
        assert other.paths() == ["/base/deep/other.bin", "/base/deep/here.bin"] and not web.requests
        assert Path(download(f"{web.url}/good.bin", str(tmp_path))).read_bytes() == CONTENT
        with pytest.raises(DownloadError, match="HTTP 404") as e:
            download(f"{web.url}/none.bin", str(tmp_path))
        text = str(e.value)
        assert (
            text.index(f"{other.url}/base/none.bin: HTTP 404")
            < text.index("mirror/none.bin")
            < text.index(f"{web.url}/none.bin: HTTP 404")
        )
        monkeypatch.setenv("DUALMX_MIRRORS", f"http://elsewhere.invalid/=file:///none/ {web.url}/x/={other.url}/base/")
        web.requests.clear()
        assert Path(download(f"{web.url}/x/deep/other.bin", str(tmp_path / "o"))).read_bytes() == b"from the other"
        assert not web.requests
    finally:
        other.close()


def test_proxies_of_the_environment(web, tmp_path, monkeypatch):
    web.answers["http://far.invalid/a.bin"] = lambda h: h.serve(CONTENT)
    monkeypatch.setenv("http_proxy", web.url.replace("http://", "http://me:secret@"))
    assert Path(download("http://far.invalid/a.bin", str(tmp_path))).read_bytes() == CONTENT
    assert web.requests[0][1]["Proxy-Authorization"].startswith("Basic ")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert Path(download(f"{web.url}/good.bin", str(tmp_path))).read_bytes() == CONTENT
    assert web.paths() == ["http://far.invalid/a.bin", "/good.bin"]
    monkeypatch.setenv("http_proxy", "http://me:secret@127.0.0.1:1")
    with pytest.raises(DownloadError, match="far.invalid/b.bin: Connection refused, by the proxy 127.0.0.1:1") as e:
        download("http://far.invalid/b.bin", str(tmp_path), retries=0)
    assert "secret" not in str(e.value)
    monkeypatch.delenv("http_proxy")
    monkeypatch.setenv("all_proxy", "socks5://me:secret@127.0.0.1:1")
    with pytest.raises(DownloadError, match="proxy socks5://127.0.0.1:1 of the environment") as e:
        download("http://far.invalid/b.bin", str(tmp_path))
    assert "secret" not in str(e.value)


def test_passwords_go_to_their_own_host_only(web, tmp_path):
    other = WebServer()
    try:
        other.answers["/a"] = lambda h: h.serve(CONTENT)
        web.answers["/a"] = lambda h: h.reply(b"", 302, Location=f"{other.url}/a")
        with_password = web.url.replace("http://", "http://me:top%20secret@")
        download(f"{with_password}/a", str(tmp_path / "a"))
        assert web.requests[0][1]["Authorization"] == "Basic bWU6dG9wIHNlY3JldA=="
        assert "Authorization" not in other.requests[0][1]
        with pytest.raises(DownloadError, match="HTTP 404") as e:
            download(f"{with_password}/none", str(tmp_path / "b"))
        assert "secret" not in str(e.value)
    finally:
        other.close()


def test_addresses_beyond_ascii(web, tmp_path):
    web.answers["/a%20%C3%BC.bin?q=%C3%A4"] = lambda h: h.serve(CONTENT)
    assert Path(download(f"{web.url}/a ü.bin?q=ä#part", str(tmp_path / "a"))).read_bytes() == CONTENT


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A certificate for 127.0.0.1 that signs itself: (certificate, key)."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "dualmx test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("certificates")
    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "key.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return str(folder / "ca.pem"), str(folder / "key.pem")


def test_https_is_checked(web, tmp_path, certificates, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificates)
    sealed = WebServer(context)
    try:
        sealed.answers["/a"] = lambda h: h.serve(CONTENT)
        sealed.answers["/down"] = lambda h: h.reply(b"", 302, Location=f"{web.url}/good.bin")
        with pytest.raises(DownloadError, match=r"certificate is not trusted .*SSL_CERT_FILE.*verify_ssl=False"):
            download(f"{sealed.url}/a", str(tmp_path / "a"))
        with pytest.warns(UserWarning, match="verify_ssl=False"):
            download(f"{sealed.url}/a", str(tmp_path / "a"), verify_ssl=False)
        monkeypatch.setenv("SSL_CERT_FILE", certificates[0])
        assert Path(download(f"{sealed.url}/a", str(tmp_path / "b"))).read_bytes() == CONTENT
        with pytest.raises(DownloadError, match="redirected from https to http://.*refused"):
            download(f"{sealed.url}/down", str(tmp_path / "c"))
        web.answers["/up"] = lambda h: h.reply(b"", 302, Location=f"{sealed.url}/a")
        assert Path(download(f"{web.url}/up", str(tmp_path / "c"))).read_bytes() == CONTENT
        # By another name than that of the certificate.
        with pytest.raises(DownloadError, match="certificate is not trusted"):
            download(f"{sealed.url.replace('127.0.0.1', 'localhost')}/a", str(tmp_path / "d"))
        monkeypatch.delenv("SSL_CERT_FILE")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificates[0])
        assert Path(download(f"{sealed.url}/a", str(tmp_path / "e"))).read_bytes() == CONTENT
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "none.pem"))
        with pytest.raises(DownloadError, match="cannot read the certificates in .*none.pem"):
            download(f"{sealed.url}/a", str(tmp_path / "f"))
    finally:
        sealed.close()


def _download_in_child(url, path, results):
    results.put(download(url, path, sha1_hash=SHA1))


def test_several_processes_fetch_a_file_once(web, tmp_path):
    def slow(h):
        time.sleep(0.2)
        h.serve(CONTENT)

    web.answers["/a"] = slow
    fork = multiprocessing.get_context("fork")
    results, path = fork.Queue(), str(tmp_path / "a")
    children = [fork.Process(target=_download_in_child, args=(f"{web.url}/a", path, results)) for _ in range(4)]
    for child in children:
        child.start()
    assert [results.get(timeout=60) for _ in children] == [path] * 4
    for child in children:
        child.join()
    assert len(web.requests) == 1 and files(tmp_path) == ["a"] and (tmp_path / "a").read_bytes() == CONTENT


def test_what_a_killed_process_left_is_continued(web, tmp_path):
    over = threading.Event()

    def stall(h):
        broken(h)
        over.wait(20)

    web.answers["/a"] = in_turn(stall, lambda h: h.serve(CONTENT))
    fork = multiprocessing.get_context("fork")
    path, part = str(tmp_path / "a"), tmp_path / "a.part"
    child = fork.Process(target=_download_in_child, args=(f"{web.url}/a", path, fork.Queue()))
    child.start()
    end = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size) and time.monotonic() < end:
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    over.set()
    left = part.stat().st_size
    assert 0 < left <= HALF and not os.path.exists(path)
    assert download(f"{web.url}/a", path) == path
    assert (tmp_path / "a").read_bytes() == CONTENT and files(tmp_path) == ["a"]
    assert web.requests[-1][1]["Range"] == f"bytes={left}-"


def test_without_locks_each_has_a_part_of_its_own(web, tmp_path, monkeypatch):
    from dualmx.core import lock

    monkeypatch.setattr(lock, "fcntl", None)
    assert Path(download(f"{web.url}/good.bin", str(tmp_path))).read_bytes() == CONTENT
    web.answers["/a"] = broken
    with pytest.raises(DownloadError, match="broke off"):
        download(f"{web.url}/a", str(tmp_path), retries=2)
    assert files(tmp_path) == ["good.bin"]


def test_progress_on_a_terminal_only(web, tmp_path, monkeypatch, capsys):
    download(f"{web.url}/good.bin", str(tmp_path / "a"))
    shown = capsys.readouterr()
    assert shown.err == "" and shown.out == f"Downloading {tmp_path / 'a'} from {web.url}/good.bin...\n"

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "_INTERVAL_SECONDS", 0)
    download(f"{web.url}/good.bin", str(tmp_path / "b"))
    lines = sys.stderr.getvalue().split("\r")
    assert len(lines) > 3 and lines[-1].startswith("b: 307.2 kB of 307.2 kB (100 %), ") and lines[-1].endswith("/s\n")
