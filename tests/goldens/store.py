"""The one format of what MXNet answered: `NAME.json` holds any JSON value, and `NAME.npz` the arrays in it, as bytes.

In the JSON, `{"array": [dtype, shape, offset]}` stands for an array.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent


def save(name: str, value: Any) -> None:
    """Write a recording."""
    blob = bytearray()

    def plain(v: Any) -> Any:
        if isinstance(v, np.ndarray):
            at = len(blob)
            blob.extend(np.ascontiguousarray(v).tobytes())
            return {"array": [v.dtype.name, list(v.shape), at]}
        if isinstance(v, dict):
            return {k: plain(x) for k, x in v.items()}
        return [plain(x) for x in v] if isinstance(v, (list, tuple)) else v

    (HERE / f"{name}.json").write_text(_text(plain(value)) + "\n", encoding="utf-8")
    if blob:
        np.savez_compressed(HERE / f"{name}.npz", blob=np.frombuffer(bytes(blob), np.uint8))


def _text(value: Any, depth: int = 2) -> str:
    """JSON with a line for every entry of the outer objects, so that changes can be read."""
    if isinstance(value, dict) and depth and "array" not in value:
        return "{" + ",".join(f"\n{json.dumps(k)}: {_text(v, depth - 1)}" for k, v in value.items()) + "\n}"
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=float)


@cache
def load(name: str) -> Any:
    """What was recorded, whose arrays are the caller's to look at only."""
    file = HERE / f"{name}.npz"
    blob = np.load(file)["blob"] if file.exists() else np.zeros(0, np.uint8)

    def arrays(entry: dict[str, Any]) -> Any:
        if entry.keys() != {"array"}:
            return entry
        dtype, shape, at = entry["array"]
        count = int(np.prod(shape, dtype=int))
        return np.frombuffer(blob, dtype, count, at).reshape(shape) if count else np.zeros(shape, dtype)

    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"), object_hook=arrays)
