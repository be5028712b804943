"""Foundations that know no arrays: errors, knobs, contexts, dtypes, registries."""
