"""Files and messages that are damaged on purpose, for every reader of foreign bytes; see `python -m tests.fuzz -h`."""
