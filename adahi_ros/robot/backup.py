# SPDX-License-Identifier: Apache-2.0
"""What robots do that have no plan or no reply, and for how long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from adahi_ros.core.history import History
from adahi_ros.core.randomness import step_uniforms
from adahi_ros.core.signature import Observations
from adahi_ros.policies.interface import Policy, Sampling


class Backup:
    """A small policy of the robot's own, asked only where there is no plan.

    Args:
        policy: proposes.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.reset(0, [0])

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers; B is how many there are."""
        self._seed, self._episodes = seed, episodes
        self._history = History(self._policy.signature, len(episodes))

    def see(self, observed: Mapping[str, np.ndarray]) -> Observations:
        """Return what the policy would read; `keep` makes it so. Raises as `History.with_newest`."""
        return self._history.with_newest(observed)

    def keep(self, observations: Observations) -> None:
        """Make it what was read last."""
        self._history.keep(observations)

    def actions(
        self, observations: Observations, rows: np.ndarray, step: int, temperature: float
    ) -> np.ndarray:
        """Return actions (M, A) for robots, by mask (B,); no numbers where the policy has no sound one.

        Args:
            observations: from `see`.
            rows: M of the B robots.
            step: of the episode; addresses the draws.
            temperature: of the policy's distributions.
        """
        count = self._policy.draws
        drawn = [
            step_uniforms(self._seed, "backup", episode, step, count)
            for episode, wanted in zip(self._episodes, rows, strict=True)
            if wanted
        ]
        proposal = self._policy.propose(
            observations.rows(rows), np.stack(drawn).reshape(len(drawn), count), Sampling(temperature)
        )
        sound = self._policy.sound(proposal.actions)
        actions: np.ndarray = np.where(sound[:, None], proposal.actions[:, 0], np.float32(np.nan))
        return actions


FALLBACKS = ("draft", "hold")


class Fallback:
    """Counts the steps in a row whose draft was to be verified, and about which nothing was heard.

    Past a limit the draft is withheld: at every step, whatever its gate says, until the target has verified
    one. So ask about every step while it is withheld; a robot that stands still may never again draft what
    its gate would have verified. A step that the gate leaves to the draft does not count, and does not end
    the row either: else a gate that skips one now and then would keep a robot going without a target.

    Args:
        limit: of such steps in a row; 0 for none at all, None for no limit.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self.reset()

    def reset(self) -> None:
        """Begin to count."""
        self._alone = 0

    @property
    def withholds(self) -> bool:
        """Whether nothing of a draft is to be executed until the target has verified one."""
        return self._limit is not None and self._alone > self._limit

    def verified(self) -> None:
        """The target has verified a draft, or its plan is executed."""
        self._alone = 0

    def unverified(self) -> bool:
        """Count a draft that was to be verified and was not; return whether it may be executed."""
        self._alone += 1
        return not self.withholds

    @property
    def label(self) -> str:
        """What happens without a target, for people."""
        if self._limit is None:
            return "drafts are executed"
        if self._limit == 0:
            return "the robot is held"
        return f"drafts are executed for {self._limit} steps in a row, then the robot is held"
