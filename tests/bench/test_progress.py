import pytest

from controller.bench.progress import Limits, Pace, duration, figures
from controller.model.reasons import Reason

MIN = 60.0
LIMITS = Limits(
    timeout_s=60 * MIN, timeout=Reason.PREPARE_TIMEOUT, stretch=4.0, silence_s=10 * MIN, stall=Reason.PREPARE_STALLED
)
BENCHMARK = Limits(timeout_s=45 * MIN, timeout=Reason.BENCHMARK_TIMEOUT, stretch=4.0, stall=Reason.BENCHMARK_STALLED)


@pytest.mark.parametrize(
    ("line", "shares"),
    [
        ("params:  40% 8.0/20.0 GiB", {"%": 0.4, "B": 0.4}),
        ("\r 40 %", {"%": 0.4}),
        ("12.3/20.0 GiB", {"B": 0.615}),
        ("512MB/2GB", {"B": 0.256}),
        ("512MiB / 2GiB", {"B": 0.25}),
        ("[3/12] COMPLETED — 143.6s", {"n": 0.25}),
        ("73.6% proc'd: 289540 (20000 Gflop/s) - 298000", {"%": 0.736}),
        (" 40%|████      | 4/10 [00:04<00:06,  1.0it/s]", {"%": 0.4}),
        ("Total success:  1010 / 1000, 101 %", {}),
        ("Proving CPU:320% GPU:[81,0,]%, Elapsed:58s", {}),
        ("| GPU | 416 W/450 W |", {}),
        ("[0/0]", {}),
        ("0/0 GiB", {}),
        ("2024/03/26 22:03", {}),
        ("", {}),
    ],
)
def test_figures(line, shares):
    """Percentages, bracketed counts and sizes are shares of a whole; what is over it, or of something else, is none."""
    assert dict(figures(line)) == pytest.approx(shares)


def test_line_under_way():
    """Of a line that has not ended, the last figure is the newest."""
    assert dict(figures("10%..20%..30%", last=True)) == {"%": 0.3}


@pytest.mark.parametrize(("seconds", "text"), [(80, "80 s"), (29 * MIN, "29 min"), (3 * 3600, "3.0 h")])
def test_durations(seconds, text):
    """Times are told in the unit that says enough."""
    assert duration(seconds) == text


def pace(limits: Limits = LIMITS) -> Pace:
    return Pace(limits, now=0.0)


def download(*, minutes: float, per_minute: float, limits: Limits = LIMITS) -> Pace:
    """A download that has printed its percentage each minute for so long."""
    of = pace(limits)
    for minute in range(int(minutes) + 1):
        of.hear(f"params: {min(100.0, minute * per_minute):.1f}%", minute * MIN)
    return of


def test_rate_and_time_to_go():
    """Progress tells how far it is, how fast it goes, and when it will be done."""
    assert download(minutes=20, per_minute=2.0).said(20 * MIN) == "40 %, 2 %/min, 30 min to go"


def test_slow_is_not_stalled():
    """What will not be done in its time, but in four times that, is slow: it is said, and it is let be."""
    of = download(minutes=90, per_minute=0.5)
    assert of.overdue(90 * MIN) is None
    assert of.said(90 * MIN) == "slow: 45 %, 0.5 %/min, 110 min to go"


def test_too_slow_to_finish():
    """What would not be done in four times its time is ended at its time, with what it would have taken."""
    of = download(minutes=60, per_minute=0.1)
    assert of.overdue(60 * MIN - 1) is None
    assert of.overdue(60 * MIN) == (Reason.PREPARE_TIMEOUT, "not done in 3600 s; 6 %, 0.1 %/min, 15.7 h to go")


def test_four_times_is_the_end():
    """However steadily it rises, a figure buys four times the timeout and no more."""
    of = download(minutes=239, per_minute=0.418)
    assert of.overdue(239 * MIN) is None
    of.hear("params: 99.95%", 240 * MIN)
    assert of.overdue(240 * MIN) is not None


def test_no_figure_no_more_time():
    """Lines without a figure that rises keep a command from counting as silent, and buy it no time."""
    of = pace()
    for minute in range(61):
        of.hear("still at it", minute * MIN)
        assert of.overdue(minute * MIN) is None or minute == 60
    assert of.overdue(60 * MIN) == (Reason.PREPARE_TIMEOUT, "not done in 3600 s")


def test_silence():
    """Nothing printed for its limit is a stall; a piece of a line, without its end, is something printed."""
    of = pace()
    of.touch(9 * MIN, "10")
    assert of.overdue(18 * MIN) is None
    assert of.said(18 * MIN) == "printed nothing for 9 min"
    assert of.overdue(19 * MIN) == (Reason.PREPARE_STALLED, "printed nothing for 600 s")


def test_silent_benchmark_is_left_alone():
    """A benchmark that prints no figure may be silent until its time is over."""
    assert pace(BENCHMARK).overdue(44 * MIN) is None


@pytest.mark.parametrize("again", ["params: 40.0%", "connection reset, try 17"])
def test_figure_that_stands_while_lines_are_printed(again):
    """A loop of retries is a stall, though it prints a line every few seconds."""
    of = download(minutes=20, per_minute=2.0)
    for second in range(20 * 60, 31 * 60, 10):
        of.hear(again, second)
    assert of.said(28 * MIN) == "stalled at 40 % for 8 min"
    assert of.overdue(29 * MIN) is None
    assert of.overdue(31 * MIN) == (Reason.PREPARE_STALLED, "stalled at 40 % for 11 min")


def test_next_step_is_not_a_stall():
    """A figure that stands because something else is being printed, which is new, has not stalled."""
    of = download(minutes=19, per_minute=5.0)
    for nth, name in enumerate(("wood", "iron", "salt", "clay", "glass", "wool")):
        of.hear(f"unpacking {name}", (20 + 5 * nth) * MIN)
    assert of.overdue(50 * MIN) is None


def test_steps_of_different_kinds_promise_nothing():
    """Counted steps that differ are not a steady rise: the last of them may take as long as it takes."""
    of = pace(BENCHMARK)
    for nth, name in enumerate(("load", "warm up", "measure")):
        of.hear(f"[{nth + 1}/4] {name}", nth * 5.0)
    assert of.overdue(40 * MIN) is None
    assert of.overdue(45 * MIN) is not None


def test_long_steps_may_stand_longer():
    """A figure that rises every five minutes has not stalled after ten, and has after three times five."""
    of = pace(BENCHMARK)
    for nth in range(4):
        of.hear(f"  [{nth + 1}/12] COMPLETED — 290.0s", nth * 5 * MIN)
    assert of.overdue((15 + 14) * MIN) is None
    assert of.overdue((15 + 15) * MIN) == (Reason.BENCHMARK_STALLED, "stalled at 33.3 % for 15 min")


def test_done_is_not_stalled():
    """After 100 % nothing stands: what follows may be silent for as long as at the beginning."""
    of = download(minutes=20, per_minute=5.0)
    assert (of.said(21 * MIN), of.overdue(29 * MIN)) == ("", None)
    assert of.overdue(30 * MIN) == (Reason.PREPARE_STALLED, "printed nothing for 600 s")


def test_next_file_begins_anew():
    """A figure that falls is the next file's: its rate is its own, and the deadline does not fall between the two."""
    of = download(minutes=50, per_minute=2.0)
    for minute in range(51, 70):
        of.hear(f"params: {(minute - 51) * 1.0:.1f}%", minute * MIN)
        assert of.overdue(minute * MIN) is None
    assert of.said(69 * MIN).endswith("18 %, 1 %/min, 82 min to go")


def test_rate_follows_what_is_so_now():
    """A download that was fast and is slow now is slow."""
    of = download(minutes=20, per_minute=4.0)
    for minute in range(21, 60):
        of.hear(f"params: {80 + (minute - 20) * 0.1:.1f}%", minute * MIN)
    assert of.said(59 * MIN).startswith("slow: 83.9 %, 0.1 %/min")


def test_bar_of_many_states_in_bounded_memory():
    """A bar redrawn a hundred times a second is followed without keeping each state, nor each kind of line."""
    of = pace()
    for nth in range(100_000):
        of.hear(f"{nth / 1000:.3f}% {'abcdefghij'[nth % 10]}", nth / 100)
    assert of.said(1000.0).startswith("100 %, 6 %/min")
    assert sum(len(track.points) for track in of._tracks.values()) < 2000


def test_looks_come_when_something_may_be_due():
    """The next look is at the next limit, and never in the past."""
    of = pace()
    assert of.look_at(0.0) == 10 * MIN
    of.hear("x", 55 * MIN)
    assert of.look_at(55 * MIN) == 60 * MIN
    assert of.look_at(300 * MIN) > 300 * MIN


def test_start_and_stop_get_no_more_time():
    """A command whose time is what it may take is ended then, whatever figure rises."""
    of = download(minutes=5, per_minute=10.0, limits=Limits(timeout_s=5 * MIN, timeout=Reason.START_FAILED))
    assert of.overdue(5 * MIN) is not None
