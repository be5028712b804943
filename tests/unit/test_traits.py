"""What rooms must know of an operator is a trait of it: no table and no test outside `op/` goes by operators' names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from dualmx.op.registry import OPS
from dualmx.op.traits import StorageRule
from dualmx.sparse.dispatch import KERNELS

PACKAGE = Path(__file__).parents[2] / "dualmx"
# Names that are nothing but an operator's: `sum` and `relu` are words of many other things too.
DISTINCT = {name for name in OPS if "_" in name or name != name.lower()}
FRONT_ENDS = (
    "op/", "namespace/", "numpy/", "numpy_extension/", "ndarray/operators.py", "ndarray/numpy_protocol.py",
    "sparse/operators.py", "symbol/arithmetic.py",
)  # fmt: skip
FORMATS = ("contrib/onnx/", "symbol/json.py")
# MXNet publishes these lists of names, and users pass such lists.
PUBLISHED = ("contrib/amp/lists/",)
# Control flow is no operator of the registry: it holds graphs, and is run by them.
CONTROL_FLOW = ("symbol/lowering.py",)
KERAS = ("keras/",)  # layers and initializers of these names
ALLOWED = (*FRONT_ENDS, *FORMATS, *PUBLISHED, *CONTROL_FLOW, *KERAS)


def strings(node: ast.AST) -> list[str]:
    """The strings that stand directly in a display of a tuple, list, set or dictionary, or in a text that is split."""
    if isinstance(node, ast.Dict):
        parts = [*node.keys, *node.values]
    elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        parts = list(node.elts)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
        text = node.func.value
        return text.value.split() if isinstance(text, ast.Constant) and isinstance(text.value, str) else []
    else:
        return []
    return [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]


def is_operator_name(node: ast.AST) -> bool:
    """True for `op.name`, `node.op.name` and the like."""
    if not isinstance(node, ast.Attribute) or node.attr != "name":
        return False
    return (node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")) == "op"


def is_fixed(node: ast.AST) -> bool:
    """True for a literal and for a constant of a module."""
    if isinstance(node, ast.BinOp):
        return is_fixed(node.left) or is_fixed(node.right)
    if isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.Dict)) or isinstance(node, ast.Constant):
        return True
    return isinstance(node, ast.Name) and node.id.isupper()


def asks_for_name(node: ast.AST) -> bool:
    """True for a comparison with the name of an operator, and for looking it up in a constant."""
    match node:
        case ast.Compare():
            sides = [node.left, *node.comparators]
            return any(map(is_operator_name, sides)) and any(map(is_fixed, sides))
        case ast.Subscript():
            return is_operator_name(node.slice) and is_fixed(node.value)
        case ast.Match():
            return is_operator_name(node.subject)
        case ast.Call(func=ast.Attribute(attr="get", value=table)):
            return bool(node.args) and is_operator_name(node.args[0]) and is_fixed(table)
        case ast.Call(func=ast.Attribute(attr="startswith" | "endswith", value=name)):
            return is_operator_name(name)
    return False


def complaints(text: str) -> Iterator[str]:
    tree = ast.parse(text)
    tree.body = [n for n in tree.body if not (isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__")]
    for node in ast.walk(tree):
        found = DISTINCT.intersection(strings(node))
        if len(found) > 1:
            yield f"line {getattr(node, 'lineno', 0)}: a table of operators: {', '.join(sorted(found))}"
        if asks_for_name(node):
            yield f"line {getattr(node, 'lineno', 0)}: {ast.unparse(node)}"


def test_rooms_go_by_traits_and_not_by_names() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}: {text}: make it a trait, see op/traits.py"
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.relative_to(PACKAGE).as_posix().startswith(ALLOWED)
        for text in complaints(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        'LOSSES = frozenset(("SoftmaxOutput", "MakeLoss"))',
        'FILLS = {"_zeros": 0, "_ones": 1}',
        'LAZY = """sgd_update adam_update""".split()',
        'if call.op.name == "Cast": pass',
        'cheap = node.op.name not in ("Convolution", "dot")',
        "free = op.name in LOSSES | CONSTANT_HEADS",
        "rule = RULES.get(node.op.name)",
        "rule = RULES[call.op.name]",
        'match node.op.name:\n    case "FullyConnected": pass',
        'weighted = call.op.name.endswith("non_uniform_sample")',
    ],
)
def test_finds_what_goes_by_names(text: str) -> None:
    assert list(complaints(text))


@pytest.mark.parametrize(
    "text",
    [
        'OPS["Cast"].call(dtype="float64")',
        'KINDS = ("sum", "min", "max")',
        '__all__ = ["BatchNorm", "LayerNorm"]',
        'raise ArgumentError(f"{op.name}: no input")',
        "if node.op.name in excluded: pass",
        "if call.op.traits.is_cast: pass",
    ],
)
def test_calling_and_showing_operators_is_no_table(text: str) -> None:
    assert not list(complaints(text))


def test_every_storage_rule_has_a_kernel_and_an_operator() -> None:
    assert set(KERNELS) == set(StorageRule) == {op.traits.storage for op in OPS.values()} - {None}


def test_names_in_traits_are_of_operators() -> None:
    forms = [op.traits.quantized for op in OPS.values() if op.traits.quantized]
    assert forms and all(form.name in OPS for form in forms)
    for op in OPS.values():
        inputs = {i.name for i in op.inputs} | set(op.input_names_of(_Bilinear()) if op.input_names_of else ())
        assert set(op.traits.initializers) <= inputs, op.name


class _Bilinear:
    """Parameters under which all inputs of `UpSampling` exist."""

    sample_type = "bilinear"
