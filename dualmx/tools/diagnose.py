"""`dualmx diagnose --hosts FILE`: check that hosts reach each other, agree about the time and have equal packages."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import MXNetError
from ..core.knobs import INTERFACE, KNOBS, SECRET
from ..launch.hostfile import read_hosts
from ..launch.plan import JobPlan
from ..launch.preflight import HostConnections, format_problems, probe_command, probing
from ..launch.ssh import questions

HERE = "here"
PACKAGES = ("dualmx", "jax", "jaxlib", "numpy")
MAX_SKEW_SECONDS = 1.0  # seconds from which a clock counts as wrong
_ANSWER_SECONDS = 30.0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(
        prog="dualmx diagnose",
        description="Show versions, devices and settings of this host; with --hosts, whether a job can run on others.",
        epilog="Without --hosts it is dualmx doctor.",
    )
    p.add_argument("--hosts", metavar="FILE", help="host file, as dualmx-launch takes it")
    p.add_argument("--with", dest="program", default="", metavar="PROGRAM", help="called instead of ssh")
    p.add_argument(
        "--network-interface", default=INTERFACE.read(), metavar="NAME", help="by which the hosts are connected"
    )
    p.add_argument("--python", default=sys.executable, help="python on the hosts (default: the path of this one)")
    p.add_argument("--timeout", type=float, default=5.0, help="seconds until a connection counts as blocked")
    p.add_argument("--json", action="store_true", help="print JSON")
    return p


def examine(plan: JobPlan, python: str, interface: str = "", seconds: float = 5.0) -> dict[str, Any]:
    """Query all hosts of a plan, and this one, about themselves and the connections between them.

    Args:
        plan: its hosts, folder and program.
        python: on the hosts.
        interface: of the hosts, whose address the others connect to.
        seconds: until a connection counts as blocked.

    Returns:
        `hosts`: facts by name; `matrix`: milliseconds or a reason, by the name of the end that connects and the other;
        `problems`: by name.
    """
    commands = {HERE: probe_command(), **questions(plan)}
    with probing(commands) as probes:
        names = [knob.name for knob in KNOBS]
        facts = probes.ask(
            {"ask": "facts", "folder": plan.folder, "make": False, "env": [n for n in names if n != SECRET.name]},
            _ANSWER_SECONDS,
        )
        for name, skew in probes.clock_skews().items():
            facts[name]["skew"] = skew
        packages = probes.ask({"ask": "version", "name": python, "packages": list(PACKAGES)}, 90)
        for name, answer in packages.items():
            facts[name]["packages"] = answer["packages"]
        matrix = _matrix(probes, facts, interface, seconds)
        return {"hosts": facts, "matrix": matrix, "problems": {**probes.problems, **differences(facts, matrix)}}


def _matrix(
    probes: HostConnections, facts: Mapping[str, Any], interface: str, seconds: float
) -> dict[str, dict[str, Any]]:
    """Let every host listen, and every one connect to all others."""
    listening = probes.ask({"ask": "listen", "interface": interface}, _ANSWER_SECONDS)
    seen = next((f["seen"] for f in facts.values() if f.get("seen")), "127.0.0.1")
    places = {name: answer["address"] or facts[name]["own"] or seen for name, answer in listening.items()}
    asked: dict[str, dict[str, Any]] = {}
    for name in listening:
        others = [[facts[name]["seen"] or places[o] if o == HERE and not interface else places[o], listening[o]["port"]]
                  for o in listening if o != name]  # fmt: skip
        asked[name] = {"ask": "reach", "targets": others, "seconds": seconds, "lenient": True}
    answers = probes.ask(asked, seconds + _ANSWER_SECONDS) if asked else {}
    out = {}
    for name, answer in answers.items():
        out[name] = dict(zip([o for o in listening if o != name], answer["reached"], strict=True))
    return out


def differences(facts: Mapping[str, Any], matrix: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """What is wrong between hosts that can be used by themselves."""
    out: dict[str, list[str]] = {}
    here = facts.get(HERE, {}).get("packages", {})
    for name, f in facts.items():
        said = out.setdefault(name, [])
        skew, wrong = f.get("skew", (0.0, 0.0))
        if abs(skew) - wrong > MAX_SKEW_SECONDS:
            said.append(f"its clock is {abs(skew):.1f} s {'ahead' if skew > 0 else 'behind'}")
        for package, version in f.get("packages", {}).items():
            if version != here.get(package, version):
                what = "is not installed" if version == "-" else f"is {version}"
                said.append(f"{package} {what}, here {here[package]}")
        blocked = [f"{other} ({why})" for other, why in matrix.get(name, {}).items() if isinstance(why, str)]
        said += [f"cannot connect to {', '.join(blocked)}"] if blocked else []
    return {name: "; ".join(said) for name, said in out.items() if said}


def page(found: Mapping[str, Any]) -> str:
    """Format the findings for people."""
    facts, matrix = found["hosts"], found["matrix"]
    out = [f"{'host':20} {'name':12} {'user':10} {'python':8} {'cores':>5} {'clock':>18}  packages"]
    for name, f in facts.items():
        skew, wrong = f.get("skew", (0.0, 0.0))
        clock = "" if name == HERE else f"{skew * 1e3:+.1f} ± {wrong * 1e3:.1f} ms"
        packages = " ".join(f"{p} {v}" for p, v in f.get("packages", {}).items())
        out.append(f"{name:20} {f['host']:12} {f['user']:10} {f['python']:8} {f['cores']:5} {clock:>18}  {packages}")
    names = list(matrix)
    if names:
        wide = max(10, *(len(n) for n in names)) + 1
        out += [
            "",
            "milliseconds to connect, from the left to the top:",
            " " * 20 + "".join(f"{n:>{wide}}" for n in names),
        ]
        for name in names:
            cells = ["" if o == name else matrix[name].get(o, "?") for o in names]
            shown = [f"{c:.1f}" if isinstance(c, float) else ("blocked" if c else "-") for c in cells]
            out.append(f"{name:20}" + "".join(f"{c:>{wide}}" for c in shown))
    docs = {knob.name: knob.doc for knob in KNOBS}
    for name, f in facts.items():
        given = [f"  {n}={v}\n      {docs[n]}" for n, v in f["env"].items() if v]
        out += (
            ["", f"variables that a login finds on {name}:" if name != HERE else "variables here:", *given]
            if given
            else []
        )
    if found["problems"]:
        out += ["", "problems:", format_problems(found["problems"])]
    else:
        out += ["", "no problems found"]
    return "\n".join(out)


def main(argv: Sequence[str]) -> int:
    """Run the command line; return 1 if something is wrong, 2 if no host can be queried."""
    o = parser().parse_args(argv)
    if not o.hosts:
        from ..cli import doctor

        return doctor()
    try:
        plan = JobPlan(["true"], 1, 1, launcher="ssh", hosts=read_hosts(o.hosts), program=shlex.split(o.program))
        plan.folder = os.getcwd()
        found = examine(plan, o.python, o.network_interface, o.timeout)
    except MXNetError as e:
        print(f"dualmx diagnose: {e}", file=sys.stderr)
        return 2
    print(json.dumps(found) if o.json else page(found))
    return 1 if found["problems"] else 0
