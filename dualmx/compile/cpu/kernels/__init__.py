"""Kernels on NumPy arrays, generated from the traces of operators."""
