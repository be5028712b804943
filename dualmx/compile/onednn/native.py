"""The handlers in C, compiled once a machine where it has a C compiler: they do not wait for Python's lock."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import jax

from ...core import knobs
from .library import Library
from .plan import MOST, Convolution, Plan

_SOURCE = Path(__file__).with_name("handlers.c")
_SECONDS = 60  # that the compiler may take
Pointer = ctypes.c_void_p


class _Step(ctypes.Structure):
    _fields_ = [("primitive", Pointer), ("count", ctypes.c_int), ("arguments", Pointer)]


class _Plan(ctypes.Structure):
    _fields_ = [
        ("next", Pointer),
        ("text", ctypes.c_char_p),
        ("length", ctypes.c_size_t),
        ("place", ctypes.c_int64 * 3),
        ("memories", Pointer * 3),
        ("used", ctypes.c_int64),
        ("inner", Pointer * 7),
        ("offset", ctypes.c_size_t * 7),
        ("scratch", ctypes.c_size_t),
        ("count", ctypes.c_int64),
        ("steps", _Step * 4),
    ]


_MAKE = ctypes.CFUNCTYPE(Pointer, Pointer, ctypes.c_size_t, Pointer, Pointer, ctypes.c_size_t)


class _Functions(ctypes.Structure):
    _fields_ = [
        *((name, Pointer) for name in ("set_data", "execute", "wait", "product", "stream")),
        ("most", ctypes.c_int64),
        ("make", _MAKE),
    ]


def _own(path: Path) -> bool:
    """True if only this user, or the administrator, could have written a file."""
    return all(s.st_uid in (0, os.getuid()) and not s.st_mode & 0o022 for s in (path.stat(), path.parent.stat()))


def _built(folder: Path) -> Path:
    """The compiled handlers in a folder. Raises `OSError` or `subprocess.SubprocessError` where they cannot be had."""
    source, headers = _SOURCE.read_bytes(), jax.ffi.include_dir()
    name = hashlib.sha256(source + f"{jax.__version__} {os.uname().machine}".encode()).hexdigest()[:24]
    path = folder / f"onednn-{name}.so"
    if not path.exists():
        compiler = shutil.which(os.environ.get("CC") or "cc")
        if not compiler:
            raise FileNotFoundError("no C compiler")
        handle, new = tempfile.mkstemp(suffix=".so", dir=path.parent)
        os.close(handle)
        command = [compiler, "-O2", "-shared", "-fPIC", "-pthread", "-I", headers, str(_SOURCE), "-o", new]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
            os.chmod(new, 0o700)
            os.replace(new, path)  # other processes may be doing the same
        finally:
            Path(new).unlink(missing_ok=True)
    if not _own(path):
        raise PermissionError(f"others may write {path}")
    return path


def _loaded() -> ctypes.CDLL:
    kept = knobs.CACHE.read()
    if not kept:
        with tempfile.TemporaryDirectory(prefix="dualmx-") as folder:
            return ctypes.CDLL(str(_built(Path(folder))))
    folder = Path(kept).expanduser()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return ctypes.CDLL(str(_built(folder)))


class Handlers:
    """The compiled handlers and the plans that they hold.

    Raises `OSError` or `subprocess.SubprocessError` where they cannot be had.
    """

    def __init__(self, library: Library):
        self._library = library
        self._c = _loaded()
        self._plans: dict[int, tuple[Plan, _Plan]] = {}
        names = ("dnnl_memory_set_data_handle", "dnnl_primitive_execute", "dnnl_stream_wait", "dnnl_sgemm")
        self._functions = _Functions(*map(library.address, names), library.stream, MOST, _MAKE(self._make))
        self._c.dualmx_onednn_start(ctypes.byref(self._functions))
        self.convolution, self.product = self._c.dualmx_onednn_convolution, self._c.dualmx_onednn_product
        self.keep = self._c.dualmx_keep

    def _make(self, text: int, length: int, instead: int | None, message: int, room: int) -> int | None:
        try:
            if instead:
                self._plans.pop(instead)[0].destroy()
            words = ctypes.string_at(text, length)
            plan = Plan(self._library, Convolution.parse(words.decode()))
            steps = (_Step * 4)(*(_Step(p, count, ctypes.cast(a, Pointer)) for p, count, a in plan.steps))
            inner, offsets = zip(*plan.inner, strict=True) if plan.inner else ((), ())
            scratch = len(inner), (Pointer * 7)(*inner), (ctypes.c_size_t * 7)(*offsets), plan.size
            memories = (Pointer * 3)(*plan.memories)
            made = _Plan(None, words, length, plan.place, memories, *scratch, len(plan.steps), steps)
            self._plans[ctypes.addressof(made)] = (plan, made)
            return ctypes.addressof(made)
        except Exception as e:  # an exception cannot cross C
            said = f"{e}; MXNET_MKLDNN_ENABLED=0 leaves all work to XLA".encode()[: room - 1] + b"\0"
            ctypes.memmove(message, said, len(said))
            return None


def handlers(library: Library) -> Handlers | None:
    """The compiled handlers, None where this machine cannot make them."""
    try:
        return Handlers(library)
    except (OSError, subprocess.SubprocessError) as e:
        logging.getLogger("dualmx").info("oneDNN is called through Python: %s", e)
        return None
