"""A backward pass as one call, which can be differentiated again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.trie import OP, Value
from ..op.registry import Call, Op
from ..op.schema import UNTYPED, Input
from .lower import BackwardPlan, backpropagate, collect_grads, differentiated_inputs, head_cotangents, vjp_step

_OP = Op("_gradient", lambda *data: data, (Input("data", UNTYPED, variadic=True),), {})


class GradCall(Call):
    """The gradient of recorded steps as a call on the values that enter them; being pure, it has a gradient itself.

    Attributes:
        input_values: inputs of the call: what the steps read and do not compute, and the head gradients.
        key_positions, runtime_positions: which random keys and runtime scalars of the trace the steps use.
    """

    __slots__ = ("plan", "input_values", "key_positions", "runtime_positions")

    def __init__(self, plan: BackwardPlan):
        super().__init__(_OP, {}, False)
        self.plan = plan
        steps = list(reversed(plan.path))
        computed = {v for s in steps if s.kind == OP for v in s.outs}
        outside = [v for s in steps for v in s.ins if v not in computed]
        outside += [h for h in plan.heads if h not in computed] + [s for s in plan.head_grads if s is not None]
        outside += [v for g in plan.targets for v in g if v not in computed]
        self.input_values: tuple[Value, ...] = tuple(dict.fromkeys(outside))
        self.key_positions = [k for s in steps if s.call for k in range(s.n_keys - s.call.n_keys, s.n_keys)]
        self.runtime_positions = [
            k for s in steps if s.call for k in range(s.n_runtime - s.call.n_runtime, s.n_runtime)
        ]
        self.n_keys, self.n_runtime = len(self.key_positions), len(self.runtime_positions)
        self.has_key, self.is_simple = self.n_keys > 0, False
        self.joint = any(s.call is not None and s.call.joint for s in steps)
        self.n_outputs = self.n_visible = self.n_results = len(plan.targets)

    def __repr__(self) -> str:
        return f"gradient of {len(self.plan.path)} steps"

    def apply_keys(self, inputs: Sequence[Any], keys: Sequence[Any], runtime: Sequence[Any]) -> tuple[Any, ...]:
        """Run the steps forward from the boundary values, then backward."""
        env: dict[Value, Any] = dict(zip(self.input_values, inputs, strict=True))
        where: dict[Any, set[int]] = {}
        differentiated_inputs(self.plan, where)
        pulls: dict[Any, Any] = {}
        used_keys = used_rates = 0
        for s in reversed(self.plan.path):
            assert s.call is not None
            own = keys[used_keys : used_keys + s.call.n_keys]
            rates = runtime[used_rates : used_rates + s.call.n_runtime]
            used_keys, used_rates = used_keys + s.call.n_keys, used_rates + s.call.n_runtime
            at = sorted(where[s])
            outs, pull = vjp_step(s, [env[v] for v in s.ins], at, own, rates)
            pulls[s] = (pull, at, outs)
            if s.kind == OP:
                env.update(zip(s.outs, outs, strict=True))
        cotangents = head_cotangents(self.plan, env)
        backpropagate(self.plan.path, pulls, cotangents)
        return tuple(collect_grads(self.plan, cotangents, env))

    def infer(self, avals: tuple[Any, ...]) -> tuple[tuple[tuple[int, ...], np.dtype], ...]:
        """Gradients have the shapes and dtypes of what they are taken with respect to."""
        return tuple((g[0].shape, g[0].dtype) for g in self.plan.targets)
