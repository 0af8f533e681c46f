"""Which runs of a machine are kept: the newest, and of production's rate not more than tells anything."""

from controller.model.instance import Run, RunKind

MOST = 200  # of one machine
PRODUCTION_KEPT = 7 * 86400.0  # seconds: the judge remembers fewer readings than that makes
DROPPED_EVERY = 16 * 3600.0  # seconds: so many readings go at a time, and what is judged by the rest holds meanwhile
READING_EVERY = 3600.0  # seconds: of readings within one such span the last is kept, for they saw one session


def kept(runs: tuple[Run, ...], run: Run) -> tuple[Run, ...]:
    """A machine's runs, oldest first, after one more of them."""
    rest = [each for each in runs if each.id != run.id and not _superseded(each, run)]
    return tuple(sorted([*rest, run], key=lambda each: (each.ended_at, each.id))[-MOST:])


def _superseded(old: Run, new: Run) -> bool:
    """Whether a reading of production says nothing any more, now that there is a newer one."""
    if old.kind is not RunKind.PRODUCTION or new.kind is not RunKind.PRODUCTION:
        return False
    past = (new.ended_at - PRODUCTION_KEPT) // DROPPED_EVERY * DROPPED_EVERY
    return old.ended_at < past or (
        old.nonce == new.nonce and old.ended_at // READING_EVERY == new.ended_at // READING_EVERY
    )
