"""Gates that go by plans: what each sees, and that robots, and episodes, are told apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from adahi_ros.core.signature import OBSERVATION, Observations
from adahi_ros.gates.gate_config import ThresholdedGate
from adahi_ros.gates.interface import Gate, GateContext, PlanContext

A = 2


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


def test_robots_are_scored_as_they_are_alone_and_episodes_again() -> None:
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

    gate = ThresholdedGate("overlap").gate
    together = scores(gate, [0, 1, 2])
    assert together[5:].std() > 0.0
    np.testing.assert_allclose(scores(gate, [0, 1, 2]), together)  # nothing is left of the episode before
    np.testing.assert_allclose(scores(ThresholdedGate("overlap").gate, [1])[:, 0], together[:, 1])


def test_a_gate_that_begins_in_the_middle_scores() -> None:
    plans = course(np.ones((2, A)), np.ones((2, 3, A)))
    score = ThresholdedGate("overlap").gate.score(replace(context(7, still(2), 2.0, plans)))
    assert score.shape == (2,)
    assert not np.isnan(score).any()
