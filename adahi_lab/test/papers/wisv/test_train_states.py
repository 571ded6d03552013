"""What a head on hidden states learns from, and that it keeps more on a slower channel."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_lab.papers.wisv.state_lessons import StateLessons, completed, forked, lessons
from adahi_lab.papers.wisv.train_states import ranked_right, train_states
from adahi_lab.tasks import make
from adahi_ros.core.assets import asset

FILES = PolicyFiles(asset("checkpoints/metaworld/tokens"), "onnxruntime")
W, D = 6, 4


def synthetic(count: int) -> StateLessons:
    """Tokens that lead the further away, the higher the first number of both states."""
    draw = np.random.default_rng(0)
    target, draft = draw.normal(size=(count, W)), draw.integers(-60, 60, (count, D))
    kept = np.exp(target[:, 0] + draft[:, 0] / 32.0 + 0.2 * draw.normal(size=count))
    return StateLessons(
        np.repeat(np.arange(count // 10), 10),
        np.zeros(count, int),
        np.zeros(count),
        target.astype(np.float32),
        draft.astype(np.int8),
        kept,
        np.exp(2.0 * draw.normal(size=count)),
    )


def test_a_head_learns_what_matters_and_to_keep_more_on_a_slow_channel() -> None:
    data = synthetic(2000)
    head, found = train_states(data, 0)
    assert found["area"] > 0.9
    assert found["kept_fast"] < found["kept"] < found["kept_slow"]
    assert (head.target_size, head.draft_size) == (W, D)
    again, _ = train_states(data, 0)
    np.testing.assert_array_equal(head.weight_0, again.weight_0)


def test_too_few_lessons_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^episodes: 10, must be more: 100 lessons"):
        train_states(synthetic(100), 0)


def test_a_chunk_is_completed_as_the_target_decodes_it() -> None:
    target = FILES.load().target
    assert isinstance(target, TokenPolicy)
    windows = np.random.default_rng(3).normal(scale=0.1, size=(3, 4, 18)).astype(np.float32)
    seen = target.signature.observations(windows, np.zeros((3, 35), np.float32))
    whole = target.likeliest(seen, 32).codes
    codes = np.where(np.arange(32) < np.array([[1], [7], [32]]), whole, 0)
    np.testing.assert_array_equal(completed(target, seen, codes, np.array([1, 7, 32])), whole)


def test_lessons_are_the_same_every_time_and_of_no_evaluation() -> None:
    pytest.importorskip("metaworld")
    one, again = (lessons("metaworld", FILES, 4, 1, 1) for _ in range(2))
    assert len(one) > 4
    for mine, theirs in zip(vars(one).values(), vars(again).values(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert set(one.episode) == {3_800_000}
    assert (one.kept > 0.0).any()


def test_policies_without_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="draft and target must emit tokens"):
        lessons("ball", PolicyFiles(asset("checkpoints/ball"), "onnxruntime"), 0, 1, 1)


@pytest.mark.parametrize(("task", "actions"), [("ball", 2), ("swarm", 8), ("kitchen", 9), ("metaworld", 4)])
def test_a_fork_goes_on_as_its_world_does_and_leaves_it_alone(task: str, actions: int) -> None:
    if task == "metaworld":
        pytest.importorskip("metaworld")
    world = make(task)
    world.reset(3, [5, 6])
    action = np.full((2, actions), 0.1, np.float32)
    world.step(action)
    before = world.observation.copy()
    fork, same = forked(world), forked(world)
    for _ in range(3):
        fork.step(-action)
    np.testing.assert_array_equal(world.observation, before)
    for _ in range(3):
        world.step(action)
        same.step(action)
    np.testing.assert_array_equal(world.observation, same.observation)
    assert (world.observation != fork.observation).any()


def test_the_area_under_roc() -> None:
    truth = np.array([False, False, True, True])
    assert ranked_right(np.array([0.1, 0.2, 0.3, 0.4]), truth) == 1.0
    assert ranked_right(np.array([0.4, 0.3, 0.2, 0.1]), truth) == 0.0
    assert ranked_right(np.zeros(4), truth) == 0.5
    assert np.isnan(ranked_right(np.zeros(2), truth[:2]))
