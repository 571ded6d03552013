"""One control step, in two halves, with the request to the target in between.

    step = controller.begin(observations, goals)
    # where step.transmit: ask the target, here by a call or over the air, or give up
    actions = controller.finish(step, verification)
    # command them, or what is allowed of them
    controller.executed(commanded)

The same class drives the rollouts of the evaluation, many episodes at once, and the robot's node,
one at a time. Neither half waits for anything. What a step's deviation is taken from is made of what was
really commanded, which is what the policy wanted only where nothing else has a say in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_ros.gates.config import ControllerConfig
from adahi_ros.gates.context import GateContext, LinkEstimate
from adahi_ros.gates.deviation import DeviationTracker
from adahi_ros.gates.scores import Gate
from adahi_ros.policy.drafting import Draft, draft_action
from adahi_ros.policy.history import ObservationWindow
from adahi_ros.policy.interface import Policy
from adahi_ros.randomness import EpisodeStreams
from adahi_ros.wire.request import Verification, VerificationRequest


@dataclass(frozen=True)
class Step:
    """The first half of a control step of B robots.

    Attributes:
        index: which step of the episode, from 0.
        windows: (B, H, O) float32.
        goals: (B, G) float32.
        draft: what they would do.
        deviation: (B,), infinite at the first step.
        gate: that decided.
        score: (B,), the gate's.
        transmit: (B,) bool, whether to ask the target.
    """

    index: int
    windows: np.ndarray
    goals: np.ndarray
    draft: Draft
    deviation: np.ndarray
    gate: Gate
    score: np.ndarray
    transmit: np.ndarray

    def request(self, rows: np.ndarray) -> VerificationRequest:
        """Return the request for some robots, by mask or index."""
        draft = self.draft
        return VerificationRequest(
            self.windows[rows], self.goals[rows], draft.codes[rows], draft.counts[rows]
        )


class Controller:
    """Drafts, gates and corrects the actions of B robots.

    Args:
        policy: the draft policy.
        config: how drafts are made and judged.
    """

    def __init__(self, policy: Policy, config: ControllerConfig) -> None:
        self.policy = policy
        self.config = config
        self._deviation = DeviationTracker(
            policy.decoder.action_scale, config.smoothing, config.normalization
        )
        self.reset(0, [0])

    def reset(self, seed: int, episodes: list[int]) -> None:
        """Start the episodes with these numbers; B is how many there are."""
        spec = self.policy.spec
        self._window = ObservationWindow(len(episodes), spec.window_length, spec.observation_dim)
        self._deviation.reset()
        self._draws = EpisodeStreams(seed, "controller", episodes, spec.codebooks + 1)
        self._step_draws: np.ndarray | None = None
        self._index = 0

    def begin(
        self,
        observations: np.ndarray,
        goals: np.ndarray,
        link: LinkEstimate | None = None,
        stand_in: np.ndarray | None = None,
    ) -> Step:
        """Draft an action for each robot and decide whether to ask the target.

        Args:
            observations: (B, O) float32.
            goals: (B, G) float32.
            link: how the way to the target is, for gates that go by it.
            stand_in: (B, A) float32, executed unasked where the policy makes nothing sound of an observation,
                so that the other robots go on; None raises an error there.

        Raises:
            ValueError: wrong shape, not finite, or the policy makes nothing sound of it; nothing has
                happened then, and begin may be called again.
        """
        expected = (len(observations), self.policy.spec.goal_dim)
        if goals.shape != expected:
            raise ValueError(f"goal: shape {goals.shape}, expected {expected}")
        if not np.isfinite(goals).all():
            raise ValueError("goal: holds values that are not finite")
        windows = self._window.with_newest(observations)
        if self._step_draws is None:
            self._step_draws = self._draws.next()
        draws = self._step_draws
        temperature = self.config.draft_temperature
        draft = draft_action(self.policy, windows, goals, draws[:, 1:], temperature, stand_in)
        deviation = self._deviation.deviation(draft.action)
        gate = self.config.gate
        score = gate.score(GateContext(draft, deviation, draws[:, 0], windows, goals, link))
        transmit = ~(score <= gate.threshold) & draft.sound  # a score that is not a number asks, too
        step = Step(self._index, windows, goals, draft, deviation, gate, score, transmit)
        self._window.keep(windows)
        self._step_draws = None
        self._index += 1
        return step

    def finish(
        self, step: Step, verification: Verification | None, rows: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the action chunks (B, W, A) to execute.

        Args:
            step: from `begin`.
            verification: the target's, or None to execute every draft.
            rows: the robots that it is for, by mask or index; None where it is for all.

        Raises:
            ValueError: it is no action that the tokenizer means; nothing has happened then, and
                finish may be called again without it.
        """
        chunks = step.draft.chunk
        if verification is not None:
            verified = verification.chunks(self.policy.decoder)
            self.policy.decoder.check(verified)
            chunks = chunks.copy()
            chunks[slice(None) if rows is None else rows] = verified
        return chunks

    def executed(self, actions: np.ndarray) -> None:
        """Take into the average what was commanded, (B, A) in action units; not called where nothing was."""
        self._deviation.update(actions)
