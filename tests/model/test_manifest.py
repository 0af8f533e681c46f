from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model.fleet import Fleet
from controller.model.manifest import ManifestErrors, load_bytes, load_text
from controller.model.money import micro

Build = Callable[..., str]


def one(text: str) -> Fleet:
    (loaded,) = load_text(text, name="f.yaml")
    return loaded.fleet


def test_a_fleet_comes_with_the_place_of_its_name(manifest: Build) -> None:
    """A loaded fleet carries the file, line and column of its name, past documents that are empty."""
    (loaded,) = load_text(f"---\n---\n{manifest()}---\n# the end\n", name="f.yaml")
    assert (loaded.file, loaded.line, loaded.column, loaded.fleet.name) == ("f.yaml", 6, 9, "provers")


@pytest.mark.parametrize("written", ["NO", '"NO"', "'NO'", "no"])
def test_no_is_norway(manifest: Build, written: str) -> None:
    """NO in regions is Norway, quoted or not."""
    assert one(manifest(("spec:\n", f"spec:\n  regions: [{written}]\n"))).spec.countries() == frozenset({"NO"})


@pytest.mark.parametrize("written", ["12.4", '"12.4"'])
def test_a_cuda_version_may_be_written_as_a_number(manifest: Build, written: str) -> None:
    """CUDA 12.4 is the same with quotes and without."""
    require = one(manifest(("spec:\n", f"spec:\n  require: {{cuda: {written}}}\n"))).spec.require
    assert (require.cuda, require.cuda_version) == ("12.4", 12.4)


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(manifest: Build) -> None:
    """A file saved by a Windows editor reads the same."""
    (loaded,) = load_bytes(b"\xef\xbb\xbf" + manifest().replace("\n", "\r\n").encode(), name="f.yaml")
    assert loaded.fleet == one(manifest())


@given(micros=st.integers(1, 10**12))
def test_money_is_read_to_the_micro_dollar(manifest: Build, micros: int) -> None:
    """Any sum written in plain digits is that many micro-dollars."""
    written = f"budgetPerHour: {micros // 10**6}.{micros % 10**6:06}"
    assert one(manifest(("budgetPerHour: 1.50", written))).spec.budget == micros


@given(rate=st.floats(1e-9, 1e15))
def test_a_rate_is_read_as_python_would(manifest: Build, rate: float) -> None:
    """Every decimal form of a number, exponents too, is read exactly."""
    assert one(manifest(("minRate: 59", f"minRate: {rate!r}"))).spec.shapes[0].min_rate == rate


@given(text=st.text(alphabet="0123456789_+-.,:xobeEinfaN", min_size=1, max_size=8))
def test_what_looks_like_a_number_is_that_number_or_refused(manifest: Build, text: str) -> None:
    """No spelling of a sum is ever read as another sum than a person reads."""
    try:
        budget = one(manifest(("1.50", text))).spec.budget
    except ManifestErrors:
        return
    assert not set(text) & set("_:,xob")
    assert budget == micro(float(text))


@given(text=st.text(alphabet="&*!|>%-?:,[]{}#'\"\\ \n\t~=<@`.019eENOxyanif_+", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    """Whatever is in a file, the answer is errors with places, or fleets; here there are none."""
    with pytest.raises(ManifestErrors) as wrong:
        load_text(text, name="f.yaml")
    assert all(error.message and error.line >= 0 for error in wrong.value.errors)
