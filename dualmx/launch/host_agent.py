"""Script run on a host by the launcher or `dualmx diagnose`: answers questions about the host and its network.

A question is a JSON line on stdin that names one of the functions below. An answer is a JSON line that begins with RS,
which tells it from the output of a login shell. The script needs only Python, and ends at the end of stdin.
"""

import json
import os
import shutil
import socket
import struct
import sys
import threading
import time
from typing import Any


def facts(question: dict[str, Any]) -> dict[str, Any]:
    """Return user, host and whether `folder` can be used (`make`: create it)."""
    import platform

    folder, problem = os.path.expanduser(question["folder"]), ""
    try:
        if question["make"]:
            os.makedirs(folder, exist_ok=True)
        if folder:
            os.chdir(folder)
    except OSError as e:
        problem = f"the folder {folder!r} cannot be used: {e.strerror}"
    try:
        import pwd

        user = pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        user = str(os.getuid())
    return {
        "problem": problem, "user": user, "host": socket.gethostname(), "python": platform.python_version(),
        "seen": os.environ.get("SSH_CONNECTION", "").split(" ")[0], "cores": os.cpu_count(), "time": time.time(),
        "own": os.environ.get("SSH_CONNECTION", " " * 3).split(" ")[2], "rsync": shutil.which("rsync") is not None,
        "env": {name: os.environ.get(name, "") for name in question.get("env", ())},
    }  # fmt: skip


def program(question: dict[str, Any]) -> dict[str, Any]:
    """Whether the program `name` is there, in the folder or the `path`."""
    name = question["name"]
    found = shutil.which(name, path=question["path"] or None)
    where = "" if os.sep in name else f" in PATH={question['path'] or os.environ.get('PATH', '')}"
    return {"problem": "" if found else f"there is no program {name!r}{where}", "found": found}


def version(question: dict[str, Any]) -> dict[str, Any]:
    """Versions of `packages` for the python `name`."""
    import subprocess

    code = "import sys; from importlib import metadata as m\nfor p in sys.argv[1:]:\n"
    code += " try: print(p, m.version(p))\n except m.PackageNotFoundError: print(p, '-')"
    try:
        done = subprocess.run(
            [question["name"], "-c", code, *question["packages"]], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as e:
        return {"problem": f"cannot run {question['name']!r}: {getattr(e, 'strerror', None) or type(e).__name__}"}
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    return {"problem": "", "packages": found}


def clock(question: dict[str, Any]) -> dict[str, Any]:
    """The time."""
    return {"problem": "", "time": time.time()}


def listen(question: dict[str, Any]) -> dict[str, Any]:
    """Accept connections on any port until the end; `address` is that of the `interface`, if one is named."""
    address, names = "", [name for name in question["interface"].split(",") if name]
    for name in names:
        try:
            import fcntl

            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                packed = fcntl.ioctl(s.fileno(), 0x8915, struct.pack("256s", name.encode()[:15]))  # SIOCGIFADDR
            address = socket.inet_ntoa(packed[20:24])
            break
        except (ImportError, OSError):
            continue
    if names and not address:
        known = ", ".join(name for _, name in socket.if_nameindex())
        return {"problem": f"no interface {question['interface']!r} with an address; there are {known}"}
    server = socket.create_server((address, 0), backlog=64)

    def accept() -> None:
        while True:
            server.accept()[0].close()

    threading.Thread(target=accept, daemon=True).start()
    return {"problem": "", "port": server.getsockname()[1], "address": address}


def reach(question: dict[str, Any]) -> dict[str, Any]:
    """Connect to each of `targets`, all at once; milliseconds, or why not, which is no problem if `lenient`."""
    targets, seconds = question["targets"], question["seconds"]
    out: list[Any] = [f"no answer within {seconds:g} s"] * len(targets)

    def attempt(i: int) -> None:
        started = time.monotonic()
        try:
            with socket.create_connection(tuple(targets[i]), seconds):
                out[i] = (time.monotonic() - started) * 1e3
        except TimeoutError:
            pass
        except OSError as e:
            out[i] = e.strerror or str(e)

    threads = [threading.Thread(target=attempt, args=(i,), daemon=True) for i in range(len(targets))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 1)
    failed = [f"{host}:{port}: {r}" for (host, port), r in zip(targets, out) if isinstance(r, str)]  # noqa: B905
    wrong = failed and not question.get("lenient")
    return {"problem": "cannot connect to " + "; ".join(failed) if wrong else "", "reached": list(out)}


QUESTIONS = {f.__name__: f for f in (facts, program, version, clock, listen, reach)}


def main() -> None:
    """Answer until the end of stdin."""
    for line in sys.stdin:
        question = json.loads(line)
        answer = QUESTIONS[question["ask"]](question)
        sys.stdout.write("\x1e" + json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
    os._exit(0)
