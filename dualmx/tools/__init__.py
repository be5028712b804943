"""Subcommands of `dualmx`: measure, watch jobs, pack images."""

from __future__ import annotations
