"""The error rates that compare.py promises, on simulated launches with fixed seeds.

The slow tests leave room for the chance of a finite number of runs; simulate.py prints the numbers.
"""

import pytest
import simulate

TURNS = [simulate.INDEPENDENT, simulate.TURNS]


@pytest.mark.parametrize("world", TURNS, ids=lambda world: world.title)
def test_three_percent_are_found_in_19_of_20(world: simulate.World) -> None:
    found, _ = simulate.answers(simulate.planted, world, 20, seed=1).sum(axis=0)
    assert found >= 19


@pytest.mark.parametrize("world", simulate.WORLDS, ids=lambda world: world.title)
def test_equal_sides_raise_no_alarm_in_19_of_20(world: simulate.World) -> None:
    _, _, by_default, _ = simulate.answers(simulate.equal_sides, world, 20, seed=1).sum(axis=0)
    assert by_default <= 1


def test_a_floor_takes_most_alarms_of_restless_days_back_and_costs_nothing_in_turns() -> None:
    without, floored, _ = simulate.answers(simulate.floored, simulate.RESTLESS, 2, seed=4).mean(0)
    assert without > 0.15 and floored < without / 3
    without, floored, found = simulate.answers(
        simulate.floored, simulate.RESTLESS_TURNS, 2, seed=4
    ).mean(0)
    assert (without, floored, found) == (0, 0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("world", simulate.WORLDS, ids=lambda world: world.title)
def test_rates(world: simulate.World) -> None:
    either, slower, by_default, right = simulate.answers(
        simulate.equal_sides, world, 400, seed=2
    ).mean(axis=0)
    assert slower <= either <= 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5
    assert by_default <= 0.05 and 0.93 <= right <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("world", TURNS, ids=lambda world: world.title)
def test_looking_again_costs_no_alarms(world: simulate.World) -> None:
    (alarms,) = simulate.answers(simulate.sequential, world, 200, seed=3).mean(axis=0)
    assert alarms <= 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5
