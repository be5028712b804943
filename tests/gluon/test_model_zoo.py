"""The model zoo: structure and names as MXNet's, training, pretrained parameters from a folder."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import ArgumentError
from dualmx.gluon.model_zoo import model_store, vision
from tests.goldens.store import load
from tests.goldens.zoo_cases import NAMES, facts

RECORD = load("zoo")


@pytest.mark.parametrize("name", NAMES)
def test_structure_and_names_are_those_of_mxnet(name):
    assert facts(mx, vision, name) == RECORD[name]


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2])
def test_small_residual_networks_train(version):
    net_class, block = (
        (vision.ResNetV1, vision.BasicBlockV1) if version == 1 else (vision.ResNetV2, vision.BasicBlockV2)
    )
    net = net_class(block, [1, 1], [8, 8, 16], classes=2, thumbnail=True)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    rng = np.random.RandomState(0)
    y = mx.nd.array(np.arange(16) % 2)
    x = mx.nd.array(rng.randn(16, 3, 8, 8) * 0.1 + y.asnumpy().reshape(-1, 1, 1, 1))
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    losses = []
    for _ in range(8):
        with mx.autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(16)
        losses.append(loss.mean().asscalar())
    assert losses[-1] < losses[0] / 2


def test_pretrained_parameters_from_a_folder(tmp_path, monkeypatch):
    net = vision.mobilenet_v2_0_25(classes=5)
    net.initialize()
    net(mx.nd.zeros((1, 3, 32, 32)))
    net.save_parameters(str(tmp_path / "raw"))
    data = (tmp_path / "raw").read_bytes()
    digest = hashlib.sha1(data).hexdigest()
    short = digest[:8]
    monkeypatch.setitem(model_store.CHECKSUMS, "mobilenetv2_0.25", digest)
    path = tmp_path / f"mobilenetv2_0.25-{short}.params"
    path.write_bytes(data)
    assert model_store.get_model_file("mobilenetv2_0.25", root=str(tmp_path)) == str(path)
    loaded = vision.get_model("MobileNetV2_0.25", pretrained=True, root=str(tmp_path), classes=5)
    a, b = (m.collect_params()[m.prefix + "output_pred_weight"].data().asnumpy() for m in (net, loaded))
    np.testing.assert_array_equal(a, b)
    path.write_bytes(data + b"x")
    monkeypatch.setenv("MXNET_GLUON_REPO", "file:///none")
    with pytest.raises(mx.MXNetError, match=r"another checksum.*the file is mobilenetv2_0\.25-"):
        model_store.get_model_file("mobilenetv2_0.25", root=str(tmp_path))
    model_store.purge(str(tmp_path))
    assert not path.exists()
    with pytest.raises(mx.MXNetError, match="does not exist"):
        vision.mobilenet_v2_0_25(pretrained=True, root=str(tmp_path))


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="resnet18_v1"):
        vision.get_model("resnet")
    with pytest.raises(ArgumentError, match="number of layers"):
        vision.get_resnet(1, 19)
    with pytest.raises(ArgumentError, match="version"):
        vision.get_resnet(3, 18)
    with pytest.raises(ArgumentError, match="num_layers=12"):
        vision.get_vgg(12)
    with pytest.raises(ArgumentError, match="2.0"):
        vision.SqueezeNet("2.0")
    with pytest.raises(ArgumentError, match="one number more"):
        vision.ResNetV1(vision.BasicBlockV1, [1, 1], [8, 8])
    with pytest.raises(ArgumentError, match="not available"):
        model_store.short_hash("resnet")
