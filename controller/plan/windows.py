"""Whether what works may be replaced now, by the manifest's windows, and when it may next."""

from collections.abc import Iterable

from controller.model.cron import openings
from controller.model.fleet import Window


def open_now(windows: Iterable[Window], now: float) -> bool:
    """Whether a window is open at a time in Unix seconds; without any windows it always is.

    A window is open for its duration as time passes, whatever the clocks do, its first second included and the one
    after its last not. Where it comes again before it has closed, it stays open.
    """
    given = tuple(windows)
    return not given or any(_open(window, now) for window in given)


def next_opening(windows: Iterable[Window], now: float) -> float | None:
    """When a window next begins after `now`, in Unix seconds, whether or not one is open; None where none ever does."""
    given = (next(openings(window.cron, window.time_zone, after=now), None) for window in windows)
    return min((at for at in given if at is not None), default=None)


def _open(window: Window, now: float) -> bool:
    """Whether the first opening that has not closed by now has been."""
    since = now - window.duration_minutes * 60
    first = next(openings(window.cron, window.time_zone, after=since), None)
    return first is not None and first <= now
