"""A target acts, and the expert says what it would have done there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test.training.test_recipes import planning, whole

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.episodes import lesson_episodes
from adahi_lab.tasks import make, make_expert
from adahi_lab.tasks.demonstrations import collect_parallel
from adahi_lab.training import own_states as module
from adahi_lab.training.flow_training import FlowFitConfig
from adahi_lab.training.own_states import FIRST, own_states, with_own_states
from adahi_lab.training.recipes import ModelRecipe, OwnStatesRecipe, recipe_of

SIZE = {"horizon": 4, "width": 8, "layers": 1, "heads": 2, "head_width": 16, "head_layers": 1, "steps": 2}
MODEL = ModelRecipe(2, SIZE, FlowFitConfig(steps=30, batch_size=16), "flow")
ROUNDS = OwnStatesRecipe(rounds=2, episodes=12, steps=3)
Seen = tuple[Trajectories, Trajectories, Callable[[str], Path]]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Demonstrations of the ball, these with a target's own states, and where a run keeps its parts."""
    folder = tmp_path_factory.mktemp("own_states")
    data = collect_parallel("ball", 4, 0, 0.1, 1).trajectories

    def state(name: str) -> Path:
        return folder / f"{name}.safetensors"

    return data, with_own_states("ball", data, 1, MODEL, ROUNDS, state), state


def episode(data: Trajectories, number: int) -> tuple[np.ndarray, np.ndarray]:
    start, end = list(data.spans())[number]
    return data.observations[start:end], data.actions[start:end]


def test_each_round_adds_its_episodes_to_the_demonstrations(seen: Seen) -> None:
    data, joined, _ = seen
    assert len(joined) == len(data) + ROUNDS.rounds * ROUNDS.episodes
    np.testing.assert_array_equal(joined.observations[: len(data.observations)], data.observations)


def test_actions_are_the_experts_where_the_target_went(seen: Seen) -> None:
    data, joined, _ = seen
    world, expert = make("ball"), make_expert("ball")
    number = [FIRST + lesson_episodes(1, 0)[0]]
    world.reset(MODEL.seed, number)
    expert.reset(MODEL.seed, number)
    observed, acted = episode(joined, len(data))
    np.testing.assert_allclose(observed[0], world.observation[0], atol=1e-6)
    np.testing.assert_allclose(acted[0], expert.act(world)[0], atol=1e-6)
    world.step(acted[:1])  # what the expert wanted was not executed
    assert np.abs(world.observation[0] - observed[1]).max() > 1e-3


def test_a_stopped_run_keeps_its_rounds(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    data, joined, state = seen

    def train(*_: object) -> None:
        pytest.fail("trained again")

    monkeypatch.setattr(module, "train_flow", train)
    again = with_own_states("ball", data, 1, MODEL, ROUNDS, state)
    np.testing.assert_array_equal(again.actions, joined.actions)
    with pytest.raises(pytest.fail.Exception, match="trained again"):
        with_own_states("ball", data, 2, MODEL, ROUNDS, state)


def test_a_target_with_images_is_refused() -> None:
    with pytest.raises(ValueError, match="own_states: ball_seen, must be left out for a target with images"):
        own_states("ball_seen", Path("nowhere"), 1, 0)


def test_a_recipe_without_a_flow_is_refused() -> None:
    rounds = {"rounds": 1, "episodes": 2, "steps": 3}
    assert recipe_of({**planning(), "own_states": rounds}).own_states == OwnStatesRecipe(1, 2, 3)
    for wrong in (whole(), {**whole(), "policies": {"target": whole()["policies"]["draft"]}}):
        with pytest.raises(ValueError, match="own_states: must be left out, except for a policy 'target'"):
            recipe_of({**wrong, "own_states": rounds})
