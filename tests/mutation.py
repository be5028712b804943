"""Mutants of a room, run against its tests: `python -m tests.mutation ROOM` (see CONTRIBUTING.md).

Cosmic Ray makes the mutants and runs the tests, in a copy of this tree. Only operators at edges are used: a formula
that is wrong everywhere dies on the goldens, a boundary that is off by one may not. A kind of edge is drawn first and a
place second, else numbers would be most of the sample.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import parso
from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.testing import run_tests
from cosmic_ray.work_item import MutationSpec, TestOutcome

ROOT = Path(__file__).parents[1]
COMPARISONS = ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Eq_LtE", "Eq_GtE", "NotEq_Lt", "NotEq_Gt")
KINDS = {
    "threshold": [f"core/ReplaceComparisonOperator_{c}" for c in COMPARISONS],
    "number": ["core/NumberReplacer"],
    "precedence": ["core/ReplaceAndWithOr", "core/ReplaceOrWithAnd"],
    "flag": ["core/ReplaceTrueWithFalse", "core/ReplaceFalseWithTrue", "core/ReplaceUnaryOperator_Delete_Not"],
    "loop": ["core/ReplaceContinueWithBreak", "core/ReplaceBreakWithContinue"],
    "check": ["edges/RemoveCheck"],
}


class RemoveCheck(Operator):
    """Never raise: the condition of an `if` that does nothing but raise becomes False."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "if_stmt" and len(node.children) == 4 and _only_raises(node.children[3]):
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.children[1] = parso.parse(" False")
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("if x:\n    raise E\n", "if False:\n    raise E\n"),)


def _only_raises(suite: Any) -> bool:
    statements = [c for c in getattr(suite, "children", ()) if c.type != "newline"]
    return len(statements) == 1 and statements[0].children[0].type == "raise_stmt"


plugins.OPERATOR_PROVIDERS["edges"] = {"RemoveCheck": RemoveCheck}


def mutants(text: str, path: str, kind: str) -> Iterator[MutationSpec]:
    """Every mutant of one kind of a module; what says how `zip` checks itself, or the order of strings, is no edge."""
    lines, nodes = text.splitlines(), list(ast_nodes(get_ast(text)))
    for name in KINDS[kind]:
        operator = plugins.get_operator(name)()
        places = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(places):
            before, after = lines[start[0] - 1][: start[1]], lines[end[0] - 1][end[1] :].lstrip()
            if not before.endswith("strict=") and not (kind == "threshold" and after.startswith(('"', "'", 'b"'))):
                yield MutationSpec(path, name, occurrence, start, end)


def sample(room: Path, n: int, seed: int) -> list[MutationSpec]:
    """`n` mutants of a folder or file: a kind is drawn, then one of its mutants."""
    found: dict[str, list[MutationSpec]] = defaultdict(list)
    for path in sorted(room.rglob("*.py")) if room.is_dir() else [room]:
        text = path.read_text(encoding="utf-8")
        for kind in KINDS:
            found[kind] += mutants(text, str(path), kind)
    rng, drawn = random.Random(f"{seed} {room.name}"), []
    while len(drawn) < n and (kinds := [k for k in KINDS if found[k]]):
        rest = found[rng.choice(kinds)]
        drawn.append(rest.pop(rng.randrange(len(rest))))
    return drawn


def main(argv: list[str] | None = None) -> int:
    """Run the mutants; returns how many survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__.split("\n")[0])
    parser.add_argument("room", help="folder or file below dualmx/")
    parser.add_argument("tests", nargs="*", help="what to run (default: tests/ROOM)")
    parser.add_argument("-n", type=int, default=10, help="how many mutants (default: 10)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (default: 0)")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "__pycache__"), dirs_exist_ok=True)
        os.chdir(folder)
        os.environ["PYTHONPATH"] = folder
        tests = args.tests or [f"tests/{args.room}"]
        command = shlex.join([sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests])
        started = time.monotonic()
        outcome, output = run_tests(command, None)
        if outcome is not TestOutcome.SURVIVED:
            parser.exit(2, f"{output}\nthe tests fail without a mutant\n")
        seconds = time.monotonic() - started
        survived = 0
        drawn = sample(Path("dualmx", args.room), args.n, args.seed)
        for mutation in drawn:
            result = mutate_and_test([mutation], command, 3 * seconds + 30)
            survived += result.test_outcome is TestOutcome.SURVIVED
            print(f"{result.test_outcome.value}: {mutation.module_path}:{mutation.start_pos[0]}", flush=True)
            print(*[x for x in result.diff.splitlines()[4:] if x[0] in "+-"], "", sep="\n", flush=True)
        print(f"{survived} of {len(drawn)} mutants survived")
    return survived


if __name__ == "__main__":
    sys.exit(bool(main()))
