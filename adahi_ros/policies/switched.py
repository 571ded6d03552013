# SPDX-License-Identifier: Apache-2.0
"""A policy of two precisions: few bits while the robot moves coarsely, all of them where it moves finely.

After DyQ-VLA (Zheng et al., arXiv 2603.07904), whose weights always have four bits, and whose activations
have 2, 4, 8 or 16 by how fine and how jerky the motion is. Here there are two networks, and one measure, how
fast it goes: some policies read two observations alone, of which no jerk can be told.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.core.checkpoint_files import read_tensors
from adahi_ros.core.proposal import CodeDistribution, Proposal
from adahi_ros.core.signature import Observations
from adahi_ros.policies.backends import is_policy, load_policy
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling


class SwitchedPolicy(Policy):
    """Proposes by the one of two policies that the motion up to now calls for.

    It keeps nothing from one proposal to the next: the motion is that of the observations which the policy
    reads, and at the oldest of these it is fine. So a proposal is the same whoever asks, and whenever.

    Args:
        full: asked where the motion is fine.
        light: asked where it is coarse; reads and proposes the same.
        scale: (O,), standard deviation of what is observed. Speed is the root mean square of the changes from
            one observation to the next in this unit.
        coarse_above: the motion becomes coarse above this speed.
        fine_below: it becomes fine below this speed; in between it stays what it was.

    Raises:
        ValueError: the two do not read and propose the same, or the speeds leave nothing in between.
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
        """Return whose motion is coarse, (B,) bool."""
        window = self.signature.window(observations)
        speeds = np.sqrt((np.diff(window / self._scale, axis=1) ** 2).mean(axis=2))
        coarse = np.zeros(len(window), dtype=bool)
        for speed in speeds.T:  # what is not a number is no reason to save bits
            coarse = (speed > self._coarse_above) | (coarse & (speed >= self._fine_below))
        return coarse

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy`."""
        coarse = self.coarse(observations)
        groups = [(self._light, np.flatnonzero(coarse)), (self._full, np.flatnonzero(~coarse))]
        asked = [(policy, rows) for policy, rows in groups if len(rows)]
        if len(asked) == 1:
            return asked[0][0].propose(observations, draws, sampling)
        made = [
            policy.propose(observations.rows(rows), draws[rows], sampling.rows(rows))
            for policy, rows in asked
        ]
        return _side_by_side(made, [rows for _, rows in asked])


def switched(folder: Path, checkpoint: str, coarse_above: float, fine_below: float) -> SwitchedPolicy:
    """Return the policy of one checkpoint, of 32 bits and of eight.

    Args:
        folder: in which the checkpoint is looked for first.
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
    """Join proposals for some robots each, by index, that are of all together."""
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
