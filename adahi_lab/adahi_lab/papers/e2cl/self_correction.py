# SPDX-License-Identifier: Apache-2.0
"""A robot's judgement of its own drafts: would the target refuse this one, and what would it do instead?

After E2CL (Wang et al., "E2CL: Exploration-based Error Correction Learning for Embodied Agents", arXiv
2409.03256): an agent learns from exploration to predict the feedback to an action, and to correct the action
by it before it acts. Here a small network beside the draft does both. `adahi train feedback` trains it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adahi_lab.training.array_files import read_arrays, save_arrays
from adahi_ros.core.signature import Signature
from adahi_ros.core.tensor_files import Shapes

FURTHEST = 5.0  # standard deviations at which inputs are clipped
WIDEST = 4096


def inputs_of(windows: np.ndarray, goals: np.ndarray, drafted: np.ndarray) -> np.ndarray:
    """Return the inputs (B, F) of windows (B, H, O), goals (B, G) and drafts (B, A) in action scales."""
    return np.concatenate([windows.reshape(len(windows), -1), goals, drafted], axis=1)


@dataclass(frozen=True)
class SelfCorrection:
    """A network of two hidden layers; its outputs are the feedback's logit and the correction.

    Attributes:
        mean, scale: (F,) of the inputs in its training.
        weight_0, bias_0, weight_1, bias_1, weight_2, bias_2: (W, F), (W,), (W, W), (W,), (1 + A, W) and
            (1 + A,) of its layers.
    """

    mean: np.ndarray
    scale: np.ndarray
    weight_0: np.ndarray
    bias_0: np.ndarray
    weight_1: np.ndarray
    bias_1: np.ndarray
    weight_2: np.ndarray
    bias_2: np.ndarray

    def judge(
        self, windows: np.ndarray, goals: np.ndarray, drafted: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Judge drafts.

        Args:
            windows: (B, H, O), the draft's inputs.
            goals: (B, G).
            drafted: (B, A) in action scales.

        Returns:
            The probability (B,) that the target refuses the draft; and the action (B, A), in action scales,
            that it is expected to reply with if it does.
        """
        inputs = np.clip((inputs_of(windows, goals, drafted) - self.mean) / self.scale, -FURTHEST, FURTHEST)
        hidden = np.tanh(inputs @ self.weight_0.T + self.bias_0)
        hidden = np.tanh(hidden @ self.weight_1.T + self.bias_1)
        output = hidden @ self.weight_2.T + self.bias_2
        refused: np.ndarray = 1.0 / (1.0 + np.exp(-np.clip(output[:, 0], -30.0, 30.0)))
        return refused, drafted + output[:, 1:]

    def check(self, draft: Signature) -> None:
        """Check that it is for a draft.

        Raises:
            ValueError: it reads or corrects something else.
        """
        wanted = draft.history * draft.observation_dim + draft.goal_dim + draft.action_dim
        found = len(self.mean), len(self.bias_2) - 1
        if found != (wanted, draft.action_dim):
            raise ValueError(
                f"file: reads {found[0]} numbers and corrects {found[1]}, must be {wanted} and "
                f"{draft.action_dim}, as the draft has"
            )


def _sizes(shapes: Shapes) -> Shapes:
    read, wide = shapes.get("mean", (0,))[0], shapes.get("bias_0", (0,))[0]
    out = shapes.get("bias_2", (0,))[0]
    if not all(0 < size <= WIDEST for size in (read, wide, out)):
        raise ValueError(f"mean, bias_0, bias_2: of {read}, {wide} and {out}, must be 1 to {WIDEST}")
    sizes: Shapes = {"mean": (read,), "scale": (read,), "weight_0": (wide, read), "bias_0": (wide,)}
    return sizes | {"weight_1": (wide, wide), "bias_1": (wide,), "weight_2": (out, wide), "bias_2": (out,)}


def load_self_correction(path: Path) -> SelfCorrection:
    """Read a file of `save_self_correction`.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    return SelfCorrection(**read_arrays(path, "a network of feedback", _sizes))


def save_self_correction(path: Path, network: SelfCorrection) -> None:
    """Write it atomically."""
    save_arrays(path, vars(network))
