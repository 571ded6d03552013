"""What a corrector learns from: lessons of rollouts, in which a fresh plan says what would be done now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from test.toys import Counting, Toy, counted, float32, unit_scales

from adahi_lab.calibration.recorded_world import RecordedWorld
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.training import corrector_training, train_corrector
from adahi_lab.training.corrector_data import Examples, Teacher, agreeing
from adahi_lab.training.fitting import Course, FitConfig, Run
from adahi_lab.training.recipes import CORRECTOR, DISTILLED, CorrectorRecipe
from adahi_lab.training.train_corrector import train_in_simulation
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import GOAL, OBSERVATION, Feature, Observations, Signature
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.corrector.corrector import Correction, Corrector
from adahi_ros.policies.corrector.corrector_checkpoint import CorrectorCheckpoint, load_corrector
from adahi_ros.policies.corrector.corrector_features import PlanView
from adahi_ros.policies.interface import AS_TRAINED, Sampling

T = 4
RECIPE = CorrectorRecipe(
    1, {"hidden": 4}, FitConfig(5, 32), rounds=2, episodes=2, asking_rates=(0.3,), samples=2
)


class Still(Toy):
    """A target for ball balancing that hardly does anything."""

    def __init__(self) -> None:
        super().__init__(Signature(2, T, 2, (Feature(OBSERVATION, 6),), (Feature(GOAL, 2),)))
        self.draws = 2

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        newest = observations.features[OBSERVATION][:, -1, :2]
        plans = 0.1 * newest[:, None] + 0.05 * (draws[:, None] - 0.5) * np.ones((T, 1))
        return Proposal(plans.astype(np.float32))


def lesson(
    target: Counting,
    rate: float,
    correct: Callable[[PlanView], Correction] | None = None,
    noise: float = 0.0,
    world: RecordedWorld | None = None,
    seed: int = 1,
) -> Examples:
    shown = RecordedWorld(counted()) if world is None else world
    return Teacher(target, unit_scales(), 3).lesson(shown, seed, [0, 1, 2], rate, correct, noise)


def test_of_two_ways_that_of_the_old_plan_is_taken_and_not_the_mean() -> None:
    ways = float32([1.0, 1.0, -1.0, -1.0, -1.0, -1.0])
    plans = np.broadcast_to(3.0 * ways[None, :, None, None], (2, 6, T, 1)).astype(np.float32)
    ahead = float32([2.8, -2.8])[:, None, None] * np.ones((1, T, 1), np.float32)
    action = agreeing(plans, ahead, np.full(2, T), np.ones(1, np.float32))
    np.testing.assert_allclose(action, [[3.0], [-3.0]], atol=0.01)


def test_where_the_world_does_otherwise_the_difference_is_wanted() -> None:
    data = counted()
    shifted = data.observations.copy()
    shifted[[5, 6]] += 0.5  # the second episode's, from its third step to its fourth
    examples = lesson(Counting(), 0.0, world=RecordedWorld(replace(data, observations=shifted)))
    moved = np.isin(examples.features[:, 0], shifted[[5, 6], 0])
    assert moved.sum() == 2
    np.testing.assert_allclose(examples.wanted[moved], 0.5, atol=1e-4)
    np.testing.assert_allclose(examples.wanted[~moved], 0.0, atol=1e-9)


def test_plans_get_as_old_as_the_rate_has_it() -> None:
    for rate, oldest in ((1.0, 0.0), (0.0, (T - 1) / T)):
        assert lesson(Counting(), rate).features[:, -1].max() == oldest


class Watching(RecordedWorld):
    """Keeps what is done."""

    def __init__(self) -> None:
        super().__init__(counted())
        self.done_so_far: list[np.ndarray] = []

    def step(self, action: np.ndarray) -> None:
        self.done_so_far.append(action)
        super().step(action)


def test_what_is_done_is_corrected_and_now_and_then_shaken() -> None:
    def correct(view: PlanView) -> Correction:
        return Correction(view.ahead[:, 0] + np.float32(0.25), np.ones(3))

    done = {}
    for name, given, noise in (("blind", None, 0.0), ("corrected", correct, 0.0), ("shaken", None, 0.5)):
        world = Watching()
        lesson(Counting(), 0.2, given, noise, world)
        done[name] = np.stack(world.done_so_far)
    np.testing.assert_allclose(done["corrected"] - done["blind"], 0.25, atol=1e-4)
    shaken = np.abs(done["shaken"] - done["blind"])[..., 0]
    assert 0.05 < (shaken > 0.0).mean() < 0.6
    assert shaken.max() <= 0.5 * np.sqrt(3.0)


def train(
    data: Trajectories,
    recipe: CorrectorRecipe,
    folder: Path,
    seed: int,
    name: str = CORRECTOR,
    on_round: Callable[[int], None] = lambda rounds: None,
) -> list[int]:
    """Train a corrector for ball balancing into a folder; return how many episodes it said to have run."""
    done: list[int] = []
    losses = train_in_simulation(
        "ball",
        Still(),
        data,
        recipe,
        Course(
            folder,
            name,
            Run(seed),
            lambda losses, parameters: {"parameters": parameters, "steps": len(losses)},
            done.append,
            on_round,
        ),
    )
    assert len(losses) == recipe.fit.steps
    return done


@pytest.fixture(scope="module")
def trained(
    tmp_path_factory: pytest.TempPathFactory, demonstrations: Callable[[int], Trajectories]
) -> tuple[Path, list[int]]:
    """A folder with a corrector, and how many episodes it was told to have run."""
    folder = tmp_path_factory.mktemp("corrector")
    return folder, train(demonstrations(2), RECIPE, folder, 3)


def test_a_corrector_comes_of_a_recipe(trained: tuple[Path, list[int]]) -> None:
    folder, done = trained
    assert done == [2, 4]
    checkpoint = load_corrector(folder / "corrector")
    assert checkpoint.config == {
        "observation_dim": 6,
        "goal_dim": 2,
        "action_dim": 2,
        "horizon": T,
        "hidden": 4,
    }
    assert checkpoint.training == {"parameters": checkpoint.parameters, "steps": 5}
    corrector = Corrector(checkpoint)  # of the file beside it: hash and digest are right
    draw = np.random.default_rng(1)
    now, before, then = draw.normal(size=(3, 3, 6)).astype(np.float32)
    view = PlanView(
        now,
        before,
        then,
        goal=np.zeros((3, 2), np.float32),
        ahead=np.zeros((3, T, 2), np.float32),
        left=np.full(3, 2),
        age=np.full(3, 2),
    )
    correction = corrector.correct(view)
    assert correction.actions.shape == (3, 2)
    assert np.isfinite(correction.actions).all()
    assert (correction.expected_error > 0.0).all()


@pytest.mark.parametrize("goal_dim", [2, 0])
def test_a_policy_comes_of_the_same_recipe_with_a_goal_or_none(
    demonstrations: Callable[[int], Trajectories], tmp_path: Path, goal_dim: int
) -> None:
    data, recipe = demonstrations(2), replace(RECIPE, asking_rates=(1.0,))
    done = train(data if goal_dim else data.without_goals(), recipe, tmp_path, 3, DISTILLED)
    assert done == [2, 4]
    policy = load_policy(tmp_path / DISTILLED, "onnxruntime")
    signature = policy.signature
    assert (signature.history, signature.horizon, signature.goal_dim) == (2, 1, goal_dim)
    actions = policy.propose(signature.nothing(3), np.zeros((3, 0))).actions
    assert actions.shape == (3, 1, 2)
    assert policy.sound(actions).all()


@pytest.fixture
def unexported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no round wait for an export; what runs in its place shrinks the plan by its first weights."""

    class Shrinking:
        def __init__(self, checkpoint: CorrectorCheckpoint) -> None:
            weights = load_file(checkpoint.weights)["layers.4.weight"]
            self._share = np.float32(1.0 - 0.1 * np.abs(weights).mean())

        def correct(self, view: PlanView) -> Correction:
            return Correction(self._share * view.ahead[:, 0], np.ones(len(view.age)))

    monkeypatch.setattr(corrector_training, "export", lambda *arguments: None)
    monkeypatch.setattr(train_corrector, "Corrector", Shrinking)


@pytest.mark.usefixtures("unexported")
def test_later_rounds_are_of_the_corrector_itself_and_without_noise(
    demonstrations: Callable[[int], Trajectories], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corrected, lesson_of = [], Teacher.lesson

    def lesson(teacher: Teacher, world: Any, seed: int, episodes: Any, rate: float, *how: Any) -> Examples:
        corrected.append((list(episodes), rate, how[0] is not None, how[1]))
        return lesson_of(teacher, world, seed, episodes, rate, *how)

    monkeypatch.setattr(Teacher, "lesson", lesson)
    train(demonstrations(2), replace(RECIPE, asking_rates=(0.3, 0.6)), tmp_path, 3)
    first, second, third, fourth = ([3_000_000 + 2 * each, 3_000_001 + 2 * each] for each in range(4))
    assert corrected == [
        (first, 0.3, False, RECIPE.noise),
        (second, 0.6, False, RECIPE.noise),
        (third, 0.3, True, 0.0),
        (fourth, 0.6, True, 0.0),
    ]
