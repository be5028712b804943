"""Every registered operator through `mx.nd`, `mx.sym` and a hybridized block: the same results, and those of MXNet.

The samples of a group run as one program per front end, so that the whole registry costs few compilations. A failure
names the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from tests.op import np_samples
from tests.op.fronts import Result, call, groups, is_random, named, run_block, run_nd, run_sym, symbol_of
from tests.op.golden_replay import chosen_samples, golden, inputs_in
from tests.op.samples import Sample, all_samples, chosen, registered

# Operators without a sample, and why.
DYNAMIC = "its result's shape or values are computed on the host, at once; tests/numpy has them"
WITHOUT: dict[str, str] = np_samples.WITHOUT | dict.fromkeys(
    ("_npi_eig", "_npi_eigvals", "_npi_unique", "_npi_bincount", "_npx_nonzero"), DYNAMIC
)
WITHOUT |= {
    f"_contrib_{name}": "it takes csr matrices; test_graph.py has it"
    for name in (
        "getnnz", "edge_id", "dgl_adjacency", "dgl_subgraph", "dgl_csr_neighbor_uniform_sample",
        "dgl_csr_neighbor_non_uniform_sample", "dgl_graph_compact",
    )
}  # fmt: skip
WITHOUT["_contrib_quantized_rnn"] = "MXNet's CPU build has no result; test_recurrent.py compares it with floats"
# Recorded gradients that are wrong in MXNet 1.9.1: keywords by operator.
WRONG_IN_MXNET = {
    "LeakyReLU": {"act_type": "selu"},
    "Pooling": {"pool_type": "avg", "pooling_convention": "full"},
}
# dtypes that an operator does not take: `{op: (dtype, ...)}`.
FACTORED = ("potrf", "potri", "trsm", "inverse", "det", "slogdet", "gelqf", "syevd")
UNSUPPORTED = {f"_linalg_{name}": ("float16",) for name in FACTORED}
NP_FACTORED = (
    "cholesky",
    "inv",
    "det",
    "slogdet",
    "svd",
    "eigh",
    "eigvalsh",
    "solve",
    "pinv",
    "pinv_scalar_rcond",
    "tensorinv",
    "tensorsolve",
)
UNSUPPORTED |= {f"_npi_{name}": ("float16",) for name in NP_FACTORED}
UNSUPPORTED |= {f"_contrib_quantize{kind}": ("float16", "float64") for kind in ("", "_v2", "_asym")}
# The gradient by sampling positions jumps at pixel borders, over which rounding to 16 bits moves some of them.
JUMPING = {"BilinearSampler", "SpatialTransformer", "GridGenerator", "_contrib_ROIAlign"}
# Operators without outputs, which no graph can hold; MXNet 1.9.1 crashes.
EAGER_ONLY = {"reset_arrays"}
GPU_ONLY = "MXNet has it on GPUs only; closed forms are in test_contrib.py"
UNCALLABLE = "MXNet registers it without a signature to call it by"
# Operators of MXNet 1.9.1 without a golden, and why.
WITHOUT_GOLDEN = {
    "IdentityAttachKLSparseReg": "its state cannot be passed imperatively; test_contrib.py has the closed form",
    "_contrib_backward_hawkesll": UNCALLABLE,
    "_contrib_backward_index_copy": UNCALLABLE,
    "_contrib_backward_quadratic": UNCALLABLE,
    "_contrib_count_sketch": GPU_ONLY,
    "_contrib_fft": GPU_ONLY,
    "_contrib_ifft": GPU_ONLY,
    "_contrib_group_adagrad_update": "for row_sparse gradients only; see tests/optimizer",
    "_contrib_quantize_asym": "ends the process",
    "_contrib_quantized_conv": "the CPU build takes uint8 only; test_contrib.py compares with floats",
    "_contrib_quantized_elemwise_mul": "the CPU build has no result",
    "_CrossDeviceCopy": UNCALLABLE,
    "_copyto": UNCALLABLE,
    "_scatter_set_nd": "works in place only; `x[...] = y` is recorded in ndarray.json",
    "_sparse_adagrad_update": "for row_sparse gradients only; see tests/optimizer",
    "_sparse_retain": "for row_sparse data only",
    "_square_sum": "for row_sparse data only",
    "_zeros_without_dtype": "cannot be called imperatively",
}
INTEGERS = ("int32", "int64", "uint8", "int8")
# Operators that refuse whole numbers here, though MXNet computes something.
FLOATS = {"Convolution", "_contrib_hawkesll", "moments"}
EVERY = ("float32", "float64", "float16", *INTEGERS)
OVERFLOW = (INTEGERS, "results out of the type's range: MXNet's depend on the processor")
# Values that are not compared, and why: operator -> (dtypes, reason).
NOT_COMPARED = {
    "_image_flip_left_right": (EVERY, "MXNet leaves the middle unwritten"),
    "_contrib_quantized_batch_norm": (("float32",), "oneDNN rounds elsewhere"),
    "_contrib_quantized_fully_connected": (("float32",), "oneDNN rounds elsewhere"),
    "_contrib_PSROIPooling": (("float64", "float16"), "the edges of bins are rounded in the dtype"),
    "_contrib_arange_like": (("float16", *INTEGERS), "MXNet rounds the step first"),
    "_multi_adamw_update": (("float64", "float16"), "MXNet reads the scale as float32"),
    "lamb_update_phase1": (("float64",), "MXNet computes powers of the betas in float32"),
    "_image_adjust_lighting": (INTEGERS, "overflow"),
    "_image_resize": (tuple(d for d in INTEGERS if d != "uint8"), "MXNet takes whole numbers as bytes only"),
    "gamma": (INTEGERS, "MXNet truncates the result of a less precise function"),
    **dict.fromkeys(("_power", "broadcast_power", "rcbrt", "reciprocal", "rsqrt", "gammaln", "_rdiv_scalar"), OVERFLOW),
    **dict.fromkeys(("cosh", "exp", "expm1", "sinh"), OVERFLOW),
}
# Relative and absolute tolerance of goldens by dtype.
TOLERANCE = {"float32": 1e-4, "float64": 1e-6, "float16": 2e-2}

ONE_EACH = [s for s in chosen(1) if not is_random(s)]
DRAWN = [s for cases in all_samples().values() for s in cases if is_random(s)]
EVERYTHING = [s for cases in all_samples().values() for s in cases if not is_random(s)]


def test_every_operator_has_a_sample():
    missing = [op.name for op in registered() if op.name not in all_samples() and op.name not in WITHOUT]
    assert not missing
    assert not set(WITHOUT) & set(all_samples())


def compare(what: str, got: Any, want: Any, rtol: float, atol: float, problems: list[str]) -> None:
    """Note a difference of shape or value."""
    try:
        assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
        np.testing.assert_allclose(np.asarray(got, np.float64), np.asarray(want, np.float64), rtol, atol)
    except AssertionError as e:
        problems.append(f"{what}: " + " ".join(str(e).split())[:300])


def same(
    samples: Sequence[Sample], found: Sequence[Result], wanted: Sequence[Result], rtol: float = 1e-5, atol: float = 2e-6
) -> list[str]:
    """Differences between two front ends: outputs with their dtypes, gradients, inputs after the call."""
    problems: list[str] = []
    for sample, got, want in zip(samples, found, wanted, strict=True):
        for what in ("outs", "after"):
            one, other = getattr(got, what), getattr(want, what)
            if [a.dtype for a in one] != [a.dtype for a in other]:
                problems.append(f"{sample}: {what}: {[a.dtype for a in one]}, expected {[a.dtype for a in other]}")
                continue
            for i, (a, b) in enumerate(zip(one, other, strict=True)):
                compare(f"{sample}: {what}[{i}]", a, b, rtol, atol, problems)
        if got.grads.keys() != want.grads.keys():
            problems.append(f"{sample}: gradients of inputs {list(got.grads)}, expected {list(want.grads)}")
            continue
        for i in got.grads:
            compare(f"{sample}: gradient of input {i}", got.grads[i], want.grads[i], rtol, atol, problems)
    return problems


def recorded(samples: Sequence[Sample], found: Sequence[Result]) -> list[str]:
    """Differences from what MXNet gave."""
    problems: list[str] = []
    for sample, got in zip(samples, found, strict=True):
        want = sample.recorded()
        if WRONG_IN_MXNET.get(sample.op, {"": 0}).items() <= dict(sample.params).items():
            want = {k: v for k, v in want.items() if k.startswith("out")}
        values = {f"out{i}": o for i, o in enumerate(got.outs)}
        values |= {f"grad{i}": g for i, g in got.grads.items()} | {f"next{i}": a for i, a in enumerate(got.after)}
        for key, value in want.items():
            if key not in values:
                problems.append(f"{sample}: {key} of MXNet is missing")
            else:
                compare(f"{sample}: {key} of MXNet", values[key], value, 3e-5, 2e-5, problems)
    return problems


def test_control_what_is_missing_is_told():
    sample = next(s for s in EVERYTHING if {"out0", "grad0"} <= s.recorded().keys())
    want = sample.recorded()
    found = Result([want["out0"]], {0: want["grad0"]})
    grads = [k for k in want if k.startswith("grad") and k != "grad0"]
    assert recorded([sample], [found]) == [f"{sample}: {k} of MXNet is missing" for k in grads]
    assert recorded([sample], [Result(found.outs)])[0] == f"{sample}: grad0 of MXNet is missing"
    assert len(same([sample], [Result(found.outs)], [found])) == 1


def goldens(samples: Sequence[Sample], found: Sequence[Result], dtype: str) -> list[str]:
    """Differences of dtype, shape and value from MXNet's results in `dtype`."""
    problems: list[str] = []
    for sample, got in zip(samples, found, strict=True):
        want = golden(sample, dtype)
        if not isinstance(want, list):
            continue
        for i, ((kind, shape, values), out) in enumerate(zip(want, got.outs, strict=True)):
            what = f"{sample} in {dtype}: output {i} of MXNet"
            if (out.dtype, out.shape) != (kind, shape):
                problems.append(f"{what}: {out.dtype}{out.shape}, expected {kind}{shape}")
            elif values is not None and dtype not in NOT_COMPARED.get(sample.op, ((),))[0]:
                tolerance = TOLERANCE.get(out.dtype.name, 0)
                compare(what, out, values, tolerance, tolerance, problems)
    return problems


def test_every_operator_has_a_golden():
    missing = []
    for sample in chosen_samples():
        found = golden(sample, "float32")
        # "absent" is recorded for operators that MXNet does not have.
        if found is None or (isinstance(found, str) and found != "absent" and sample.op not in WITHOUT_GOLDEN):
            missing.append(f"{sample}: {found or 'not recorded; run export_operators.py and record.py operators'}")
    assert not [m for m in missing if not all_samples()[m.split("(")[0]][0].recorded()], missing


def check(samples: Sequence[Sample]) -> None:
    """All front ends agree with each other and with the record."""
    samples = [s for s in samples if s.op not in EAGER_ONLY]
    imperative = run_nd(samples)
    problems = recorded(samples, imperative) + goldens(samples, imperative, "float32")
    hybrid, executed = run_block(samples), run_sym(samples)
    if not samples[0].train:
        for result, other, block in zip(executed, imperative, hybrid, strict=True):
            # Executors have gradients in training mode only; in inference a hybridized block leaves its inputs alone.
            result.grads, block.after = other.grads, other.after
    problems += [f"hybridized: {p}" for p in same(samples, hybrid, imperative)]
    problems += [f"symbol: {p}" for p in same(samples, executed, imperative)]
    assert not problems, "\n".join(problems)


@named(groups(ONE_EACH))
def test_front_ends_agree(samples):
    check(samples)


@pytest.mark.slow
@named(groups(EVERYTHING))
def test_front_ends_agree_on_all_samples(samples):
    check(samples)


def check_naive(samples: Sequence[Sample], gradients: bool) -> None:
    """Executed at once or together, operators compute the same."""
    lazy = run_nd(samples, gradients=gradients)
    with mx.engine.naive():
        problems = same(samples, run_nd(samples, gradients=gradients), lazy)
    assert not problems, "\n".join(problems)


@pytest.mark.slow
@named(groups(ONE_EACH, 60))
def test_the_naive_engine_computes_the_same(samples):
    check_naive(samples, gradients=False)


@pytest.mark.slow
@named(groups(ONE_EACH, 60))
def test_the_naive_engine_computes_the_same_gradients(samples):
    check_naive(samples, gradients=True)


def check_precision(samples: Sequence[Sample], dtype: str, tol: float, gradients: bool) -> None:
    """Results in another precision are near those in float32."""
    jumping = JUMPING if gradients and dtype == "float16" else ()
    samples = [s for s in samples if dtype not in UNSUPPORTED.get(s.op, ()) and s.op not in jumping]
    problems: list[str] = []
    other, single = run_nd(samples, np.dtype(dtype), gradients), run_nd(samples, np.float32, gradients)
    problems += goldens(samples, other, dtype)
    for sample, got, want in zip(samples, other, single, strict=True):
        for i, (a, b) in enumerate(zip(got.outs, want.outs, strict=True)):
            compare(f"{sample}: output {i}", a, b, tol, tol, problems)
        for i, g in got.grads.items():
            compare(f"{sample}: gradient of input {i}", g, want.grads[i], tol, tol, problems)
    assert not problems, "\n".join(problems)


SLOW = pytest.mark.slow


@pytest.mark.parametrize("dtype", ["int32", *(pytest.param(d, marks=SLOW) for d in INTEGERS[1:])])
@named(groups(ONE_EACH, 80))
def test_whole_numbers(samples, dtype):
    taken = [s for s in samples if inputs_in(s, dtype) and isinstance(golden(s, dtype), list) and s.op not in FLOATS]
    if taken:
        problems = goldens(taken, run_nd(taken, np.dtype(dtype), gradients=False), dtype)
        assert not problems, "\n".join(problems)


PRECISIONS = pytest.mark.parametrize(("dtype", "tol"), [("float64", 3e-4), ("float16", 5e-2)])


@pytest.mark.slow
@PRECISIONS
@named(groups(ONE_EACH, 60))
def test_other_precisions(samples, dtype, tol):
    check_precision(samples, dtype, tol, gradients=False)


@pytest.mark.slow
@PRECISIONS
@named(groups(ONE_EACH, 60))
def test_gradients_in_other_precisions(samples, dtype, tol):
    check_precision(samples, dtype, tol, gradients=True)


def seeded(run: Callable[..., list[Result]], samples: Sequence[Sample], seed: int = 11) -> list[Result]:
    """Run random operators after seeding."""
    mx.random.seed(seed)
    return run(samples)


@pytest.mark.usefixtures("one_tier")
@pytest.mark.parametrize("size", ["short", pytest.param("rest", marks=pytest.mark.slow)])
def test_random_operators(size):
    # Samplers of the gamma family are loops of rejection, which take long to compile: of the three operators that share
    # one, that of arrays stands for the others, and the generalized binomial for the other mixture.
    long = ("gamma", "poisson", "binomial")
    single = [s for s in DRAWN if "_like" not in s.op]
    quick = [s for s in single if not s.op.endswith(long)]
    slow = [s for s in single if s not in quick and not s.op.startswith(("_random_", "_sample_negative"))]
    drawn = quick[::2] if size == "short" else quick[1::2] + slow
    first, again = seeded(run_nd, drawn), seeded(run_nd, drawn)
    other = seeded(run_nd, drawn, 12)
    for sample, one, two, three in zip(drawn, first, again, other, strict=True):
        for a, b in zip(one.outs, two.outs, strict=True):
            np.testing.assert_array_equal(a, b, str(sample))
        if "flip" not in sample.op:
            assert any((a != b).any() for a, b in zip(one.outs, three.outs, strict=True)), sample
    for run in (run_sym, run_block):
        for sample, want, found, more in zip(drawn, first, seeded(run, drawn), seeded(run, drawn), strict=True):
            assert [(o.shape, o.dtype) for o in found.outs] == [(o.shape, o.dtype) for o in want.outs], sample
            for a, b in zip(found.outs, more.outs, strict=True):
                np.testing.assert_array_equal(a, b, str(sample))
            assert found.grads.keys() == want.grads.keys()


def test_random_operators_of_numbers_and_arrays_have_the_right_shapes():
    for sample in DRAWN:
        (result,) = [call(mx.nd, sample, [mx.nd.array(a, dtype=a.dtype) for a in sample.arrays])]
        symbol, names, _ = symbol_of([sample])
        shapes = {n: a.shape for n, a in zip(names[0], sample.arrays, strict=True)}
        assert symbol.infer_shape(**shapes)[1] == [o.shape for o in result], sample
