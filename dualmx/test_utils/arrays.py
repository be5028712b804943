"""Random arrays, shapes and contexts for tests."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.context import Context, current_context
from ..core.errors import ArgumentError
from ..io import DataIter
from ..ndarray import NDArray, array
from ..sparse import creation
from ..util import get_gpu_count

_chosen: list[Context] = []


def default_context() -> Context:
    """Return the context tests run on: what `set_default_context` set, or the current one."""
    return _chosen[-1] if _chosen else current_context()


def set_default_context(ctx: Context) -> None:
    """Set the context that tests run on."""
    _chosen[:] = [ctx]


def default_dtype() -> type:
    """Return the element type tests use, float32."""
    return np.float32


def list_gpus() -> range:
    """Return the numbers of this process's GPUs."""
    return range(get_gpu_count())


def _length(high: int, allow_zero_size: bool) -> int:
    return int(np.random.randint(0 if allow_zero_size else 1, high + 1))


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """Return a random shape of `num_dim` axes of length 1 (0 if allowed) to `dim`."""
    return tuple(_length(dim, allow_zero_size) for _ in range(num_dim))


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> tuple[int, int]:
    """Return a random shape of two axes of at most the given lengths."""
    return _length(dim0, allow_zero_size), _length(dim1, allow_zero_size)


def rand_shape_3d(
    dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False
) -> tuple[int, int, int]:
    """Return a random shape of three axes of at most the given lengths."""
    return _length(dim0, allow_zero_size), _length(dim1, allow_zero_size), _length(dim2, allow_zero_size)


def rand_coord_2d(x_low: int, x_high: int, y_low: int, y_high: int) -> tuple[int, int]:
    """Return a random point of integers with x in [x_low, x_high) and y in [y_low, y_high)."""
    return int(np.random.randint(x_low, x_high)), int(np.random.randint(y_low, y_high))


def random_arrays(*shapes: tuple[int, ...]) -> Any:
    """Return a standard normal NumPy array of float32 for each shape: one array for one shape; () gives a number."""
    found = [
        np.array(np.random.randn(), np.float32) if not s else np.random.randn(*s).astype(np.float32) for s in shapes
    ]
    return found[0] if len(shapes) == 1 else found


def random_uniform_arrays(*shapes: tuple[int, ...], low: float = 0.0, high: float = 1.0) -> list[np.ndarray]:
    """Return a NumPy array of float32, uniform in [low, high), for each shape."""
    return [np.random.uniform(low, high, s).astype(np.float32) for s in shapes]


def random_sample(population: Sequence[Any], k: int) -> list[Any]:
    """Return `k` different elements in random order."""
    return random.sample(list(population), k)


def rand_ndarray(
    shape: Sequence[int],
    stype: str = "default",
    density: float | None = None,
    dtype: Any = None,
    modifier_func: Callable[[float], float] | None = None,
    shuffle_csr_indices: bool = False,
    distribution: str | None = None,
    ctx: Context | None = None,
) -> NDArray:
    """Return an array of standard normal values.

    Args:
        shape: its shape.
        stype: its storage type.
        density, shuffle_csr_indices, distribution: of sparse arrays, see `rand_sparse_ndarray`.
        dtype: element type, float32 by default.
        modifier_func: applied to every element.
        ctx: where to put it, `default_context()` by default.
    """
    if stype != "default":
        extra = {"modifier_func": modifier_func, "shuffle_csr_indices": shuffle_csr_indices, "ctx": ctx}
        return rand_sparse_ndarray(shape, stype, density, dtype, distribution, **extra)[0]
    values = np.random.randn(*shape)
    if modifier_func is not None:
        values = assign_each(values, modifier_func)
    return array(values, ctx=ctx or default_context(), dtype=dtype or default_dtype())


def assign_each(the_input: np.ndarray, function: Callable[[Any], Any] | None) -> np.ndarray:
    """Return an array with `function` applied to each element."""
    if function is None:
        return np.array(the_input)
    return np.array([function(v) for v in the_input.flat], the_input.dtype).reshape(the_input.shape)


def assign_each2(input1: np.ndarray, input2: np.ndarray, function: Callable[[Any, Any], Any] | None) -> np.ndarray:
    """Return an array with `function` applied to each pair of elements."""
    if function is None:
        return np.array(input1)
    pairs = zip(input1.flat, input2.flat, strict=True)
    return np.array([function(a, b) for a, b in pairs], input1.dtype).reshape(input1.shape)


def create_2d_tensor(rows: int, columns: int, dtype: Any = np.int64) -> NDArray:
    """Return a matrix whose row `i` is filled with `i`."""
    return array(np.repeat(np.arange(rows)[:, None], columns, 1), dtype=dtype)


def create_vector(size: int, dtype: Any = np.int64) -> NDArray:
    """Return 0, 1, …, size - 1."""
    return array(np.arange(size), dtype=dtype)


@contextlib.contextmanager
def environment(*args: Any) -> Iterator[None]:
    """Return a scope with environment variables set: `environment(name, value)` or a dict; None removes one."""
    if not args or len(args) > 2:
        raise ArgumentError(f"environment: got {len(args)} arguments: expected a name and a value, or a dict")
    name, *value = list(args)
    wanted: dict[str, Any] = {name: value[0]} if value else dict(name)
    before = {name: os.environ.get(name) for name in wanted}
    _set(wanted)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Any) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = str(value)


def retry(n: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that runs a test of random values up to `n` times until it passes."""
    if n < 1:
        raise ArgumentError(f"retry: n={n}: expected 1 or more")

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        def run_repeatedly(*args: Any, **kwargs: Any) -> Any:
            for left in reversed(range(n)):
                try:
                    return test(*args, **kwargs)
                except AssertionError:
                    if not left:
                        raise
            return None

        run_repeatedly.__name__, run_repeatedly.__doc__ = test.__name__, test.__doc__
        return run_repeatedly

    return decorate


class DummyIter(DataIter):
    """Yields the first batch of an iterator for ever, to measure everything but the iterator."""

    def __init__(self, real_iter: Any):
        super().__init__(real_iter.batch_size)
        self.real_iter = real_iter
        self.the_batch = next(real_iter)

    @property
    def provide_data(self) -> Any:
        return self.real_iter.provide_data

    @property
    def provide_label(self) -> Any:
        return self.real_iter.provide_label

    def next(self) -> Any:
        """Return the batch."""
        return self.the_batch


def get_identity_mat(size: int) -> NDArray:
    """Return the identity matrix."""
    return array(np.eye(size))


def get_identity_mat_batch(size: Sequence[int]) -> NDArray:
    """Return identity matrices of the shape (…, n, n)."""
    return array(np.broadcast_to(np.eye(size[-1]), tuple(size)))


def new_orthonormal_matrix_2d(n: int) -> np.ndarray:
    """Return a random orthonormal matrix (n, n)."""
    return np.linalg.qr(np.random.randn(n, n))[0]


def new_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """Return a random matrix (n, n) whose eigenvalues are real: a product of Q, an upper triangle and Q⁻¹."""
    q = new_orthonormal_matrix_2d(n)
    return q @ np.triu(np.random.uniform(-1, 1, (n, n))) @ q.T


def new_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> np.ndarray:
    """Return random matrices (…, n, n) whose eigenvalues are real."""
    n = int(np.prod(shape[:-2], dtype=int))
    return np.array([new_matrix_with_real_eigvals_2d(shape[-1]) for _ in range(n)]).reshape(tuple(shape))


def new_sym_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """Return a random symmetric matrix (n, n)."""
    a = new_matrix_with_real_eigvals_2d(n)
    return (a + a.T) / 2


def new_sym_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> np.ndarray:
    """Return random symmetric matrices (…, n, n)."""
    n = int(np.prod(shape[:-2], dtype=int))
    return np.array([new_sym_matrix_with_real_eigvals_2d(shape[-1]) for _ in range(n)]).reshape(tuple(shape))


def rand_sparse_ndarray(
    shape: Sequence[int], stype: str, density: float | None = None, dtype: Any = None,
    distribution: str | None = None, data_init: float | None = None, rsp_indices: Any = None,
    modifier_func: Callable[[float], float] | None = None, shuffle_csr_indices: bool = False,
    ctx: Context | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Return a random sparse array and its parts.

    Args:
        shape: its shape.
        stype: `"row_sparse"` or `"csr"`.
        density: share of rows or of elements that are stored; random by default.
        dtype: element type, float32 by default.
        distribution: `"uniform"` (default) or, for csr, `"powerlaw"`: twice as many elements in each row.
        data_init: value of all elements, instead of random ones.
        rsp_indices: which rows are stored.
        modifier_func: applied to every stored element.
        shuffle_csr_indices: shuffle the columns within the rows of a csr array.
        ctx: where to put it.

    Returns:
        The array, and (values, indices) or (indptr, indices, values).

    Raises:
        ArgumentError: another storage type or distribution.
    """
    dtype = default_dtype() if dtype is None else dtype
    density = float(np.random.rand()) if density is None else density
    if not 0 <= density <= 1:
        raise ArgumentError(f"rand_sparse_ndarray: density={density}: expected 0 to 1")
    if distribution not in (None, "uniform", "powerlaw"):
        raise ArgumentError(f"rand_sparse_ndarray: distribution={distribution!r}: expected uniform or powerlaw")
    shape = tuple(shape)
    if stype == "row_sparse":
        rows = np.flatnonzero(np.random.rand(shape[0]) < density) if rsp_indices is None else np.array(rsp_indices)
        values = _filled((len(rows), *shape[1:]), data_init, modifier_func).astype(dtype)
        if not len(rows):
            return creation.zeros("row_sparse", shape, ctx=ctx, dtype=dtype), (np.array([]), np.array([]))
        made = creation.row_sparse_array((values, rows), shape=shape, ctx=ctx, dtype=dtype)
        return made, (values, rows)
    if stype != "csr" or len(shape) != 2:
        raise ArgumentError(
            f"rand_sparse_ndarray: stype={stype!r}, shape={shape}: expected row_sparse, or csr of 2 axes"
        )
    if distribution == "powerlaw":
        counts = np.minimum(2.0 ** np.arange(shape[0]), shape[1])
        mask = np.arange(shape[1]) < counts[:, None]
        mask &= np.cumsum(mask).reshape(shape) <= density * mask.size
    else:
        mask = np.random.rand(*shape) < density
    dense = np.where(mask, _filled(shape, data_init, modifier_func), 0).astype(dtype)
    made = creation.csr_matrix(dense, shape=shape, ctx=ctx, dtype=dtype)
    if shuffle_csr_indices:
        made = shuffle_csr_column_indices(made)
    return made, (made.indptr, made.indices, made.data)


def _filled(shape: tuple[int, ...], value: float | None, change: Callable[[float], float] | None) -> np.ndarray:
    values = np.random.uniform(0.1, 1, shape) if value is None else np.full(shape, float(value))
    return values if change is None else assign_each(values, change)


def shuffle_csr_column_indices(csr: Any) -> Any:
    """Return the same csr array with the columns of every row in random order."""
    pointer, columns, values = (a.asnumpy() for a in (csr.indptr, csr.indices, csr.data))
    order = np.concatenate([
        np.random.permutation(np.arange(a, b)) for a, b in zip(pointer[:-1], pointer[1:], strict=True)
    ] or [np.arange(0)]).astype(int)  # fmt: skip
    return creation.csr_matrix((values[order], columns[order], pointer), shape=csr.shape, dtype=csr.dtype)


def create_sparse_array(
    shape: Sequence[int], stype: str, data_init: float | None = None, rsp_indices: Any = None, dtype: Any = None,
    modifier_func: Callable[[float], float] | None = None, density: float = 0.5, shuffle_csr_indices: bool = False,
) -> Any:  # fmt: skip
    """Return a random sparse array; arguments as for `rand_sparse_ndarray`."""
    return rand_sparse_ndarray(
        shape, stype, density, dtype, None, data_init, rsp_indices, modifier_func, shuffle_csr_indices
    )[0]


def create_sparse_array_zd(
    shape: Sequence[int], stype: str, density: float, data_init: float | None = None, rsp_indices: Any = None,
    dtype: Any = None, modifier_func: Callable[[float], float] | None = None, shuffle_csr_indices: bool = False,
) -> Any:  # fmt: skip
    """Like `create_sparse_array`, storing nothing where `density` is 0."""
    if stype == "row_sparse" and density == 0 and rsp_indices is not None and not len(rsp_indices):
        rsp_indices = None
    return create_sparse_array(shape, stype, data_init, rsp_indices, dtype, modifier_func, density, shuffle_csr_indices)


__all__ = [
    "DummyIter", "assign_each", "assign_each2", "create_2d_tensor", "create_sparse_array", "create_sparse_array_zd",
    "create_vector", "default_context", "default_dtype", "environment", "get_identity_mat", "get_identity_mat_batch",
    "list_gpus", "new_matrix_with_real_eigvals_2d", "new_matrix_with_real_eigvals_nd", "new_orthonormal_matrix_2d",
    "new_sym_matrix_with_real_eigvals_2d", "new_sym_matrix_with_real_eigvals_nd", "rand_coord_2d", "rand_ndarray",
    "rand_shape_2d", "rand_shape_3d", "rand_shape_nd", "rand_sparse_ndarray", "random_arrays", "random_sample",
    "random_uniform_arrays", "retry", "set_default_context", "shuffle_csr_column_indices",
]  # fmt: skip
