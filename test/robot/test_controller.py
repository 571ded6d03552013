from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from adahi_ros.acceptance.verifier import TargetVerifier, VerificationDraws
from adahi_ros.gates.config import ControllerConfig
from adahi_ros.gates.context import GateContext, LinkEstimate
from adahi_ros.gates.scores import GATES, Gate
from adahi_ros.policy.interface import Policy, Prediction
from adahi_ros.robot.controller import Controller, Step
from adahi_ros.wire.request import Verification

DRAFT = [[0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]]
TARGET = [[0.1, 0.2, 0.3, 0.4], [0.5, 0.3, 0.15, 0.05]]
ROBOTS, STEPS = 400, 20

Make = Callable[..., Policy]


def observe(batch: int, step: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return np.full((batch, 3), step, np.float32), np.full((batch, 1), -step, np.float32)


def execute(
    controller: Controller,
    step: Step,
    answer: Verification | None = None,
    rows: np.ndarray | None = None,
) -> np.ndarray:
    """Finish a step and command what comes of it; return that."""
    action = controller.finish(step, answer, rows)[:, 0]
    controller.executed(action)
    return action


def executed(
    make: Make, gate: Gate, rule: str = "speculative", **config: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes (T * B, 2) and offsets (T * B,) read off the actions, and whether transmitted (T, B)."""
    controller = Controller(make(DRAFT, offset=0.25), ControllerConfig(gate, **config))
    verifier = TargetVerifier(make(TARGET, offset=0.5), rule)
    controller.reset(9, list(range(ROBOTS)))
    draws = VerificationDraws(9, "robot", list(range(ROBOTS)), 2)
    actions, transmitted = [], []
    for index in range(STEPS):
        step = controller.begin(*observe(ROBOTS, index))
        uniforms = draws.next()[step.transmit]
        verification = verifier.verify(step.request(step.transmit), uniforms) if len(uniforms) else None
        actions.append(execute(controller, step, verification, step.transmit))
        transmitted.append(step.transmit)
    flat = np.concatenate(actions)
    codes = np.stack([np.floor(flat[:, 0]), np.floor(flat[:, 1]) / 10], axis=-1).astype(int)
    return codes, flat[:, 0] % 1, np.stack(transmitted)


def assert_joint(codes: np.ndarray, probabilities: np.ndarray) -> None:
    """The two codes of an action are independent, each with its own distribution."""
    counts = np.bincount(4 * codes[:, 0] + codes[:, 1], minlength=16)
    expected = np.outer(*probabilities).ravel() * len(codes)
    assert stats.chisquare(counts, expected).pvalue > 1e-5


def test_asking_always_executes_the_targets_distribution_and_offset(fixed_policy: Make) -> None:
    codes, offsets, transmitted = executed(fixed_policy, Gate("always"))
    assert transmitted.all()
    assert_joint(codes, np.array(TARGET))
    np.testing.assert_array_equal(offsets, 0.5)


def test_asking_never_executes_the_drafts_distribution_and_offset(fixed_policy: Make) -> None:
    codes, offsets, transmitted = executed(fixed_policy, Gate("never"))
    assert not transmitted.any()
    assert_joint(codes, np.array(DRAFT))
    np.testing.assert_array_equal(offsets, 0.25)


def test_asking_always_is_the_target_at_any_draft_temperature(fixed_policy: Make) -> None:
    codes, _, _ = executed(fixed_policy, Gate("always"), draft_temperature=0.3)
    assert_joint(codes, np.array(TARGET))


def test_the_draft_temperature_cools_what_is_executed_without_the_target(fixed_policy: Make) -> None:
    codes, _, _ = executed(fixed_policy, Gate("never"), draft_temperature=0.5)
    cooled = np.array(DRAFT) ** 2
    assert_joint(codes, cooled / cooled.sum(axis=1, keepdims=True))


def test_lots_are_drawn_apart_from_the_codes(fixed_policy: Make) -> None:
    codes, offsets, transmitted = executed(fixed_policy, Gate("random", 0.5))
    assert abs(transmitted.mean() - 0.5) < 5 * 0.5 / np.sqrt(ROBOTS * STEPS)
    np.testing.assert_array_equal(offsets == 0.5, transmitted.ravel())
    assert_joint(codes[transmitted.ravel()], np.array(TARGET))
    assert_joint(codes[~transmitted.ravel()], np.array(DRAFT))


def verification_for(rows: int, code: int) -> Verification:
    return Verification(
        np.full((rows, 2), code), np.zeros((rows, 2), bool), np.full((rows, 2, 2), 0.5, np.float32)
    )


@pytest.mark.parametrize("rows", [np.array([False, True, False, True]), np.array([1, 3])])
def test_an_answer_is_executed_by_those_that_asked(fixed_policy: Make, rows: np.ndarray) -> None:
    controller = Controller(fixed_policy(DRAFT, chunk_length=2), ControllerConfig(Gate("never")))
    controller.reset(0, [0, 1, 2, 3])
    step = controller.begin(*observe(4))
    before = step.draft.chunk.copy()
    request = step.request(rows)
    np.testing.assert_array_equal(request.codes, step.draft.codes[[1, 3]])
    np.testing.assert_array_equal(request.probabilities, step.draft.probabilities[[1, 3]])
    assert (request.windows.shape, request.goals.shape) == ((2, 2, 3), (2, 1))
    chunks = controller.finish(step, verification_for(2, 2), rows)
    np.testing.assert_array_equal(chunks[[0, 2]], before[[0, 2]])
    np.testing.assert_array_equal(chunks[[1, 3]], np.broadcast_to([2.5, 20.5], (2, 2, 2)))
    np.testing.assert_array_equal(step.draft.chunk, before)


def test_an_answer_for_all_and_none_at_all(fixed_policy: Make) -> None:
    controller = Controller(fixed_policy(DRAFT, chunk_length=2), ControllerConfig(Gate("never")))
    controller.reset(0, [0, 1, 2])
    step = controller.begin(*observe(3))
    np.testing.assert_array_equal(controller.finish(step, None), step.draft.chunk)
    step = controller.begin(*observe(3))
    np.testing.assert_array_equal(
        controller.finish(step, verification_for(3, 1)), np.broadcast_to([1.5, 10.5], (3, 2, 2))
    )


def test_the_deviation_is_from_what_was_executed(fixed_policy: Make) -> None:
    controller = Controller(
        fixed_policy(DRAFT, chunk_length=2), ControllerConfig(Gate("deviation", 1.0), 1.0)
    )
    controller.reset(0, [0, 1])
    first = controller.begin(*observe(2))
    assert np.isinf(first.deviation).all()
    assert first.transmit.all()
    execute(controller, first, verification_for(1, 2), np.array([1]))
    second = controller.begin(*observe(2))
    done = np.stack([first.draft.action[0], [2.5, 20.5]])
    apart = (second.draft.action - done) / np.array([2.0, 4.0])  # the toy decoder's action scale
    np.testing.assert_allclose(second.deviation, np.sqrt((apart**2).mean(axis=1)), rtol=1e-6)
    np.testing.assert_array_equal(second.score, second.deviation)
    np.testing.assert_array_equal(second.transmit, second.deviation > 1.0)


def test_the_deviation_is_not_from_what_was_wanted_and_never_commanded(fixed_policy: Make) -> None:
    controller = Controller(
        fixed_policy(DRAFT, chunk_length=2), ControllerConfig(Gate("deviation", 1.0), 0.5)
    )
    controller.finish(controller.begin(*observe(1)), None)
    step = controller.begin(*observe(1))  # nothing was commanded yet
    assert np.isinf(step.deviation).all()
    controller.finish(step, None)
    held = np.array([[0.25, -0.5]])
    controller.executed(held)
    for _ in range(3):
        step = controller.begin(*observe(1))
        apart = (step.draft.action - held) / np.array([2.0, 4.0])
        np.testing.assert_allclose(step.deviation, np.sqrt((apart**2).mean(axis=1)), rtol=1e-6)
        controller.finish(step, verification_for(1, 2))  # of no consequence, for it was not commanded


def test_a_score_at_the_threshold_is_not_transmitted(fixed_policy: Make) -> None:
    policy = fixed_policy([[1.0, 1e-30, 1e-30, 1e-30]] * 2)  # always the same action: deviation 0
    controller = Controller(policy, ControllerConfig(Gate("deviation", 0.0)))
    execute(controller, controller.begin(*observe(1)))
    step = controller.begin(*observe(1))
    assert step.deviation.tolist() == [0.0]
    assert step.transmit.tolist() == [False]


def run(controller: Controller, episodes: list[int], steps: int = 70) -> list[Step]:
    controller.reset(5, episodes)
    taken = []
    for index in range(steps):
        taken.append(controller.begin(*observe(len(episodes), index)))
        execute(controller, taken[-1])
    return taken


def test_an_episode_is_the_same_alone_and_among_others_and_after_a_reset(fixed_policy: Make) -> None:
    controller = Controller(fixed_policy(DRAFT), ControllerConfig(Gate("random", 0.4)))
    together = run(controller, [3, 8])
    alone = run(controller, [8])
    for both, one in zip(together, alone, strict=True):
        assert both.index == one.index
        np.testing.assert_array_equal(both.draft.codes[1:], one.draft.codes)
        np.testing.assert_array_equal(both.deviation[1:], one.deviation)
        np.testing.assert_array_equal(both.transmit[1:], one.transmit)
        np.testing.assert_array_equal(both.windows[1:], one.windows)
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
    controller = Controller(fixed_policy(DRAFT), ControllerConfig(Gate("deviation", 0.5)))
    undisturbed = run(controller, [0], steps=3)
    controller.reset(5, [0])
    for index, expected in enumerate(undisturbed):
        with pytest.raises(ValueError, match=re.escape(message)):
            controller.begin(observations.astype(np.float32), goals.astype(np.float32))
        step = controller.begin(*observe(1, index))
        execute(controller, step)
        assert step.index == expected.index
        np.testing.assert_array_equal(step.windows, expected.windows)
        np.testing.assert_array_equal(step.draft.codes, expected.draft.codes)
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
        ControllerConfig(Gate("always"), **changes)


class Brittle:
    """A policy whose prediction is not finite for observations above a limit."""

    def __init__(self, policy: Policy) -> None:
        self.spec, self.decoder, self.digest = policy.spec, policy.decoder, policy.digest
        self._policy = policy

    def predict(self, windows: np.ndarray, goals: np.ndarray) -> Prediction:
        prediction = self._policy.predict(windows, goals)
        bad = (windows > 1e3).any(axis=(1, 2))[:, None, None]
        return Prediction(np.where(bad, np.nan, prediction.logits), prediction.offsets)


def test_an_observation_that_the_policy_makes_nothing_of_leaves_no_trace(fixed_policy: Make) -> None:
    brittle, sound = (
        Controller(policy, ControllerConfig(Gate("deviation", 0.1)))
        for policy in (Brittle(fixed_policy(DRAFT)), fixed_policy(DRAFT))
    )
    for controller in (brittle, sound):
        execute(controller, controller.begin(*observe(1)))
    with pytest.raises(ValueError, match="not finite"):
        brittle.begin(np.full((1, 3), 1e30, np.float32), np.zeros((1, 1), np.float32))
    for index in range(1, 5):
        ours, expected = (controller.begin(*observe(1, index)) for controller in (brittle, sound))
        np.testing.assert_array_equal(ours.windows, expected.windows)
        np.testing.assert_array_equal(ours.draft.codes, expected.draft.codes)
        np.testing.assert_array_equal(ours.deviation, expected.deviation)
        for controller, step in ((brittle, ours), (sound, expected)):
            execute(controller, step)


@pytest.mark.parametrize("offset", [np.nan, np.inf, 1e6, -1e6])
def test_an_answer_that_is_no_action_is_refused_and_leaves_no_trace(
    fixed_policy: Make, offset: float
) -> None:
    controller = Controller(fixed_policy(DRAFT), ControllerConfig(Gate("always")))
    step = controller.begin(*observe(1))
    bad = Verification(step.draft.codes, np.ones((1, 2), bool), np.full((1, 1, 2), offset, np.float32))
    with pytest.raises(ValueError, match=r"action\[0\]: .* must be from"):
        controller.finish(step, bad)
    np.testing.assert_array_equal(controller.finish(step, None), step.draft.chunk)
    controller.executed(step.draft.action)
    assert np.isfinite(controller.begin(*observe(1, 1)).deviation).all()


def test_a_score_that_is_not_a_number_asks(fixed_policy: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GATES, "deviation", lambda evidence: np.array([np.nan, 0.0, 1.0]))
    controller = Controller(fixed_policy(DRAFT), ControllerConfig(Gate("deviation", 0.5)))
    controller.reset(0, [0, 1, 2])
    assert controller.begin(*observe(3)).transmit.tolist() == [True, False, True]


def test_a_gate_can_go_by_the_state_of_the_link(fixed_policy: Make) -> None:
    def while_the_link_is_good(evidence: GateContext) -> np.ndarray:
        lost = 0.0 if evidence.link is None else evidence.link.loss
        return np.full(len(evidence.deviation), 1.0 - lost)

    gate = Gate("good link", 0.5, while_the_link_is_good)
    controller = Controller(fixed_policy(DRAFT), ControllerConfig(gate))
    for link, asks in ((None, True), (LinkEstimate(loss=0.1), True), (LinkEstimate(loss=0.9), False)):
        controller.reset(0, [0])
        assert controller.begin(*observe(1), link).transmit.tolist() == [asks]
