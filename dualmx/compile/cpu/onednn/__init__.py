"""Convolutions by oneDNN in XLA:CPU programs, where its wheel is installed."""
