"""Tables of keys and bytes by which processes find each other: in a file, at a process, in a process."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import dualmx.distributed as dist
from tests import jobs

Pair = tuple[dist.Store, dist.Store]


def hashed(path: Path) -> Pair:
    store = dist.HashStore()
    return store, store


def by_tcp(path: Path) -> Pair:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    return store, dist.TCPStore("127.0.0.1", store.port)


def by_file(path: Path) -> Pair:
    return dist.FileStore(str(path / "store"), 2), dist.FileStore(str(path / "store"), 2)


def prefixed(path: Path) -> Pair:
    one, two = by_tcp(path)
    return dist.PrefixStore("a", one), dist.PrefixStore("a", two)


@pytest.fixture(params=[hashed, by_tcp, by_file, prefixed])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    make: Callable[[Path], Pair] = request.param
    yield make(tmp_path)


def test_both_see_the_same(pair: Pair) -> None:
    one, two = pair
    one.set("text", "grün")
    two.set("bytes", bytes(range(256)) * 4096)
    one.set("empty", b"")
    assert two.get("text") == "grün".encode() and one.get("bytes") == bytes(range(256)) * 4096
    assert two.multi_get(["empty", "text"]) == [b"", "grün".encode()]
    assert (one.add("n", 5), two.add("n", -7), two.get("n")) == (5, -2, b"-2")
    one.append("text", b"!")
    assert two.get("text") == "grün!".encode() and two.num_keys() == 4
    assert one.check(["n", "text"]) and not one.check(["n", "other"])
    assert one.delete_key("n") and not two.delete_key("n") and two.num_keys() == 3
    two.multi_set(["x", "y"], [b"1", "2"])
    assert one.multi_get(["y", "x"]) == [b"2", b"1"] and one.has_extended_api()


def test_values_are_swapped_if_they_are_the_expected_ones(pair: Pair) -> None:
    one, two = pair
    assert one.compare_set("key", "other", "new") == b"other" and not two.check(["key"])
    assert one.compare_set("key", "", "first") == b"first" == two.compare_set("key", "wrong", "second")
    assert two.compare_set("key", "first", "second") == b"second" == one.get("key")


def test_keys_are_waited_for(pair: Pair) -> None:
    one, two = pair
    one.set("there", b"1")
    later = threading.Timer(0.1, two.multi_set, (["late", "later"], [b"2", b"3"]))
    later.start()
    one.wait(["there", "late", "later"], timedelta(seconds=20))
    assert one.get("late") == b"2"
    later.join()
    with pytest.raises(dist.DistStoreError, match=r"wait: nobody set all of .* within 0.1 s; missing: 'never'"):
        one.wait(["there", "never"], timedelta(seconds=0.1))
    one.set_timeout(timedelta(seconds=0.1))
    assert one.timeout == timedelta(seconds=0.1)
    with pytest.raises(dist.DistStoreError, match="get: nobody set all of .* within 0.1 s"):
        one.get("never")


def test_counts_of_many_threads(pair: Pair) -> None:
    def count(store: dist.Store) -> None:
        for _ in range(25):
            store.add("n", 1)

    threads = [threading.Thread(target=count, args=(store,)) for store in pair * 2]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert pair[0].get("n") == b"100"


def test_misuse(pair: Pair) -> None:
    one: Any = pair[0]
    one.set("text", "a")
    for call, told in (
        (lambda: one.set(1, "a"), "set: key=1: expected a str"),
        (lambda: one.set("a", 1), "a value of type int: expected str or bytes"),
        (lambda: one.add("a", 0.5), "add: amount=0.5: expected an int"),
        (lambda: one.wait("text"), "keys='text': expected a list"),
        (lambda: one.wait(["text"], "soon"), "timeout='soon': expected a timedelta or seconds"),
        (lambda: one.set_timeout(0), "expected more than 0 seconds"),
        (lambda: one.multi_set(["a"], []), "0 values for 1 keys"),
    ):
        with pytest.raises((ValueError, TypeError), match=told):
            call()
    with pytest.raises(dist.DistStoreError, match="key '(a/)?text' holds b'a': expected an integer"):
        one.add("text", 1)
    assert one.get("text") == b"a"


def test_the_keeper_is_gone() -> None:
    kept = dist.TCPStore("127.0.0.1", 0, is_master=True)
    other = dist.TCPStore("127.0.0.1", kept.port)
    failed: list[BaseException] = []

    def wait() -> None:
        try:
            other.get("never")
        except dist.DistStoreError as e:
            failed.append(e)

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.1)
    del kept
    waiting.join(20)
    assert len(failed) == 1 and "is gone" in str(failed[0])


def test_who_may_come(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = dist.TCPStore("127.0.0.1", 0, is_master=True)
    with pytest.raises(dist.DistNetworkError, match="cannot listen"):
        dist.TCPStore("127.0.0.1", kept.port, is_master=True)
    monkeypatch.setenv("DUALMX_SECRET", "another secret of this job")
    with pytest.raises(dist.DistNetworkError, match="another secret"):
        dist.TCPStore("127.0.0.1", kept.port, timeout=5)
    monkeypatch.delenv("DUALMX_SECRET")
    with pytest.raises(dist.DistNetworkError, match="has no secret"):
        dist.TCPStore("10.1.2.3", 5000, timeout=5)
    with pytest.raises(ValueError, match="port=0: expected a number from 1"):
        dist.TCPStore("127.0.0.1", 0)
    with pytest.raises(dist.DistStoreError, match="1 of 2 processes came within 0.1 s"):
        dist.TCPStore("127.0.0.1", 0, 2, True, timeout=0.1)
    assert dist.TCPStore("127.0.0.1", 0, 1, True).num_keys() == 1  # those who have come are counted there


def test_what_a_process_that_died_was_writing(tmp_path: Path) -> None:
    path = tmp_path / "store"
    one, two = dist.FileStore(str(path)), dist.FileStore(str(path))
    one.set("a", "1")
    with path.open("ab") as file:
        file.write(b'["b", "M')
    assert not two.check(["b"])
    two.set("c", "2")
    assert one.get("c") == b"2" and one.num_keys() == 2
    path.write_text("no store\n")
    with pytest.raises(dist.DistError, match="byte 0: not written by a store"):
        dist.FileStore(str(path)).num_keys()
    with pytest.raises(ValueError, match="No such file"):
        dist.FileStore(str(tmp_path / "none" / "store")).set("a", "1")


JOB = """
import sys
import dualmx as mx, dualmx.distributed as dist
rank, path = int(sys.argv[1]), sys.argv[2]
files = dist.FileStore(path, 2)
if rank == 0:
    store = dist.TCPStore("127.0.0.1", 0, 2, True, wait_for_workers=False)
    files.set("port", str(store.port))
else:
    store = dist.TCPStore("127.0.0.1", int(files.get("port")), 2)
for meets in (store, dist.PrefixStore("job", files), store):
    dist.init_process_group("gloo", store=meets, rank=rank, world_size=2)
    x = mx.nd.full((2,), rank + 1)
    dist.all_reduce(x)
    assert x.asnumpy().tolist() == [3.0, 3.0]
    dist.destroy_process_group()
files.add("over", 1)
while int(files.get("over")) < 2:
    pass
print("finished")
"""


@pytest.mark.slow
def test_processes_meet_by_stores(tmp_path: Path) -> None:
    said = jobs.run_together([[jobs.PYTHON, "-c", JOB, rank, tmp_path / "files"] for rank in range(2)])
    assert all("finished" in s for s in said)


def test_stores_of_groups_are_checked() -> None:
    store = dist.HashStore()
    for arguments, told in (
        ({"store": 3}, "store=3: expected a TCPStore"),
        ({"store": store}, "rank=-1, world_size=-1: expected both"),
        ({"store": store, "rank": 0, "world_size": 2, "init_method": "env://"}, "expected one of them"),
    ):
        with pytest.raises((ValueError, TypeError), match=told):
            dist.init_process_group("gloo", **arguments)  # type: ignore[arg-type]
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    dist.destroy_process_group()


def test_a_store_that_is_dropped_waits_for_no_thread(monkeypatch) -> None:
    kept, other = by_tcp(Path())
    joining: list[threading.Thread] = []  # the threads of vans join some of their own
    monkeypatch.setattr(threading.Thread, "join", lambda *_: joining.append(threading.current_thread()))
    del other
    del kept
    gc.collect()
    assert threading.current_thread() not in joining
