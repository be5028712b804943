"""What the command `dualmx` offers beside training: measuring, watching, packing images."""

from __future__ import annotations
