import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.bench.rates import conversion_of, number, seconds


@pytest.mark.parametrize(
    ("unit", "wanted", "factor"),
    [
        ("proofs/min", "proofs/h", 60),
        ("proofs/h", "proofs/s", 1 / 3600),
        ("prove/s", "proves/min", 60),
        ("kH/s", "H/h", 3.6e6),
        ("/s", "proofs/min", 60),
        ("proofs / hour", "proofs/h", 1),
        ("Proofs per minutes", "proofs/h", 60),
        ("mH/s", "H/s", None),
        ("proofs/day", "proofs/h", None),
        ("GH/s", "proofs/s", None),
        ("GiB/s", "MiB/s", 1024),
        ("GB/s", "MB/s", 1000),
        ("MiB/s", "MB/s", 1.048576),
        ("proofs/ms", "proofs/s", 1000),
        ("kernels/s", "ernel/s", None),
        ("proofs", "proofs/h", None),
        ("", "proofs/h", None),
    ],
)
def test_conversion(unit, wanted, factor):
    """Units of the same work convert among times and prefixes, decimal or binary; all else does not."""
    found = conversion_of(unit, wanted)
    if factor is None:
        assert found is None
    else:
        assert found is not None
        assert found.factor == pytest.approx(factor)
        assert not found.each


@pytest.mark.parametrize(
    ("each", "unit", "wanted", "rate"),
    [
        (60.2, "s/proof", "proofs/h", 59.8),
        (46, "ms/prove", "proves/s", 21.74),
        (1.5, "min/proof", "proofs/h", 40),
        (0.00149316052, "s/proof", "proofs/s", 669.7),
        (44.2, "s", "proofs/h", 81.4),
        (2, "s/GiB", "MiB/s", 512),
        (0, "s/proof", "proofs/h", None),
        (-1, "s/proof", "proofs/h", None),
    ],
)
def test_time_for_each(each, unit, wanted, rate):
    """A time for each piece of work is the inverse of a rate: less of it is more."""
    found = conversion_of(unit, wanted)
    assert found is not None
    assert found.of(each) == (None if rate is None else pytest.approx(rate, rel=1e-3))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1m40.626541161s", 100.626541161),
        ("3h3m16.757401329s", 10_996.757401329),
        ("332.897593ms", 0.332897593),
        ("242.142µs", 242.142e-6),
        ("4.899μs", 4.899e-6),
        ("44.2s", 44.2),
        ("44.2", None),
        ("1m40", None),
        ("nans", None),
        ("", None),
    ],
)
def test_durations(text, expected):
    """Durations as Go and Rust print them are read to the last unit, and what is none is not."""
    assert seconds(text) == (None if expected is None else pytest.approx(expected))


@given(st.text(max_size=30))
def test_number_is_finite_or_none(text):
    """No text is read as NaN or infinity, and none raises."""
    value = number(text)
    assert value is None or math.isfinite(value)


@given(st.floats(min_value=1e-6, max_value=1e12))
def test_number_reads_what_programs_print(value):
    """Plain, exponential and comma-separated spellings read as the number they spell."""
    assert number(repr(value)) == value
    assert number(f"{value:.3e}") == pytest.approx(value, rel=1e-3)
    assert number(f" {value:,.2f} ") == pytest.approx(value, abs=0.01)
