"""Subcommands of `dualmx`: measure, watch jobs, pack images."""
