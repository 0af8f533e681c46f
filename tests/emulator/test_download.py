import asyncio

import pytest

pytestmark = pytest.mark.looptime

ONE = {"offers": 0, "machines": [{"model": "RTX 4090", "row": {"inet_down": 859.0}}]}  # ten seconds a GiB
FETCH = "fetch-params --size-gib 10"


async def download(box, text=FETCH, at_most=86400.0):
    """Return the seconds a download took, None if it was still running at the end, and the pieces it printed."""
    loop = asyncio.get_running_loop()
    pieces: list[str] = []
    start = loop.time()
    try:
        work = box.api.emulator.run(box.number, text, pieces.append, pieces.append)
        assert await asyncio.wait_for(work, at_most) == 0
    except TimeoutError:
        return None, pieces
    return loop.time() - start, pieces


async def test_a_slow_download_goes_on_printing(rent):
    """At a tenth of the speed it takes ten times as long, and each tenth is still told."""
    took, lines = await download(await rent(market=ONE))
    assert (took, len(lines)) == (pytest.approx(100, rel=1e-3), 11)
    took, lines = await download(await rent(market=ONE, troubles=[{"kind": "slow-download"}]))
    assert (took, len(lines)) == (pytest.approx(1000, rel=1e-3), 11)
    assert lines[3] == "params:  40% 4.0/10.0 GiB\n"


async def test_a_progress_bar_redraws_one_line(rent):
    """With --bar each hundredth follows a carriage return, and no line ends before the download does."""
    took, pieces = await download(await rent(market=ONE), f"{FETCH} --bar")
    assert (took, len(pieces)) == (pytest.approx(100, rel=1e-3), 101)
    assert pieces[39] == "\r 40% 4.0/10.0 GiB"
    assert "\n" not in "".join(pieces[:100])
    assert pieces[100] == "\nparameters ready\n"


@pytest.mark.parametrize(("bar", "figure"), [("", "params:  40% 4.0/10.0 GiB\n"), (" --bar", "\r 40% 4.0/10.0 GiB")])
async def test_a_download_may_retry_for_ever(rent, bar, figure):
    """Past 40 % it prints the same figure again and again, and never ends."""
    took, pieces = await download(await rent(market=ONE, troubles=[{"kind": "download-retries"}]), FETCH + bar, 600.0)
    assert took is None
    assert set(pieces[pieces.index(figure) :]) == {figure}
    assert pieces.count(figure) > 50


@pytest.mark.parametrize(("kind", "lines"), [("download-stall", 11), ("download-retries", 36)])
async def test_a_download_goes_on_when_its_trouble_ends(rent, kind, lines):
    """Held up for some minutes, silently or not, a download ends that much later."""
    box = await rent(market=ONE, troubles=[{"kind": kind, "seconds": 290}])
    took, pieces = await download(box)
    assert took == pytest.approx(290 + 60, abs=10)
    assert len(pieces) == lines
