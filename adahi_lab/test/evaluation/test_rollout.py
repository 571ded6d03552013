from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2_contingency
from test.toys import Toy, assert_same

from adahi_lab.calibration.recorded_world import RecordedWorld
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.loaded_policies import Policies
from adahi_lab.evaluation.rollout import Log, VerificationDraws, rollout
from adahi_lab.tasks import make
from adahi_lab.tasks.task_interface import Task
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import GOAL, OBSERVATION, Observations
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier, VerificationRequest

MANY = 4000
GATE = ThresholdedGate(
    "deviation", 0.4
)  # the drafts' deviation is above it in some steps and below it in others


def run(
    policies: Policies, gate: ThresholdedGate, episodes: range, seed: int = 0, rule: str = "speculative"
) -> tuple[Log, Task]:
    world = make("ball")
    controller = Controller(policies.draft, ControllerConfig(gate))
    return rollout(world, controller, TargetVerifier(policies.target, rule), seed, episodes), world


def test_episodes_are_the_same_alone_and_side_by_side(policies: Policies) -> None:
    together, world = run(policies, GATE, range(2, 7))
    lengths = together.active.sum(axis=0)
    assert len(set(lengths.tolist())) > 1
    for row, episode in enumerate(range(2, 7)):
        alone, own_world = run(policies, GATE, range(episode, episode + 1))
        length = lengths[row]
        assert alone.active.shape == (length, 1)
        for name in ("transmitted", "accepted"):
            expected = getattr(together, name)[:length, row]
            np.testing.assert_array_equal(getattr(alone, name)[:, 0], expected)
        # A network may round a batch otherwise than a single row.
        np.testing.assert_allclose(alone.action[:, 0], together.action[:length, row], atol=1e-5)
        np.testing.assert_allclose(own_world.observation[0], world.observation[row], atol=1e-4)


def disturbed(*where: tuple[int, int]) -> RecordedWorld:
    """Five episodes of eight steps, with an observation that `faulty` policies fail at in some places."""
    observations = np.random.default_rng(3).normal(scale=0.3, size=(5, 8, 6)).astype(np.float32)
    for step, episode in where:
        observations[episode, step, 0] = 1e6
    actions, goals = np.zeros((40, 2), np.float32), np.full((5, 2), 0.1, np.float32)
    return RecordedWorld(
        Trajectories("ball", observations.reshape(40, 6), actions, goals, np.arange(8, 41, 8))
    )


def disturbed_log(world: RecordedWorld, draft: Policy, target: Policy, gate: ThresholdedGate) -> Log:
    controller = Controller(draft, ControllerConfig(gate, smoothing=1.0))
    return rollout(world, controller, TargetVerifier(target), 1, range(5))


BAD = [(1e6, False), (np.nan, False), (np.nan, True)]


@pytest.mark.parametrize(("value", "logits"), BAD)
def test_a_reply_that_is_no_action_is_refused_and_the_draft_executed(
    policies: Policies, faulty: Callable[..., Policy], value: float, logits: bool
) -> None:
    world, gate = disturbed((0, 1), (3, 2), (7, 4)), ThresholdedGate("random", 0.4)
    draft, target = faulty(policies.draft, 0.0), faulty(policies.target, value, logits)
    log = disturbed_log(world, draft, target, gate)
    plain = disturbed_log(world, draft, faulty(policies.target, 0.0), gate)
    at = np.zeros((8, 5), dtype=bool)
    at[0, 1] = at[3, 2] = at[7, 4] = True
    np.testing.assert_array_equal(log.transmitted, plain.transmitted)
    assert 0 < (at & log.transmitted).sum() < 3  # nobody refuses what was never asked
    np.testing.assert_array_equal(log.refused, at & log.transmitted)
    expected = np.where(log.refused[..., None], plain.draft_action, plain.action)
    np.testing.assert_array_equal(log.action, expected)
    assert not plain.refused.any()


@pytest.mark.parametrize(("value", "logits"), BAD)
def test_where_the_draft_is_no_action_the_last_action_stands(
    policies: Policies, faulty: Callable[..., Policy], value: float, logits: bool
) -> None:
    world, gate = disturbed((0, 1), (3, 2), (4, 2)), ThresholdedGate("always")
    draft, target = faulty(policies.draft, value, logits), faulty(policies.target, 0.0)
    log = disturbed_log(world, draft, target, gate)
    plain = disturbed_log(world, faulty(policies.draft, 0.0), target, gate)
    refused = np.zeros((8, 5), dtype=bool)
    refused[0, 1] = refused[3, 2] = refused[4, 2] = True
    np.testing.assert_array_equal(log.refused, refused)
    np.testing.assert_array_equal(log.transmitted, ~refused)
    expected = plain.action.copy()
    expected[0, 1] = 0.0
    expected[3:5, 2] = expected[2, 2]
    np.testing.assert_array_equal(log.action, expected)
    assert np.isfinite(log.deviation[1:]).all()


def first_actions(policies: Policies, gate: str, rule: str, seed: int) -> dict[bytes, int]:
    """Count the actions (each combination of codes has its own) at one observation."""
    world = RecordedWorld(
        Trajectories(
            "ball",
            observations=np.tile(np.linspace(-0.2, 0.2, 6, dtype=np.float32), (MANY, 1)),
            actions=np.zeros((MANY, 2), np.float32),
            goals=np.full((MANY, 2), 0.1, np.float32),
            ends=np.arange(1, MANY + 1),
        )
    )
    controller = Controller(policies.draft, ControllerConfig(ThresholdedGate(gate), draft_temperature=0.3))
    log = rollout(world, controller, TargetVerifier(policies.target, rule), seed, range(MANY))
    actions = np.round(log.action[0], 5)
    values, counts = np.unique(actions, axis=0, return_counts=True)
    return {value.tobytes(): int(count) for value, count in zip(values, counts, strict=True)}


def same_distribution(one: dict[bytes, int], other: dict[bytes, int]) -> float:
    """Return the p-value of a chi-square test of homogeneity; rare values are pooled."""
    counts = np.array([[sample.get(key, 0) for key in sorted({*one, *other})] for sample in (one, other)])
    rare = counts.sum(axis=0) < 20
    table = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
    return float(chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue)


def test_hybrid_acts_as_the_target_does_whatever_the_draft(policies: Policies) -> None:
    target = first_actions(policies, "always", "replace", seed=1)
    assert len(target) > 10
    assert same_distribution(first_actions(policies, "always", "speculative", seed=2), target) > 1e-3
    assert same_distribution(first_actions(policies, "never", "speculative", seed=2), target) < 1e-9


class Remembering(Toy):
    """A target that reads five observations, and uses as many as another did."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(replace(policy.signature, history=5))
        self.draws = policy.draws
        self.seen: list[np.ndarray] = []
        self._policy = policy

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        window = observations.features[OBSERVATION]
        self.seen.append(window)
        newest = {OBSERVATION: window[:, -self._policy.signature.history :]}
        return self._policy.propose(replace(observations, features=newest), draws, sampling)


def test_the_target_reads_as_much_of_the_past_as_it_wants(policies: Policies) -> None:
    world, config = make("ball"), ControllerConfig(GATE)
    usual = rollout(world, Controller(policies.draft, config), TargetVerifier(policies.target), 3, [0, 1])
    target = Remembering(policies.target)
    log = rollout(world, Controller(policies.draft, config), TargetVerifier(target), 3, [0, 1])
    assert_same(log, usual)
    observed = np.stack([window[:, -1] for window in target.seen])
    for step, window in enumerate(target.seen):
        past = np.clip(np.arange(step - 4, step + 1), 0, None)
        np.testing.assert_array_equal(window, observed[past].transpose(1, 0, 2))


def plain(policies: Policies, gate: ThresholdedGate) -> tuple[np.ndarray, np.ndarray]:
    """Do by hand what a rollout does; return actions and who asked."""
    world, controller = make("ball"), Controller(policies.draft, ControllerConfig(gate))
    verifier, numbers = TargetVerifier(policies.target), [0, 1, 2]
    world.reset(3, numbers)
    controller.reset(3, numbers)
    draws = VerificationDraws(3, "robot", numbers, policies.target.draws)
    actions, requested = [], []
    while not world.done.all():
        step, uniforms = controller.begin({OBSERVATION: world.observation, GOAL: world.goal}), draws.next()
        everyone = np.ones(3, dtype=bool)
        verdict = verifier.verify(VerificationRequest(step.observations, step.draft(everyone)), uniforms)
        action = controller.finish(step, verdict.rows(step.transmit), step.transmit)
        controller.executed(action)
        world.step(action)
        actions.append(action)
        requested.append(step.transmit)
    return np.stack(actions), np.stack(requested)


def test_replies_within_the_step_are_those_of_controller_and_verifier(policies: Policies) -> None:
    actions, requested = plain(policies, GATE)
    controller = Controller(policies.draft, ControllerConfig(GATE))
    log = rollout(make("ball"), controller, TargetVerifier(policies.target), 3, range(3), late=0)
    np.testing.assert_array_equal(log.action, actions)
    np.testing.assert_array_equal(log.transmitted, requested)
