# SPDX-License-Identifier: Apache-2.0
"""Gates that no robot can have: they know the target's actions. They measure how much a gate can gain.

They know nothing of later steps. So `OracleGate` is no upper bound: on the swarm ADAHI's gate succeeds more
often at the same rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from adahi_lab.calibration.parameter_file import ORACLE
from adahi_lab.calibration.target_plans import fresh_plans
from adahi_lab.history import History
from adahi_lab.tasks.episodes import World, for_target
from adahi_ros.core.proposal import probabilities_at
from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.core.signature import GOAL, Observations
from adahi_ros.gates.interface import Gate, GateContext
from adahi_ros.gates.plans import distance
from adahi_ros.policies.interface import Actor, Policy, Sampling

HARM = "harm"
SAMPLES = 8  # of the target's distribution, at every step


class _Informed(Gate):
    """Knows the target, and the goal and images that the robot may not know.

    Args:
        target: its distributions are used.
        world: has the target's goal and images.
        batch: number of episodes.
    """

    def __init__(self, target: Policy, world: World, batch: int) -> None:
        self._target = target
        self._world = world
        self._history = History(target.signature, batch)

    def _observations(self, context: GateContext) -> Observations:
        observed = {**context.observed, GOAL: self._world.goal, **for_target(self._world)}
        return self._history.push(observed)


class OracleGate(_Informed):
    """Scores 1 - prod min(1, q/p): the probability that the target rejects any drafted code.

    Args:
        target: its probabilities are q.
        world: has the target's goal and images.
        batch: number of episodes.
    """

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        assert context.proposal is not None
        observations = self._observations(context)
        nothing = np.zeros((len(context.deviation), self._target.draws))
        ours = context.proposal.distribution
        theirs = self._target.propose(observations, nothing, Sampling(1.0)).distribution
        assert ours is not None
        assert theirs is not None
        kept = 1.0 - rejection_probability(ours.probabilities, theirs.probabilities, ours.codes)
        rejected: np.ndarray = 1.0 - kept.prod(axis=-1)
        return rejected


class HarmGate(_Informed):
    """Scores the distance of the intended action from the nearest of new target samples, in action scales.

    Args:
        target: is sampled.
        world: has the target's goal and images.
        action_scale: (A,).
        seed: of the samples.
        episodes: their numbers.
    """

    def __init__(
        self, target: Policy, world: World, action_scale: np.ndarray, seed: int, episodes: Sequence[int]
    ) -> None:
        super().__init__(target, world, len(episodes))
        self._scale = action_scale
        self._draws = EpisodeStreams(seed, "oracle", episodes, SAMPLES * target.draws)

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`; infinite where a robot has no action."""
        assert context.course is not None
        intended = context.course.intended
        draws = self._draws.next().reshape(len(intended), SAMPLES, -1)
        fresh = fresh_plans(self._target, self._observations(context), draws)[:, :, 0] / self._scale
        harm: np.ndarray = distance(intended[:, None], fresh).min(axis=1)
        return np.where(np.isnan(harm), np.inf, harm)


ORACLES: dict[str, Callable[[Policy, World, Actor, int, Sequence[int]], Gate]] = {
    ORACLE: lambda target, world, actor, seed, episodes: OracleGate(target, world, len(episodes)),
    HARM: lambda target, world, actor, seed, episodes: HarmGate(
        target, world, actor.action_scale, seed, episodes
    ),
}
"""By name: makes a gate from the target, the world, the policy on the robot, the seed and the episodes."""


def rejection_probability(p: np.ndarray, q: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the probability that `speculative_sample` rejects each code: 1 - min(1, q/p), equation (8).

    Args:
        p: (..., N, K), the distributions of the sampled codes.
        q: (..., N, K), the target's.
        codes: (..., N).

    Returns:
        (..., N) float64.
    """
    p_code = probabilities_at(p, codes).astype(np.float64)
    q_code = probabilities_at(q, codes).astype(np.float64)
    kept = np.divide(q_code, p_code, out=np.ones_like(q_code), where=p_code > q_code)
    rejected: np.ndarray = 1.0 - kept
    return rejected
