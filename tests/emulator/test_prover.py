import asyncio
import re
from itertools import pairwise
from statistics import mean, stdev

import pytest

from controller.emulator.gpus import BY_NAME
from controller.emulator.rates import Sessions, true_rate

pytestmark = pytest.mark.looptime

ROOMY = {"baseGib": 0, "perProofGib": 0}
LINE = re.compile(r"  \[(\d+)/(\d+)\] COMPLETED — (\d+\.\d)s \(prove=(\d+) ms, queue=(\d+) ms\)")
THROUGHPUT = re.compile(r"throughput:    (\d+\.\d{3}) proofs/min \((\d+\.\d)s/proof\)")


async def bench(api, number, command):
    """Run a benchmark; return its code, its lines and the time of each."""
    loop, lines = asyncio.get_running_loop(), []
    code = await api.emulator.run(number, command, lambda t: lines.append((loop.time(), t)), lines.append)
    return code, lines


def number_in(pattern, text):
    """Return the first group of a pattern's match as a number."""
    match = re.search(pattern, text)
    assert match
    return float(match[1])


async def rented(make, *, gpu="RTX 4090", prover=ROOMY, **fields):
    """Return an API with one running single-GPU instance of a model, and its id."""
    api = await make(market={"offers": 400, "models": [gpu]}, prover=prover, **fields)
    offer = next(o for o in await api.offers(num_gpus={"eq": 1}))
    number = await api.rent(offer)
    await api.running(number)
    return api, number


async def test_the_log_has_the_grammar_of_the_real_prover(make):
    """Head, a line a proof, a blank line and a summary, in the exact format, as time passes."""
    api, number = await rented(make)
    code, lines = await bench(api, number, "cuzk-bench batch --count 12 -c 5 -j 2 --warmup 1")
    text = "".join(text for _, text in lines)
    assert code == 0
    assert text.startswith("=== Batch Benchmark ===\nproof type:  porep\ncount:       12\nconcurrency: 5\n\n")
    proofs = [LINE.fullmatch(line) for line in text.splitlines() if line.startswith("  [")]
    assert [int(match[1]) for match in proofs if match] == list(range(1, 13))
    tail = text.split("\n\n=== Batch Summary ===\n")[1].splitlines()
    assert [line.split(":")[0] for line in tail] == [
        "total time", "completed", "failed", "wall time", "prove time", "throughput",
    ]  # fmt: skip
    times = [at for at, text in lines if text.startswith("  [")]
    assert all(30 < later - earlier < 120 for earlier, later in pairwise(times))


async def test_the_throughput_is_count_by_total_time(make):
    """The printed rate is the batch's proofs by its total time, and that time is what passed."""
    api, number = await rented(make)
    _, lines = await bench(api, number, "cuzk-bench batch --count 10 -c 4")
    text = "".join(text for _, text in lines)
    total = number_in(r"total time:    (\d+\.\d)s", text)
    a_minute, seconds = number_in(THROUGHPUT, text), number_in(r"\((\d+\.\d)s/proof\)", text)
    assert seconds == pytest.approx(total / 10, abs=0.06)
    assert a_minute == pytest.approx(600 / total, abs=0.001)
    done = [at for at, text in lines if text.startswith("  [")]
    assert done[-1] - done[0] == pytest.approx(total * 0.9, rel=0.15)


async def test_machines_differ_by_eight_percent_around_their_models_mean(make):
    """The true rates of many machines of one model are lognormal: its mean, a CV of 8 %."""
    api = await make(market={"offers": 1500, "models": ["RTX 4090"]}, limits={"enabled": False, "searchCap": 5000})
    machines = {o["machine_id"]: o for o in await api.offers(num_gpus={"eq": 1})}
    rates = []
    for offer in machines.values():
        contract = api.emulator.world.contracts[await api.rent(offer)]
        rates.append(true_rate(api.emulator.world, contract))
    assert len(rates) > 200
    assert mean(rates) == pytest.approx(BY_NAME["RTX 4090"].proofs_per_hour, rel=0.02)
    assert stdev(rates) / mean(rates) == pytest.approx(0.08, rel=0.2)


async def test_sessions_come_and_go(make):
    """Over months a machine has a session about each hour and a half, a sixth of them disturbed downwards."""
    api = await make()
    world = api.emulator.world
    sessions = Sessions(world, 77)
    hours = 5000
    factors = [sessions.factor(world.started + minute * 360) for minute in range(hours * 10)]
    changes = sum(a != b for a, b in pairwise(factors))
    assert changes == pytest.approx(hours / 1.5, rel=0.06)
    assert sum(factor < 0.82 for factor in factors) / len(factors) == pytest.approx(0.13, abs=0.04)
    assert max(factors) < 1.4


async def test_runs_close_together_differ_by_their_noise(make):
    """Back-to-back runs of one session spread by about three percent."""
    api, number = await rented(make)
    rates = []
    for _ in range(40):
        _, lines = await bench(api, number, "json-bench --seconds 1")
        rates.append(number_in(r"([\d.]+)", lines[0][1]))
    assert stdev(rates) / mean(rates) == pytest.approx(0.03, rel=0.4)


async def test_two_provers_on_one_machine_slow_each_other(make):
    """While a neighbour of ours proves on the same machine, each makes three quarters."""
    api = await make(prover=ROOMY, limits={"enabled": False, "searchCap": 5000})
    parts: dict[int, list[dict[str, object]]] = {}
    for offer in await api.offers(num_gpus={"eq": 1}):
        parts.setdefault(offer["machine_id"], []).append(offer)
    pair = next(offers for offers in parts.values() if len(offers) == 2)
    numbers = [await api.rent(offer) for offer in pair]
    for number in numbers:
        await api.running(number)

    async def proofs_an_hour():
        _, lines = await bench(api, numbers[0], "cuzk-bench batch --count 4 -c 4")
        return number_in(THROUGHPUT, lines[-1][1]) * 60

    alone = await proofs_an_hour()
    await bench(api, numbers[1], "cuzk-daemon &")
    assert await proofs_an_hour() == pytest.approx(alone * 0.75, rel=0.15)


async def test_a_slow_machine_is_slow_and_shows_its_power_limit(make):
    """A machine the scenario slows makes that much less, and its power limit is below the default."""
    api, number = await rented(make, troubles=[{"kind": "slow-machine", "factor": 0.5}])
    _, lines = await bench(api, number, "cuzk-bench batch --count 4 -c 4")
    contract = api.emulator.world.contracts[number]
    rate = number_in(THROUGHPUT, lines[-1][1]) * 60
    assert rate < true_rate(api.emulator.world, contract) * 0.7
    _, lines = await bench(api, number, "nvidia-smi --query-gpu=power.limit,power.default_limit --format=csv,nounits")
    limit, default = map(float, lines[-1][1].split(","))
    assert limit < default


async def test_too_much_concurrency_is_killed_for_want_of_memory(make):
    """A run that needs more than the container's share is killed, with 137, no summary, and "Killed" on stderr."""
    api, number = await rented(make, prover={"baseGib": 10, "perProofGib": 6})
    share_gib = api.emulator.world.contracts[number].ram_bytes / 2**30
    fits = int((share_gib - 10) // 6)
    code, _ = await bench(api, number, f"cuzk-bench batch --count 1 -c {fits}")
    assert code == 0
    code, lines = await bench(api, number, f"cuzk-bench batch --count 1 -c {fits + 1}")
    assert (code, lines[-1]) == (137, "Killed\n")
    assert not any("COMPLETED" in str(line) for line in lines)


async def test_concurrency_and_warmup_may_come_from_the_environment(make):
    """Where no option says so, CONCURRENCY and WARMUP do; a wrong option is a usage error."""
    api, number = await rented(make)
    _, lines = await bench(api, number, "export CONCURRENCY=3 WARMUP=2\ncuzk-bench batch --count 1")
    assert "concurrency: 3\n" in lines[1][1]
    assert (await bench(api, number, "cuzk-bench batch --speed 3"))[0] == 2
