from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from adahi_ros.evaluation.bench import Policies
from adahi_ros.evaluation.recorded import RecordedWorld
from adahi_ros.evaluation.rollout import plan_rollout
from adahi_ros.policy.distribution import softmax
from adahi_ros.policy.vqbet.code_policy import CodePolicy
from adahi_ros.tasks import make
from adahi_ros.trajectories import Trajectories

EPISODES, STEPS, MANY = 5, 11, 6000


def recording(observations: np.ndarray) -> Trajectories:
    """Episodes (E, T, 6) with a goal of their own each."""
    episodes, steps = observations.shape[:2]
    return Trajectories(
        "ball",
        observations.reshape(-1, 6).astype(np.float32),
        np.zeros((episodes * steps, 2), np.float32),
        np.linspace(-0.5, 0.5, 2 * episodes).reshape(episodes, 2).astype(np.float32),
        np.arange(steps, episodes * steps + 1, steps),
    )


@pytest.fixture
def chunks(policies: Policies) -> CodePolicy:
    assert policies.chunks is not None
    return policies.chunks


@pytest.mark.parametrize("executed", [1, 3, 8])
def test_the_target_is_asked_every_kth_step_and_its_plan_is_followed_blindly(
    chunks: CodePolicy, codes_of: Callable[..., np.ndarray], executed: int
) -> None:
    observations = np.random.default_rng(3).normal(scale=0.3, size=(EPISODES, STEPS, 6))
    recorded = recording(observations)
    seen: list[int] = []
    log = plan_rollout(RecordedWorld(recorded), chunks, executed, 1, range(EPISODES), seen.append)
    assert seen == list(range(1, STEPS + 1))
    asked = [step for step in range(STEPS) if step % executed == 0]
    assert [step for step in range(STEPS) if log.transmitted[step].any()] == asked
    assert log.transmitted[asked].all()
    for step in asked:
        history = np.clip(np.arange(step - chunks.signature.history + 1, step + 1), 0, None)
        windows = observations[:, history].astype(np.float32)
        # One plan, made at the step that asked, is behind all the actions until the next.
        followed = log.action[step : step + executed].transpose(1, 0, 2)
        codes_of(chunks, windows, recorded.goals, followed)
    np.testing.assert_array_equal(log.draft_action, log.action)
    assert log.accepted.shape == (STEPS, EPISODES, 0)


def test_single_actions_have_the_targets_distribution(
    policies: Policies, codes_of: Callable[..., np.ndarray]
) -> None:
    place = np.linspace(-0.2, 0.2, 6, dtype=np.float32)
    recorded = recording(np.tile(place, (MANY, 1, 1)))
    recorded.goals[:] = 0.1
    target = policies.target
    log = plan_rollout(RecordedWorld(recorded), target, 1, 2, range(MANY))
    windows = np.tile(place, (MANY, target.signature.history, 1))
    codes = codes_of(target, windows, recorded.goals, log.action[0][:, None])
    q = softmax(target.predict(windows[:1], recorded.goals[:1]).logits, 1.0)[0].astype(np.float64)
    size = target.sizes.codebook_size
    counts = np.bincount(size * codes[:, 0] + codes[:, 1], minlength=size**2)
    expected = np.outer(*(q / q.sum(axis=1, keepdims=True))).ravel() * MANY
    assert expected.min() > 5
    assert stats.chisquare(counts, expected).pvalue > 1e-4


def test_an_episode_is_the_same_alone_and_among_others(chunks: CodePolicy) -> None:
    together = plan_rollout(make("ball"), chunks, 4, 3, range(2, 6))
    alone = plan_rollout(make("ball"), chunks, 4, 3, [4])
    length = together.active[:, 2].sum()
    assert len(alone.active) == length
    np.testing.assert_allclose(alone.action[:, 0], together.action[:length, 2], atol=1e-5)
    other = plan_rollout(make("ball"), chunks, 4, 4, [4])
    assert not np.array_equal(other.action[0], alone.action[0])


@pytest.mark.parametrize(("value", "logits"), [(1e6, False), (np.nan, False), (np.nan, True)])
def test_a_plan_that_is_no_action_is_refused_and_the_last_action_stands(
    chunks: CodePolicy, faulty: Callable[..., CodePolicy], value: float, logits: bool
) -> None:
    observations = np.random.default_rng(3).normal(scale=0.3, size=(EPISODES, STEPS, 6))
    observations[1, 0, 0] = observations[2, 4, 0] = 1e6  # where plans are made: before any action, and after
    observations[4, 5, 0] = 1e6  # where none is
    world = RecordedWorld(recording(observations))
    log = plan_rollout(world, faulty(chunks, value, logits), 2, 1, range(EPISODES))
    plain = plan_rollout(world, faulty(chunks, 0.0), 2, 1, range(EPISODES))
    refused = np.zeros((STEPS, EPISODES), dtype=bool)
    refused[0, 1] = refused[4, 2] = True
    np.testing.assert_array_equal(log.refused, refused)
    expected = plain.action.copy()
    expected[:2, 1] = 0.0
    expected[4:6, 2] = expected[3, 2]
    np.testing.assert_array_equal(log.action, expected)
    assert not plain.refused.any()


@pytest.mark.parametrize("executed", [-1, 0, 9])
def test_more_or_less_than_a_plan_is_refused(chunks: CodePolicy, executed: int) -> None:
    expected = f"executed: {executed}, must be 1 to 8, the target's horizon"
    with pytest.raises(ValueError, match=re.escape(expected)):
        plan_rollout(make("ball"), chunks, executed, 0, [0])
