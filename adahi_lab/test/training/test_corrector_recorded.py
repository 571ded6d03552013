"""What a corrector learns from recordings: plans of every age, and what the target says there now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test.toys import LENGTHS, Counting, counted, float32, unit_scales

from adahi_lab.calibration.recorded_world import RecordedWorld
from adahi_lab.calibration.target_plans import TEACHER, Planned, fresh_plans, unit_of_actions
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.history import History
from adahi_lab.training import corrector_training, train_corrector
from adahi_lab.training.corrector_data import AGES, Examples, recorded_examples
from adahi_lab.training.fitting import FitConfig, Run
from adahi_lab.training.recipes import CorrectorRecipe
from adahi_lab.training.train_corrector import (
    DRAFT,
    TrainedOnRecordings,
    check_plans,
    train_on_recordings,
)
from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.core.signature import GOAL, OBSERVATION
from adahi_ros.policies.corrector.corrector_checkpoint import load_corrector
from adahi_ros.policies.corrector.corrector_features import FeatureScales
from adahi_ros.policies.corrector.distilled import DistilledPolicy
from adahi_ros.policies.interface import Policy

T = 4
PLANNED = 4  # of the features, O 1, G 1, A 1: the present action of the plan
RECIPE = CorrectorRecipe(1, {"hidden": 8}, FitConfig(5), samples=2)


def plan_recorded(target: Policy, data: Trajectories, samples: int, seed: int) -> Planned:
    """Return S plans of a target of features at each recorded step."""
    numbers, made, there = range(len(data)), [], []
    world = RecordedWorld(data)
    draws = EpisodeStreams(seed, TEACHER, numbers, samples * target.draws)
    history = History(target.signature, len(data))
    while not world.done.all():
        drawn = draws.next().reshape(len(data), samples, target.draws)
        there.append(~world.done)
        observed = {OBSERVATION: world.observation, GOAL: world.goal}
        made.append(fresh_plans(target, history.push(observed), drawn, there[-1]))
        world.step(world.action)
    return Planned(data, np.stack(made, axis=1)[np.stack(there, axis=1)], target.action_scale)


def examples_of(
    target: Counting,
    data: Trajectories | None = None,
    numbers: tuple[int, ...] = (0, 1, 2),
    seed: int = 1,
) -> Examples:
    shown = counted() if data is None else data
    return recorded_examples(plan_recorded(target, shown, 3, seed), numbers, unit_scales(), seed)


def test_every_step_but_the_first_has_examples_of_several_ages() -> None:
    examples = examples_of(Counting())
    seen, counts = np.unique(examples.features[:, 0], return_counts=True)
    expected = [100 * each + step for each, length in enumerate(LENGTHS) for step in range(1, length)]
    assert seen.tolist() == expected
    assert set(counts) == {AGES}
    ages = examples.features[:, -1] * T
    since = examples.features[:, 2]  # the observation's change since the plan was asked for
    np.testing.assert_allclose(since, ages)
    np.testing.assert_allclose(examples.features[:, -2] * T, T - ages)  # left
    assert set(ages) == {1.0, 2.0, 3.0}
    step = examples.features[:, 0] % 100
    assert (ages <= step).all()
    assert {1.0, 2.0, 3.0} == set(ages[step == 5])  # all that there are


def test_where_the_world_did_otherwise_the_difference_is_wanted() -> None:
    data = counted()
    pushed = data.observations.copy()
    pushed[6:12] += 0.5  # the second episode, from its fourth step on
    examples = examples_of(Counting(), replace(data, observations=pushed))
    behind = np.isin(examples.features[:, 0], pushed[6:12]) & (examples.features[:, 2] % 1.0 == 0.5)
    assert behind.any()
    np.testing.assert_allclose(examples.wanted[behind], 0.5, atol=1e-6)
    np.testing.assert_allclose(examples.wanted[~behind], 0.0, atol=1e-6)


def test_the_plan_of_a_robot_that_knew_two_ways_is_the_way_that_it_went() -> None:
    data = counted((9, 9))
    went = float32([5.0] * 9 + [-5.0] * 9)[:, None]
    data = replace(data, actions=data.observations + went)
    target, scales = Counting((5.0, -5.0)), unit_scales()
    examples = recorded_examples(plan_recorded(target, data, 12, 1), (0, 1), scales, 1)
    away = examples.features[:, PLANNED] - examples.features[:, 0]
    expected = np.where(examples.features[:, 0] < 100, 5.0, -5.0)
    np.testing.assert_allclose(away, expected, atol=1e-4)
    np.testing.assert_allclose(examples.wanted, 0.0, atol=1e-3)


@pytest.fixture
def unexported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no training wait for an export."""
    monkeypatch.setattr(corrector_training, "export", lambda *arguments: None)


def pushed_data(episodes: int = 10) -> Trajectories:
    """Episodes of twelve steps, now and then pushed by one at random."""
    draw = np.random.default_rng(3)
    walks = np.cumsum(1.0 + (draw.random((episodes, 12)) < 0.4), axis=1).reshape(-1, 1).astype(np.float32)
    goals, ends = np.zeros((episodes, 1), np.float32), np.arange(12, 12 * episodes + 1, 12)
    return Trajectories("counting", walks, walks, goals, ends)


def train(
    folder: Path, seed: int = 1, data: Trajectories | None = None, steps: int = 5
) -> TrainedOnRecordings:
    shown, recipe = pushed_data() if data is None else data, replace(RECIPE, fit=FitConfig(steps, 64, 1e-2))
    plans = plan_recorded(Counting(), shown, recipe.samples, seed)
    return train_on_recordings(plans, recipe, folder, Run(seed), {"command": "by hand"})


@pytest.mark.usefixtures("unexported")
def test_whole_episodes_are_held_out_and_the_seed_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[tuple[int, ...]] = []
    plain = recorded_examples

    def noting(
        planned: Planned, numbers: list[int], scales: FeatureScales, seed: int, weight: int
    ) -> Examples:
        taken.append(tuple(numbers))
        return plain(planned, numbers, scales, seed, weight)

    monkeypatch.setattr(train_corrector, "recorded_examples", noting)
    digests = []
    for seed in (1, 1, 2):
        train(tmp_path, seed)
        digests.append(load_corrector(tmp_path / "corrector").digest())
    assert taken[0:2] == taken[2:4] != taken[4:6]
    assert sorted(taken[0] + taken[1]) == list(range(10))
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.usefixtures("unexported")
def test_episodes_of_one_step_have_nothing_to_say(tmp_path: Path) -> None:
    trained = train(tmp_path, data=counted((1, 5, 5, 1)))
    assert trained.figures["episodes"] == 2
    with pytest.raises(ValueError, match=r"^episodes: 1 of two steps or more, must be at least 2"):
        train(tmp_path, data=counted((1, 5, 1)))


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
def test_a_share_that_holds_out_nothing_or_all_is_refused(tmp_path: Path, share: float) -> None:
    with pytest.raises(ValueError, match=f"^held_out: {share}, must be above 0 and below 1"):
        train_on_recordings(plan_recorded(Counting(), counted(), 1, 1), RECIPE, tmp_path, Run(1), {}, share)


def test_a_target_that_makes_no_plans_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^target\.horizon: 1, must be at least 2"):
        check_plans(Counting(horizon=1))


@pytest.mark.usefixtures("unexported")
def test_a_draft_of_recordings_does_what_the_plans_begin_with(tmp_path: Path) -> None:
    data = pushed_data()
    far = replace(data, actions=data.actions + 500.0)  # an action far from zero, such as a joint's position
    plans = plan_recorded(Counting((500.0,)), far, 1, 1)
    recipe = replace(RECIPE, fit=FitConfig(300, 64, 1e-2))
    trained = train_on_recordings(plans, recipe, tmp_path, Run(1), {}, name=DRAFT)
    held = trained.figures["held_out"]
    assert (held["episodes"], held["examples"], trained.figures["examples"]) == (2, 24, 120)
    assert held["error"] < 0.25 * held["mean_error"]
    draft = DistilledPolicy(load_corrector(tmp_path / "draft"))
    rows = np.arange(12)  # of the first episode
    window = np.stack([data.observations[np.maximum(rows - 1, 0)], data.observations[rows]], axis=1)
    observations = draft.signature.observations(window, np.zeros((12, 1), np.float32))
    action = draft.propose(observations, np.zeros((12, 0))).actions[:, 0]
    assert np.abs(action - plans.plans[rows, 0, 0]).max() < 2.0
    draft.check(action[:, None])


def test_without_a_unit_of_actions_the_recording_gives_it() -> None:
    target, data = Counting(), pushed_data()
    assert unit_of_actions(target, data) == pytest.approx(data.actions.std(axis=0), rel=1e-3)
    target.action_scale = float32([2.0])
    assert unit_of_actions(target, data).tolist() == [2.0]
