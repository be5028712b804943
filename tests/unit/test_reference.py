"""The reference of the documentation: drawn from docstrings, and complete."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dualmx as mx
from dualmx.op.registry import OPS

ROOT = Path(__file__).parents[2]

sys.path.insert(0, str(ROOT / "docs"))
try:
    import operators_page
    import reference_contents
    import reference_entries
    import reference_pages
    import reference_symbols
finally:
    sys.path.pop(0)

Reference = reference_pages.Reference


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference(examples=False)


@pytest.fixture(scope="module")
def anchors(reference: Reference) -> set[str]:
    return set(anchors_of(reference.pages))


def anchors_of(pages: dict[str, str]) -> Iterator[str]:
    """`page#anchor` of every entry."""
    for name, text in pages.items():
        for anchor in re.findall(r"^##+ .* \{ #(\S+) ", text, re.MULTILINE):
            yield f"{name.partition('/')[2]}#{anchor}"


def test_addresses_are_unique(reference: Reference) -> None:
    addresses = list(anchors_of(reference.pages))
    assert len(addresses) == len(set(addresses))
    assert len(reference.operators.themes) == len({id(op) for op in OPS.values()})


def undescribed(reference: Reference, anchors: set[str]) -> list[str]:
    """Public classes and functions without an entry."""
    missing = []
    for path in {**reference_symbols.public_modules(), **dict.fromkeys(reference.paths)}:
        for name, value in reference_symbols.public_symbols(path).items():
            if reference_pages.is_described(value) and reference.address(path, name) not in anchors:
                missing.append(f"{path}.{name}")
    return missing


def test_every_public_symbol_has_an_entry(reference: Reference, anchors: set[str]) -> None:
    missing = undescribed(reference, anchors)
    assert not missing, f"add their modules to SECTIONS in docs/reference_contents.py: {missing}"


def test_a_missing_page_and_a_missing_entry_are_noticed(
    reference: Reference, anchors: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = undescribed(reference, anchors - {"gluon.nn.md#gluon.nn.Dense"})
    assert set(missing) == {"gluon.nn.Dense", "gluon.nn.basic_layers.Dense"}

    shorter = {s: tuple(p for p in paths if p != "gluon.loss") for s, paths in reference_contents.SECTIONS.items()}
    monkeypatch.setattr(reference_pages, "SECTIONS", shorter)
    missing = undescribed(Reference(examples=False), anchors)
    assert "gluon.loss.L2Loss" in missing and all(name.startswith("gluon.loss.") for name in missing)


def test_public_symbols_are_those_of_all_and_those_made_when_named() -> None:
    for path, module in reference_symbols.public_modules().items():
        listed = {n for n in getattr(module, "__all__", ()) if not n.startswith("_")}
        offered = reference_symbols.public_symbols(path)
        assert {n for n in listed if not inspect.ismodule(getattr(module, n))} <= set(offered), path
    for path, names in {
        "ndarray": ("softmax", "Convolution", "NDArray", "zeros", "maximum"),
        "ndarray.contrib": ("box_nms", "foreach"),
        "symbol.random": ("uniform", "pdf_normal"),
        "numpy": ("cbrt", "sum", "ndarray", "float32"),
        "symbol.numpy": ("cbrt", "sum"),
        "lr_scheduler": ("PolyScheduler",),
        "spark": ("KerasEstimator", "run"),
    }.items():
        assert set(names) <= set(reference_symbols.public_symbols(path)), path
    assert "ArgumentError" not in reference_symbols.public_symbols("lr_scheduler")  # imported there, not offered


def test_pages_list_all_names_of_their_module(reference: Reference) -> None:
    for path in reference.paths:
        page = reference.pages[f"reference/{reference_pages.page_name(path)}"]
        for name in reference_symbols.public_symbols(path):
            assert f"| [`{name}`](" in page or f"| `{name}` |" in page, f"{path}.{name}"


def test_links_lead_to_entries_and_pages(reference: Reference, anchors: set[str]) -> None:
    pages = {name.partition("/")[2] for name in reference.pages}
    for name, text in reference.pages.items():
        if name.startswith("reference/source/"):
            continue
        for target in re.findall(r"\]\(([^)\s]+\.md(?:#[^)\s]+)?)\)", text):
            page, _, anchor = target.partition("#")
            assert page in pages, f"{name} -> {target}"
            assert not anchor or anchor.startswith("__codelineno") or target in anchors, f"{name} -> {target}"


def test_an_entry_has_signature_types_errors_shapes_and_example(reference: Reference) -> None:
    page = reference.pages["reference/gluon.nn.md"]
    dense = page.partition("{ #gluon.nn.Dense ")[2].partition("\n## ")[0]
    assert "class mx.gluon.nn.Dense(\n    units: int,\n    activation: str | None = None," in dense
    assert "- `in_units` (`int`, default `0`): size of the input" in dense
    assert "**Shapes:** input (N, \\*)" in dense and "```pycon\n>>> import dualmx as mx" in dense
    assert "Inherited from [`Block`](gluon.md#gluon.Block): " in dense
    dropout = page.partition("{ #gluon.nn.Dropout ")[2].partition("\n## ")[0]
    assert "**Raises**\n\n- `ArgumentError`: a rate outside" in dropout


def test_source_links_lead_to_the_line(reference: Reference) -> None:
    for symbol in (mx.gluon.nn.Dense, mx.gluon.Trainer.step, mx.metric.create, mx.nd.NDArray.asnumpy):
        place = reference_entries.source_of(symbol)
        assert place is not None
        line = (ROOT / place[0]).read_text(encoding="utf-8").splitlines()[place[1] - 1]
        assert re.search(rf"(def|class) {symbol.__name__}\b", line)
    in_site = reference.pages["reference/metric.md"]
    assert re.search(r"\[source\]\(source/dualmx/metric\S+\.py\.md#__codelineno-0-\d+\)", in_site)
    hosted = Reference("https://example.org/dualmx/blob/main", examples=False).pages["reference/metric.md"]
    assert re.search(r"\[source\]\(https://example\.org/dualmx/blob/main/dualmx/metric\S+\.py#L\d+\)", hosted)


def test_every_operator_has_an_entry_with_prose(reference: Reference) -> None:
    pages = reference.operators.pages
    assert "## Differences from MXNet" in pages["operators.md"]
    for op in OPS.values():
        assert reference_contents.theme_of(op.name), f"{op.name}: no theme in docs/reference_contents.py has it"
        page, _, anchor = reference.operators.address(op).partition("#")
        head, _, rest = pages[page].partition(f"{{ #{anchor} ")
        assert rest, f"{op.name} is not in the reference"
        body = rest.split("\n## ", 1)[0]
        assert f"mx.{anchor}(" in body and f"`{op.name}`" in body
        assert len(body.splitlines()) > 5, f"{op.name}: no description"


@pytest.mark.slow
def test_examples_are_executed() -> None:
    shown = operators_page.executed(list({id(op): op for op in OPS.values()}.values()))
    assert len(shown) > 100
    code, result = shown["square"][1:3]
    assert code == ">>> nd.square(nd.array([[2, 1], [1, 3]])).asnumpy().round(4).tolist()"
    assert result == "[[4.0, 1.0], [1.0, 9.0]]"
