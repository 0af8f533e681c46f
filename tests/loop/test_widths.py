from controller.loop.widths import FORGOTTEN, ran_out_anywhere, ran_out_here
from controller.model.instance import Run
from controller.model.reasons import Reason
from tests.plan.conftest import NOW, instance, run

HOUR = 3600.0


def out(machine: int, width: int | None, gib: float | None = 75.0, hours_ago: float = 1.0) -> Run:
    of = instance(machine, machine_id=machine)
    at = NOW - hours_ago * HOUR
    return run(of, None, reason=Reason.OUT_OF_MEMORY, concurrency=width, ram_gib=gib, ended_at=at, id=f"{machine}/{at}")


def well(machine: int, width: int, gib: float = 75.0) -> Run:
    return run(instance(machine, machine_id=machine), 60, concurrency=width, ram_gib=gib, ended_at=NOW - HOUR)


def test_widths_that_ran_out_are_told():
    """Each width that ran out of memory is told once, with the memory it ran out of, for every machine."""
    failed = [out(1, 10, hours_ago=3), out(1, 5, hours_ago=2), out(1, 10)]
    assert ran_out_anywhere(failed, now=NOW) == ((75.0, 5), (75.0, 10))
    assert ran_out_here(failed, now=NOW) == {1: ((75.0, 5), (75.0, 10))}


def test_one_machine_does_not_narrow_those_that_do_it():
    """What another machine does as wide with no more memory, only the one that ran out is kept from."""
    runs = [well(2, 10), out(1, 10), out(1, 5)]
    assert ran_out_anywhere(runs, now=NOW) == ()
    assert ran_out_here(runs, now=NOW) == {1: ((75.0, 5), (75.0, 10))}
    assert ran_out_anywhere([well(2, 4), well(3, 10, 128.0), *runs[1:]], now=NOW) == ((75.0, 5), (75.0, 10))


def test_what_worked_before_on_the_same_machine_is_no_proof():
    """A machine that did it warm and ran out of memory cold has shown that it does not always fit."""
    assert ran_out_anywhere([well(1, 10), out(1, 10)], now=NOW) == ((75.0, 10),)


def test_one_machine_does_not_close_the_market():
    """That not even one piece fits is believed of other machines once two have shown it: one may be at fault itself."""
    huge = [out(1, 1, 512.0)]
    assert ran_out_anywhere(huge, now=NOW) == ()
    assert ran_out_here(huge, now=NOW) == {1: ((512.0, 1),)}
    assert ran_out_anywhere([*huge, out(2, 1, 510.0)], now=NOW) == ((510.0, 1), (512.0, 1))
    assert ran_out_anywhere([*huge, out(2, 1, 75.0)], now=NOW) == ((75.0, 1),)


def test_a_machine_without_any_room_is_known():
    """A container with less memory than its offer promised is not rented again and again."""
    assert ran_out_here([out(1, None, 16.0)], now=NOW) == {1: ((16.0, 0),)}
    assert ran_out_anywhere([out(1, None, 16.0), out(2, None, 16.0)], now=NOW) == ()


def test_memory_is_tried_again_after_two_months():
    """No limit is for ever: what ran out long ago may have been something else."""
    old = [out(n, width, hours_ago=FORGOTTEN / HOUR) for n in (1, 2) for width in (1, 5)]
    assert ran_out_anywhere(old, now=NOW) == ()
    assert ran_out_here(old, now=NOW) == {}
