"""MXNet's import path of `mx.nd.contrib`."""

from __future__ import annotations

from typing import Any

from ..namespace import nd


def __getattr__(name: str) -> Any:
    return getattr(nd.contrib, name)


def __dir__() -> list[str]:
    return dir(nd.contrib)
