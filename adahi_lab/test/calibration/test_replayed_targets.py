"""A target that others run is asked once for each recorded step, and its answers are replayed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adahi_lab.calibration.calibrate import Wanted, calibrate_recorded
from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.calibration.recorded_world import RecordedWorld
from adahi_lab.calibration.replayed_targets import observed, queried_once, query_of
from adahi_lab.evaluation.loaded_policies import Bench, PlanFiles, Policies
from adahi_lab.methods.methods import METHODS
from adahi_ros.contract.contract import Contract
from adahi_ros.core.proposal import ActionRange
from adahi_ros.core.signature import GOAL, OBSERVATION, Feature, Observations, Signature
from adahi_ros.policies.absent import LARGEST
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.direct import DirectPolicy
from test.tiny_intents import tiny_intents


class Counting(DirectPolicy):
    """Plans to stay where it is, and counts for how many observations it was asked."""

    def __init__(self, horizon: int) -> None:
        most = np.full(2, LARGEST)
        signature = Signature(1, horizon, 2, (Feature(OBSERVATION, 6),))
        super().__init__(signature, ActionRange(-most, most), np.ones(2), f"counting {horizon}")
        self.query = 0

    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        self.query += len(draws)
        return np.repeat(observations.features[OBSERVATION][:, -1:, :2], self.signature.horizon, axis=1)


def test_a_described_target_plans_each_step_once_over_many_runs(
    bag: Path, contract: Contract, contract_file: Path, tmp_path: Path
) -> None:
    draft, target = Counting(1), Counting(3)
    path = tmp_path / "target.yaml"
    path.write_text("kind: counting")
    assert queried_once(path, target.signature)
    query = query_of([bag], contract, contract_file, "", path, target, "onnxruntime")
    seen = observed(Policies(draft, target), query, "", tmp_path, once=True)
    calibrate_recorded(seen.policies, seen.recorded, Wanted(0.5), 0)
    assert target.query == len(seen.recorded.observations) == 12 * 30
    assert seen.policies.target.signature.horizon == 3
    observed(Policies(draft, target), query, "", tmp_path, once=True)
    assert target.query == 12 * 30


def test_stored_plans_need_the_encoder_of_intents_on_the_robot(
    bag: Path, contract: Contract, contract_file: Path, tmp_path: Path
) -> None:
    pair, path = Policies(Counting(1), Counting(3)), tmp_path / "target.yaml"
    reads_goal = replace(pair.target.signature, conditions=(Feature(GOAL, 2),))
    tiny_intents(tmp_path, "intent", reads_goal)
    tiny_intents(tmp_path, "intent_of_plan", reads_goal, at_target=False)
    query = query_of([bag], contract, contract_file, "", path, pair.target, "onnxruntime")
    on_robot = PlanFiles(intent_of_plan=tmp_path / "intent_of_plan")
    seen = observed(pair, query, "", tmp_path, True, on_robot)
    assert seen.policies.intent_of_plan is not None
    calibration = Calibration("toy", "", "", 0.5, "std", 1.0, 0.5, {})
    log = METHODS["intent_of_plan"].run(
        Bench("", seen.policies, calibration), RecordedWorld(seen.recorded), 0, range(12)
    )
    assert log.transmitted.sum(axis=0).tolist() == [1] * 12
    with pytest.raises(ValueError, match=r"intent: .*its encoder is beside the target, .* intent_of_plan"):
        observed(pair, query, "", tmp_path, True, PlanFiles(intent=tmp_path / "intent"))


def test_a_checkpoint_that_reads_what_is_recorded_is_run_itself(checkpoints: Path) -> None:
    target = checkpoints / "target"
    signature = load_policy(target, "torch").signature
    assert not queried_once(target, signature)
    assert queried_once(target, replace(signature, instruction=True))


def test_nothing_is_sent_to_a_target_that_receives_nothing(
    bag: Path, contract: Contract, contract_file: Path, tmp_path: Path
) -> None:
    pair = Policies(Counting(1), Counting(3))
    query = query_of([bag], contract, contract_file, "", tmp_path / "target.yaml", pair.target, "onnxruntime")
    with pytest.raises(ValueError, match="--instruction: 'go', must be left out"):
        observed(pair, query, "go", tmp_path, once=True)


def test_what_the_file_of_a_target_says_is_part_of_the_question(
    bag: Path, contract: Contract, contract_file: Path, tmp_path: Path
) -> None:
    origins, path = [], tmp_path / "target.yaml"
    for text in ("kind: a", "kind: b"):
        path.write_text(text)
        origins.append(query_of([bag], contract, contract_file, "", path, Counting(2), "torch").origin)
    assert origins[0] != origins[1]
