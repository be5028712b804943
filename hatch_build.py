"""Puts the stub files, the kernels of common operators and the compiled handlers of oneDNN into the wheel.

Without a C compiler, or elsewhere than on Linux, there are no handlers and the wheel is pure.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FOLDER = "dualmx/compile/cpu/onednn"
_OLDEST = (2, 17)  # glibc of manylinux2014


def _compiler(root: Path) -> ModuleType:
    """The module that compiles; importing dualmx here would take its settings from the environment."""
    spec = importlib.util.spec_from_file_location("build_handlers", root / _FOLDER / "build.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _platform(library: bytes) -> str:
    """The tag of platforms that a library runs on, by the versions of glibc's functions that it calls."""
    needs = max(tuple(map(int, v)) for v in re.findall(rb"GLIBC_(\d+)\.(\d+)", library))
    return "manylinux_2_17_x86_64.manylinux2014_x86_64" if needs <= _OLDEST else "linux_x86_64"


class Hook(BuildHookInterface):
    """Called for wheels and editable installations."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make everything beside the source, where editable installations look for it as well."""
        self._write_stubs()
        build_data["artifacts"].append("/dualmx/**/*.pyi")
        self._trace_operators()
        build_data["artifacts"].append("/dualmx/op/shipped_traces.json")
        self._compile(build_data)

    def _run_tool(self, name: str, *arguments: str, **pipes: Any) -> None:
        # In a process of its own, which imports dualmx, with none of its settings.
        ours = ("DMLC_", "DUALMX_", "MXNET_")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        command = [sys.executable, str(Path(self.root, "dualmx", "tools", f"{name}.py")), *arguments]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, **pipes)

    def _write_stubs(self) -> None:
        self._run_tool("stubs")

    def _trace_operators(self) -> None:
        try:
            self._run_tool("traces", "--unless-current", stderr=subprocess.PIPE)
        except subprocess.SubprocessError as e:
            said = (getattr(e, "stderr", None) or b"").decode(errors="replace")
            self.app.display_warning(f"operators are traced when they are first used: {e}\n{said}")

    def _compile(self, build_data: dict[str, Any]) -> None:
        compiler = _compiler(Path(self.root))
        if not compiler.supported():
            return
        try:
            path = compiler.build()
        except (OSError, subprocess.SubprocessError) as e:
            said = (getattr(e, "stderr", None) or b"").decode(errors="replace")
            self.app.display_warning(f"convolutions on the CPU are left to XLA: {e}\n{said}")
            return
        build_data["artifacts"].append(f"/{_FOLDER}/{path.name}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform(path.read_bytes())}"
