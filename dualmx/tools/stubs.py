"""Writes the stub files (`.pyi`) of what the front ends generate: `python -m dualmx.tools.stubs`.

Type checkers and editors read them. They are products of the build and not under version control: the build hook runs
this file by its path whenever a wheel is built or the repository is installed.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]


class Placeholder:
    """Any value of JAX: it can be called, indexed, decorated with, and has every attribute."""

    def __init__(self, *args: Any, **kwargs: Any):
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Placeholder:
        return self

    def __getattr__(self, name: str) -> Placeholder:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: Any) -> Placeholder:
        return self


class PlaceholderModule(ModuleType):
    """A module of JAX, or one below it: it has every name, classes under those that begin with a capital."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {}) if name[0].isupper() else Placeholder()


class PlaceholderFinder(MetaPathFinder, Loader):
    """Imports of JAX where it is not installed, as in the environments that wheels are built in.

    Signatures come from the operators' annotations, and nothing is computed; NumPy and the dtypes are the real ones.
    """

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        """Answer for JAX and its modules."""
        return ModuleSpec(fullname, self, is_package=True) if fullname.split(".")[0] in ("jax", "jaxlib") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module that stands in for the one of this name."""
        return PlaceholderModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module answers by itself."""


def main() -> int:
    """Write the stub files that are not as they should be; returns the exit status."""
    if importlib.util.find_spec("jax") is None:
        sys.meta_path.append(PlaceholderFinder())
    from dualmx.tools.stub_files import write

    for path in write():
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    if not __package__:
        sys.path[0] = str(ROOT)
    sys.exit(main())
