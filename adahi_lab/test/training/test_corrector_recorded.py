"""What a corrector learns from recordings: plans of every age, and what the target says there now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file
from test.toys import LENGTHS, Counting, counted, float32, unit_scales

from adahi_lab.calibration.recorded_world import RecordedWorld
from adahi_lab.calibration.target_plans import TEACHER, Planned, fresh_plans, unit_of_actions
from adahi_lab.history import History
from adahi_lab.training import corrector_data, corrector_training, train_corrector
from adahi_lab.training.corrector_data import AGES, Examples, nearest, recorded_examples
from adahi_lab.training.corrector_training import running
from adahi_lab.training.fitting import FitConfig, Run
from adahi_lab.training.recipes import CorrectorRecipe
from adahi_lab.training.train_corrector import (
    DRAFT,
    HELD_OUT,
    TrainedOnRecordings,
    check_plans,
    split,
    train_on_recordings,
)
from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.core.signature import GOAL, OBSERVATION
from adahi_ros.core.trajectories import Trajectories
from adahi_ros.policies.corrector.corrector_checkpoint import CorrectorCheckpoint, load_corrector
from adahi_ros.policies.corrector.corrector_features import AHEAD, FeatureScales
from adahi_ros.policies.corrector.corrector_network import LOG_VARIANCE, CorrectorNetwork
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


def test_a_plan_is_seen_as_it_is_when_it_is_old() -> None:
    examples = examples_of(Counting())
    old = examples.features[np.isclose(examples.features[:, -1], 2 / T)]
    planned = old[:, PLANNED : PLANNED + len(AHEAD) + 1] - old[:, :1]
    # Two actions are left, and the last one is repeated.
    np.testing.assert_allclose(planned, np.tile([0.0, 1.0, 1.0, 1.0, 1.0], (len(old), 1)))


def test_where_the_world_did_as_planned_nothing_is_to_be_corrected() -> None:
    np.testing.assert_allclose(examples_of(Counting()).wanted, 0.0, atol=1e-6)


def test_where_the_world_did_otherwise_the_difference_is_wanted() -> None:
    data = counted()
    pushed = data.observations.copy()
    pushed[6:12] += 0.5  # the second episode, from its fourth step on
    examples = examples_of(Counting(), replace(data, observations=pushed))
    behind = np.isin(examples.features[:, 0], pushed[6:12]) & (examples.features[:, 2] % 1.0 == 0.5)
    assert behind.any()
    np.testing.assert_allclose(examples.wanted[behind], 0.5, atol=1e-6)
    np.testing.assert_allclose(examples.wanted[~behind], 0.0, atol=1e-6)


def test_examples_of_an_episode_do_not_depend_on_those_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    target = Counting((0.0, 0.3, 0.6))
    together = examples_of(target)
    mine = (together.features[:, 0] >= 100) & (together.features[:, 0] < 200)
    alone = examples_of(target, numbers=(1,))
    np.testing.assert_array_equal(alone.features, together.features[mine])
    np.testing.assert_array_equal(alone.wanted, together.wanted[mine])
    monkeypatch.setattr(corrector_data, "BATCH", 2)
    batched = examples_of(target)
    order, other = np.lexsort(together.features.T), np.lexsort(batched.features.T)
    np.testing.assert_array_equal(batched.features[other], together.features[order])
    assert not np.array_equal(examples_of(target, seed=2).features, together.features)


def test_of_several_plans_the_one_nearest_to_what_was_done_since_is_taken() -> None:
    plans = float32([[0, 9, 9, 9], [1, 1, 9, 9], [2, 2, 2, 2]])[None, :, :, None] * np.ones((3, 1, 1, 1))
    done = float32([[5.0, 2.0, 0.0]] * 3)[..., None]  # the last three actions
    # Asked for one, two and three steps ago: what was done before that does not count.
    assert nearest(plans, done, np.array([1, 2, 3]), np.ones(1, np.float32)).tolist() == [0, 1, 2]
    wide = np.concatenate([plans, 100 - plans], axis=-1)  # by a second action the last one is far
    acted = np.concatenate([done, np.full_like(done, 98.0)], axis=-1)
    assert nearest(wide, acted, np.array([1, 2, 3]), float32([1e6, 1.0])).tolist() == [2, 2, 2]
    assert nearest(wide, acted, np.array([1, 2, 3]), float32([1.0, 1e6])).tolist() == [0, 1, 2]


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
def test_a_corrector_expects_the_error_that_it_has_on_unseen_steps(tmp_path: Path) -> None:
    held = train(tmp_path, steps=200).figures["held_out"]
    assert held["learnt_to_expect"] != pytest.approx(held["error"], rel=0.05)
    plans = plan_recorded(Counting(), pushed_data(), RECIPE.samples, 1)
    corrector = load_corrector(tmp_path / "corrector")
    tests = recorded_examples(plans, split(plans.data, 1, HELD_OUT)[1], corrector.scales, 1)
    network = network_of(corrector)
    _, log_variance = running(network)(tests.features)
    assert np.sqrt(np.exp(log_variance).mean()) == pytest.approx(held["error"], rel=1e-3)
    network.expect_more(3.0)
    _, more = running(network)(tests.features)
    free = (log_variance > LOG_VARIANCE[0]) & (more < LOG_VARIANCE[1])
    assert free.mean() > 0.5
    np.testing.assert_allclose(np.exp(0.5 * (more - log_variance)[free]), 3.0, rtol=1e-3)


def network_of(checkpoint: CorrectorCheckpoint) -> CorrectorNetwork:
    """Return the network of a checkpoint."""
    weights = load_file(checkpoint.weights)
    network = CorrectorNetwork(1, checkpoint.config["hidden"], weights["mean"], weights["std"])
    network.load_state_dict({name: weights[name] for name in network.state_dict()})
    return network


@pytest.mark.usefixtures("unexported")
def test_a_corrector_of_recordings_beats_none_on_episodes_held_out(tmp_path: Path) -> None:
    trained = train(tmp_path, steps=200)
    held = trained.figures["held_out"]
    assert (trained.figures["episodes"], held["episodes"]) == (10, 2)
    assert trained.figures["examples"] == 10 * 11 * AGES
    assert held["examples"] == 2 * 11 * AGES
    assert held["error"] < 0.5 * held["plan_error"]
    checkpoint = load_corrector(tmp_path / "corrector")
    assert checkpoint.training == {
        "command": "by hand",
        "seed": 1,
        "parameters": checkpoint.parameters,
        **trained.figures,
    }
    assert len(trained.losses) == 200
    np.testing.assert_array_equal(checkpoint.scales.action_scale, [1.0])  # the target's, not that of the data


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
