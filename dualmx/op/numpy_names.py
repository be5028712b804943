"""Operators that are one here and two in MXNet: a classic one and one of `mx.np`, with its own name in JSON."""

from __future__ import annotations

_SAME = (
    "arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh degrees exp expm1 fix floor log log10 log1p log2 "
    "negative radians reciprocal rint sign sin sinh sqrt square tan tanh trunc"
).split()

# The operator here: the name under which nodes of `mx.sym.np` and `mx.sym.npx` are written.
WRITTEN: dict[str, str] = {
    **{name: f"_npi_{name}" for name in _SAME},
    "abs": "_npi_absolute",
    "_copy": "_np_copy",
    "_plus_scalar": "_npi_add_scalar",
    "_minus_scalar": "_npi_subtract_scalar",
    "_rminus_scalar": "_npi_rsubtract_scalar",
    "_mul_scalar": "_npi_multiply_scalar",
    "_mod_scalar": "_npi_mod_scalar",
    "_rmod_scalar": "_npi_rmod_scalar",
    "_power_scalar": "_npi_power_scalar",
    "_rpower_scalar": "_npi_rpower_scalar",
    "relu": "_npx_relu",
    "sigmoid": "_npx_sigmoid",
    "_npi_maximum": "broadcast_maximum",
    "_npi_minimum": "broadcast_minimum",
}
# The names that a node which was read keeps.
KEPT = frozenset(name for name in WRITTEN.values() if name.startswith("_np"))

# MXNet computes these with NumPy, in nodes of `Custom`: the `op_type`, the operator here, and parameters it needs.
BY_NUMPY: dict[str, tuple[str, dict[str, str]]] = {
    "resize_fallback": ("_np_resize", {}),
    "unravel_index_fallback": ("_unravel_index", {}),
    "empty_like_fallback": ("_npi_full_like", {"fill_value": "0"}),
}
