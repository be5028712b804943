"""Convolutions of XLA:CPU programs by oneDNN, where its wheel is installed."""
