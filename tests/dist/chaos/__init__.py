"""Seeded runs of whole jobs with faults: real processes, real signals, connections through a proxy that does them harm."""
