"""Loggers whose lines begin with level, time, process and source line, in colour on a terminal."""

from __future__ import annotations

import logging
import sys
import warnings

CRITICAL, ERROR, WARNING, INFO, DEBUG, NOTSET = (
    logging.CRITICAL, logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG, logging.NOTSET,
)  # fmt: skip
_LETTERS = {CRITICAL: "C", ERROR: "E", WARNING: "W", INFO: "I", DEBUG: "D"}
_RED, _GREEN, _BLUE, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[34m", "\x1b[0m"


class _LineFormatter(logging.Formatter):
    def __init__(self, colored: bool):
        super().__init__(datefmt="%m%d %H:%M:%S")
        self._colored = colored

    def format(self, record: logging.LogRecord) -> str:
        letter = _LETTERS.get(record.levelno, "U")
        place = f"{record.pathname}:{record.funcName}:{record.lineno}"
        head = f"{letter}{self.formatTime(record, self.datefmt)} {record.process} {place}]"
        if self._colored:
            color = _RED if record.levelno >= WARNING else _GREEN if record.levelno >= INFO else _BLUE
            head = f"{color}{head}{_PLAIN}"
        text = f"{head} {record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


_with_handler: set[str] = set()  # loggers that have one of ours


def get_logger(
    name: str | None = None, filename: str | None = None, filemode: str | None = None, level: int = WARNING
) -> logging.Logger:
    """Return the logger `name` with a handler of its own: a file, or stderr.

    Args:
        name: logger name; the root logger, left as it is, for None.
        filename: file to write to.
        filemode: mode to open it in, `"a"` by default.
        level: lowest level that is shown.

    Example:
        >>> get_logger("example", level=INFO).name
        'example'
    """
    logger = logging.getLogger(name)
    if name is not None and name not in _with_handler:
        handler: logging.Handler
        if filename:
            handler = logging.FileHandler(filename, filemode or "a")
        else:
            handler = logging.StreamHandler()
        handler.setFormatter(_LineFormatter(not filename and sys.stderr.isatty()))
        logger.addHandler(handler)
        _with_handler.add(name)
        logger.setLevel(level)
    return logger


def getLogger(
    name: str | None = None, filename: str | None = None, filemode: str | None = None, level: int = WARNING
) -> logging.Logger:
    """Deprecated form of `get_logger`."""
    warnings.warn("log.getLogger is deprecated; use log.get_logger", DeprecationWarning, stacklevel=2)
    return get_logger(name, filename, filemode, level)


__all__ = ["CRITICAL", "DEBUG", "ERROR", "INFO", "NOTSET", "WARNING", "getLogger", "get_logger"]
