"""What several tests of the lab use: targets of a few lines, recordings that count, and runs of a method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import ArrayLike

from adahi_lab.calibration.recorded_world import RecordedWorld
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.loaded_policies import Bench
from adahi_lab.evaluation.rollout import Log
from adahi_lab.methods.methods import METHODS
from adahi_lab.tasks import make
from adahi_ros.core.proposal import ActionRange, Proposal
from adahi_ros.core.signature import GOAL, OBSERVATION, Feature, Observations, Signature
from adahi_ros.policies.corrector.corrector_features import FeatureScales
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling
from adahi_ros.policies.vqbet.code_policy import CodePolicy

LENGTHS = (3, 9, 6)


class Toy(ActionRange, Policy):
    """A target whose actions are in units of one, and may be anything up to 10,000.

    Args:
        signature: what it reads and proposes.
    """

    def __init__(self, signature: Signature) -> None:
        size = signature.action_dim
        super().__init__(np.full(size, -1e4), np.full(size, 1e4))
        self.signature, self.digest, self.draws = signature, "toy", 1
        self.action_scale = np.ones(size, np.float32)


class Constant(Toy):
    """A target whose actions are all the same."""

    def __init__(self, signature: Signature, action: Sequence[float]) -> None:
        super().__init__(signature)
        self._action = action

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        shape = (len(draws), self.signature.horizon, self.signature.action_dim)
        return Proposal(np.broadcast_to(self._action, shape).astype(np.float32))


class Numbered(Toy):
    """Plans T actions, each telling at which step it was proposed, and for which it is.

    It sees the step as the first number of an observation; where that is negative, its plan is no action.

    Args:
        horizon: T.
        offset: added to the first of both, so that drafts can be distinguished from replies.

    Attributes:
        committed: what each request said of actions that are executed before the reply.
    """

    def __init__(self, horizon: int = 4, offset: float = 0.0) -> None:
        super().__init__(Signature(1, horizon, 2, (Feature(OBSERVATION, 6),)))
        self._offset = offset
        self.committed: list[np.ndarray | None] = []

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        self.committed.append(sampling.committed)
        step = observations.features[OBSERVATION][:, -1, :1]
        ahead = np.arange(self.signature.horizon)
        made_at = np.repeat(step + self._offset, len(ahead), axis=1)
        plans = np.stack([made_at, step + ahead], axis=-1)
        return Proposal(np.where(step[..., None] < 0, np.nan, plans).astype(np.float32))


def numbered(steps: int, bad: Sequence[int] = (), episodes: int = 2, apart: float = 0.0) -> RecordedWorld:
    """Return episodes whose observations tell their step, negative where the target is to fail.

    Args:
        steps: of each.
        bad: steps at which the target is to fail.
        episodes: how many.
        apart: from the first number of an episode to that of the next.
    """
    observations = np.zeros((episodes, steps, 6), np.float32)
    numbers = np.where(np.isin(np.arange(steps), bad), -1.0, np.arange(steps))
    observations[..., 0] = numbers + apart * np.arange(episodes)[:, None]
    actions, goals = np.zeros((episodes * steps, 2), np.float32), np.zeros((episodes, 0), np.float32)
    ends = steps * np.arange(1, episodes + 1)
    return RecordedWorld(Trajectories("ball", observations.reshape(-1, 6), actions, goals, ends))


class Counting(Toy):
    """A target whose plan continues from the number that it sees, one more at every step.

    Args:
        ways: what each of its draws adds to the whole plan, one of them at random.
        horizon: of its plans.
        spread: how far its draws move the whole plan beside that.
    """

    def __init__(self, ways: tuple[float, ...] = (0.0,), horizon: int = 4, spread: float = 0.0) -> None:
        super().__init__(Signature(2, horizon, 1, (Feature(OBSERVATION, 1),), (Feature(GOAL, 1),)))
        self._ways, self._spread = float32(ways), spread

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        way = self._ways[(draws * len(self._ways)).astype(int)]
        first = observations.features[OBSERVATION][:, -1] + way + self._spread * (draws - 0.5)
        plans = first[:, None] + np.arange(self.signature.horizon)[:, None]
        return Proposal(plans.astype(np.float32))


def counted(lengths: tuple[int, ...] = LENGTHS) -> Trajectories:
    """Return episodes whose observations count their steps, each from a number of its own; actions too."""
    numbers = np.concatenate([100.0 * each + np.arange(length) for each, length in enumerate(lengths)])
    values, ends = numbers.astype(np.float32)[:, None], np.cumsum(lengths)
    return Trajectories("counting", values, values, np.zeros((len(lengths), 1), np.float32), ends)


def unit_scales() -> FeatureScales:
    zero, one = np.zeros(1, np.float32), np.ones(1, np.float32)
    return FeatureScales(zero, one, one, zero, one, zero, one)


def float32(values: ArrayLike) -> np.ndarray:
    return np.asarray(values, np.float32)


def code_policy(policy: Policy) -> CodePolicy:
    """Return a policy as one of codes, which it is."""
    assert isinstance(policy, CodePolicy)
    return policy


def played(bench: Bench, name: str, episodes: Sequence[int] = range(3), seed: int = 5) -> Log:
    """Return what a method does in episodes of its bench's task."""
    return METHODS[name].run(bench, make(bench.task), seed, episodes)


def assert_same(one: Log, other: Log) -> None:
    for field in fields(Log):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name), field.name)


def two_ways() -> Trajectories:
    """Episodes that say nothing of themselves, whose actions are all +1 or all -1, with equal odds."""
    episodes, steps = 32, 6
    ways = np.where(np.arange(episodes) % 2, 1.0, -1.0).astype(np.float32)
    return Trajectories(
        "toy",
        np.zeros((episodes * steps, 1), np.float32),
        np.repeat(ways, steps)[:, None],
        np.zeros((episodes, 0), np.float32),
        np.arange(steps, episodes * steps + 1, steps),
    )
