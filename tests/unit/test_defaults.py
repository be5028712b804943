"""Parameters of functions, methods and operators have MXNet's default values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import ArgumentError
from dualmx.op.registry import OPS
from tests.goldens.signature_cases import defaults
from tests.goldens.store import load

# Where MXNet lists no default that a caller gets: its Python functions fill them in.
FILLED_IN = dict.fromkeys(
    ("_full", "_npi_full", "_zeros_without_dtype", "_sample_unique_zipfian", "_npi_multinomial"), ("shape", "size")
)
FILLED_IN |= dict.fromkeys(("_npi_blackman", "_npi_hamming", "_npi_hanning"), ("M",))
FILLED_IN |= {
    "_npi_dsplit": ("axis",),
    "_npi_rot90": ("axes",),
    "_npi_tensorsolve": ("a_axes",),
    "_npx_constraint_check": ("msg",),
}


def attribute(path: str) -> Any:
    """What a dotted name stands for, or None."""
    value: Any = mx
    for part in path.split("."):
        value = getattr(value, part, None)
    return value


def differences(recorded: Mapping[str, Any], find: Callable[[str], Any] = attribute) -> list[str]:
    """Parameters whose default is another one than recorded."""
    found = []
    for path, wanted in recorded.items():
        got = defaults(find(path))
        for name, value in wanted.items():
            if name in got and (got[name] != value or type(got[name]) is not type(value)):
                found.append(f"{path}: {name}={got[name]!r}: expected {value!r}")
    return found


def test_functions_and_methods() -> None:
    recorded = load("signature")["functions"]
    assert differences(recorded) == []
    assert sum(attribute(path) is not None for path in recorded) > 0.9 * len(recorded)


def overrides(recorded: Mapping[str, Any]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Methods of subclasses in place of a recorded one, with the defaults of that."""
    for path, wanted in recorded.items():
        owner, _, method = path.rpartition(".")
        kind = attribute(owner)
        below = list(kind.__subclasses__()) if inspect.isclass(kind) and method != "__init__" else []
        while below:
            sub = below.pop()
            below += sub.__subclasses__()
            if method in vars(sub) and sub.__module__.startswith("dualmx."):
                yield f"{sub.__module__}.{sub.__qualname__}.{method}", vars(sub)[method], wanted


def test_methods_that_take_the_place_of_others() -> None:
    recorded = load("signature")["functions"]
    own = {path.rsplit(".", 2)[1] + "." + path.rsplit(".", 1)[1] for path in recorded}
    found = [(p, f, w) for p, f, w in overrides(recorded) if ".".join(p.rsplit(".", 2)[1:]) not in own]
    assert [d for p, f, w in found for d in differences({p: w}, lambda path, f=f: f)] == []
    assert len(found) > 20


def test_a_wrong_default_is_found() -> None:
    recorded = {"image.imrotate": {"zoom_in": False, "zoom_out": True}, "init.Xavier.__init__": {"magnitude": 3}}
    assert differences(recorded) == ["image.imrotate: zoom_out=False: expected True"]
    assert differences({"f": {"n": 0}}, lambda path: lambda n=False: n) == ["f: n=False: expected 0"]


def _of_operator(name: str, param: str, text: str) -> str | None:
    field = OPS[name].params.get(param)
    if field is None or field.required or param in FILLED_IN.get(name, ()):
        return None
    try:
        wanted = field.convert(text)
    except ArgumentError as e:
        return f"{param}={text}: {e}"
    # MXNet prints float32; a tuple of equal numbers stands for one.
    exact = not isinstance(wanted, (float, tuple)) or not isinstance(field.default, (float, tuple))
    same = wanted == field.default if exact else np.allclose(wanted, field.default, rtol=1e-7, atol=0)
    return None if same else f"{param}={field.default!r}: expected {text}"


def test_operators() -> None:
    recorded = {name: texts for name, texts in load("signature")["operators"].items() if name in OPS}
    problems = [
        (n, problem) for n, texts in recorded.items() for p, t in texts.items() if (problem := _of_operator(n, p, t))
    ]
    assert problems == [] and len(recorded) > 450


@pytest.mark.parametrize(("name", "param", "text"), [("Pooling", "pool_type", "avg"), ("LRN", "alpha", "0.0002")])
def test_a_wrong_default_of_an_operator_is_found(name: str, param: str, text: str) -> None:
    assert f"expected {text}" in str(_of_operator(name, param, text))
