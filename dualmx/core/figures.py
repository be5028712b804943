"""Figures that this process has reported, such as its last loss: told to whoever watches its job."""

from __future__ import annotations

from .errors import ArgumentTypeError

MOST = 16  # names; the one reported longest ago gives way
LENGTH = 64  # letters of a name
_latest: dict[str, float] = {}


def report_metric(name: str, value: float) -> None:
    """Let `dualmx status` show the latest value of a figure of this process, such as its loss.

    `Speedometer`, `log_train_metric`, `LogValidationMetricsCallback` and the estimator's `LoggingHandler`
    report what they write. It travels with the sign of life that a worker gives its scheduler every second; a process
    without a job keeps it to itself. Of more than 16 names the latest are kept, of a name 64 letters.

    Args:
        name: of the figure.
        value: a number, or an array of one element, which is waited for.

    Raises:
        ArgumentTypeError: no number.

    Example:
        >>> mx.callback.report("loss", 0.25)
    """
    try:
        number = float(value)
    except (TypeError, ValueError) as e:
        raise ArgumentTypeError(f"report({name!r}): {e}; expected a number, or an array of one element") from e
    _latest.pop(str(name)[:LENGTH], None)
    _latest[str(name)[:LENGTH]] = number
    while len(_latest) > MOST:
        _latest.pop(next(iter(_latest)), None)


def latest_metrics() -> dict[str, float]:
    """Return the last value of each figure by its name."""
    return dict(_latest)


__all__ = ["LENGTH", "MOST", "latest_metrics", "report_metric"]
