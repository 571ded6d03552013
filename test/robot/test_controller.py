from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from adahi_lab.evaluation.rollout import VerificationDraws
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.gates.interface import Gate, GateContext
from adahi_ros.policies.vqbet.code_policy import CodePolicy, Prediction
from adahi_ros.robot.controller import Controller, Step
from adahi_ros.server.verifier import TargetVerifier, VerificationRequest

DRAFT = [[0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]]
TARGET = [[0.1, 0.2, 0.3, 0.4], [0.5, 0.3, 0.15, 0.05]]
ROBOTS, STEPS = 400, 20

Make = Callable[..., CodePolicy]


def observe(batch: int, step: int = 0) -> dict[str, np.ndarray]:
    return {
        "observation": np.full((batch, 3), step, np.float32),
        "goal": np.full((batch, 1), -step, np.float32),
    }


def execute(
    controller: Controller,
    step: Step,
    verdict: Verdict | None = None,
    rows: np.ndarray | None = None,
) -> np.ndarray:
    """Finish a step and command what comes of it; return that."""
    action = controller.finish(step, verdict, rows)
    controller.executed(action)
    return action


def executed(
    make: Make, gate: ThresholdedGate, rule: str = "speculative", **config: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes (T * B, 2) and offsets (T * B,) read off the actions, and whether transmitted (T, B)."""
    controller = Controller(make(DRAFT, offset=0.25), ControllerConfig(gate, **config))
    verifier = TargetVerifier(make(TARGET, offset=0.5), rule)
    controller.reset(9, list(range(ROBOTS)))
    draws = VerificationDraws(9, "robot", list(range(ROBOTS)), 2)
    actions, transmitted = [], []
    for index in range(STEPS):
        step = controller.begin(observe(ROBOTS, index))
        uniforms = draws.next()[step.transmit]
        verdict = None
        if len(uniforms):
            seen = step.observations.rows(step.transmit)
            verdict = verifier.verify(VerificationRequest(seen, step.draft(step.transmit)), uniforms)
        actions.append(execute(controller, step, verdict, step.transmit))
        transmitted.append(step.transmit)
    flat = np.concatenate(actions)
    codes = np.stack([np.floor(flat[:, 0]), np.floor(flat[:, 1]) / 10], axis=-1).astype(int)
    return codes, flat[:, 0] % 1, np.stack(transmitted)


def assert_joint(codes: np.ndarray, probabilities: np.ndarray) -> None:
    """The two codes of an action are independent, each with its own distribution."""
    counts = np.bincount(4 * codes[:, 0] + codes[:, 1], minlength=16)
    expected = np.outer(*probabilities).ravel() * len(codes)
    assert stats.chisquare(counts, expected).pvalue > 1e-5


def test_a_random_gate_draws_apart_from_the_codes(fixed_policy: Make) -> None:
    codes, offsets, requested = executed(fixed_policy, ThresholdedGate("random", 0.5))
    assert abs(requested.mean() - 0.5) < 5 * 0.5 / np.sqrt(ROBOTS * STEPS)
    np.testing.assert_array_equal(offsets == 0.5, requested.ravel())
    assert_joint(codes[requested.ravel()], np.array(TARGET))
    assert_joint(codes[~requested.ravel()], np.array(DRAFT))


def codes_of(step: Step) -> np.ndarray:
    assert step.proposal is not None
    assert step.proposal.distribution is not None
    return step.proposal.distribution.codes


def seen_in(step: Step) -> np.ndarray:
    return step.observations.features["observation"]


def verdict_for(rows: int, code: int) -> Verdict:
    """As if the target had drawn this code twice; its offset is 0.5."""
    actions = np.broadcast_to(np.array([code + 0.5, 10 * code + 0.5], np.float32), (rows, 2, 2))
    return Verdict(actions, np.zeros((rows, 2), bool))


def assert_deviates(step: Step, executed: np.ndarray) -> None:
    """Its deviation is from these actions (B, A)."""
    apart = (step.intended - executed) / np.array([2.0, 4.0])  # the toy decoder's action scale
    np.testing.assert_allclose(step.deviation, np.sqrt((apart**2).mean(axis=1)), rtol=1e-6)


@pytest.mark.parametrize("rows", [np.array([False, True, False, True]), np.array([1, 3])])
def test_a_verdict_is_executed_by_those_that_requested(fixed_policy: Make, rows: np.ndarray) -> None:
    controller = Controller(fixed_policy(DRAFT, chunk_length=2), ControllerConfig(ThresholdedGate("never")))
    controller.reset(0, [0, 1, 2, 3])
    step = controller.begin(observe(4))
    before = step.intended.copy()
    draft = step.draft(rows)
    sent = draft.distribution
    assert sent is not None
    np.testing.assert_array_equal(sent.codes, codes_of(step)[[1, 3]])
    assert draft.actions.shape == (2, 2, 2)
    np.testing.assert_array_equal(draft.actions[:, 0], before[[1, 3]])
    actions = controller.finish(step, verdict_for(2, 2), rows)
    np.testing.assert_array_equal(actions[[0, 2]], before[[0, 2]])
    np.testing.assert_array_equal(actions[[1, 3]], np.broadcast_to([2.5, 20.5], (2, 2)))
    np.testing.assert_array_equal(step.intended, before)


def test_the_deviation_is_from_what_was_executed(fixed_policy: Make) -> None:
    controller = Controller(
        fixed_policy(DRAFT, chunk_length=2), ControllerConfig(ThresholdedGate("deviation", 1.0), 1.0)
    )
    controller.reset(0, [0, 1])
    first = controller.begin(observe(2))
    assert np.isinf(first.deviation).all()
    assert first.transmit.all()
    execute(controller, first, verdict_for(1, 2), np.array([1]))
    second = controller.begin(observe(2))
    done = np.stack([first.intended[0], [2.5, 20.5]])
    assert_deviates(second, done)
    np.testing.assert_array_equal(second.score, second.deviation)
    np.testing.assert_array_equal(second.transmit, second.deviation > 1.0)


def run(controller: Controller, episodes: list[int], steps: int = 70) -> list[Step]:
    controller.reset(5, episodes)
    taken = []
    for index in range(steps):
        taken.append(controller.begin(observe(len(episodes), index)))
        execute(controller, taken[-1])
    return taken


def test_an_episode_is_the_same_alone_and_among_others_and_after_a_reset(fixed_policy: Make) -> None:
    controller = Controller(fixed_policy(DRAFT), ControllerConfig(ThresholdedGate("random", 0.4)))
    together = run(controller, [3, 8])
    alone = run(controller, [8])
    for both, one in zip(together, alone, strict=True):
        assert both.index == one.index
        np.testing.assert_array_equal(codes_of(both)[1:], codes_of(one))
        np.testing.assert_array_equal(both.deviation[1:], one.deviation)
        np.testing.assert_array_equal(both.transmit[1:], one.transmit)
        np.testing.assert_array_equal(seen_in(both)[1:], seen_in(one))
    assert [step.index for step in alone] == list(range(70))


@pytest.mark.parametrize(
    ("observations", "goals", "message"),
    [
        (np.zeros((1, 2)), np.zeros((1, 1)), "observation: shape (1, 2), expected (1, 3)"),
        (np.full((1, 3), np.nan), np.zeros((1, 1)), "observation: holds values that are not finite"),
        (np.zeros((1, 3)), np.zeros((1, 2)), "goal: shape (1, 2), expected (1, 1)"),
        (np.zeros((1, 3)), np.full((1, 1), np.nan), "goal: holds values that are not finite"),
    ],
)
def test_garbage_is_refused_and_leaves_no_trace(
    fixed_policy: Make, observations: np.ndarray, goals: np.ndarray, message: str
) -> None:
    controller = Controller(fixed_policy(DRAFT), ControllerConfig(ThresholdedGate("deviation", 0.5)))
    undisturbed = run(controller, [0], steps=3)
    controller.reset(5, [0])
    for index, expected in enumerate(undisturbed):
        with pytest.raises(ValueError, match=re.escape(message)):
            controller.begin({"observation": observations, "goal": goals})
        step = controller.begin(observe(1, index))
        execute(controller, step)
        assert step.index == expected.index
        np.testing.assert_array_equal(seen_in(step), seen_in(expected))
        np.testing.assert_array_equal(codes_of(step), codes_of(expected))
        np.testing.assert_array_equal(step.deviation, expected.deviation)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"smoothing": 0.0}, "smoothing: 0.0, must be above 0 and at most 1"),
        ({"normalization": "none"}, "normalization: 'none', must be one of average, std"),
        ({"draft_temperature": 0.0}, "draft_temperature: 0.0, must be above 0 and finite"),
        ({"draft_temperature": np.inf}, "draft_temperature: inf, must be above 0 and finite"),
    ],
)
def test_wrong_settings_are_refused_before_the_first_step(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        ControllerConfig(ThresholdedGate("always"), **changes)


class Brittle(CodePolicy):
    """A policy whose prediction is not finite for observations above a limit."""

    def __init__(self, policy: CodePolicy) -> None:
        super().__init__(policy.signature, policy.decoder, policy.digest)
        self._policy = policy

    def predict(self, windows: np.ndarray, goals: np.ndarray) -> Prediction:
        prediction = self._policy.predict(windows, goals)
        bad = (windows > 1e3).any(axis=(1, 2), keepdims=True)
        return Prediction(np.where(bad, np.nan, prediction.logits), prediction.offsets)


def test_an_observation_that_the_policy_makes_nothing_of_leaves_no_trace(fixed_policy: Make) -> None:
    brittle, sound = (
        Controller(policy, ControllerConfig(ThresholdedGate("deviation", 0.1)))
        for policy in (Brittle(fixed_policy(DRAFT)), fixed_policy(DRAFT))
    )
    for controller in (brittle, sound):
        execute(controller, controller.begin(observe(1)))
    with pytest.raises(ValueError, match=r"action\[0\]: nan, must be from"):
        brittle.begin({"observation": np.full((1, 3), 1e30), "goal": np.zeros((1, 1))})
    for index in range(1, 5):
        ours, expected = (controller.begin(observe(1, index)) for controller in (brittle, sound))
        np.testing.assert_array_equal(seen_in(ours), seen_in(expected))
        np.testing.assert_array_equal(codes_of(ours), codes_of(expected))
        np.testing.assert_array_equal(ours.deviation, expected.deviation)
        for controller, step in ((brittle, ours), (sound, expected)):
            execute(controller, step)


@pytest.mark.parametrize("offset", [np.nan, np.inf, 1e6, -1e6])
def test_a_verdict_that_is_no_action_is_refused_and_leaves_no_trace(
    fixed_policy: Make, offset: float
) -> None:
    controller = Controller(fixed_policy(DRAFT), ControllerConfig(ThresholdedGate("always")))
    step = controller.begin(observe(1))
    bad = Verdict(np.full((1, 1, 2), offset, np.float32), np.ones((1, 2), bool))
    with pytest.raises(ValueError, match=r"action\[0\]: .* must be from"):
        controller.finish(step, bad)
    np.testing.assert_array_equal(controller.finish(step, None), step.intended)
    controller.executed(step.intended)
    assert np.isfinite(controller.begin(observe(1, 1)).deviation).all()


def test_a_score_that_is_not_a_number_asks(fixed_policy: Make) -> None:
    class Unsure(Gate):
        def score(self, context: GateContext) -> np.ndarray:
            return np.array([np.nan, 0.0, 1.0])

    controller = Controller(fixed_policy(DRAFT), ControllerConfig(ThresholdedGate("unsure", 0.5, Unsure())))
    controller.reset(0, [0, 1, 2])
    assert controller.begin(observe(3)).transmit.tolist() == [True, False, True]


def test_a_gate_forgets_an_episode_even_where_the_next_starts_late(fixed_policy: Make) -> None:
    class Steps(Gate):
        count = 0.0

        def score(self, context: GateContext) -> np.ndarray:
            self.count = 0.0 if context.begins else self.count + 1.0
            return np.array([self.count])

    def scores(controller: Controller, first: int) -> list[float]:
        """Return those of an episode that is seen from this step on, with a plan of eight at every step."""
        controller.reset(0, [first])
        drawn, found = np.random.default_rng(first), []
        for at in range(first, first + 6):
            seen = {"observation": drawn.normal(size=(1, 3)), "goal": np.zeros((1, 1))}
            step = controller.begin(seen, at=at)
            plan = drawn.normal(size=(1, 8, 2)).astype(np.float32)
            verdict = Verdict(plan, np.zeros((1, 0), dtype=bool))
            controller.executed(controller.finish(step, verdict))
            found.append(float(step.score[0]))
        return found

    fresh, used = (
        Controller(
            fixed_policy(DRAFT),
            ControllerConfig(ThresholdedGate("steps", 0.1, Steps())),
            "plan",
        )
        for _ in "ab"
    )
    scores(used, 900)
    np.testing.assert_array_equal(scores(used, 3), scores(fresh, 3))
