"""What is taken for granted about machines and runs, and what was learned of one shape's machines."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Defaults until a fleet's own runs say more. Logarithms are of rate / floor; 0.10 is about ten per cent."""

    mean: float = 0.0  # ln: a typical machine of a shape never measured makes just the floor
    sd: float = 0.10  # ln: between machines of one shape
    mean_weight: float = 3.0  # machines that `mean` counts for beside those measured
    sd_weight: float = 12.0  # machines that `sd` counts for
    odd: float = 0.03  # share of machines unlike the others, such as a host that always throttles
    odd_sd: float = 0.50  # ln: between those
    session_sd: float = 0.09  # ln: what neighbours, heat and placement add, the same for all runs within a session
    session_seconds: float = 3600.0  # how fast a session is forgotten
    disturbed: float = 0.15  # share of sessions that are disturbed, and so slow
    drop: float = 0.75  # factor on the rate of a disturbed session
    drop_sd: float = 0.03  # ln: between disturbed sessions
    crippled: float = 0.005  # share of sessions that something else entirely holds back
    crippled_drop: float = 0.55  # factor on the rate of such a session
    crippled_sd: float = 0.20  # ln: between them
    clip: float = 0.17  # ln below a typical machine: a run as slow as that says "disturbed" as loudly as it can
    clip_span: float = 0.24  # ln: and says so down to here; slower still, it says "slow machine" again
    least_error: float = 0.03  # relative: no run is more exact than this, whatever it claims
    drift_seconds: float = 400 * 3600.0  # mean time until a machine's rate changes for another
    stop_below: float = 0.40  # P under which an instance does not go on working
    accept_above: float = 0.90  # where thresholds are asked for, and this one is not given
    confirm: float = 1.5  # independent runs that a rejection takes
    hopeless: float = 0.5  # of the floor: two runs below it are a rejection, however close together
    cooldown_seconds: float = 2 * 3600.0  # of work between runs, so that they see different sessions
    run_hours: float = 0.25  # what a benchmark takes, until the ledger has some
    provision_hours: float = 0.42  # from the rental to the first benchmark, likewise


DEFAULTS = Assumptions()


@dataclass(frozen=True, slots=True)
class Prior:
    """What to expect of a machine never measured: ln(rate / floor), normal.

    `machines`: measured ones behind it. One more that changes nothing else leaves it equal, and all that is cached.
    """

    mean: float = DEFAULTS.mean
    sd: float = DEFAULTS.sd
    machines: int = field(default=0, compare=False)

    def coarse(self, step: float) -> "Prior":
        """The nearest of those that are so far apart, in ln: few enough that what is worked out for them is kept."""
        return Prior(round(self.mean / step) * step, max(1, round(self.sd / step)) * step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What judging and finding take, in hours, and how long an instance is wanted for."""

    planned_hours: float = 48.0
    run_hours: float = DEFAULTS.run_hours
    provision_hours: float = DEFAULTS.provision_hours


UNMEASURED = Prior()
USUAL = Effort()
