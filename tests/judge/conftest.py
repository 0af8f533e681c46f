"""What judge's tests share: runs of one machine, by rate and hour."""

from controller.model.instance import Run
from controller.model.reasons import Reason

FLOOR = 59.0
HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


def run(rate: float | None, hour: float = 0.0, error: float | None = None) -> Run:
    """A run that ended at an hour."""
    return Run(
        id=f"run-{hour}",
        nonce="n",
        fleet="f",
        machine_id=7,
        shape="RTX 4090 x1",
        workload="w",
        started_at=hour * HOUR_S - 1500.0,
        ended_at=hour * HOUR_S,
        reason=Reason.MEASURED if rate is not None else Reason.NO_RATE,
        rate=rate,
        unit="proofs/h",
        error=error,
    )
