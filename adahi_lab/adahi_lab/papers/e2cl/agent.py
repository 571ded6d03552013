# SPDX-License-Identifier: Apache-2.0
"""An agent that plans an action, foresees the feedback to it, and corrects it: E2CL.

After Wang et al., "E2CL: Exploration-based Error Correction Learning for Embodied Agents", arXiv 2409.03256.
One network does all three, by what stands in its inputs: without an action it plans, with an action it
foresees the feedback, with both it corrects. Feedback is a word for each entry of an action instead of a
sentence: where the right action lies, from far below to far above. `adahi train feedback` trains it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adahi_lab.training.array_files import read_arrays
from adahi_ros.core.signature import GOAL, OBSERVATION, Observations, Signature
from adahi_ros.core.tensor_files import Shapes

FURTHEST = 5.0  # standard deviations at which inputs are clipped
EDGES = np.array([-1.0, -0.25, 0.25, 1.0])  # between words, in action scales
WORDS, RIGHT = len(EDGES) + 1, 2
CALLED_ABOVE = 0.5  # probability of an error


def seen_in(observations: Observations) -> np.ndarray:
    """Return what an agent sees (B, S): the windows of its observations, and its goals if there are any."""
    windows = observations.features[OBSERVATION]
    goals = observations.conditions.get(GOAL, np.zeros((len(windows), 0), np.float32))
    return np.concatenate([windows.reshape(len(windows), -1), goals], axis=1)


def feedback(change: np.ndarray) -> np.ndarray:
    """Return the words (B, A), 0 to 4, for actions that a change (B, A) in action scales makes right."""
    return np.searchsorted(EDGES, change)


def wrong(words: np.ndarray) -> np.ndarray:
    """Return which feedback (B, A) says that an action is an error, (B,) bool."""
    return np.any(words != RIGHT, axis=1)


def slots(actions: np.ndarray, words: np.ndarray | None = None, filled: bool = True) -> list[np.ndarray]:
    """Return the slots of a network's inputs: actions (B, A), words (B, 5 A), and whether filled (B, 1)."""
    said = np.zeros((*actions.shape, WORDS)) if words is None else np.eye(WORDS)[words]
    return [actions, said.reshape(-1, WORDS * actions.shape[1]), np.full((len(actions), 1), filled)]


@dataclass(frozen=True)
class Agent:
    """A network of two hidden layers; its outputs are a change of the action, and logits of words.

    Attributes:
        mean, scale: (S,) of what it saw in its training.
        action_scale: (A,) of its actions.
        weight_0, bias_0, weight_1, bias_1, weight_2, bias_2: (W, S + 6 A + 1), (W,), (W, W), (W,),
            (6 A, W) and (6 A,) of its layers.
    """

    mean: np.ndarray
    scale: np.ndarray
    action_scale: np.ndarray
    weight_0: np.ndarray
    bias_0: np.ndarray
    weight_1: np.ndarray
    bias_1: np.ndarray
    weight_2: np.ndarray
    bias_2: np.ndarray

    @property
    def action_dim(self) -> int:
        """A."""
        return len(self.bias_2) // (1 + WORDS)

    def _run(self, seen: np.ndarray, filled: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        clipped = np.clip((seen - self.mean) / self.scale, -FURTHEST, FURTHEST)
        hidden = np.tanh(np.concatenate([clipped, *filled], axis=1) @ self.weight_0.T + self.bias_0)
        hidden = np.tanh(hidden @ self.weight_1.T + self.bias_1)
        output = hidden @ self.weight_2.T + self.bias_2
        size = self.action_dim
        return filled[0] + output[:, :size], output[:, size:].reshape(-1, size, WORDS)

    def plan(self, seen: np.ndarray) -> np.ndarray:
        """Return planned actions (B, A), in action scales, for what is seen (B, S)."""
        return self._run(seen, slots(np.zeros((len(seen), self.action_dim)), filled=False))[0]

    def foresee(self, seen: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the foreseen words (B, A) for actions (B, A), and the probability of an error (B,).

        An action is called an error first, and then where: in one entry at least.
        """
        logits = self._run(seen, slots(actions))[1]
        weights = np.exp(logits - logits.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        error = 1.0 - weights[:, :, RIGHT].prod(axis=1)
        words = weights.argmax(axis=2)
        weights[:, :, RIGHT] = 0.0
        rows = (error > CALLED_ABOVE) & ~wrong(words)
        entries = weights.max(axis=2).argmax(axis=1)[rows]
        words[rows, entries] = weights[rows, entries].argmax(axis=1)
        words[error <= CALLED_ABOVE] = RIGHT
        return words, error

    def correct(self, seen: np.ndarray, actions: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return corrections (B, A) of actions (B, A) by feedback (B, A)."""
        return self._run(seen, slots(actions, words))[0]

    def act(self, seen: np.ndarray, rounds: int, judged: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Act by speculative inference: plan, foresee the feedback, and correct where it is an error.

        Args:
            seen: (B, S).
            rounds: of corrections at most.
            judged: the plan is executed where an error is foreseen of the last correction, too.

        Returns:
            Actions (B, A) in action scales, and the foreseen probabilities (B,) that these are errors.
        """
        planned = actions = self.plan(seen)
        for _ in range(rounds):
            words = self.foresee(seen, actions)[0]
            actions = np.where(wrong(words)[:, None], self.correct(seen, actions, words), actions)
        if judged:
            actions = np.where(wrong(self.foresee(seen, actions)[0])[:, None], planned, actions)
        return actions, self.foresee(seen, actions)[1]


def load_agent(path: Path, robot: Signature) -> Agent:
    """Read the arrays of an agent.

    Raises:
        CheckpointError: it is missing, damaged, or for a robot that sees or does something else.
    """

    def sizes(shapes: Shapes) -> Shapes:
        seen = robot.history * robot.observation_dim + robot.goal_dim
        out, wide = robot.action_dim * (1 + WORDS), shapes.get("bias_0", (1,))[0]
        read: Shapes = {"mean": (seen,), "scale": (seen,), "action_scale": (robot.action_dim,)}
        read |= {"weight_0": (wide, seen + out + 1), "bias_0": (wide,)}
        return read | {"weight_1": (wide, wide), "bias_1": (wide,), "weight_2": (out, wide), "bias_2": (out,)}

    return Agent(**read_arrays(path, "an agent for this robot", sizes))
