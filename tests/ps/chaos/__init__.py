"""Seeded runs of whole jobs with faults: real processes, real signals, connections through a harmful proxy."""
