"""Default values of the parameters of MXNet's functions, methods and operators."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

PACKAGES = (
    "attribute autograd callback context executor gluon image initializer io kvstore lr_scheduler metric model module "
    "monitor name ndarray optimizer profiler random recordio rnn symbol test_utils util visualization"
).split()
SIMPLE = (type(None), bool, int, float, str)


def defaults(function: Any) -> dict[str, Any]:
    """The default values of parameters that a text can hold."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    given = {p.name: list(p.default) if isinstance(p.default, tuple) else p.default for p in parameters}
    return {n: v for n, v in given.items() if all(type(x) in SIMPLE for x in (v if isinstance(v, list) else [v]))}


def members(module: Any, path: str, home: str) -> Iterator[tuple[str, Any]]:
    """Functions of a module that come from the package `home`, and methods of its classes, by dotted name."""
    for name, value in sorted(vars(module).items()):
        if name.startswith("_") or not f"{getattr(value, '__module__', '')}.".startswith(f"{home}."):
            continue
        if inspect.isclass(value):
            for method, function in sorted(vars(value).items()):
                if inspect.isfunction(function) and (method == "__init__" or not method.startswith("_")):
                    yield f"{path}.{name}.{method}", function
        elif inspect.isfunction(value):
            yield f"{path}.{name}", value


def record(mx: Any) -> Any:
    """Every default, by the first dotted name of a function and by operator."""
    functions: dict[str, Any] = {}
    seen: set[Any] = set()
    for package in PACKAGES:
        module = getattr(mx, package)
        inner = [m.name for m in pkgutil.iter_modules(getattr(module, "__path__", ())) if not m.name.startswith("_")]
        for name in ("", *(("random", "sparse") if package in ("ndarray", "symbol") else inner)):
            part = getattr(module, name, None) if name else module
            if not inspect.ismodule(part):
                continue
            for path, function in members(part, f"{package}.{name}" if name else package, f"mxnet.{package}"):
                if function not in seen and (found := defaults(function)):
                    functions[path] = found
                seen.add(function)
    operators = {}
    for name in sorted(mx.operator.get_all_registered_operators()):
        listed = mx.operator.get_operator_arguments(name)
        both = zip(listed.names, listed.types)  # noqa: B905, not in MXNet's Python
        texts = {n: t.split("default=")[1] for n, t in both if "default=" in t}
        if texts and not name.startswith("_backward"):
            operators[name] = {n: t.strip("'") for n, t in texts.items()}
    return {"functions": functions, "operators": operators}
