"""What tests of arrays and symbols need: comparisons, random arrays, checks of values and gradients."""

from __future__ import annotations

from .arrays import (
    DummyIter,
    assign_each,
    assign_each2,
    create_2d_tensor,
    create_vector,
    default_context,
    default_dtype,
    environment,
    list_gpus,
    rand_coord_2d,
    rand_ndarray,
    rand_shape_2d,
    rand_shape_3d,
    rand_shape_nd,
    random_arrays,
    random_sample,
    random_uniform_arrays,
    retry,
    set_default_context,
)
from .compare import (
    almost_equal,
    assert_allclose,
    assert_almost_equal,
    assert_almost_equal_ignore_nan,
    assert_almost_equal_with_err,
    assert_exception,
    collapse_sum_like,
    compare_ndarray_tuple,
    default_atols,
    default_numeric_eps,
    default_rtols,
    effective_dtype,
    get_atol,
    get_etol,
    get_rtol,
    get_tolerance,
    get_tols,
    np_reduce,
    same,
    same_array,
)
from .files import (
    discard_stderr,
    download,
    download_model,
    get_bz2_data,
    get_im2rec_path,
    get_mnist,
    get_mnist_iterator,
    get_mnist_ubyte,
    get_zip_data,
    has_tvm_ops,
    is_aarch64_run,
    is_cd_run,
    is_op_runnable,
)
from .matrices import (
    get_identity_mat,
    get_identity_mat_batch,
    new_matrix_with_real_eigvals_2d,
    new_matrix_with_real_eigvals_nd,
    new_orthonormal_matrix_2d,
    new_sym_matrix_with_real_eigvals_2d,
    new_sym_matrix_with_real_eigvals_nd,
)
from .optimizers import compare_optimizer
from .sparse import create_sparse_array, create_sparse_array_zd, rand_sparse_ndarray, shuffle_csr_column_indices
from .statistics import chi_square_check, gen_buckets_probs_with_ppf, mean_check, var_check, verify_generator
from .symbolic import (
    check_consistency,
    check_gluon_hybridize_consistency,
    check_numeric_gradient,
    check_speed,
    check_symbolic_backward,
    check_symbolic_forward,
    numeric_grad,
    same_symbol_structure,
    simple_forward,
)

__all__ = [
    "DummyIter", "almost_equal", "assert_allclose", "assert_almost_equal", "assert_almost_equal_ignore_nan",
    "assert_almost_equal_with_err", "assert_exception", "assign_each", "assign_each2", "check_consistency",
    "check_gluon_hybridize_consistency", "check_numeric_gradient", "check_speed", "check_symbolic_backward",
    "check_symbolic_forward", "chi_square_check", "collapse_sum_like", "compare_ndarray_tuple", "compare_optimizer",
    "create_2d_tensor", "create_sparse_array", "create_sparse_array_zd", "create_vector", "default_atols",
    "default_context", "default_dtype", "default_numeric_eps", "default_rtols", "discard_stderr", "download",
    "download_model", "effective_dtype", "environment", "gen_buckets_probs_with_ppf", "get_atol", "get_bz2_data",
    "get_etol", "get_identity_mat", "get_identity_mat_batch", "get_im2rec_path", "get_mnist", "get_mnist_iterator",
    "get_mnist_ubyte", "get_rtol", "get_tolerance", "get_tols", "get_zip_data", "has_tvm_ops", "is_aarch64_run",
    "is_cd_run", "is_op_runnable", "list_gpus", "mean_check", "new_matrix_with_real_eigvals_2d",
    "new_matrix_with_real_eigvals_nd", "new_orthonormal_matrix_2d", "new_sym_matrix_with_real_eigvals_2d",
    "new_sym_matrix_with_real_eigvals_nd", "np_reduce", "numeric_grad", "rand_coord_2d", "rand_ndarray",
    "rand_shape_2d", "rand_shape_3d", "rand_shape_nd", "rand_sparse_ndarray", "random_arrays", "random_sample",
    "random_uniform_arrays", "retry", "same", "same_array", "same_symbol_structure", "set_default_context",
    "shuffle_csr_column_indices", "simple_forward", "var_check", "verify_generator",
]  # fmt: skip
