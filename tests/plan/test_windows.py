from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model.cron import unless_cron, unless_zone
from controller.model.fleet import Window
from controller.plan.windows import next_opening, open_now


def at(text: str) -> float:
    """Unix seconds of a time that says its offset."""
    moment = datetime.fromisoformat(text)
    assert moment.tzinfo is not None
    return moment.timestamp()


def window(cron: str, minutes: float, zone: str = "UTC") -> Window:
    return Window(cron=cron, duration_minutes=minutes, time_zone=zone)


def starts(given: Window, now: float, end: float) -> Iterator[float]:
    """Each of a window's beginnings."""
    while (now := next_opening([given], now) or end) < end:
        yield now


def begins(given: Window, after: str, before: str) -> list[str]:
    """Each of a window's beginnings, in its own zone."""
    zone = ZoneInfo(given.time_zone)
    found = starts(given, at(after) - 1, at(before))
    return [datetime.fromtimestamp(now, zone).isoformat(timespec="minutes") for now in found]


NIGHT = window("0 3 * * *", 60)


def test_without_windows_it_is_always_open():
    """A fleet without windows may be changed at any time, and waits for none."""
    assert open_now([], 0.0)
    assert next_opening([], 0.0) is None


def test_a_window_is_open_from_its_first_second_to_before_its_end():
    """From 03:00:00 to before 04:00:00, and at no time besides."""
    three = at("2026-12-01T03:00:00Z")
    assert [open_now([NIGHT], three + s) for s in (-0.001, 0, 0.001, 1, 3599.999, 3600, 3601)] == [
        False, True, True, True, True, False, False,
    ]  # fmt: skip


def test_the_next_opening_is_later_than_now():
    """A window that begins now has begun; the next is tomorrow's."""
    three = at("2026-12-01T03:00:00Z")
    assert next_opening([NIGHT], three - 0.001) == three
    assert next_opening([NIGHT], three) == three + 86_400
    assert next_opening([NIGHT], three + 10) == three + 86_400


def test_any_of_several_windows_will_do():
    """One open window is enough, and the earliest is waited for."""
    both = [NIGHT, window("0 12 * * SAT", 30)]  # 2026-12-05 is a Saturday
    assert open_now(both, at("2026-12-05T12:29:00Z"))
    assert not open_now(both, at("2026-12-04T12:29:00Z"))
    assert next_opening(both, at("2026-12-05T04:00:00Z")) == at("2026-12-05T12:00:00Z")


def test_a_window_longer_than_its_period_never_closes():
    """Ninety minutes of each hour are always; of every second hour, with a gap of half an hour."""
    start = at("2026-12-01T00:00:00Z")
    hourly, two_hourly = window("0 * * * *", 90), window("0 */2 * * *", 90)
    assert all(open_now([hourly], start + 60 * minute) for minute in range(300))
    shut = [minute for minute in range(240) if not open_now([two_hourly], start + 60 * minute)]
    assert shut == [*range(90, 120), *range(210, 240)]


def test_a_window_goes_on_over_midnight_and_the_end_of_a_year():
    """What opens late on the last day of a year is open early on the first of the next."""
    late = window("30 23 31 12 *", 60)
    assert open_now([late], at("2027-01-01T00:29:59Z"))
    assert not open_now([late], at("2027-01-01T00:30:00Z"))


def test_a_window_of_a_leap_day_comes_in_leap_years():
    """29 February comes every fourth year; not in 2100."""
    leap = window("0 0 29 2 *", 60)
    assert next_opening([leap], at("2026-12-01T00:00:00Z")) == at("2028-02-29T00:00:00Z")
    assert next_opening([leap], at("2096-03-01T00:00:00Z")) == at("2104-02-29T00:00:00Z")


def test_cron_fields_are_in_the_windows_time_zone():
    """03:00 in Berlin is 02:00 UTC in winter and 01:00 in summer."""
    berlin = [window("0 3 * * *", 60, "Europe/Berlin")]
    assert next_opening(berlin, at("2026-12-01T00:00:00Z")) == at("2026-12-01T02:00:00Z")
    assert next_opening(berlin, at("2026-07-01T00:00:00Z")) == at("2026-07-01T01:00:00Z")
    kathmandu = [window("0 3 * * *", 60, "Asia/Kathmandu")]
    assert next_opening(kathmandu, at("2026-12-01T00:00:00Z")) == at("2026-12-01T21:15:00Z")


# Berlin: on 2027-03-28 02:00+01:00 becomes 03:00+02:00, and on 2027-10-31 03:00+02:00 becomes 02:00+01:00
SPRING, AUTUMN = (
    ("2027-03-28T00:00:00+01:00", "2027-03-28T06:00:00+02:00"),
    (
        "2027-10-31T00:00:00+02:00",
        "2027-10-31T06:00:00+01:00",
    ),
)


@pytest.mark.parametrize(
    ("cron", "night", "comes"),
    [
        ("30 2 * * *", SPRING, ["2027-03-28T03:00+02:00"]),
        ("0 2,3 * * *", SPRING, ["2027-03-28T03:00+02:00"]),
        ("0 1,4 * * *", SPRING, ["2027-03-28T01:00+01:00", "2027-03-28T04:00+02:00"]),
        ("30 * * * *", SPRING, [f"2027-03-28T0{h}:30+0{1 if h < 2 else 2}:00" for h in (0, 1, 3, 4, 5)]),
        ("30 2 * * *", AUTUMN, ["2027-10-31T02:30+02:00"]),
        ("0 2,3 * * *", AUTUMN, ["2027-10-31T02:00+02:00", "2027-10-31T03:00+01:00"]),
        (
            "30 * * * *",
            AUTUMN,
            [f"2027-10-31T0{h}:30+0{z}:00" for h, z in ((0, 2), (1, 2), (2, 2), (2, 1), (3, 1), (4, 1), (5, 1))],
        ),
    ],
)
def test_the_clocks_change(cron, night, comes):
    """A skipped beginning comes when the clocks have gone on, a repeated one comes once, and each hour has its own."""
    assert begins(window(cron, 5, "Europe/Berlin"), *night) == comes


@pytest.mark.parametrize(
    ("cron", "minutes", "opened", "closed"),
    [
        ("30 1 * * *", 60, "2027-03-28T01:30:00+01:00", "2027-03-28T03:30:00+02:00"),  # over the gap
        ("30 2 * * *", 60, "2027-03-28T03:00:00+02:00", "2027-03-28T04:00:00+02:00"),  # begins in the gap
        ("30 2 * * *", 60, "2027-10-31T02:30:00+02:00", "2027-10-31T02:30:00+01:00"),  # begins in the repeated hour
        ("30 2 * * *", 120, "2027-10-31T02:30:00+02:00", "2027-10-31T03:30:00+01:00"),  # ends after it
    ],
)
def test_a_window_lasts_as_long_as_it_says_while_the_clocks_change(cron, minutes, opened, closed):
    """An hour's window is open for an hour as time passes, not as the clocks say."""
    given = [window(cron, minutes, "Europe/Berlin")]
    start, end = at(opened), at(closed)
    assert end - start == minutes * 60
    assert all(open_now(given, t) for t in (start, start + 1, (start + end) / 2, end - 1))
    assert not any(open_now(given, t) for t in (start - 1, end, end + 1))


def test_a_gap_at_midnight():
    """Where the clocks skip midnight, a window of midnight opens at the day's first minute."""
    cairo = window("0 0 * * *", 30, "Africa/Cairo")  # 2026-04-24 begins at 01:00
    assert begins(cairo, "2026-04-23T12:00:00+02:00", "2026-04-25T12:00:00+03:00") == [
        "2026-04-24T01:00+03:00",
        "2026-04-25T00:00+03:00",
    ]


@pytest.mark.parametrize("cron", ["30 2 * * *", "*/20 * * * *", "0,50 1,2,3 * * *", "*/30 2 * * *"])
@pytest.mark.parametrize("night", [SPRING, AUTUMN])
def test_it_does_not_matter_when_one_looks(cron, night):
    """From any minute of a night on which the clocks change, the next opening is the next of the night's own."""
    given = window(cron, 5, "Europe/Berlin")
    start, end = int(at(night[0])), int(at(night[1]))
    every = list(starts(given, start - 1, end + 86_400))
    for now in range(start, end, 60):
        assert next_opening([given], now) == min(t for t in every if t > now)


ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Cairo")
CRONS = (
    "30 2 * * *",
    "*/20 * * * *",
    "15 1,2,3 * * *",
    "0 0 * * SUN",
    "0 2-3 1-7 * *",
    "59 23 28-31 * *",
    "7 */2 * * *",
)


@given(
    st.sampled_from(CRONS),
    st.sampled_from(ZONES),
    st.floats(1, 3000),
    st.floats(at("2026-11-01T00:00:00Z"), at("2027-12-31T00:00:00Z")),
)
def test_open_is_exactly_within_a_duration_of_a_beginning(cron, zone, minutes, now):
    """At any time of a year, in any zone, a window is open just when one of its beginnings is less than so long ago."""
    given = [window(cron, minutes, zone)]
    since, last = now - minutes * 60, None
    moment = since - 86_400  # beginnings must not depend on where one starts to look
    while (moment := next_opening(given, moment)) <= now:
        last = moment
    assert moment > now
    assert open_now(given, now) == (last is not None and last > since)
    assert next_opening(given, now) == moment


@given(st.sampled_from(ZONES), st.integers(0, 400 * 24 * 2))
def test_beginnings_are_those_that_the_fields_name(zone, half_hours):
    """Where the clocks do not change, a window begins just at the minutes whose hour and minute its fields name."""
    moment = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(minutes=30 * half_hours)
    here = moment.astimezone(ZoneInfo(zone))
    offsets = {(here + timedelta(hours=hours)).utcoffset() for hours in (-30, 0, 30)}
    comes = next_opening([window("30 2 * * *", 1, zone)], moment.timestamp() - 1) == moment.timestamp()
    if len(offsets) == 1:
        assert comes == ((here.hour, here.minute) == (2, 30))


@given(st.text("0123456789*/,-#LW ADEFMNOSTU\t٣²", max_size=30) | st.text(max_size=12))
def test_any_text_is_a_schedule_or_refused_with_its_reason(text):
    """Whatever is written for a schedule either comes at some time, or is told what is wrong with it."""
    if unless_cron(text) is None:
        assert next_opening([window(text, 1)], 1.8e9) is not None


@pytest.mark.parametrize(
    "text", ["1#6", "L", "LW", "5L", "MON#5", "9" * 150, "1-", ",", "/", "*/", "-1", "1,,2", "L/2", "1/1/1"]
)
def test_each_field_is_refused_or_read(text):
    """A strange field in any place is either read or refused, never an error of another kind."""
    for place in range(5):
        fields = ["*"] * 5
        fields[place] = text
        cron = " ".join(fields)
        assert unless_cron(cron) is not None or next_opening([window(cron, 1)], 1.8e9) is not None


@given(st.text(max_size=40))
def test_any_text_is_a_zone_or_refused(text):
    """Whatever is written for a time zone is refused, or can be used."""
    if unless_zone(text) is None:
        assert ZoneInfo(text)
