# SPDX-License-Identifier: Apache-2.0
"""A policy that generates plans from noise by a flow, on any network runtime."""

from __future__ import annotations

import numpy as np

from adahi_ros.core.proposal import ActionRange, Proposal
from adahi_ros.core.signature import Observations, Ranges
from adahi_ros.policies.flow.flow_checkpoint import FlowCheckpoint, load_flow
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling
from adahi_ros.policies.networks.network_checkpoint import RunNetwork
from adahi_ros.policies.registry import CheckpointKind

RANGE_MARGIN = 3.0  # in units of the action scale, beyond the demonstrations


class FlowPolicy(Policy):
    """A `Policy`; its proposals have no distribution that can be sent.

    Args:
        checkpoint: of the network.
        run: runs it.
        device: where that is.
    """

    def __init__(self, checkpoint: FlowCheckpoint, run: RunNetwork, device: str = "cpu") -> None:
        signature, scale = checkpoint.signature, checkpoint.action_scale
        self._size = signature.horizon * signature.action_dim
        margin = RANGE_MARGIN * scale
        allowed = ActionRange(checkpoint.action_low - margin, checkpoint.action_high + margin)
        super().__init__(signature, allowed, scale, checkpoint.digest(), self._size + self._size % 2)
        ends = (tuple(each.tolist()) for each in (checkpoint.action_low, checkpoint.action_high))
        self.ranges = Ranges(), Ranges(*ends)
        self.device = device
        self._run = run

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy.propose`; the temperature scales the noise, and plans start with committed actions."""
        noise = sampling.temperature * normal(draws)[:, : self._size].astype(np.float32)
        window, condition = self.signature.window(observations), self.signature.condition(observations)
        shape = (len(noise), self.signature.horizon, self.signature.action_dim)
        known = np.full(shape, np.nan, dtype=np.float32)
        if sampling.committed is not None:
            known[:, : sampling.committed.shape[1]] = sampling.committed
        (plans,) = self._run(window, condition, noise.astype(np.float32), known)
        return Proposal(plans)


def normal(uniforms: np.ndarray) -> np.ndarray:
    """Turn draws (B, 2 n) uniform in [0, 1) into as many standard normal ones (Box and Muller, 1958)."""
    radius, angle = np.split(np.asarray(uniforms, dtype=np.float64), 2, axis=1)
    radius, angle = np.sqrt(-2.0 * np.log1p(-radius)), 2.0 * np.pi * angle
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


FLOW = CheckpointKind(load_flow, FlowPolicy)
