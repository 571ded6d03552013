# SPDX-License-Identifier: Apache-2.0
"""A policy whose plans a flow makes of noise, whatever runs the network."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adahi_ros.core.proposal import ActionRange, Proposal
from adahi_ros.core.signature import Observations
from adahi_ros.policies.flow.flow_checkpoint import FlowCheckpoint
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling

RANGE_MARGIN = 3.0  # in units of the action scale, beyond the demonstrations
Network = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""From windows (B, H, O), goals (B, G), noise (B, T * A) and what is known of the plans (B, T, A), NaN where
nothing is, to plans (B, T, A), all float32."""


class FlowPolicy(Policy):
    """A `Policy`; its proposals have no distribution that could be sent.

    Args:
        checkpoint: of the network.
        network: that runs it.
        device: where that is.
    """

    def __init__(self, checkpoint: FlowCheckpoint, network: Network, device: str = "cpu") -> None:
        self.device = device
        self.signature = checkpoint.signature
        self.digest = checkpoint.digest()
        self.action_scale = checkpoint.action_scale
        self._size = self.signature.horizon * self.signature.action_dim
        self.draws = self._size + self._size % 2
        margin = RANGE_MARGIN * checkpoint.action_scale
        self._range = ActionRange(checkpoint.action_low - margin, checkpoint.action_high + margin)
        self._network = network

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy.propose`; the temperature scales the noise, and plans begin with what is committed."""
        noise = sampling.temperature * normal(draws)[:, : self._size].astype(np.float32)
        window, condition = self.signature.window(observations), self.signature.condition(observations)
        shape = (len(noise), self.signature.horizon, self.signature.action_dim)
        known = np.full(shape, np.nan, dtype=np.float32)
        if sampling.committed is not None:
            known[:, : sampling.committed.shape[1]] = sampling.committed
        return Proposal(self._network(window, condition, noise.astype(np.float32), known))

    def sound(self, actions: np.ndarray) -> np.ndarray:
        """See `Policy.sound`."""
        return self._range.sound(actions)

    def check(self, actions: np.ndarray) -> None:
        """See `Policy.check`."""
        self._range.check(actions)


def normal(uniforms: np.ndarray) -> np.ndarray:
    """Turn draws (B, 2 n) uniform in [0, 1) into as many standard normal ones (Box and Muller, 1958)."""
    radius, angle = np.split(np.asarray(uniforms, dtype=np.float64), 2, axis=1)
    radius, angle = np.sqrt(-2.0 * np.log1p(-radius)), 2.0 * np.pi * angle
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
