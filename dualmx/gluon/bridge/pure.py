"""A `Call` made from a JAX function on the spot, for code that is not in the operator registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...op.registry import Call, Op
from ...op.schema import UNTYPED, Input, ParamField, to_float


def pure_call(
    name: str,
    fn: Callable[..., Sequence[Any]],
    n_outputs: int,
    writes: Sequence[int] = (),
    random: bool = False,
    runtime: Sequence[str] = (),
) -> Call:
    """Return a call of `fn(*arrays)`, to be run with `ndarray.invoke`.

    Args:
        name: shown in profiles and error messages.
        fn: pure; returns the outputs, then the next values of the inputs it writes.
        n_outputs: number of outputs.
        writes: positions of the inputs that receive next values.
        random: pass a random key as keyword `key`.
        runtime: keywords under which `fn` receives float scalars given at each run.
    """
    params = {n: ParamField(n, float, to_float, 1.0, runtime=True) for n in runtime}
    inputs = (Input("data", UNTYPED, variadic=True),)
    op = Op(
        name,
        fn,
        inputs,
        params,
        outputs=n_outputs,
        key_name="key" if random else "",
        mutates=(lambda _: tuple(writes)) if writes else None,
    )
    return Call(op, dict.fromkeys(runtime, 1.0), False)
