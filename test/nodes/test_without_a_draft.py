"""A robot that goes on by plans may have no policy of its own: then its contract says the sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

pytest.importorskip("rclpy")

from adahi_lab.evaluation.plain_contract import plain_values
from adahi_lab.training.corrector_training import save_corrector
from adahi_ros.core.signature import GOAL, OBSERVATION
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.robot.draft_policy_parameters import DraftPolicyParameters, ProposerParameters
from adahi_ros.nodes.robot.draft_policy_parts import controller_of, policy_and_contract
from adahi_ros.policies.corrector.corrector_checkpoint import CorrectorConfig
from adahi_ros.policies.corrector.corrector_features import FeatureScales
from adahi_ros.policies.corrector.corrector_network import CorrectorNetwork

JOINTS = ("left_joint", "right_joint")


@pytest.fixture
def contract(tmp_path: Path) -> str:

    path = tmp_path / "toy.yaml"
    path.write_text(yaml.safe_dump(plain_values("toy", 20.0, JOINTS, 4, 2, JOINTS, "positions")))
    return str(path)


def corrector(folder: Path, observation_dim: int) -> str:

    zero, one = (lambda n: np.zeros(n, np.float32)), (lambda n: np.ones(n, np.float32))
    o, g, a = observation_dim, 2, 2
    scales = FeatureScales(zero(o), one(o), one(o), zero(g), one(g), zero(a), one(a))
    config = CorrectorConfig(o, g, a, 8, 4)
    read = 3 * o + g + 6 * a + 2
    network = CorrectorNetwork(a, 4, torch.zeros(read), torch.ones(read))
    save_corrector(folder, "corrector", network, config, scales, (zero(a), one(a)), {})
    return str(folder / "corrector")


def test_a_corrector_needs_no_draft_beside_it(contract: str, tmp_path: Path) -> None:
    values = DraftPolicyParameters(
        checkpoint="",
        contract=contract,
        proposer=ProposerParameters("corrector", {"file": corrector(tmp_path, 6)}),
        wait_policy="ahead",
    )
    policy, read = policy_and_contract(values)
    controller = controller_of(values, policy, read)
    controller.reset(0, [0])
    step = controller.begin({OBSERVATION: np.zeros((1, 6)), GOAL: np.zeros((1, 2))})
    assert step.transmit.tolist() == [True]
    assert np.isnan(step.intended).all()  # held
    assert read.number_dim == 6


def test_a_corrector_of_another_robot_is_refused(contract: str, tmp_path: Path) -> None:
    proposer = ProposerParameters("corrector", {"file": corrector(tmp_path, 5)})
    values = DraftPolicyParameters(checkpoint="", contract=contract, proposer=proposer)
    policy, read = policy_and_contract(values)
    with pytest.raises(ValueError, match="its observation_dim is 5, must be 6"):
        controller_of(values, policy, read)


def test_who_drafts_needs_a_draft(contract: str) -> None:
    with pytest.raises(
        ParameterError, match=r"^checkpoint: '', must name a policy for the proposer draft; it may be empty"
    ):
        policy_and_contract(DraftPolicyParameters(checkpoint="", contract=contract))
