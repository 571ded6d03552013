# SPDX-License-Identifier: Apache-2.0
"""A policy without plans: a corrector's network, with nothing to correct.

Distilled from a target, it shows what a network as small as the corrector can do alone, and so whether a
target is needed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Observations
from adahi_ros.policies.corrector.corrector import Corrector
from adahi_ros.policies.corrector.corrector_checkpoint import CorrectorCheckpoint, load_corrector
from adahi_ros.policies.corrector.corrector_features import PlanView
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling
from adahi_ros.policies.networks.network_checkpoint import RunNetwork
from adahi_ros.policies.registry import CheckpointKind

HISTORY = 2  # the newest observation, and the one before, for what has changed


class DistilledPolicy(Policy):
    """A `Policy` of one action; it is deterministic, and its proposals have no distribution.

    Args:
        checkpoint: of the network.
        network: that runs it; None runs the exported one.

    Raises:
        CheckpointError: it corrects plans.
    """

    def __init__(self, checkpoint: CorrectorCheckpoint, network: RunNetwork | None = None) -> None:
        horizon = checkpoint.sizes.horizon
        if horizon != 1:
            raise CheckpointError(
                f"{checkpoint.weights}: horizon: {horizon}, must be 1: a corrector of plans is no policy"
            )
        self._corrector = corrector = Corrector(checkpoint, network)
        signature = replace(corrector.signature, history=HISTORY)
        super().__init__(signature, corrector, corrector.action_scale, corrector.digest)

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy.propose`."""
        window, goal = self.signature.window(observations), self.signature.condition(observations)
        newest, nothing = window[:, -1], np.zeros(len(window), dtype=np.int64)
        plan = np.zeros((len(window), 1, self.signature.action_dim), dtype=np.float32)
        view = PlanView(newest, window[:, -2], newest, goal, plan, nothing, nothing).without_plan()
        actions, expected_error = self._corrector.correct(view)
        return Proposal(actions[:, None], expected_error=expected_error)


def load_distilled(path: Path) -> DistilledPolicy:
    """Load the policy at `DIRECTORY/NAME`, as the exported network runs it.

    Raises:
        CheckpointError: it cannot be used.
    """
    return DistilledPolicy(load_corrector(path))


DISTILLED = CheckpointKind(load_distilled)
