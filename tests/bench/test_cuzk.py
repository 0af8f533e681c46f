"""What a batch's log says beside its rate, and the logs that contradict themselves."""

import re

import pytest

from controller.bench.cuzk import CuzkReader
from controller.bench.rates import Reading
from tests.bench.test_readers import STEADY, batch, cuzk, read


def changed(before: str, after: str) -> Reading:
    assert re.search(before, STEADY)
    return cuzk(re.sub(before, after, STEADY))


@pytest.mark.parametrize("status", ["FAILED", "CANCELLED", "TIMEOUT", "UNKNOWN"])
def test_proof_that_was_not_made(status):
    """One proof that was not completed makes the batch no measurement, whatever its summary says."""
    said = changed(r"\[7/12\] COMPLETED.*", f"[7/12] {status} — 31.0s (prove=0 ms, queue=394 ms)")
    assert (said.rate, said.detail) == (None, f"proof 7 of 12: {status}")


def test_lines_that_are_missing():
    """A log that lost some of its proofs, cut in its middle, is not believed."""
    said = changed(r"  \[[78]/12\].*\n", "")
    assert (said.rate, said.detail) == (None, "10 of 12 proofs are in the log")


def test_summary_alone_is_enough():
    """A batch that does not list its proofs has the rate of its summary, and claims no exactness."""
    said = changed(r"  \[\d+/12\].*\n", "")
    assert said.rate == pytest.approx(12 * 3600 / 718.1)
    assert said.error == 0.03


def test_time_for_each_must_fit():
    """Where the printed seconds for each proof are not the total's, the log contradicts itself."""
    said = changed(r"\(59\.8s/proof\)", "(95.8s/proof)")
    assert (said.rate, said.detail) == (None, "12 proofs in 718.1 s are not 95.8 s/proof")
    assert cuzk(STEADY.replace(" (59.8s/proof)", "")).rate is not None


def test_queue_that_was_not_kept_full():
    """Proofs made one at a time, where five were to be in flight, are a rate of something else: flagged, and said."""
    said = changed(r"— \d+\.\ds", "— 59.8s")
    assert said.rate == pytest.approx(12 * 3600 / 718.1)
    assert said.disturbed
    assert said.detail == "12 proofs in 718.1 s; the queue was not kept full: 1.0 proofs in flight of 5"


def test_times_that_cannot_be():
    """Proofs that took longer than that many could be in flight are a log misread: flagged, and said."""
    said = changed(r"— \d+\.\ds", "— 590.0s")
    assert (said.disturbed, said.detail.partition("; ")[2]) == (
        True,
        "the times of the proofs do not fit: 9.9 in flight, and 5 at most",
    )


@pytest.mark.parametrize("slots", [1, 2, 5, 12])
def test_queue_that_was_kept_full(slots):
    """A queue that was full to the end is not blamed for running empty there, however wide it was."""
    said = read(CuzkReader(wanted="proofs/h"), batch([60.0] * 12, slots).replace("y: 5", f"y: {slots}"))
    assert (said.disturbed, said.detail) == (False, "12 proofs in 720 s")


def test_gpu_that_waits_is_told():
    """With few partition workers the GPU waits for them: a trait of the machine's memory, and no disturbance."""
    said = cuzk(batch([152.0] * 12).replace("prove=86213", "prove=33700"))
    assert (said.disturbed, said.detail) == (False, "12 proofs in 1824 s; the GPUs waited: 0.22 proofs on them")


def test_halves_that_differ_are_told():
    """A run whose second half was half as fast says so."""
    assert cuzk(batch([50.0] * 6 + [100.0] * 6)).detail.endswith("its halves differ")
