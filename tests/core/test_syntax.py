"""Python's parser in several threads."""

from __future__ import annotations

import ast
import sys
import threading

import pytest

from dualmx.core import syntax
from dualmx.op.stored_source import encode_functions

SOURCE = "def run(sizes, x0):\n" + " v1 = np.add(x0,np.add(x0,np.add(x0,x0)))\n" * 60 + " return (v1,)"


@pytest.fixture
def eager_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_parse_together(eager_switches):
    found, errors, wanted = [], [], [encode_functions(SOURCE), (1, (2, (3, "four")))]

    def parse() -> None:
        try:
            for _ in range(25):
                found.append([encode_functions(SOURCE), syntax.literal_of("(1, (2, (3, 'four')))")])
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=parse) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert found == [wanted] * 150


def test_a_collision_with_others_is_tried_anew(monkeypatch):
    calls = []

    def parse(source, mode):
        calls.append(source)
        if len(calls) < 3:
            raise SystemError("AST constructor recursion depth mismatch")
        return compile(source, "<test>", mode, ast.PyCF_ONLY_AST)

    monkeypatch.setattr(ast, "parse", parse)
    assert syntax.literal_of(" [1, 2]") == [1, 2]
    assert len(calls) == 3


def test_one_that_stays_is_raised(monkeypatch):
    def parse(source, mode):
        raise SystemError(source)

    monkeypatch.setattr(ast, "parse", parse)
    with pytest.raises(SystemError, match="1"):
        syntax.parse("1")
    with pytest.raises(SystemError, match="2"):  # the lock is free
        syntax.parse("2")


@pytest.mark.parametrize("text", ["a", "1 +", "f()", "__import__('os')"])
def test_what_is_no_literal(text):
    with pytest.raises((ValueError, SyntaxError)):
        syntax.literal_of(text)
