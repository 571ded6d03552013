"""A corrector of recordings alone: what is recorded, and what it is compared with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adahi_ros.core.assets import asset
from adahi_ros.gates.parameter_file import load_calibration
from adahi_ros.lab.evaluation.loaded_policies import Bench, PolicyFiles
from adahi_ros.lab.tasks import make
from adahi_ros.lab.training import recorded_corrector
from adahi_ros.lab.training.fitting import FitConfig
from adahi_ros.lab.training.policy_recipe import CorrectorRecipe
from adahi_ros.lab.training.recorded_corrector import RecordedTask, compare_correctors

RECIPE = CorrectorRecipe(3, {"hidden": 8}, FitConfig(30, 64), samples=1)


@pytest.fixture(scope="module")
def bench() -> Bench:
    files = PolicyFiles(asset("checkpoints/ball"), "onnxruntime")
    return Bench("ball", files.load(), load_calibration(asset("config/ball.yaml")))


def test_what_was_observed_and_done_is_recorded_until_the_end_of_every_episode() -> None:
    world, alone = RecordedTask(make("ball")), make("ball")
    world.reset(1, [4, 9])
    alone.reset(1, [4, 9])
    observed, steps = [], 0
    action = np.array([[0.3, -0.2], [-0.4, 0.4]])
    while not world.done.all():
        observed.append(alone.observation)
        world.step(action)
        alone.step(action)
        steps += 1
    recorded = world.recorded()
    lengths = np.diff(recorded.ends, prepend=0)
    assert lengths.max() == steps
    assert len(recorded) == 2
    first = slice(0, lengths[0])
    np.testing.assert_array_equal(recorded.observations[first], np.stack(observed)[first, 0])
    np.testing.assert_array_equal(recorded.actions[first], np.repeat(action[:1], lengths[0], 0).astype("f4"))
    world.reset(1, [4])
    world.step(action[:1])
    assert len(world.recorded().observations) == 1


def test_both_correctors_run_the_same_episodes(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []

    def made(task: str) -> object:
        ran.append(make(task))
        return ran[-1]

    monkeypatch.setattr(recorded_corrector, "make", made)
    found = compare_correctors("ball", bench, RECIPE, tmp_path, (12, 16), 3, range(2, 6), 1)
    assert found["recorded_episodes"] == 3
    assert list(found["methods"]) == ["corrector_12", "corrector_16"]
    rates = [float(world.success.mean()) for world in ran[1:]]  # the first was recorded
    assert [rate for each in found["methods"].values() for rate in each.values()] == rates
    assert (tmp_path / "corrector.safetensors").is_file()


def test_what_is_recorded_are_none_of_the_episodes_that_others_learn_from_or_are_measured_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    class Noting(RecordedTask):
        def reset(self, seed: int, episodes: range) -> None:  # type: ignore[override]
            seen.extend(episodes)
            super().reset(seed, episodes)

    monkeypatch.setattr(recorded_corrector, "RecordedTask", Noting)
    policies = replace(bench.policies, corrector=None)
    recorded = recorded_corrector.recording_of("ball", replace(bench, policies=policies), 1, 2)
    assert len(recorded) == 2
    assert min(seen) >= 3_800_000
