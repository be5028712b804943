"""Rewrites and workarounds for XLA on the CPU."""
