"""Runs that crash at a chosen moment, and what of their summaries must not depend on it."""

from cndpm.experiments import Monitor

__all__ = ["TIMES", "Stop", "StopsAt", "without_times"]

TIMES = {"seconds", "overhead_seconds"}


class Stop(Exception):
    """A crash at a chosen moment."""


class StopsAt(Monitor):
    def __init__(self, step):
        self.step = step

    def learned(self, step):
        if step == self.step:
            raise Stop


def without_times(summary):
    return {key: value for key, value in summary.items() if key not in TIMES}
