"""The on-disk cache of compiled programs, switched on only while dualmx compiles."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

import jax
from jax.experimental.compilation_cache import compilation_cache

from ..core import knobs
from .quiet import quiet_jax_logging

_lock = threading.RLock()
_SETTINGS = {"jax_persistent_cache_min_compile_time_secs": 0.0, "jax_persistent_cache_min_entry_size_bytes": -1}


@contextlib.contextmanager
def persistent_cache() -> Iterator[None]:
    """Use dualmx's cache folder in this scope; the user's own JAX settings are found unchanged afterwards.

    A folder that the user configured for JAX is used instead and nothing is touched.
    """
    folder = os.path.expanduser(knobs.CACHE.read())
    if not folder or jax.config.values["jax_compilation_cache_dir"]:
        yield
        return
    with _lock, quiet_jax_logging():
        before = {name: getattr(jax.config, name) for name in _SETTINGS}
        # The folder's state is settled at first use, so both changes need a reset to be seen.
        compilation_cache.reset_cache()
        jax.config.update("jax_compilation_cache_dir", folder)
        for name, value in _SETTINGS.items():
            jax.config.update(name, value)
        try:
            yield
        finally:
            jax.config.update("jax_compilation_cache_dir", None)
            for name, value in before.items():
                jax.config.update(name, value)
            compilation_cache.reset_cache()
