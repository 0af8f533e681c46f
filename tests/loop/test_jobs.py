import asyncio
from dataclasses import replace

import pytest

from controller.loop.jobs import Jobs
from controller.loop.ports import Order
from controller.model.reasons import Reason
from controller.plan.outcome import JobEnd
from controller.runtime.clock import Clock
from tests.plan.conftest import NOW, fleet, instance, run

DONE = JobEnd(job="measure", ok=True, reason=Reason.MEASURED)


def order(of, job="measure"):
    return Order(job=job, instance=of, endpoints=(), fleet=fleet())


async def settled():
    """Let every task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)  # noqa: TID251 - no time passes


async def test_one_job_an_instance(room):
    """An instance that has a job is given no other, and may have one again when it has ended."""
    of = instance(1)
    assert room.jobs.begin(order(of))
    assert not room.jobs.begin(order(of, "prepare"))
    await settled()
    assert room.jobs.running()[of.nonce].progress == "begun"
    room.hosts.ends[of.nonce].set_result(DONE)
    await settled()
    assert room.ended == [(of.nonce, DONE)]
    assert room.jobs.running() == {}
    assert room.jobs.wake.is_set()
    assert room.jobs.begin(order(of))
    await room.jobs.close()


async def test_a_machine_is_measured_once_at_a_time(room):
    """Two instances of one machine are measured in turn; preparing one beside the other's measurement is allowed."""
    one, two = instance(1), replace(instance(2), machine_id=instance(1).machine_id)
    assert room.jobs.begin(order(one))
    assert not room.jobs.begin(order(two))
    assert room.jobs.begin(order(instance(3)))
    assert room.jobs.begin(order(two, "prepare"))
    await room.jobs.close()
    assert room.jobs.begin(order(two))
    await room.jobs.close()


@pytest.mark.parametrize("under_way", ["measure", "start"])
async def test_nothing_begins_to_work_beside_a_measurement(room, under_way):
    """On one machine a measurement and the start of another's production wait for each other."""
    one, two = instance(1), replace(instance(2), machine_id=instance(1).machine_id)
    assert room.jobs.begin(order(one, under_way))
    assert not room.jobs.begin(order(two, "start" if under_way == "measure" else "measure"))
    assert room.jobs.begin(order(instance(3), "start"))
    await room.jobs.close()
    assert room.jobs.begin(order(two, "start"))
    await room.jobs.close()


@pytest.mark.parametrize("started", [True, False])
async def test_cancelling_waits_until_the_job_has_ended(room, started):
    """After a cancel nothing of the job runs any more, it reports no end, and the instance is free for another."""
    room.hosts.stubborn = True
    of = instance(1)
    room.jobs.begin(order(of))
    task = room.jobs._tasks[of.nonce]
    if started:
        await settled()
    await room.jobs.cancel(of.nonce)
    assert task.done()
    assert room.ended == []
    assert room.jobs.running() == {}
    assert room.jobs.begin(order(of))
    await room.jobs.close()


async def test_cancelling_what_has_no_job_is_nothing(room):
    """An instance without a job can be cancelled."""
    await room.jobs.cancel("nobody")


async def test_an_error_of_our_own_is_a_failed_job(room, caplog):
    """A bug in a job is logged and counts as the job's failure; the loop goes on, and no job hangs."""
    of = instance(1)
    room.jobs.begin(order(of))
    await settled()
    room.hosts.ends[of.nonce].set_exception(ZeroDivisionError("a bug"))
    await settled()
    ((nonce, end),) = room.ended
    assert (nonce, end.ok, end.job, end.reason) == (of.nonce, False, "measure", Reason.BENCHMARK_FAILED)
    assert "a bug" in caplog.text
    assert "a bug" not in end.detail
    assert room.jobs.wake.is_set()


async def test_an_end_that_cannot_be_written_down_is_a_failure(room):
    """A run that the ledger refuses is a failed try like others: it is given up some time, not measured for ever."""
    of = instance(1)
    written = []

    def ended(_nonce, end):
        if end.run is not None:
            raise OverflowError("too large")
        written.append(end)

    jobs = Jobs(hosts=room.hosts, clock=Clock(wall=lambda: NOW), ended=ended)
    assert jobs.begin(order(of))
    await settled()
    room.hosts.ends[of.nonce].set_result(replace(DONE, run=run(of, count=10**300)))
    await settled()
    assert [(end.ok, end.reason) for end in written] == [(False, Reason.BENCHMARK_FAILED)]
    assert jobs.wake.is_set()
    assert jobs.running() == {}


async def test_jobs_are_ended_at_once():
    """A job that takes a while to leave its host in order does not keep the others from being told to end."""
    told: list[str] = []
    everybody = asyncio.Event()

    class Slow:
        async def carry_out(self, order: Order, progress):
            try:
                await asyncio.Event().wait()
            finally:
                told.append(order.instance.nonce)
                if len(told) == 3:
                    everybody.set()
                await everybody.wait()

    jobs = Jobs(hosts=Slow(), clock=Clock(), ended=lambda *_: None)
    for number in (1, 2, 3):
        jobs.begin(order(instance(number)))
    await settled()
    async with asyncio.timeout(30):
        await jobs.close()
    assert (len(told), jobs.running()) == (3, {})
