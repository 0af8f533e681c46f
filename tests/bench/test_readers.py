import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.bench.cuzk import CuzkReader
from controller.bench.lines import LONGEST, Lines, redact
from controller.bench.rates import Reader, Reading
from controller.bench.readers import MATCHED, JsonReader, RegexReader

BATCH = """\
=== Batch Benchmark ===
proof type:  porep
count:       12
concurrency: 5

{proofs}
=== Batch Summary ===
total time:    {total:.1f}s
completed:     12
failed:        0
wall time:     avg=263.0s min=58.9s max=301.2s
prove time:    avg=109.7s min=101.4s max=112.0s
throughput:    {rate:.3f} proofs/min ({each:.1f}s/proof)
"""


def batch(gaps: list[float], slots: int = 5) -> str:
    """The log of a run whose proofs end this many seconds apart."""
    ends = [sum(gaps[: nth + 1]) for nth in range(len(gaps))]
    begins = [0.0] * slots + ends
    proofs = "\n".join(
        f"  [{nth + 1}/12] COMPLETED — {end - begin:.1f}s (prove=86213 ms, queue=394 ms)"
        for nth, (begin, end) in enumerate(zip(begins, ends, strict=False))
    )
    total = ends[-1]
    return BATCH.format(proofs=proofs, total=total, rate=12 * 60 / total, each=total / 12)


STEADY = batch([58.6, 61.0, 59.2, 60.1, 58.8, 60.9, 59.7, 61.2, 58.4, 60.3, 59.9, 60.0])


def read(reader: Reader, text: str) -> Reading:
    lines = Lines(reader.feed)
    lines.feed(text)
    lines.close()
    return reader.result()


def cuzk(text: str) -> Reading:
    return read(CuzkReader(wanted="proofs/h"), text)


def test_cuzk_rate_is_the_makespan():
    """Twelve proofs in 718.1 s are 60.16 proofs/h, however long each of them took."""
    said = cuzk(STEADY)
    assert said.rate == pytest.approx(12 * 3600 / 718.1)
    assert (said.count, said.error, said.disturbed, said.detail) == (12, 0.03, False, "12 proofs in 718.1 s")


def test_cuzk_unsteady_run_is_flagged():
    """A run whose second half was half as fast says so, and claims less exactness."""
    said = cuzk(batch([50.0] * 6 + [100.0] * 6))
    assert said.disturbed
    assert said.error is not None
    assert said.error > 0.05


def test_cuzk_walls_that_do_not_add_up_give_no_error():
    """Where single proofs cannot be fitted to the total time, only the total is believed."""
    said = cuzk(re.sub(r"— \d+\.\ds", "— 500.0s", batch([50.0] * 6 + [100.0] * 6)))
    assert (said.error, said.disturbed) == (0.03, False)
    assert said.rate == pytest.approx(48.0)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("failed:        0", "failed:        1", "1 proofs failed"),
        ("failed:        0\n", "", "no summary after 12 proofs"),
        ("[7/12] COMPLETED", "[7/12] FAILED", "proof 7 of 12: FAILED"),
        ("[7/12] COMPLETED", "[7/12] TIMEOUT", "proof 7 of 12: TIMEOUT"),
        ("completed:     12", "completed:     10", "10 of 12 proofs were made"),
        ("total time:    718.1s", "total time:    71.8s", "12 proofs in 71.8 s are not 1.003 proofs/min"),
        ("total time:    718.1s", "total time:    0.0s", "no summary after 12 proofs"),
        ("total time:    718.1s", "total time:    -718.1s", "12 proofs in -718.1 s are not 1.003 proofs/min"),
        ("throughput:    1.003", "throughput:    nan", "no summary after 12 proofs"),
        ("throughput:    1.003", "throughput:    inf", "no summary after 12 proofs"),
        ("throughput:    1.003 proofs/min", "throughput:    1.003 pages/min", "cannot read 'pages/min' as proofs/h"),
    ],
)
def test_cuzk_no_rate(before, after, why):
    """A log with a failure, without its summary, or that contradicts itself has no rate, and the reason is said."""
    assert before in STEADY
    said = cuzk(STEADY.replace(before, after))
    assert said.rate is None
    assert said.detail.startswith(why)


def test_cuzk_log_cut_short_has_no_rate():
    """However early a log ends before its last line, nothing is read from it."""
    lines = STEADY.splitlines(keepends=True)
    for length in range(len(lines) - 1):
        assert cuzk("".join(lines[:length])).rate is None


def test_cuzk_last_batch_counts():
    """Where a command runs two batches, the first one's numbers do not get into the second's."""
    slow = batch([120.0] * 12)
    said = cuzk(slow + STEADY)
    assert said.rate == pytest.approx(12 * 3600 / 718.1)
    assert cuzk(STEADY + slow[: slow.index("=== Batch Summary")]).rate is None


def test_cuzk_zero_walls():
    """Proofs that took no time at all do not divide by zero."""
    assert cuzk(re.sub(r"— \d+\.\ds", "— 0.0s", STEADY)).error == 0.03


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ('{"rate": 61.4, "unit": "proofs/h"}', 61.4),
        ('{"rate": 61.4}', 61.4),
        ('{"rate": "61.4", "unit": "proofs per hour"}', 61.4),
        ('{"rate": 1.0, "unit": "proof/min"}', 60.0),
        ('noise\n{"rate": 1}\n{"rate": 2}\n{"progress": 1.0}\n[3]', 2.0),
        ('\x1b[32m{"rate": 61.4}\x1b[0m\r', 61.4),
        ('{"rate": 2}\n{"rate": NaN}', None),
        ('{"rate": Infinity}', None),
        ('{"rate": -Infinity}', None),
        ('{"rate": 0}', None),
        ('{"rate": -1}', None),
        ('{"rate": null}', None),
        ('{"rate": true}', None),
        ('{"rate": [61.4]}', None),
        ('{"rate": 1e999}', None),
        ('{"rate": ' + "9" * 5000 + "}", None),
        ('{"a":' * 20_000, None),
        ('{"rate": 61.4, "unit": "tokens/s"}', None),
        ('{"rate": 60, "unit": "s/proof"}', 60.0),
        ('{"rate": 0, "unit": "s/proof"}', None),
        ('{"rate": -60, "unit": "s/proof"}', None),
        ('{"rate": 60, "unit": "s/token"}', None),
        ('{"rate": 61.4', None),
        ("rate: 61.4", None),
        ("", None),
    ],
)
def test_json(text, rate):
    """The last object with a rate counts, in any unit of the same work, and what is no positive number is no rate."""
    said = read(JsonReader(wanted="proofs/h"), text)
    assert said.rate == (None if rate is None else pytest.approx(rate))
    assert said.detail


def test_json_error_and_count():
    """A benchmark may state its own relative error and count; nonsense in them is as if they were not there."""
    said = read(JsonReader(wanted="proofs/h"), '{"rate": 61.4, "error": 0.05, "count": 12}')
    assert (said.error, said.count) == (0.05, 12)
    said = read(JsonReader(wanted="proofs/h"), '{"rate": 61.4, "error": -1, "count": "many"}')
    assert (said.rate, said.error, said.count) == (61.4, None, None)
    for count in ("1e300", "-7", "0", "1e10"):
        said = read(JsonReader(wanted="proofs/h"), f'{{"rate": 61.4, "count": {count}}}')
        assert (said.rate, said.count) == (61.4, None)


SPEED = r"Speed\.#\d+\.*:\s+(?P<rate>\S+)\s+(?P<unit>\S+)"


@pytest.mark.parametrize(
    ("pattern", "wanted", "line", "rate"),
    [
        (SPEED, "H/s", "Speed.#1.........: 24600.1 MH/s (81.50ms) @ Accel:64", 24600.1e6),
        (SPEED, "GH/s", "Speed.#1.........:   957.4 MH/s (65.39ms) @ Accel:16", 0.9574),
        (SPEED, "MH/s", "Speed.#3.........:    16296 H/s (62.52ms)", 0.016296),
        (r"(?P<rate>\S+) ?(?P<unit>games/s)", "games/h", "[w-0] batch 1: 7168 examples, 1.4 games/s, step=142", 5040.0),
        (r"└╴(?P<rate>\S+) cycles", "cycles/s", "INFO execute: └╴18,777,833 cycles    ", 18_777_833.0),
        (r"throughput \(tok/s\):\s+(?P<rate>\S+)", "tokens/s", "Output token throughput (tok/s):    200.41", 200.41),
        (r"throughput \(req/s\):\s+(?P<rate>\S+)", "req/s", "Request throughput (req/s):     [result]", None),
        (r"32 \|\s+(?P<rate>\S+)", "tok/s", "| 15 | autohf | 1 | 32 |  nan  | CUDA out of memory |", None),
        (r"(?P<rate>\S+) Gflop/s", "Gflop/s", "30.0%  proc'd: -1 -5 Gflop/s", None),
        (r"rate (?P<rate>\S+)", "proofs/h", "rate 61,4", None),
        (r"rate (?P<rate>\S+)", "proofs/h", "rate 1_0", None),
        (r"rate (?P<rate>\S+)?", "proofs/h", "rate ", None),
    ],
)
def test_regex(pattern, wanted, line, rate):
    """Rates of real programs are read with their units and separators; placeholders, NaN and oddities are no rate."""
    said = read(RegexReader(wanted=wanted, pattern=pattern), line)
    assert said.rate == (None if rate is None else pytest.approx(rate))


def test_regex_last_match_counts():
    """A rate that ends in NaN is not the rate that it was before."""
    reader = RegexReader(wanted="proofs/h", pattern=r"rate (?P<rate>\S+)")
    assert read(reader, "rate 60\nrate 61, rate 62\ndone\n").rate == 62.0
    assert read(reader, "rate nan\n").rate is None


def test_pattern_is_tried_on_bounded_lines():
    """A host that prints endless lines does not make a pattern take for ever: what is far out in a line is not seen."""
    reader = RegexReader(wanted="proofs/h", pattern=r"rate (?P<rate>\S+)")
    assert read(reader, "x" * MATCHED + " rate 60\n").rate is None


def test_ok_without_a_rate_is_no_rate():
    """A program that says OK and no number has measured nothing."""
    said = read(
        RegexReader(wanted="Gflop/s", pattern=r"\((?P<rate>[\d.]+) ?Gflop/s\)"), "Tested 1 GPUs:\n\tGPU 0: OK\n"
    )
    assert (said.rate, said.detail) == (None, "no line matches the pattern")


@given(st.lists(st.text(max_size=8)))
def test_pieces_do_not_matter(pieces):
    """However a stream is cut into pieces, its lines are the same."""
    whole: list[str] = []
    cut: list[str] = []
    one, many = Lines(whole.append), Lines(cut.append)
    one.feed("".join(pieces))
    one.close()
    for piece in pieces:
        many.feed(piece)
    many.close()
    assert cut == whole


def test_lines_are_cleaned():
    """Colours, bells, and blank lines are gone; each state of a progress bar is a line."""
    lines: list[str] = []
    Lines(lines.append).feed("\x1b[34mINFO\x1b[0m miner\tx\n\n \r10%\r20%\r\n\x1b]0;title\x07done\a\n")
    assert lines == ["INFO miner\tx", "10%", "20%", "done"]


def test_endless_line_is_bounded():
    """A host that never ends its line does not fill our memory."""
    lines: list[str] = []
    stream = Lines(lines.append)
    for _ in range(50):
        stream.feed("x" * 10_000)
    stream.feed("\nnext\n")
    assert [len(line) for line in lines] == [LONGEST, 4]


def test_redact_takes_the_longest_first():
    """A secret that holds another leaves no remainder."""
    assert redact("key=hunter2-hunter2x.", frozenset({"hunter2", "hunter2-hunter2x"})) == "key=***."
