# SPDX-License-Identifier: Apache-2.0
"""Intents that are stored on the robot, one for each goal: what an intent is worth where goals are finite."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from adahi_lab.evaluation.episodes import lesson_episodes
from adahi_lab.history import History
from adahi_lab.tasks import make
from adahi_lab.tasks.episodes import seen_by_target
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.core.signature import Observations
from adahi_ros.policies.flat_signature import flat_signature
from adahi_ros.policies.intent.intent import Intent
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling

EPISODES = 200  # of the lessons; the intents are taken at their starts


class StoredIntents(Policy):
    """Acts by the stored intent of the goal that the robot is given; no server is asked.

    Args:
        intent: acts by intents.
        goals: (K, G).
        vectors: (K, Z) int8, the intent of each.
    """

    def __init__(self, intent: Intent, goals: np.ndarray, vectors: np.ndarray) -> None:
        sizes = intent.signature
        signature = flat_signature(
            *(2, 1, sizes.action_dim, sizes.observation_dim, goals.shape[1]),
            parameters=sizes.parameters + vectors.size,
        )
        super().__init__(signature, intent, intent.action_scale, intent.digest)
        self._intent, self._goals, self._vectors = intent, goals, vectors

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy.propose`."""
        window, goal = self.signature.window(observations), self.signature.condition(observations)
        which = ((goal[:, None] - self._goals) ** 2).sum(axis=2).argmin(axis=1)
        acted = self._intent.act(window[:, -1], window[:, -2], self._vectors[which])
        return Proposal(acted.actions[:, None], expected_error=acted.expected_error)


@lru_cache(maxsize=4)
def stored_intents(task: str, intent: Intent, target: Policy) -> StoredIntents:
    """Return a policy with the median intent of each goal, at the starts of episodes of the lessons.

    Args:
        task: what `make` takes.
        intent: with the encoder beside the target.
        target: makes the plans that the encoder reads.

    Raises:
        ValueError: the goals are not finite.
    """
    world, numbers = make(task), lesson_episodes(EPISODES, 0)
    world.reset(0, numbers)
    goals, which = np.unique(world.goal, axis=0, return_inverse=True)
    if 2 * len(goals) > EPISODES:
        raise ValueError(
            f"stored: {task} has {len(goals)} goals in {EPISODES} episodes, must have few; use goal_once"
        )
    assert intent.encoder is not None
    observations = History(target.signature, len(numbers)).push(seen_by_target(world))
    draws = EpisodeStreams(0, "stored", numbers, target.draws).next()
    vectors = intent.encoder.encode_replies(observations, target.propose(observations, draws).actions)
    median = [np.median(vectors[which.ravel() == goal], axis=0) for goal in range(len(goals))]
    return StoredIntents(intent, goals, np.rint(median).astype(np.int8))
