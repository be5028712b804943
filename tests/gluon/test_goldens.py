"""Layers, losses and names against records of MXNet 1.9.1."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dualmx as mx
from tests.goldens import gluon_cases as cases
from tests.goldens.store import load

ARRAYS, FACTS = load("gluon")["arrays"], load("gluon")["facts"]

# SELU: MXNet's gradient is not the derivative. fix_gamma: MXNet's forward overwrites the unused gamma with 1.
DEFECTS = {("selu", "grad"), ("batchnorm_plain", "0:gamma")}

# MXNet prints channel numbers of these layers from the wrong axes.
REPR_CORRECTED = {"conv1dt", "conv2dt", "conv2dt_groups", "conv3dt"}


def compare(name: str, found: dict[str, np.ndarray], atol: float = 2e-5) -> None:
    expected = {k.split("|")[1]: v for k, v in ARRAYS.items() if k.split("|")[0] == name}
    assert set(found) == set(expected)
    for key, value in expected.items():
        if (name, key) in DEFECTS:
            continue
        assert found[key].shape == value.shape, key
        assert found[key].dtype == value.dtype, key
        np.testing.assert_allclose(found[key], value, rtol=2e-5, atol=atol, err_msg=f"{name} {key}")


@pytest.mark.parametrize("hybridize", [False, True], ids=["imperative", "hybridized"])
@pytest.mark.parametrize("name", cases.LAYERS)
def test_layer(name: str, hybridize: bool) -> None:
    if hybridize and name == "lambda":
        pytest.skip("Lambda is no HybridBlock")
    found, about = cases.run_layer(mx, name, hybridize)
    compare(name, found, atol=2e-4 if "norm" in name else 2e-5)
    expected = FACTS[name]
    for key in ("repr", "repr_after"):
        if name not in REPR_CORRECTED:
            assert about[key] == expected[key]
    for key in ("prefix", "paths", "declared", "shapes", "grad_req"):
        assert about[key] == expected[key]


@pytest.mark.parametrize("hybridize", [False, True], ids=["imperative", "hybridized"])
@pytest.mark.parametrize("name", cases.LOSSES)
def test_loss(name: str, hybridize: bool) -> None:
    found, about = cases.run_loss(mx, name, hybridize)
    compare(name, found)
    assert about == FACTS[name]


def test_names() -> None:
    found = json.loads(json.dumps(cases.naming(mx)))
    expected = FACTS["naming"]
    for key in expected:
        assert found[key] == expected[key], key
