"""Measurements of dualmx against hand-written JAX, MXNet and PyTorch: `python -m benchmarks.run --help`."""
