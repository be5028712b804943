"""Compile `handlers.c` with a C compiler: `python dualmx/compile/cpu/onednn/build.py`.

Installing does the same (`hatch_build.py`) where there is a compiler.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("handlers.c")
_FLAGS = ("-std=gnu11", "-O3", "-fno-math-errno", "-Wall", "-shared", "-fPIC", "-pthread")
_COMPILER_SECONDS = 60  # that the compiler may take


def supported() -> bool:
    """True where there is a wheel of oneDNN."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and platform.libc_ver()[0] == "glibc"


def target(folder: Path | None = None) -> Path:
    """Return the path of the compiled handlers, named by this very source."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    return (folder or SOURCE.parent) / f"handlers.{digest}.so"


def build(folder: Path | None = None) -> Path:
    """Compile the handlers, by default beside their source, and remove older ones.

    Raises `OSError` or `subprocess.SubprocessError` where that cannot be done: no compiler, a folder that is not ours.
    """
    path = target(folder)
    command = shlex.split(os.environ.get("CC") or "cc")
    if not command or not shutil.which(command[0]):
        raise FileNotFoundError(f"no C compiler: {' '.join(command)!r}")
    handle, new = tempfile.mkstemp(suffix=".so", dir=path.parent)
    os.close(handle)
    try:
        subprocess.run(
            [*command, *_FLAGS, str(SOURCE), "-lm", "-o", new],
            check=True,
            capture_output=True,
            timeout=_COMPILER_SECONDS,
        )
        os.chmod(new, 0o755)
        os.replace(new, path)  # others may be loading it
    finally:
        Path(new).unlink(missing_ok=True)
    for old in path.parent.glob("handlers.*.so"):
        if old != path:
            old.unlink()
    return path


if __name__ == "__main__":
    print(build())
