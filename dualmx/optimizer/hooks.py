"""Which update methods a user's subclass overrides; those are called in MXNet's order."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

_PACKAGE = __name__.partition(".")[0] + "."
# The methods whose number and order of calls a subclass sees, if it defines one of them.
_ORDERED = (
    "_get_lr", "_get_lrs", "_get_wd", "_get_wds", "_set_current_context", "_update_count", "_update_impl", "update",
    "update_multi_precision",
)  # fmt: skip
_UPDATES = {"update", "update_multi_precision", "_update_impl"}


@lru_cache(maxsize=1024)
def own_hooks(kind: type) -> frozenset[str]:
    """Names of the ordered methods that classes outside this package define for `kind`."""
    outside = [vars(c) for c in kind.__mro__[:-1] if not c.__module__.startswith(_PACKAGE)]
    return frozenset(h for h in _ORDERED if any(h in c for c in outside))


def is_asked(optimizer: Any) -> bool:
    """Whether a user's class, or the instance itself, defines a method that updates call."""
    return bool(own_hooks(type(optimizer))) or not vars(optimizer).keys().isdisjoint(_ORDERED)


def defines_update_alone(kind: type) -> bool:
    """Whether a user's class defines `update` and neither of the other methods that change weights.

    MXNet passes over it where the class it comes from has `_update_impl`; here it is called.
    """
    return own_hooks(kind) & _UPDATES == {"update"}
