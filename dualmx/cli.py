"""The `dualmx` command."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from importlib import metadata

from .core.knobs import KNOBS, SECRET, ignored_variables
from .core.module_alias import load
from .launch import main as launch

_FOREIGN = (
    "XLA_FLAGS", "JAX_PLATFORMS", "JAX_ENABLE_X64", "JAX_COMPILATION_CACHE_DIR", "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_MEM_FRACTION", "OMP_NUM_THREADS", "GLIBC_TUNABLES",
)  # fmt: skip

_TOOLS = {
    "bandwidth": ("bandwidth", "main", "measure how fast a key-value store moves arrays"),
    "speedup": ("scaling_advisor", "main", "predict how much faster several workers train a network"),
    "status": ("status", "main", "show the members, rounds and speed of a running job"),
    "diagnose": ("diagnose", "main", "the same; with --hosts: whether hosts reach each other and agree"),
    "serve": ("serve", "main", "answer questions to an exported network over HTTP"),
    "im2rec": ("im2rec", "main", "make image lists, and record files from them"),
    "rec2idx": ("im2rec", "rec2idx", "write the index of a record file"),
}


def doctor() -> int:
    """Print versions, devices, and every recognised environment variable with its value and effect; return 0 or 1."""
    import jax

    from .compile.cpu.onednn.bindings import WHEEL
    from .compile.cpu.onednn.ffi_handlers import unavailable
    from .compile.devices import local_devices
    from .compile.executable import compiler_options

    problems = 0
    print(f"python    {platform.python_version()} ({sys.executable})")
    for name in ("dualmx", "jax", "jaxlib", "numpy", "flax", "optax", WHEEL):
        try:
            print(f"{name:9} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            print(f"{name:9} not installed")
    for kind in ("cpu", "gpu", "tpu"):
        found = local_devices(kind)
        if found:
            print(f"{kind:9} {len(found)} device(s): {', '.join(str(d) for d in found)}")
            print(f"          compiler options: {compiler_options(found[0].platform) or 'none'}")
        if kind == "cpu":
            why = unavailable()
            print(f"          large convolutions by {f'XLA: {why}' if why else 'oneDNN, compiled handlers'}")
    print(
        f"x64       {'on' if jax.config.values['jax_enable_x64'] else 'off'} for your own JAX code; "
        "dualmx always keeps 64-bit types"
    )
    print("\nenvironment (dualmx):")
    for knob in KNOBS:
        try:
            value = knob.read()
            shown = "(hidden)" if knob is SECRET and value else repr(value)
            shown += "" if knob.name in os.environ else " (default)"
        except ValueError as e:
            problems += 1
            shown = f"INVALID: {e}"
        print(f"  {knob.name}={shown}\n      {knob.doc}")
    without = ignored_variables()
    if without:
        print("\nenvironment (set, and without effect on dualmx):")
    for name, why in without.items():
        print(f"  {name}\n      {why}")
    print("\nenvironment (JAX, XLA, system; yours, never changed by dualmx):")
    for name in _FOREIGN:
        print(f"  {name}={os.environ.get(name, '(unset)')}")
    return 1 if problems else 0


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="dualmx", description="Tools of dualmx.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="show versions, devices and settings, and what is wrong with them")
    commands.add_parser("launch", help="start a distributed job, as dualmx-launch does", add_help=False)
    for name, (_, _, what) in _TOOLS.items():
        commands.add_parser(name, help=what, add_help=False)
    given = sys.argv[1:] if argv is None else argv
    if given[:1] == ["launch"]:
        return launch(given[1:])
    if given[:1] and given[0] in _TOOLS:
        module, function, _ = _TOOLS[given[0]]
        return getattr(load(f"tools.{module}"), function)(given[1:])
    options = parser.parse_args(given)
    return {"doctor": doctor}[options.command]()


if __name__ == "__main__":
    sys.exit(main())
