# SPDX-License-Identifier: Apache-2.0
"""A policy of two precisions: few bits while the robot moves coarsely, all of them while it moves finely.

After DyQ-VLA (Zheng et al., arXiv 2603.07904), where weights always have four bits, and activations 2, 4,
8 or 16 depending on how fine and how jerky the motion is. Here there are two networks, and one measure,
speed: some policies read only two observations, which do not determine jerk.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.core.proposal import CodeDistribution, Proposal
from adahi_ros.core.signature import Observations
from adahi_ros.core.tensor_files import read_tensors
from adahi_ros.policies.backends import is_policy, load_policy
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling


class SwitchedPolicy(Policy):
    """Proposes by one of two policies, chosen by the recent motion.

    It is stateless: the motion is that of the observations in the policy's window, and the oldest counts as
    fine. So a proposal depends only on its observations.

    Args:
        full: used where the motion is fine.
        light: used where it is coarse; has the same inputs and outputs.
        scale: (O,), standard deviation of observations. Speed is the root mean square of the changes from
            one observation to the next in this unit.
        coarse_above: the motion becomes coarse above this speed.
        fine_below: it becomes fine below this speed; in between it does not change.

    Raises:
        ValueError: their inputs or outputs differ, or fine_below is not below coarse_above.
    """

    def __init__(
        self,
        full: Policy,
        light: Policy,
        scale: np.ndarray,
        coarse_above: float,
        fine_below: float,
    ) -> None:
        if full.signature != light.signature:
            raise ValueError(f"light: {light.signature}, must be {full.signature}, as the full one's is")
        if not 0.0 <= fine_below <= coarse_above:
            raise ValueError(f"fine_below: {fine_below}, must be from 0 to coarse_above, {coarse_above}")
        self._full, self._light, self._scale = full, light, scale
        self._coarse_above, self._fine_below = coarse_above, fine_below
        super().__init__(full.signature, full, full.action_scale, full.digest, full.draws)

    def coarse(self, observations: Observations) -> np.ndarray:
        """Return which robots move coarsely, (B,) bool."""
        window = self.signature.window(observations)
        speeds = np.sqrt((np.diff(window / self._scale, axis=1) ** 2).mean(axis=2))
        coarse = np.zeros(len(window), dtype=bool)
        for speed in speeds.T:  # NaN counts as fine
            coarse = (speed > self._coarse_above) | (coarse & (speed >= self._fine_below))
        return coarse

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy`."""
        coarse = self.coarse(observations)
        groups = [(self._light, np.flatnonzero(coarse)), (self._full, np.flatnonzero(~coarse))]
        used = [(policy, rows) for policy, rows in groups if len(rows)]
        if len(used) == 1:
            return used[0][0].propose(observations, draws, sampling)
        made = [
            policy.propose(observations.rows(rows), draws[rows], sampling.rows(rows)) for policy, rows in used
        ]
        return _side_by_side(made, [rows for _, rows in used])


def switched(folder: Path, checkpoint: str, coarse_above: float, fine_below: float) -> SwitchedPolicy:
    """Return the policy of one checkpoint, with 32 and with eight bits.

    Args:
        folder: searched first for the checkpoint.
        checkpoint: DIRECTORY/NAME of a VQ-BeT or a flow, there or below the package's checkpoints.
        coarse_above: see `SwitchedPolicy`.
        fine_below: see there.
    """
    path = folder / checkpoint
    if not is_policy(path):
        path = named(checkpoint, CHECKPOINTS)
    full, light = (load_policy(path, backend) for backend in ("onnxruntime", "int8"))
    scale = read_tensors(path.with_name(f"{path.name}.safetensors"))["observation_scale"]
    return SwitchedPolicy(full, light, scale, coarse_above, fine_below)


def _side_by_side(proposals: Sequence[Proposal], rows: Sequence[np.ndarray]) -> Proposal:
    """Join the proposals of groups of robots, given by index, into one for all."""
    order = np.argsort(np.concatenate(rows))

    def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate(parts)[order]

    def actions_of(codes: np.ndarray) -> np.ndarray:
        return joined([each.actions_of(codes[some]) for each, some in zip(drawn, rows, strict=True)])

    actions = joined([each.actions for each in proposals])
    drawn = [each.distribution for each in proposals if each.distribution is not None]
    if len(drawn) < len(proposals):
        return Proposal(actions)
    counts = [each.counts for each in drawn if each.counts is not None]
    return Proposal(
        actions,
        CodeDistribution(
            joined([each.probabilities for each in drawn]),
            joined([each.codes for each in drawn]),
            actions_of,
            joined(counts) if len(counts) == len(drawn) else None,
        ),
    )
