"""How far a command has come, by what it prints, and the limits that move with it. Pure; called by `command`.

A figure is a share of the whole that a line tells: a percentage, a count such as [3/12], or 12.3/20.0 GiB. It counts
once it has risen twice in lines that are otherwise alike: then there is a rate, and an end to expect. A command that is
slow is given time to get there. One whose figure stands still, while nothing new is printed, has stalled.
"""

import math
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from controller.model.reasons import Reason

STANDS_S = 600.0  # a figure may stand, at the least
GAPS = 3.0  # and so many times as long as it ever stood before
TOLD_S = 120.0  # what stands for so long is told
LOOK_S = 60.0  # between looks
RISES = 2  # before a figure counts
STRETCH = 4.0  # of its timeout, for a command whose figure rises well enough
WINDOW_S = 900.0  # over which a rate is taken
POINT_S = 15.0  # between the points that it is taken from
TRACKS = 16
TEMPLATES = 32
TRIED = 400  # characters of a line in which figures are looked for

_PERCENT = re.compile(r"(?<![\d,])(?<!\d\.)(\d{1,3}(?:\.\d{1,6})?) ?%")
_COUNT = re.compile(r"\[ {0,8}(\d{1,9})/(\d{1,9})\]")
_SIZES = re.compile(r"(?<![\d.])(\d{1,12}(?:\.\d{1,6})?) ?([kKMGT]?i?B)? ?/ ?(\d{1,12}(?:\.\d{1,6})?) ?([kKMGT]?i?B)\b")
_NO_LETTERS = re.compile(r"[\W\d_]+")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a command may take, in seconds of the clock, and what to call it then."""

    timeout_s: float  # unless it gets on
    timeout: Reason
    stretch: float = 1.0  # times the timeout, for one that gets on
    silence_s: float = math.inf  # without any output, before a figure counts
    stall: Reason | None = None  # None: it cannot stall


def figures(line: str, *, last: bool = False) -> Iterator[tuple[str, float]]:
    """The kinds and shares, 0 to 1, that a line tells; `last`: the last of each kind, not the first."""
    line = line[-TRIED:] if last else line[:TRIED]
    for kind, pattern, share_of in (("%", _PERCENT, _percent), ("n", _COUNT, _count), ("B", _SIZES, _sizes)):
        found = list(pattern.finditer(line))
        share = share_of(found[-1 if last else 0]) if found else None
        if share is not None and 0.0 <= share <= 1.0:
            yield kind, share


def duration(seconds: float) -> str:
    """A time for a person."""
    if seconds < 90:  # noqa: PLR2004 - where minutes begin to say enough
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 120 * 60 else f"{seconds / 3600:.1f} h"


@dataclass(slots=True)
class _Track:
    """One figure over time."""

    share: float
    rose_at: float
    rises: int = 0
    gap: float = 0.0  # the longest that it stood before it rose
    points: deque[tuple[float, float]] = field(default_factory=deque)

    def take(self, share: float, now: float) -> bool:
        """Take what was printed; whether it is a rise. A fall begins anew: the next file, the next try."""
        if share < self.share or not self.points:
            self.share, self.rose_at, self.rises, self.gap = share, now, 0, 0.0
            self.points = deque([(now, share)])
            return False
        if share == self.share:
            return False
        self.gap = max(self.gap, now - self.rose_at)
        self.share, self.rose_at, self.rises = share, now, self.rises + 1
        if now - self.points[-1][0] >= POINT_S:
            self.points.append((now, share))
        while len(self.points) > RISES + 1 and self.points[1][0] < now - WINDOW_S:
            self.points.popleft()
        return True

    def rate(self, now: float) -> float:
        """Of the whole, a second."""
        since, share = self.points[0]
        return (self.share - share) / max(now - since, 1.0)

    def left_s(self, now: float) -> float:
        """Seconds until it is done, at its rate."""
        rate = self.rate(now)
        return (1.0 - self.share) / rate if rate > 0 else math.inf

    @property
    def allowed_s(self) -> float:
        """How long it may stand."""
        return max(STANDS_S, GAPS * self.gap)


class Pace:
    """Follows one command from its beginning."""

    def __init__(self, limits: Limits, *, now: float) -> None:
        self._limits = limits
        self._began = self._heard_at = self._news_at = now
        self._moved_at = -math.inf  # a figure that counts rose
        self._tracks: dict[tuple[str, str], _Track] = {}
        self._templates: deque[str] = deque(maxlen=TEMPLATES)

    def touch(self, now: float, begun: str = "") -> None:
        """Output came; `begun` is a line that has not ended."""
        self._heard_at = now
        if begun:
            self._follow(figures(begun, last=True), "", now)

    def hear(self, line: str, now: float) -> None:
        """A line came."""
        self._heard_at = now
        template = _NO_LETTERS.sub(" ", line[:TRIED])
        if template not in self._templates:
            self._templates.append(template)
            self._news_at = now
        self._follow(figures(line), template, now)

    def overdue(self, now: float) -> tuple[Reason, str] | None:
        """What the command is to be ended for, and why; None while it may go on."""
        track, limits = self._leading(), self._limits
        if limits.stall is not None:
            if track is not None and track.share < 1.0:
                if self._stands(track, now) >= track.allowed_s:
                    return limits.stall, self._stalled(track, now)
            elif now - self._heard_at >= limits.silence_s:
                return limits.stall, f"printed nothing for {limits.silence_s:.0f} s"
        if now >= self._began + limits.timeout_s and not self._finishing(now):
            far = f"; {self._far(track, now)}" if track is not None and track.share < 1.0 else ""
            return limits.timeout, f"not done in {now - self._began:.0f} s{far}"
        return None

    def look_at(self, now: float) -> float:
        """When to ask `overdue` again."""
        limits, track = self._limits, self._leading()
        times = [self._began + limits.timeout_s, self._began + limits.stretch * limits.timeout_s]
        times.append(self._heard_at + limits.silence_s)
        if track is not None:
            times.append(max(track.rose_at, self._news_at) + track.allowed_s)
        return min((time for time in times if time > now), default=now + LOOK_S)

    def said(self, now: float) -> str:
        """How far it is, for a person: its rate and end, or that it stands. Empty: it tells nothing that counts."""
        track = self._leading()
        if track is None or track.share >= 1.0:
            return self.standing(now)
        late = now + track.left_s(now) > self._began + self._limits.timeout_s
        return self.standing(now) or f"{'slow: ' if late else ''}{self._far(track, now)}"

    def standing(self, now: float) -> str:
        """That it stands, and for how long; empty while it does not."""
        track, quiet = self._leading(), now - self._heard_at
        if track is not None and track.share < 1.0:
            stands = self._stands(track, now) >= max(TOLD_S, GAPS * track.gap)
            return self._stalled(track, now) if stands else ""
        return f"printed nothing for {duration(quiet)}" if quiet >= TOLD_S else ""

    def _follow(self, found: Iterator[tuple[str, float]], template: str, now: float) -> None:
        for kind, share in found:
            track = self._tracks.pop((kind, template), None) or _Track(share, now)
            self._tracks[kind, template] = track  # the last heard of comes last
            if track.take(share, now) and track.rises >= RISES:
                self._moved_at = now
        while len(self._tracks) > TRACKS:
            self._tracks.pop(next(iter(self._tracks)))

    def _leading(self) -> _Track | None:
        counting = (track for track in self._tracks.values() if track.rises >= RISES)
        return max(counting, key=lambda track: track.rose_at, default=None)

    def _stands(self, track: _Track, now: float) -> float:
        return now - max(track.rose_at, self._news_at)

    def _finishing(self, now: float) -> bool:
        """Whether it gets on well enough to end in the time that it may be given."""
        end = self._began + self._limits.stretch * self._limits.timeout_s
        if now >= end:
            return False
        track = self._leading()
        if track is None or track.share >= 1.0:
            return now - self._moved_at < STANDS_S
        return now + track.left_s(now) <= end

    def _stalled(self, track: _Track, now: float) -> str:
        return f"stalled at {track.share * 100:.3g} % for {duration(now - track.rose_at)}"

    def _far(self, track: _Track, now: float) -> str:
        left = track.left_s(now)
        if not math.isfinite(left):
            return f"{track.share * 100:.3g} %"
        speed = track.rate(now) * 6000
        return f"{track.share * 100:.3g} %, {speed:{'.2g' if speed < 10 else '.0f'}} %/min, {duration(left)} to go"  # noqa: PLR2004 - two digits


def _percent(match: re.Match[str]) -> float | None:
    return float(match[1]) / 100.0


def _count(match: re.Match[str]) -> float | None:
    return int(match[1]) / int(match[2]) if int(match[2]) else None


def _sizes(match: re.Match[str]) -> float | None:
    done, whole = _bytes(match[1], match[2] or match[4]), _bytes(match[3], match[4])
    return done / whole if whole else None


def _bytes(amount: str, unit: str) -> float:
    binary = unit.endswith("iB")
    return float(amount) * (1024.0 if binary else 1000.0) ** _POWERS[unit.lower().removesuffix("b").removesuffix("i")]
