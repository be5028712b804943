"""Foundations without arrays: errors, knobs, contexts, element types, registries."""
