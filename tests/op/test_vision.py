"""Sampling, region, detection and attention operators against MXNet's record, numeric gradients and bad arguments."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import ArgumentError
from dualmx.op.registry import OPS
from tests.goldens.vision_cases import DRAWN, GROUPS, Case
from tests.op.nn_replay import gradients, replay
from tests.op.replay import recorded

CASES = [c for cases in GROUPS.values() for c in cases]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_matches_record(case: Case):
    replay(case)


@pytest.mark.parametrize(
    ("op", "shapes", "params"),
    [
        ("BilinearSampler", [(1, 2, 3, 4), (1, 2, 2, 3)], {}),
        ("GridGenerator", [(2, 6)], {"transform_type": "affine", "target_shape": (2, 3)}),
        ("_contrib_BilinearResize2D", [(1, 1, 3, 4)], {"height": 5, "width": 2}),
        ("Correlation", [(1, 2, 4, 4), (1, 2, 4, 4)], {"pad_size": 1}),
    ],
)
def test_gradients(op, shapes, params):
    gradients(op, shapes, order=1, **params)


def test_pooling_ties_go_to_the_first_pixel():
    data = mx.nd.ones((1, 1, 4, 4))
    data.attach_grad()
    with mx.autograd.record():
        out = mx.nd.ROIPooling(data, mx.nd.array([[0, 0, 0, 3, 3]]), pooled_size=(1, 2), spatial_scale=1.0)
    out.backward()
    want = np.zeros((4, 4))
    want[0, 0] = want[0, 2] = 1
    np.testing.assert_array_equal(data.grad.asnumpy()[0, 0], want)


def test_regions_of_missing_images_are_zero():
    for op in ("ROIPooling", "_contrib_ROIAlign"):
        call = OPS[op].call(pooled_size=(2, 2), spatial_scale=1.0)
        with jax.enable_x64(True):
            (out,) = call.apply([jnp.ones((1, 3, 4, 4)), jnp.asarray([[1.0, 0, 0, 2, 2], [-1, 0, 0, 2, 2]])])
        np.testing.assert_array_equal(out, np.zeros((2, 3, 2, 2)))


def test_half_precision_follows_the_data():
    call = OPS["_contrib_ROIAlign"].call(pooled_size=(2, 2), spatial_scale=1.0)
    half = np.dtype("float16")
    assert call.infer((((1, 3, 4, 4), half), ((2, 5), half))) == (((2, 3, 2, 2), half),)


def test_symbol_infers_the_transformation():
    out = mx.sym.SpatialTransformer(
        mx.sym.var("x"), mx.sym.var("loc"), target_shape=(3, 4), transform_type="affine", sampler_type="bilinear"
    )
    arguments, outputs, _ = out.infer_shape(x=(2, 3, 5, 6))
    assert arguments == [(2, 3, 5, 6), (2, 6)] and outputs == [(2, 3, 3, 4)]


@pytest.mark.parametrize(
    ("op", "shapes", "params", "text"),
    [
        ("GridGenerator", [(2, 5)], {"transform_type": "affine", "target_shape": (2, 2)}, "expected \\(N, 6\\)"),
        ("GridGenerator", [(2, 6)], {"transform_type": "affine"}, "target_shape"),
        ("BilinearSampler", [(2, 3, 4, 4), (1, 2, 3, 3)], {}, "grid has shape"),
        ("ROIPooling", [(1, 3, 4, 4), (2, 4)], {"pooled_size": (2, 2), "spatial_scale": 1}, "rois has shape"),
        ("ROIPooling", [(1, 3, 4, 4), (2, 5)], {"pooled_size": (2,), "spatial_scale": 1}, "pooled_size"),
        ("Correlation", [(1, 3, 4, 4), (1, 3, 4, 4)], {"kernel_size": 2}, "odd"),
        ("Correlation", [(1, 3, 4, 4), (1, 3, 4, 4)], {"max_displacement": 4}, "leave nothing"),
        ("_contrib_interleaved_matmul_selfatt_qk", [(3, 2, 10)], {"heads": 2}, "projections of shape"),
        ("_contrib_interleaved_matmul_encdec_valatt", [(3, 2, 8), (4, 5, 2)], {"heads": 2}, "attention has shape"),
        ("_image_adjust_lighting", [(2, 2, 3)], {"alpha": (1, 2)}, "3 numbers"),
        ("_image_adjust_lighting", [(2, 2, 2)], {"alpha": (1, 2, 3)}, "1 or 3 channels"),
        ("_contrib_box_nms", [(5, 5)], {}, "coord_start=2"),
        ("_contrib_box_iou", [(5, 5), (5, 4)], {}, "lhs has shape"),
        ("_contrib_MultiBoxPrior", [(1, 2, 3, 3)], {"ratios": (0.0,)}, "ratios positive"),
        ("_contrib_MultiBoxTarget", [(1, 6, 4), (2, 3, 4), (2, 3, 6)], {}, "label has shape"),
        ("_contrib_MultiBoxDetection", [(1, 3, 6), (1, 20), (1, 6, 4)], {}, "loc_pred has shape"),
        ("_contrib_BilinearResize2D", [(1, 3, 4, 4)], {"height": 0, "width": 2}, "at least 1"),
    ],
)
def test_bad_arguments(op, shapes, params, text):
    f4 = np.dtype("float32")
    with pytest.raises(ArgumentError, match=text):
        OPS[op].call(**params).infer(tuple((s, f4) for s in shapes))


@pytest.mark.slow
@pytest.mark.parametrize("case", DRAWN, ids=lambda c: c.name)
def test_drawn_colours_match_record(case: Case):
    (data,) = case.arrays().values()
    (out,) = OPS[case.op].call(**case.params).apply([jnp.asarray(data)], jax.random.key(0))
    want = recorded()[case.name]["out0"]
    assert out.dtype == want.dtype
    # Whole numbers are cut, so that one more or less is rounding.
    np.testing.assert_allclose(np.asarray(out, float), want.astype(float), 1e-5, 1 if data.dtype == np.uint8 else 5e-4)


def test_saturation_mixes_in_grey():
    data = np.array([[[0, 20, 40], [30, 10, 0]]], np.float32)
    out = mx.nd.image.random_saturation(mx.nd.array(data), 0.5, 0.5).asnumpy()
    np.testing.assert_allclose(out, (data + (data @ [0.299, 0.587, 0.114])[..., None]) / 2, 1e-5)
    grey = mx.nd.array(data[..., :1])
    np.testing.assert_array_equal(mx.nd.image.random_saturation(grey, 0.1, 0.2).asnumpy(), data[..., :1])


def test_jitter_and_lighting_stay_in_their_ranges():
    mx.random.seed(3)
    grey = mx.nd.full((1, 1, 3), 100)
    values = np.array([mx.nd.image.random_color_jitter(grey, 0.3, 0, 0, 0.2).asnumpy()[0, 0, 0] for _ in range(40)])
    assert 70 <= values.min() < 85 and 115 < values.max() <= 130
    np.testing.assert_array_equal(mx.nd.image.random_color_jitter(grey, 0, 0, 0, 0).asnumpy(), grey.asnumpy())
    lit = np.stack([mx.nd.image.random_lighting(grey, alpha_std=0.05).asnumpy()[0, 0] for _ in range(200)]) - 100
    assert (1.2 < lit.std(0)).all() and (lit.std(0) < 2).all()


@pytest.mark.parametrize("scale", [1e3, 1e8, 1e30])
def test_regions_far_larger_than_the_image_are_aligned_at_once(scale):
    regions = mx.nd.array([[0, 0, 0, 3, 3]])
    bins = mx.nd.contrib.ROIAlign(mx.nd.ones((1, 1, 4, 4)), regions, pooled_size=(2, 2), spatial_scale=scale).asnumpy()
    points = 1.5 * scale  # along an axis of a bin, of which those up to a pixel beyond the image count
    np.testing.assert_allclose(bins[0, 0], [[(4 / points) ** 2, 0], [0, 0]], rtol=0.01, atol=1e-30)


def test_suppression_drops_boxes_of_the_background():
    boxes = mx.nd.array([[-1, 0.9, 0, 0, 1, 1], [0, 0.8, 0, 0, 1, 1], [1, 0.7, 2, 2, 3, 3]])
    options = {"coord_start": 2, "score_index": 1}
    kept = mx.nd.contrib.box_nms(boxes, id_index=0, **options).asnumpy()  # classes of -1 mark rows that hold no box
    assert kept[:, 0].tolist() == [0, 1, -1] and kept[2].tolist() == [-1] * 6
    assert mx.nd.contrib.box_nms(boxes, id_index=0, background_id=0, **options).asnumpy()[0, 1] == np.float32(0.9)
    assert mx.nd.contrib.box_nms(boxes, **options).asnumpy()[0, 1] == np.float32(0.9)
