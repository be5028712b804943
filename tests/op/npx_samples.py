"""Samples of the operators behind `mx.npx`, `mx.np.linalg` and `mx.np.random`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.op.samples import Sample, wave

WIDE, COLUMN = wave((2, 3)), wave((3, 2), 1)
SQUARE = wave((3, 3), 2) + 3 * np.eye(3, dtype=np.float32)
SYMMETRIC = (SQUARE @ SQUARE.T).astype(np.float32)
RCOND = np.float32([1e-6])


def samples() -> Iterator[Sample]:
    """One or a few for every operator."""
    yield Sample("_npi_cholesky", (SYMMETRIC,), {}, (0,), numeric=False)
    for name in ("_npi_eigh", "_npi_eigvalsh"):
        yield Sample(name, (SYMMETRIC,), {"UPLO": "U"})
    for name in ("_npi_inv", "_npi_det", "_npi_slogdet"):
        yield Sample(name, (SQUARE,), {}, (0,))
    yield Sample("_npi_svd", (WIDE,))
    yield Sample("_npi_solve", (SQUARE, COLUMN), {}, (0, 1))
    yield Sample("_npi_pinv", (WIDE[None], RCOND))
    yield Sample("_npi_tensorinv", (SQUARE.reshape(3, 3, 1),), {"ind": 1}, (0,))
    yield Sample("_npi_tensorsolve", (SQUARE.reshape(3, 1, 3), COLUMN[:, :1]), {}, (0, 1))
    for flag, order, axis in ((-2, 2, None), (1, 2, (0, 1)), (-1, 3, (1,)), (-1, 1, (0,)), (0, 2, (0, 1))):
        yield Sample("_npi_norm", (WIDE,), {"flag": flag, "ord": order, "axis": axis}, (0,))
    yield Sample("_npx_reshape", (WIDE,), {"newshape": (-5, 1)}, (0,))
    yield Sample("_npx_constraint_check", (WIDE > 0,), {"msg": "text"})
    for kind in ("uniform", "normal", "exponential", "gumbel", "logistic"):
        yield Sample("_npi_standard", (), {"kind": kind, "size": (2, 3)})
    yield Sample("_npi_standard_gamma", (WIDE,))
    yield Sample("_npi_randint", (), {"low": 0, "high": 9, "size": (4,)})
    yield Sample(
        "_npi_choice", (np.float32([0.2, 0.3, 0.5]),), {"a": 3, "weighted": True, "size": (2,), "replace": False}
    )
    yield Sample("_npi_multinomial", (np.float32([0.2, 0.8]),), {"n": 9, "size": (2,)})
