# SPDX-License-Identifier: Apache-2.0
"""Motions of a robot that ignores commands, and a clock that jumps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_ros.core.randomness import step_uniforms

SLOWEST_HZ, FASTEST_HZ = 0.2, 2.0


@dataclass(frozen=True)
class Motions:
    """Sinusoids, and a goal that stays, as seed, episode and step determine them.

    Attributes:
        seed: of rates, phases and goals.
        joints, state_dim, goal_dim: J, S and G.
        amplitude: in the units of the task.
        rate_hz: steps per second.
        episode_steps: steps per episode.
    """

    seed: int
    joints: int
    state_dim: int
    goal_dim: int
    amplitude: float
    rate_hz: float
    episode_steps: int

    def numbers(self, shown: int) -> tuple[int, int]:
        """Return episode and step after so many observations."""
        return divmod(shown, self.episode_steps)

    def at(self, episode: int, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return joint positions (J,), state (S,) and goal (G,)."""
        size = self.joints + self.state_dim
        draws = step_uniforms(self.seed, "motion", episode, 0, 2 * size + self.goal_dim)
        rate, phase, place = draws[:size], draws[size : 2 * size], draws[2 * size :]
        hertz = SLOWEST_HZ + (FASTEST_HZ - SLOWEST_HZ) * rate
        observation = self.amplitude * np.sin(2 * np.pi * (hertz * step / self.rate_hz + phase))
        return observation[: self.joints], observation[self.joints :], self.amplitude * (2 * place - 1)


def ahead_s(passed_s: float, jump_s: float, period_s: float) -> float:
    """Return the offset of a clock that jumps ahead and back, a period each; `passed_s` since its start."""
    return jump_s if passed_s // period_s % 2 else 0.0
