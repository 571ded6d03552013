"""Checkpoints of each kind."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.training.corrector_training import save_corrector, scales_of
from adahi_lab.training.flow_files import save_flow
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.corrector.corrector_checkpoint import CorrectorConfig
from adahi_ros.policies.corrector.corrector_features import feature_count
from adahi_ros.policies.corrector.corrector_network import CorrectorNetwork
from adahi_ros.policies.flow.flow_checkpoint import FlowConfig
from adahi_ros.policies.flow.flow_network import FlowNetwork
from adahi_ros.policies.networks.transformer import InputMoments
from adahi_ros.policies.vqbet.code_policy import CodePolicy


def load_codes(path: Path, backend: str) -> CodePolicy:
    """Load a policy that predicts codes."""
    policy = load_policy(path, backend)
    assert isinstance(policy, CodePolicy)
    return policy


@pytest.fixture(scope="session")
def of_each_kind(
    checkpoints: Path,
    demonstrations: Callable[[int], Trajectories],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A folder with VQ-BeT's `draft` and `target`, a `flow` and a `corrector`: O 6, G 2, A 2."""
    folder = Path(shutil.copytree(checkpoints, tmp_path_factory.mktemp("kinds") / "checkpoints"))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        sizes = FlowConfig(6, 2, 2, 3, 4, width=8, layers=1, heads=2, head_width=8, head_layers=1, steps=2)
        moments = InputMoments(torch.zeros(6), torch.ones(6), torch.zeros(2), torch.ones(2))
        ends = torch.full((2,), 9.0)
        flow = FlowNetwork(sizes, moments, torch.zeros(2), torch.ones(2), -ends, ends)
        torch.nn.init.normal_(flow.velocity_out.weight)
        save_flow(folder, "flow", flow, {})
        read = feature_count(6, 2, 2)
        corrector = CorrectorNetwork(2, 8, torch.zeros(read), torch.ones(read))
        most = np.full(2, 9.0, np.float32)
        config = CorrectorConfig(6, 2, 2, 5, hidden=8)
        save_corrector(
            folder, "corrector", corrector, config, scales_of(demonstrations(2), True), (-most, most), {}
        )
    return folder
