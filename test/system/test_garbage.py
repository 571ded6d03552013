"""The trial with garbage, at small scale: `benchmarks/garbage.py` gives many times as much."""

from __future__ import annotations

import numpy as np
import pytest
from builtin_interfaces.msg import Duration

from adahi_ros.nodes.common.messages import to_command
from benchmarks.garbage.envelope import ACCELERATION, POSITION, VELOCITY, CommandWatch
from benchmarks.garbage.outcome import Outcome
from benchmarks.garbage.trial import SHARES, kind_of, run
from benchmarks.garbage.values import Garbage

INPUTS = 300
NAMES = ("left_joint", "right_joint")
PERIOD_S = 0.05


def test_garbage_crashes_nothing_and_moves_nothing_out_of_the_envelope() -> None:
    told: list[Outcome] = []
    outcomes = run(range(INPUTS), 0, told.append)
    assert [outcome.kind for outcome in told] == list(SHARES)
    assert sum(outcome.inputs for outcome in outcomes) == INPUTS
    for outcome in outcomes:
        assert not outcome.crashes
        assert not outcome.outside
    moved = {outcome.kind for outcome in outcomes if outcome.commands > outcome.inputs}
    assert moved == {"joint_states", "task_state", "images", "enable", "parameters", "answers"}
    assert {outcome.kind for outcome in outcomes if outcome.compared} == moved


def test_an_input_is_known_by_its_number() -> None:
    assert {kind_of(number) for number in range(100)} == set(SHARES)
    first, again = (Garbage(3, 7) for _ in range(2))
    assert [first.text() for _ in range(20)] == [again.text() for _ in range(20)]


@pytest.fixture
def watch() -> CommandWatch:
    return CommandWatch(NAMES, PERIOD_S)


def show(watch: CommandWatch, positions: list[float], at_s: float, names: tuple[str, ...] = NAMES) -> None:
    message = to_command(names, "positions", np.array(positions), PERIOD_S, 0)
    watch.take(message, {"source_timestamp": round(1e9 * at_s)})


def test_commands_within_the_limits_pass(watch: CommandWatch) -> None:
    for step, position in enumerate((0.0, 0.02, 0.04, 0.06, 0.06)):
        show(watch, [position, -position], 0.3 * step)
    assert not watch.outside
    assert (watch.commands, watch.compared) == (5, 3)


@pytest.mark.parametrize(
    ("second", "fault"),
    [
        ([POSITION + 0.001, 0.0], "position"),
        ([0.0, 1.001 * VELOCITY * PERIOD_S], "faster"),
        ([float("nan"), 0.0], "nan"),
    ],
)
def test_a_command_outside_is_noticed(watch: CommandWatch, second: list[float], fault: str) -> None:
    show(watch, [0.0, 0.0], 0.0)
    show(watch, second, 10.0)
    assert fault in watch.outside[0]


def test_other_names_and_another_time_are_noticed(watch: CommandWatch) -> None:
    show(watch, [0.0, 0.0], 0.0, ("left_joint", "elbow_joint"))
    message = to_command(NAMES, "positions", np.zeros(2), PERIOD_S, 0)
    message.points[0].time_from_start = Duration(sec=1)
    watch.take(message, {"source_timestamp": 0})
    assert len(watch.outside) == 2


def test_a_change_of_velocity_is_noticed_where_commands_are_a_period_apart(watch: CommandWatch) -> None:
    step = 1.01 * ACCELERATION * PERIOD_S**2
    assert step <= VELOCITY * PERIOD_S * 1.02
    for number, position in enumerate((0.0, 0.0, step)):
        show(watch, [position, 0.0], 0.3 * number)
    assert any("more than" in fault for fault in watch.outside)


def test_many_small_steps_in_no_time_are_noticed(watch: CommandWatch) -> None:
    for number in range(12):
        show(watch, [0.8 * VELOCITY * PERIOD_S * number - POSITION, 0.0], 0.001 * number)
    assert any("over several commands" in fault for fault in watch.outside)
