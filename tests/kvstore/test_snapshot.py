"""Reading snapshots, and random streams that go on; jobs that use them are in tests/ps."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import FormatError
from dualmx.core.rng import rng_streams
from dualmx.kvstore.states import FORMAT, read_snapshot


@pytest.mark.usefixtures("one_tier")
def test_random_streams_go_on() -> None:
    mx.random.seed(5)
    mx.nd.random.normal(shape=(2,)).asnumpy()
    told = json.loads(json.dumps(rng_streams.state()))
    after = mx.nd.random.normal(shape=(3,)).asnumpy()
    mx.random.seed(9)
    rng_streams.restore(told)
    assert (mx.nd.random.normal(shape=(3,)).asnumpy() == after).all()


def packed(**parts: object) -> bytes:
    out = io.BytesIO()
    np.savez(out, **{k: np.frombuffer(json.dumps(v).encode(), np.uint8) for k, v in parts.items()})
    return out.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nothing",
        packed(other=1),
        packed(meta={"format": "another"}),
        packed(meta={"format": FORMAT, "keys": [["w", "object", [1], "default"]]}),
        packed(meta={"format": FORMAT, "keys": [["w", "float32", [9], "default"]]}, value0="four"),
        packed(meta={"format": FORMAT, "keys": [["w", "float32", [1], "default"]]}),
    ],
)
def test_other_files_are_no_snapshots(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(FormatError, match="not a snapshot of a store") as caught:
        read_snapshot(str(file))
    assert "pickle" not in str(caught.value)  # what NumPy takes any file for, and advises to load


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(mx.MXNetError, match="cannot read .*absent"):
        read_snapshot(str(tmp_path / "absent"))
