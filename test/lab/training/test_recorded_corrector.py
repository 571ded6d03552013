"""A corrector of recordings alone: what is recorded, and what it is compared with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from adahi_ros.core.assets import asset
from adahi_ros.core.trajectories import Trajectories
from adahi_ros.gates.parameter_file import load_calibration
from adahi_ros.lab.evaluation.evaluate import Outcome
from adahi_ros.lab.evaluation.loaded_policies import Bench, PolicyFiles
from adahi_ros.lab.methods.method import Method
from adahi_ros.lab.tasks import make
from adahi_ros.lab.training import recorded_corrector
from adahi_ros.lab.training.fitting import FitConfig
from adahi_ros.lab.training.policy_corrections import recorded_episodes
from adahi_ros.lab.training.recipes import CorrectorRecipe
from adahi_ros.lab.training.recorded_corrector import compare_correctors

RECIPE = CorrectorRecipe(3, {"hidden": 8}, FitConfig(30, 64), samples=1)


@pytest.fixture(scope="module")
def bench() -> Bench:
    files = PolicyFiles(asset("checkpoints/ball"), "onnxruntime")
    return Bench("ball", files.load(), load_calibration(asset("config/ball.yaml")))


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
    rates = [float(world.success.mean()) for world in ran]
    assert [rate for each in found["methods"].values() for rate in each.values()] == rates
    assert (tmp_path / "corrector.safetensors").is_file()


def test_recorded_episodes_are_of_no_lesson_and_no_evaluation(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    record = recorded_episodes

    def noting(bench: Bench, method: Method, seed: int, episodes: range) -> tuple[Trajectories, Outcome]:
        seen.extend(episodes)
        return record(bench, method, seed, episodes)

    monkeypatch.setattr(recorded_corrector, "recorded_episodes", noting)
    policies = replace(bench.policies, corrector=None)
    recorded = recorded_corrector.recording_of(replace(bench, policies=policies), 1, 2)
    assert len(recorded) == 2
    assert min(seen) >= 3_800_000
