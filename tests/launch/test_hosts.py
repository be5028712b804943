"""Host files, and which process goes where."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from dualmx.core.errors import ArgumentError
from dualmx.launch.cli import main
from dualmx.launch.hostfile import Host, by_host, place, read_hosts
from dualmx.launch.plan import JobPlan, place_scheduler


def written(folder: Path, text: str) -> Path:
    (folder / "hosts").write_text(text)
    return folder / "hosts"


def test_the_three_forms(tmp_path: Path) -> None:
    text = "# machines\n10.0.0.1\nme@node-2:2222   # with a port\n\nnode3 slots=4\n[fe80::1]:23\nnode4 slots = 2\n"
    assert read_hosts(written(tmp_path, text)) == [
        Host("10.0.0.1"), Host("me@node-2", 2222), Host("node3", slots=4), Host("fe80::1", 23), Host("node4", slots=2),
    ]  # fmt: skip
    assert Host("me@node-2", 2222).address == "node-2"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no host"),
        ("# nothing\n", "names no host"),
        ("a b\n", "line 1: 'a b': expected 'host'"),
        ("a\n\nb:x\n", "line 3: port='x'"),
        ("b:0\n", "port='0': expected 1 to 65535"),
        ("b:70000\n", "port='70000'"),
        ("b slots=0\n", "slots='0'"),
        ("b slots=many\n", "slots='many'"),
        ("b slots\n", "expected 'host'"),
        ("-oProxyCommand=evil\n", "expected 'host'"),
        ("a\0b c\n", "expected 'host'"),
    ],
)
def test_wrong_host_files_are_explained(text: str, said: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ArgumentError, match="host file") as error:
        read_hosts(path)
    assert said in str(error.value)


def test_a_host_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(["-n", "1", "--launcher", "ssh", "-H", str(tmp_path / "absent"), "true"])
    assert error.value.code == 2 and "cannot be read: No such file" in capsys.readouterr().err
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ArgumentError, match="not text"):
        read_hosts(tmp_path / "binary")


def test_ranks_follow_the_list() -> None:
    a, b = Host("a", slots=2), Host("b")
    places = place([a, b], servers=2, workers=5)
    assert [places["worker", i].name for i in range(5)] == ["a", "a", "b", "a", "a"]
    assert [places["server", i].name for i in range(2)] == ["a", "b"]
    groups = by_host(places)
    assert [h.name for h, _ in groups] == ["a", "b"]
    assert sorted(seat for _, seats in groups for seat in seats) == sorted(places)
    assert {h.name: seats for h, seats in groups}["b"] == [("server", 1), ("worker", 2)]


def test_ports_of_one_host_are_two_places() -> None:
    near, far = Host("a", 22), Host("a", 2222)
    groups = by_host(place([near, far], servers=0, workers=3))
    assert groups == [(near, [("worker", 0), ("worker", 2)]), (far, [("worker", 1)])]


def test_the_schedulers_address() -> None:
    plan = JobPlan(["true"], 1, 1, launcher="ssh", hosts=[Host("127.0.0.1", 22)])
    place_scheduler(plan)
    assert plan.uri == "127.0.0.1" and 1024 <= plan.port < 65536
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ArgumentError, match=f"cannot listen on 127.0.0.1:{port}: .*take another --port"):
            place_scheduler(JobPlan(["true"], 1, 1, port=port))
    with pytest.raises(ArgumentError, match="--host-ip"):
        place_scheduler(JobPlan(["true"], 1, 1, uri="192.0.2.77"))


def test_a_taken_port_ends_the_launcher_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["-n", "1", "--port", str(taken.getsockname()[1]), "true"]) == 2
    assert "Address already in use; take another --port" in capsys.readouterr().err
