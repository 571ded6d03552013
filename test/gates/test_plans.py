"""Gates that go by plans: what each sees, and that robots, and episodes, are told apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adahi_ros.core.signature import OBSERVATION, Observations
from adahi_ros.gates.gate_config import ThresholdedGate
from adahi_ros.gates.interface import Gate, GateContext, PlanContext

A = 2
FOLLOWING = ("plan_deviation", "surprise", "reversal", "overlap")


def course(
    executed: np.ndarray, ahead: np.ndarray, intended: np.ndarray | None = None, left: int | None = None
) -> PlanContext:
    robots, steps, _ = ahead.shape
    lefts = np.full(robots, steps if left is None else left)
    return PlanContext(executed, ahead[:, 0] if intended is None else intended, ahead, lefts)


def context(step: int, seen: np.ndarray, age: np.ndarray | float, plans: PlanContext | None) -> GateContext:
    robots = len(seen)
    observations = Observations({OBSERVATION: seen[:, None]}, {})
    ages = np.broadcast_to(np.asarray(age, float), robots)
    nothing = np.zeros(robots)
    return GateContext(
        step, {OBSERVATION: seen}, observations, None, nothing, ages, nothing, None, plans, step == 0
    )


def still(robots: int = 1) -> np.ndarray:
    return np.zeros((robots, 3), np.float32)


def plan(*values: float) -> np.ndarray:
    """One robot's plan, of the same value in every entry."""
    return np.repeat(np.array(values)[None, :, None], A, axis=2)


def run_surprise(seen: np.ndarray, ages: np.ndarray) -> np.ndarray:
    """Return the surprise (T, B) of observations (T, B, O) with plans of such ages (T,)."""
    gate = ThresholdedGate("surprise").gate
    return np.stack([gate.score(context(t, each, ages[t], None)) for t, each in enumerate(seen)])


def test_the_plan_deviation_is_the_distance_from_what_is_planned_now() -> None:
    far = course(np.zeros((1, A)), plan(1.0, 9.0), intended=np.array([[4.0, 5.0]]))
    np.testing.assert_allclose(
        ThresholdedGate("plan_deviation").gate.score(context(3, still(), 1.0, far)), np.sqrt((9 + 16) / 2)
    )


def test_the_plan_deviation_is_0_on_the_plan_and_infinite_without_one() -> None:
    gate = ThresholdedGate("plan_deviation").gate
    assert gate.score(context(3, still(), 1.0, course(np.zeros((1, A)), plan(1.0)))) == 0.0
    over = course(np.zeros((1, A)), plan(0.0), intended=np.zeros((1, A)), left=0)
    assert np.isinf(gate.score(context(3, still(), 9.0, over)))
    assert np.isinf(gate.score(context(3, still(), 9.0, None)))


def test_a_push_is_a_surprise_and_going_on_is_none() -> None:
    steps, pushed_at = 60, 40
    draw = np.random.default_rng(3)
    seen = np.cumsum(1.0 + 0.01 * draw.normal(size=(steps, 1, 3)), axis=0)
    pushed = seen.copy()
    pushed[pushed_at:] += 0.5
    ages = np.where(np.arange(steps) < 35, 1.0, np.arange(steps) - 34.0)  # the last plan is of step 34
    calm, surprised = run_surprise(seen, ages), run_surprise(pushed, ages)
    np.testing.assert_array_equal(calm[:pushed_at], surprised[:pushed_at])
    assert surprised[pushed_at, 0] > 8.0 > 2.0 * calm[pushed_at, 0]
    assert (surprised[pushed_at:, 0] > 8.0).all()  # it stays, until there is a new plan
    renewed = run_surprise(pushed, np.where(np.arange(steps) > 50, np.arange(steps) - 50.0, ages))
    assert renewed[51, 0] < 3.0


def test_the_expected_change_is_learned_from_how_things_move() -> None:
    steps = 80
    signs = np.where(np.arange(steps) % 2, 1.0, -1.0)
    to_and_fro = signs[:, None, None] * np.ones((steps, 1, 2))  # the share is -1
    noise = 1e-3 * np.random.default_rng(1).normal(size=to_and_fro.shape)
    ages = np.where(np.arange(steps) == 70, 1.0, np.arange(steps) - 69.0)
    score = run_surprise(to_and_fro + noise, np.maximum(ages, 0.0))
    assert score[75, 0] < 4.0
    broken = to_and_fro + noise
    broken[75:] *= -1.0
    assert run_surprise(broken, np.maximum(ages, 0.0))[75, 0] > 8.0


def test_what_never_moves_surprises_no_one() -> None:
    assert not run_surprise(np.ones((30, 2, 3)), np.arange(30.0)).any()


def test_reversals_are_those_of_what_was_executed() -> None:
    def scored(values: list[float]) -> float:
        gate = ThresholdedGate("reversal").gate
        for step, value in enumerate(values):
            before = values[step - 1] if step else np.nan
            last = gate.score(context(step, still(), 1.0, course(np.full((1, A), before), plan(value))))
        return float(last[0])

    assert scored([0.0, 1.0, 2.0, 3.0, 4.0]) == 0.0
    assert scored([0.0, 1.0, 0.0, 1.0, 0.0]) > scored([0.0, 1.0, 2.0, 1.0, 0.0]) > 0.0
    np.testing.assert_allclose(scored([0.0, 4.0, 3.0, 0.0]), 0.2 * 2.0)  # of 4 and -1


def overlaps(plans: list[tuple[float, np.ndarray]]) -> list[float]:
    gate, found = ThresholdedGate("overlap").gate, []
    for step, (age, ahead) in enumerate(plans):
        found.append(float(gate.score(context(step, still(), age, course(np.zeros((1, A)), ahead)))[0]))
    return found


def test_a_new_plan_is_compared_with_the_one_before_at_the_same_steps() -> None:
    old, new = plan(0, 1, 2, 3), plan(2, 3, 7, 9)
    followed = [(np.inf, plan(0)), (1.0, old), (2.0, old[:, 1:])]
    # Asked for at step 2, spliced there; at step 3 its second action is compared with the old one's for it.
    found = overlaps([*followed, (1.0, new), (2.0, new[:, 1:]), (3.0, new[:, 2:])])
    assert found[:3] == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(found[3:], np.sqrt(((2 - 2) ** 2 + (3 - 3) ** 2) / 2))
    late = overlaps([*followed, (3.0, old[:, 2:]), (2.0, new[:, 1:])])
    np.testing.assert_allclose(late[4], 0.0)  # one step is common: 3 against 3
    apart = overlaps([*followed, (1.0, new + 4.0), (2.0, new[:, 1:] + 4.0)])
    np.testing.assert_allclose(apart[3:], 4.0)


def test_plans_without_a_common_step_say_nothing() -> None:
    assert overlaps([(1.0, plan(1)), (1.0, plan(5))]) == [0.0, 0.0]


@pytest.mark.parametrize("name", FOLLOWING)
def test_robots_are_scored_as_they_are_alone_and_episodes_again(name: str) -> None:
    draw, steps, robots = np.random.default_rng(5), 25, 3
    seen = draw.normal(size=(steps, robots, 3))
    executed = draw.normal(size=(steps, robots, A))
    ahead = draw.normal(size=(steps, robots, 6, A))
    age = draw.integers(1, 5, size=(steps, robots)).astype(float)

    def scores(gate: Gate, who: list[int]) -> np.ndarray:
        return np.stack(
            [
                gate.score(
                    context(
                        t,
                        seen[t][who],
                        age[t][who],
                        course(executed[t][who], ahead[t][who], executed[t][who]),
                    )
                )
                for t in range(steps)
            ]
        )

    gate = ThresholdedGate(name).gate
    together = scores(gate, [0, 1, 2])
    assert together[5:].std() > 0.0
    np.testing.assert_allclose(scores(gate, [0, 1, 2]), together)  # nothing is left of the episode before
    np.testing.assert_allclose(scores(ThresholdedGate(name).gate, [1])[:, 0], together[:, 1])


@pytest.mark.parametrize("name", FOLLOWING)
def test_a_gate_that_begins_in_the_middle_scores(name: str) -> None:
    plans = course(np.ones((2, A)), np.ones((2, 3, A)))
    score = ThresholdedGate(name).gate.score(replace(context(7, still(2), 2.0, plans)))
    assert score.shape == (2,)
    assert not np.isnan(score).any()
