"""MXNet's import path of `mx.sym.contrib`."""

from __future__ import annotations

from typing import Any

from ..namespace import sym


def __getattr__(name: str) -> Any:
    return getattr(sym.contrib, name)


def __dir__() -> list[str]:
    return dir(sym.contrib)
