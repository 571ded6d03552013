# SPDX-License-Identifier: Apache-2.0
"""A policy of tokens with weights of four bits, and activations of 2, 4, 8 or 16 bits, as the motion needs.

After DyQ-VLA (Zheng et al., arXiv 2603.07904): two kinematic proxies say how much an error would harm now,
and allocate a width to each robot at each proposal. Both are of the robot's motion in the observed window:

- *fineness*: 1 at rest, 0 from a speed of `coarse_speed` on, by the slowest step of the window, so a robot
  counts as coarse once all of the window is;
- *jerk*: the newest third difference, 0 without any, 1 from `large_jerk` on.

The sensitivity is their mean by `jerk_share`. There is one file of weights for every width. A memory budget
decides about the finest width: where the full network fits beside the packed one, this width runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from adahi_lab.papers.tokens.token_checkpoint import TokenCheckpoint, load_tokens
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.core.registry import at_place
from adahi_ros.core.signature import Observations
from adahi_ros.policies.backends import is_policy
from adahi_ros.policies.networks.network_checkpoint import EXPORT, RunNetwork
from adahi_ros.policies.networks.onnx_cache import FULL, Session, opened

WIDTHS = (2, 4, 8, 16)
"""Of activations, bits."""
PACKED = ".w4.onnx"
THIRD = 3  # differences of positions for one jerk


@dataclass(frozen=True)
class Kinematics:
    """How a robot's motion decides about its width.

    Attributes:
        moving: entries of an observation that move with the robot.
        coarse_speed: speed without any fineness, in observed standard deviations per step.
        large_jerk: the largest jerk that counts, in these per step to the third.
        jerk_share: of the sensitivity; the rest is the fineness.
        limits: sensitivities, ascending, from which on each wider width is used.

    Raises:
        ValueError: a value is out of range; names field, value and range.
    """

    moving: tuple[int, ...]
    coarse_speed: float
    large_jerk: float
    jerk_share: float
    limits: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("coarse_speed", "large_jerk"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"{name}: {getattr(self, name)}, must be above 0")
        if not 0.0 <= self.jerk_share <= 1.0:
            raise ValueError(f"jerk_share: {self.jerk_share}, must be from 0 to 1")
        ascending = all(low <= high for low, high in pairwise(self.limits))  # no NaN is
        if len(self.limits) != len(WIDTHS) - 1 or not ascending:
            raise ValueError(f"limits: {self.limits}, must be {len(WIDTHS) - 1} numbers, ascending")
        if not self.moving or not all(isinstance(each, int) and each >= 0 for each in self.moving):
            raise ValueError(f"moving: {self.moving}, must be entries of an observation, at least one")

    def sensitivity(self, windows: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return how much an error would harm, (B,) from 0 to 1, by windows (B, H, O) and scales (O,)."""
        moving = list(self.moving)
        places = windows[..., moving] / scale[moving]
        speeds = np.sqrt((np.diff(places, axis=1) ** 2).mean(axis=2))
        fineness = np.zeros(len(windows)) if not speeds.shape[1] else speeds.min(axis=1)
        fineness = np.clip(1.0 - fineness / self.coarse_speed, 0.0, 1.0)
        jerk = np.zeros(len(windows))
        if windows.shape[1] > THIRD:
            jerks = np.diff(places, n=THIRD, axis=1)[:, -1]
            jerk = np.clip(np.sqrt((jerks**2).mean(axis=1)) / self.large_jerk, 0.0, 1.0)
        return (1.0 - self.jerk_share) * fineness + self.jerk_share * jerk

    def widths(self, windows: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return the widths (B,), bits; a motion that is not finite gets the widest."""
        found = self.sensitivity(windows, scale)
        at = np.searchsorted(self.limits, np.where(np.isfinite(found), found, np.inf), side="right")
        return np.array(WIDTHS)[at]


class WidthsPolicy(TokenPolicy):
    """Proposes with a width for each robot; the observations decide, so a proposal depends on nothing else.

    Args:
        checkpoint: of the network.
        run: the packed network: takes its inputs and the levels.
        kinematics: decides.
        full: the full network, for the widest; None where that runs the packed one.
        packed_bytes: size of the packed network's file.

    Raises:
        ValueError: the policy does not observe the motion.
    """

    def __init__(
        self,
        checkpoint: TokenCheckpoint,
        run: RunNetwork,
        kinematics: Kinematics,
        full: RunNetwork | None = None,
        packed_bytes: int = 0,
    ) -> None:
        super().__init__(checkpoint, run)
        if max(kinematics.moving) >= checkpoint.sizes.state_dim:
            raise ValueError(f"moving: {kinematics.moving}, must be below {checkpoint.sizes.state_dim}")
        self._kinematics, self._full, self.packed_bytes = kinematics, full, packed_bytes

    def widths(self, observations: Observations) -> np.ndarray:
        """See `TokenPolicy`."""
        state = self.signature.window(observations)[..., : self._sizes.state_dim]
        return self._kinematics.widths(state, self._embedding.scale)

    def _computed(self, embedded: np.ndarray, past: np.ndarray, widths: np.ndarray | None) -> tuple:
        assert widths is not None
        fine = (widths == WIDTHS[-1]) & (self._full is not None)
        if self._full is not None and fine.all():
            return self._full(embedded, past)
        made = self._run(embedded, past, levels_of(widths))
        if self._full is None or not fine.any():
            return made
        finely = self._full(embedded[fine], np.ascontiguousarray(past[fine]))
        for ours, theirs in zip(made, finely, strict=True):
            ours[fine] = theirs
        return made


def levels_of(widths: np.ndarray) -> np.ndarray:
    """Return the steps on each side of 0 of widths (B,), bits: (B, 1, 1) float32; 1 of two bits."""
    steps: np.ndarray = (2.0 ** (widths - 1) - 1.0).astype(np.float32)[:, None, None]
    return steps


def load_widths(
    folder: Path,
    checkpoint: str,
    moving: Sequence[int],
    coarse_speed: float,
    large_jerk: float,
    jerk_share: float,
    limits: Sequence[float],
    memory_kb: float,
) -> WidthsPolicy:
    """Return a policy of tokens with four widths.

    Args:
        folder: searched first for the checkpoint.
        checkpoint: DIRECTORY/NAME of a policy of tokens, there or below the package's checkpoints.
        moving: see `Kinematics`.
        coarse_speed: likewise.
        large_jerk: likewise.
        jerk_share: likewise.
        limits: likewise.
        memory_kb: for networks, by the sizes of their files.

    Raises:
        ValueError: a value is out of range, or the packed network does not fit into the budget.
    """
    path = folder / checkpoint
    if not is_policy(path):
        path = named(checkpoint, CHECKPOINTS)
    read = load_tokens(path)
    size, session = packed_session(read)
    if not size <= 1e3 * memory_kb:  # nor NaN
        raise ValueError(f"memory_kb: {memory_kb}, must be at least {size / 1e3:.0f}, for the packed network")
    beside = read.weights.with_suffix(FULL)
    fits = beside.is_file() and size + beside.stat().st_size <= 1e3 * memory_kb
    kinematics = Kinematics(tuple(moving), coarse_speed, large_jerk, jerk_share, tuple(limits))
    return WidthsPolicy(read, packed_run(read, session), kinematics, read.on_onnx() if fits else None, size)


def packed_session(checkpoint: TokenCheckpoint) -> tuple[int, Session]:
    """Return the bytes of a checkpoint's packed network, made if missing, and the session that runs it.

    Raises:
        CheckpointError: it is damaged, or this machine cannot pack it.
    """

    def make(path: Path) -> None:
        from adahi_lab.papers.dyq_vla.packing import pack

        whole = opened(
            checkpoint.weights, checkpoint.digest(), FULL, lambda full: at_place(EXPORT)(checkpoint, full)
        )
        pack(whole[0], path)

    path, session = opened(checkpoint.weights, checkpoint.digest(), PACKED, make)
    return path.stat().st_size, session


def packed_run(checkpoint: TokenCheckpoint, session: Session) -> RunNetwork:
    """Return the packed network."""
    names = (*checkpoint.inputs(), "levels")

    def run(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(session.run(checkpoint.outputs, dict(zip(names, arrays, strict=True))))

    return run
