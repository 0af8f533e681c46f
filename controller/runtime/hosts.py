"""The loop's jobs, carried out over SSH: a manifest becomes work for `bench/`, and its result the end of a job."""

from collections.abc import Callable, Mapping

from controller.bench.bench import Bench
from controller.bench.work import Result, Target, Work
from controller.loop.ports import Order, Secrets
from controller.model.faults import Fault
from controller.model.fleet import Fleet
from controller.plan.outcome import JobEnd


class BenchHosts:
    """The loop's `Hosts`.

    Args:
        bench: does the work.
        secrets: a fleet's environment.
    """

    def __init__(self, *, bench: Bench, secrets: Secrets) -> None:
        self._bench = bench
        self._secrets = secrets

    async def carry_out(self, order: Order, progress: Callable[[str], None]) -> JobEnd:
        """Do the job. A recheck of a working instance quiesces it first; `start` follows when it has been measured."""
        instance = order.instance
        try:
            work = work_of(order.fleet, order.instance.shape, env=await self._secrets(order.fleet))
        except Fault as fault:
            return JobEnd(job=order.job, ok=False, reason=fault.reason, detail=str(fault))
        target = Target(
            nonce=instance.nonce,
            instance_id=instance.instance_id or 0,
            machine_id=instance.machine_id,
            endpoints=order.endpoints,
            host_key=instance.host_key,
            gpu_fraction=instance.gpu_fraction,
            neighbours=order.neighbours,
        )
        result = await self._job(order, target, work, progress)
        return JobEnd(
            job=order.job,
            ok=result.ok,
            reason=result.reason,
            detail=result.detail,
            host_key=result.host_key,
            run=result.run,
        )

    async def _job(self, order: Order, target: Target, work: Work, progress: Callable[[str], None]) -> Result:
        bench, ran_out = self._bench, order.ran_out
        match order.job:
            case "prepare":
                return await bench.prepare(target, work, progress=progress)
            case "measure":
                if order.instance.admitted_at is not None and work.stop:
                    quiesced = await bench.quiesce(target, work, progress=progress)
                    if not quiesced.ok:
                        return quiesced
                return await bench.measure(target, work, progress=progress, ran_out=ran_out)
            case "read":
                return await bench.read(target, work, progress=progress, ran_out=ran_out)
            case "start":
                return await bench.start(target, work, progress=progress, ran_out=ran_out)
            case "quiesce":
                return await bench.quiesce(target, work, progress=progress)
        raise AssertionError(f"no such job: {order.job}")


class NoHosts:
    """The `Hosts` of a loop that is only asked what it would do."""

    async def carry_out(self, order: Order, progress: Callable[[str], None]) -> JobEnd:  # noqa: ARG002 - the port's
        """Never called."""
        raise AssertionError(f"{order.job} of {order.instance.nonce}: nothing is carried out here")


def work_of(fleet: Fleet, shape_key: str, *, env: Mapping[str, str]) -> Work:
    """What runs on an instance of a fleet, in the words of `bench/`."""
    spec = fleet.spec
    benchmark = spec.benchmark
    gpu_count = next((shape.gpu_count for shape in spec.shapes if shape.key == shape_key), 1)
    return Work(
        fleet=fleet.name,
        shape=shape_key,
        workload=spec.workload(),
        gpu_count=gpu_count,
        image=spec.instance.image,
        unit=benchmark.unit,
        command=benchmark.command,
        format=benchmark.format,
        pattern=benchmark.pattern,
        timeout_s=benchmark.timeout_minutes * 60,
        reserve_gib=benchmark.memory.reserve_gib,
        per_proof_gib=benchmark.memory.per_proof_gib,
        prepare_command=benchmark.prepare.command,
        prepare_timeout_s=benchmark.prepare.timeout_minutes * 60,
        done_when=benchmark.prepare.done_when,
        warmup_command=benchmark.warm_up.command,
        warmup_timeout_s=benchmark.warm_up.timeout_minutes * 60,
        production_command=benchmark.production.command,
        production_format=benchmark.production.format,
        production_pattern=benchmark.production.pattern,
        start=spec.instance.start,
        stop=spec.instance.stop,
        drain_seconds=spec.instance.drain_seconds,
        env=env,
    )
