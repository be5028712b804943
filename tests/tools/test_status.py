"""`dualmx status` of jobs with servers and without: its web page, JSON, figures for Prometheus, and `--watch`."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dualmx.tools.status import main, page
from dualmx.tools.status_page import metrics_text, web_page
from dualmx.tools.status_server import MAX_CLIENTS, Server
from tests import jobs

SNAPSHOT = Path(__file__).with_name("status.html")
SERVERS = """
import os, pathlib, time
import dualmx as mx
kv = mx.kv.create("dist_async")
kv.init("w", mx.nd.zeros((1000,)))
kv.set_optimizer(mx.optimizer.SGD())
for i in range(5 if kv.rank else 8):
    kv.push("w", mx.nd.ones((1000,)))
out = mx.nd.zeros((1000,))
kv.pull("w", out)
out.wait_to_read()
mx.callback.report("loss", 0.5 / (1 + kv.rank))
pathlib.Path(os.environ["READY"] + str(kv.rank)).touch()
time.sleep(120)
"""
DIRECT = """
import os, pathlib, time
import dualmx as mx
mx.parallel.init()
x = mx.nd.ones((1000,))
mx.callback.report("loss", float("nan"))
for i in range(20):
    mx.parallel.all_reduce(x).wait_to_read()
pathlib.Path(os.environ["READY"] + str(mx.parallel.rank())).touch()
if mx.parallel.rank() == 1:
    time.sleep(120)
mx.parallel.all_reduce(x).wait_to_read()
"""
STATE: dict[str, Any] = {
    "scheduler": "10.0.0.1:9000", "command": "python train.py --note '<b>'", "complete": True,
    "wanted": {"worker": 2, "server": 1}, "rounds": 7, "rounds_per_s": 2.5, "received_per_s": 3_000_000,
    "sent_per_s": 1500, "pushed": {"0": 7, "1": 5}, "behind": {"0": 0, "1": 2}, "stragglers": {"1": 1.25},
    "servers": {
        "0": {
            "keys": 3, "memory": 5_000_000, "rounds": 7, "rounds_per_s": 2.5, "received_per_s": 3e6,
            "sent_per_s": 1500.0,
        },
    },
    "workers": {
        "0": {
            "age": 0.4, "rounds": 12, "rounds_per_s": 2.0, "sent": 96, "sent_per_s": 16.0, "received": 96,
            "received_per_s": 16.0, "figures": {"loss": 0.25},
            "wait": {"seconds": 1.25, "in": "parallel.all_reduce", "for": [1]},
        },
        "1": {
            "age": 0.6, "rounds": 0, "rounds_per_s": 0.0, "sent": 0, "sent_per_s": 0.0, "received": 0,
            "received_per_s": 0.0, "figures": {'a "quoted"\nname': None}, "wait": None,
        },
    },
    "barriers": [{"barrier": "#1", "ranks": [0]}],
    "members": [
        {"role": "server", "rank": 0, "state": "alive", "since": 0.0, "end": "", "host": "10.0.0.2"},
        {"role": "worker", "rank": 0, "state": "alive", "since": 0.0, "end": "", "host": ""},
        {"role": "worker", "rank": 1, "state": "lost", "since": 0.25, "end": "<closed> the connection", "host": ""},
    ],
}  # fmt: skip
STARTING = {
    **STATE, "complete": False, "command": "", "members": [], "servers": {}, "workers": {}, "pushed": {}, "behind": {},
    "stragglers": {}, "rounds": 0, "rounds_per_s": 0.0, "received_per_s": 0, "sent_per_s": 0, "barriers": [],
}  # fmt: skip
DIRECTLY = {
    **STATE, "wanted": {"worker": 2, "server": 0}, "servers": {}, "pushed": {}, "behind": {},
    "members": STATE["members"][1:],
    "batch": {"number": 3, "members": [0, 1]},
}  # fmt: skip


class Client:
    """Talks to a `dualmx status --serve` in another process."""

    def __init__(self, port: int):
        self.port = port

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str, http.client.HTTPMessage]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, None, headers)
        answer = connection.getresponse()
        found = answer.status, answer.read().decode(), answer.headers
        connection.close()
        return found

    def jobs(self) -> dict[str, dict[str, Any]]:
        """States of the jobs, by whether they have servers."""
        status, body, _ = self.ask("/status.json")
        assert status == 200
        states = json.loads(body, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))["jobs"]
        return {"servers" if state["wanted"]["server"] else "direct": state for state in states}


def started(*arguments: str, **env: str) -> jobs.Process:
    def interruptible() -> None:  # also where the tests are not, as in the background of a script
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    command = [jobs.PYTHON, "-m", "dualmx.cli", *arguments]
    return jobs.start(*command, env={"PYTHONUNBUFFERED": "1", **env}, stderr=None, preexec_fn=interruptible)


def port_of(process: jobs.Process) -> int:
    assert process.stdout is not None
    found = re.search(r"on http://127\.0\.0\.1:(\d+)$", process.stdout.readline().strip())
    assert found is not None
    return int(found[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Configuration of a user who runs a job with a server and one without."""
    folder = tmp_path_factory.mktemp("jobs")
    launches = []
    for name, servers, code in (("servers", 1, SERVERS), ("direct", 0, DIRECT)):
        env = {"XDG_CONFIG_HOME": str(folder), "READY": str(folder / name)}
        command = [*jobs.launcher(2, servers), jobs.PYTHON, "-c", code]
        launches.append(jobs.start(*command, env=env, stdout=subprocess.DEVNULL))

    def ready() -> bool:
        assert all(launch.poll() is None for launch in launches)
        return all((folder / f"{name}{rank}").exists() for name in ("servers", "direct") for rank in (0, 1))

    try:
        jobs.wait_for(ready, 90)
        yield folder
    finally:
        jobs.end(*launches)


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    process = started("status", "--serve", "0", "--interval", "0.3", XDG_CONFIG_HOME=str(folder))
    yield Client(port_of(process))
    process.send_signal(signal.SIGTERM)
    jobs.finish(process)
    assert process.returncode == 0


@pytest.mark.slow
def test_jobs_are_told_while_they_run(client: Client) -> None:
    """Rounds, who is behind, who is late, and what workers report: of a job with servers, and of one without."""
    until, found = time.monotonic() + 60, {}
    while True:
        assert time.monotonic() < until, found
        found = client.jobs()
        direct, servers = found.get("direct", {}), found.get("servers", {})
        if direct.get("stragglers") and all(len(state.get("workers", {})) == 2 for state in (direct, servers)):
            break
        time.sleep(0.1)
    assert servers["pushed"] == {"0": 8, "1": 5} and servers["behind"] == {"0": 0, "1": 3}
    assert [w["figures"] for _, w in sorted(servers["workers"].items())] == [{"loss": 0.5}, {"loss": 0.25}]
    assert [(m["role"], m["rank"], m["state"]) for m in direct["members"]] == [
        ("worker", 0, "alive"), ("worker", 1, "alive"),
    ]  # fmt: skip
    assert direct["rounds"] == 21 and list(direct["stragglers"]) == ["1"] and direct["stragglers"]["1"] > 0.5
    first, second = direct["workers"]["0"], direct["workers"]["1"]
    assert (first["rounds"], second["rounds"]) == (21, 20) and second["wait"] is None
    assert first["wait"]["in"] == "parallel.all_reduce" and first["wait"]["for"] == [1]
    assert (first["sent"], first["received"], second["sent"]) == (21 * 4000, 20 * 4000, 20 * 4000)
    assert first["figures"] == {"loss": None}
    assert "waits in parallel.all_reduce for 1 since" in page(direct, "")

    status, body, headers = client.ask("/")
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert body.count("<h2>job at ") == 2 and "waits in parallel.all_reduce for 1" in body and "loss=0.25" in body

    status, body, headers = client.ask("/metrics")
    assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
    job = f'job="{direct["scheduler"]}"'
    assert f'dualmx_worker_exchanges_total{{{job},worker="0"}} 21\n' in body
    assert re.search(rf'dualmx_straggler_seconds{{{job},worker="1"}} \d', body)
    assert f'dualmx_behind_rounds{{job="{servers["scheduler"]}",worker="1"}} 3\n' in body


@pytest.mark.slow
def test_exchanges_by_xla_are_told(tmp_path: Path) -> None:
    """Who waits inside of XLA does not know for whom: the straggler is the one that does not wait."""
    env = {"XDG_CONFIG_HOME": str(tmp_path), "READY": str(tmp_path / "x"), "DUALMX_COLLECTIVES": "xla"}
    command = [*jobs.launcher(3), jobs.PYTHON, "-c", DIRECT]
    with jobs.running(*command, env=env, stdout=subprocess.DEVNULL) as job:
        until, state, waits = time.monotonic() + 90, {}, []
        # On a busy machine the others may wait for its first round as well, or not yet for long.
        while not (
            list(state.get("stragglers", {})) == ["1"]
            and state["workers"]["1"]["rounds"] >= 20
            and all(wait and wait["seconds"] > 0.5 and 1 in wait["for"] for wait in waits)
        ):
            assert time.monotonic() < until and job.poll() is None, state
            done = jobs.run(jobs.PYTHON, "-m", "dualmx.cli", "status", "--json", env=env, status=None, seconds=60)
            state = json.loads(done.stdout) if done.returncode == 0 else {}
            waits = [state.get("workers", {}).get(rank, {}).get("wait") for rank in ("0", "2")]
        # The arrays' own bytes: what travels, XLA alone knows.
        assert state["workers"]["1"]["rounds"] == 20 and state["workers"]["1"]["sent"] == 20 * 4000


def test_no_secret_is_told(client: Client, folder: Path) -> None:
    secrets = [json.loads(f.read_text())["secret"] for f in (folder / "dualmx" / "jobs").glob("*.json")]
    assert len(secrets) == 2 and all(len(secret) > 16 for secret in secrets)
    for path in ("/", "/status.json", "/metrics"):
        body = client.ask(path)[1]
        assert not any(secret in body for secret in secrets)


def test_the_page_can_only_be_read(client: Client) -> None:
    until, length = time.monotonic() + 60, 0
    while length <= 100:  # less while the jobs have not answered yet
        assert time.monotonic() < until
        status, body, headers = client.ask("/status.json", "HEAD")
        assert status == 200 and body == ""
        length = int(headers["Content-Length"])
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        status, _, headers = client.ask("/", method)
        assert status == 405 and headers["Allow"] == "GET, HEAD"
    status, body, _ = client.ask("/../etc/passwd")
    assert status == 404 and "expected /, /status.json or /metrics" in body
    assert client.ask("/status.json?now")[0] == 200


def test_names_that_others_choose_for_this_host_are_refused(client: Client) -> None:
    for host in ("evil.example", "evil.example:80", "[::1", "", "10.0.0.1"):
        assert client.ask("/status.json", Host=host)[0] == 403
    for host in ("localhost", "127.0.0.1:1", "[::1]:80"):
        assert client.ask("/status.json", Host=host)[0] == 200


def test_a_client_that_sends_nothing_keeps_nobody_from_reading(client: Client) -> None:
    idle = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(MAX_CLIENTS // 2)]
    assert client.ask("/")[0] == 200
    for one in idle:
        one.close()
    with socket.create_connection(("127.0.0.1", client.port), 30) as one:
        one.sendall(b"GET /" + b"a" * 70_000)
        assert one.recv(64).startswith(b"HTTP/1.1 414")


@pytest.mark.slow
def test_watching_goes_on_until_interrupted(folder: Path) -> None:
    process = started("status", "--watch", "--interval", "0.2", XDG_CONFIG_HOME=str(folder))
    assert process.stdout is not None
    found: list[str] = []
    try:
        while sum(line.startswith("job at ") for line in found) < 5:
            found.append(process.stdout.readline())
            assert found[-1], found
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.communicate()
    assert not any("\x1b" in line for line in found)  # no terminal


def test_a_page_of_no_job_says_so_and_shows_one_that_comes(tmp_path: Path) -> None:
    states: list[dict[str, Any]] = []
    problems = ["no job of yours runs on this host"]

    def look() -> tuple[list[dict[str, Any]], list[str]]:
        if not states and not problems:
            raise KeyError("no such thing")
        return list(states), [] if states else problems

    server = Server(("127.0.0.1", 0), look, 0.1)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        client = Client(server.server_port)
        until = time.monotonic() + 20
        while "no job of yours runs on this host" not in client.ask("/")[1]:
            assert time.monotonic() < until
        assert client.ask("/metrics")[1] == ""
        states.append(STATE)
        while "job at 10.0.0.1:9000" not in client.ask("/")[1]:
            assert time.monotonic() < until
        states.clear()
        problems.clear()  # so that the look fails
        while "KeyError: &#x27;no such thing&#x27;" not in client.ask("/")[1]:
            assert time.monotonic() < until
        assert "job at 10.0.0.1:9000" not in client.ask("/")[1]
    finally:
        server.shutdown()
        server.server_close()


class Tags(HTMLParser):
    """What a page loads, and whether what it opens is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)
        self.loads += [str(v) for k, v in attrs if k in ("src", "href")]
        assert tag not in ("script", "b", "closed")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_of_a_state() -> None:
    """It is that of `status.html`, which was looked at; it loads nothing, and runs nothing of what jobs are called."""
    found = web_page([STATE, STARTING, DIRECTLY], ["nobody listens at <h>:1"], 0.3, 0.5)
    tags = Tags()
    tags.feed(found)
    tags.close()
    assert not tags.open and tags.loads == ["status.json", "metrics"]
    assert found == SNAPSHOT.read_text(encoding="utf-8")


def test_figures_for_prometheus() -> None:
    lines = metrics_text([STATE, STARTING]).splitlines()
    one, two = 'job="10.0.0.1:9000"', "dualmx_members"
    assert f'{two}{{{one},role="worker",state="alive"}} 1' in lines and "# TYPE dualmx_members gauge" in lines
    assert f"dualmx_rounds_total{{{one}}} 7" in lines and "# TYPE dualmx_rounds_total counter" in lines
    assert f'dualmx_worker_figure{{{one},worker="0",name="loss"}} 0.25' in lines
    assert f'dualmx_worker_figure{{{one},worker="1",name="a \\"quoted\\"\\nname"}} NaN' in lines
    assert all(re.fullmatch(r'# .*|\w+\{(\w+="([^"\\]|\\.)*",?)+\} (NaN|[\d.e+-]+)', line) for line in lines)
    named = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(named) == len(set(named)) and metrics_text([]) == ""


def test_a_worker_in_words() -> None:
    assert page(STATE, "").splitlines()[3:5] == [
        "  worker 0   alive, round 7, 12 exchanges, 2/s, 16 B/s sent, waits in parallel.all_reduce for 1 since 1.2 s, "
        "loss=0.25",
        "  worker 1   lost for 0.25 s: <closed> the connection, round 5 (2 behind), "
        'others wait for it since 1.2 s, a "quoted"',
    ]
    assert "1.5 KB/s between the workers" in page(DIRECTLY, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--serve", "70000"], "--serve 70000: expected a port"),
        (["--serve", "0", "--json"], "--serve: expected neither --watch nor --json"),
        (["--serve", "0", "--watch"], "--serve: expected neither --watch nor --json"),
    ],
)
def test_wrong_options_are_named(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2 and text in capsys.readouterr().err


@pytest.mark.slow
def test_an_address_that_is_taken_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["--serve", str(port)]) == 2
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in capsys.readouterr().err
