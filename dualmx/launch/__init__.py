"""Launch distributed jobs: `dualmx-launch -n 2 -s 2 --launcher local python script.py`."""

from .cli import main

__all__ = ["main"]
