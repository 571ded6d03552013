# SPDX-License-Identifier: Apache-2.0
"""A target's plans at every recorded step, as training data.

A target that needs more than a recording has is replaced by its stored plans.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.training.rows import repeated
from adahi_lab.training.step_dataset import Moments
from adahi_ros.core.proposal import ActionRange
from adahi_ros.core.signature import GOAL, IMAGE_FEATURES, OBSERVATION, Feature, Observations, Signature
from adahi_ros.policies.absent import LARGEST
from adahi_ros.policies.direct import DirectPolicy
from adahi_ros.policies.interface import Policy


class RecordedTarget(DirectPolicy):
    """Returns a target's stored plans for recorded steps.

    Its input is the step's number instead of what only the target sees: see `numbered`.

    Args:
        planned: the stored plans.
        digest: of the target that made them.
    """

    def __init__(self, planned: Planned, digest: str) -> None:
        data, plans = planned.data, planned.plans
        goal_dim, action_dim = data.goals.shape[1], plans.shape[3]
        signature = Signature(
            1,
            planned.horizon,
            action_dim,
            (Feature(OBSERVATION, data.observations.shape[1]), Feature(IMAGE_FEATURES, 1)),
            (Feature(GOAL, goal_dim),) if goal_dim else (),
        )
        most = np.full(action_dim, LARGEST)
        super().__init__(signature, ActionRange(-most, most), planned.action_scale, digest, draws=1)
        self._plans = plans

    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        """See `DirectPolicy`: one of the plans of each step."""
        rows = observations.features[IMAGE_FEATURES][:, -1, 0].astype(np.int64)
        which = (draws[:, 0] * self._plans.shape[1]).astype(np.int64)
        plans: np.ndarray = self._plans[rows, which]
        return plans


def numbered(planned: Planned) -> Trajectories:
    """Return the recorded steps, with their numbers as the target's separate input."""
    numbers = np.arange(len(planned.plans), dtype=np.float32)  # exact up to 2^24
    return replace(planned.data, image_features=numbers[:, None])


TEACHER = "teacher"  # the stream of the plans' draws


@dataclass(frozen=True)
class Planned:
    """Recorded episodes, and a target's plans at every step.

    Attributes:
        data: N steps.
        plans: (N, S, T, A) float32, S of each step.
        action_scale: (A,) float32, the unit of actions.
        left_out: steps without a sound plan of the target.
        person: (N,) bool, steps that a person drove: their plans are the person's; None for none.
    """

    data: Trajectories
    plans: np.ndarray
    action_scale: np.ndarray
    left_out: int = 0
    person: np.ndarray | None = None

    def weighted(self, rows: np.ndarray, weight: int) -> np.ndarray:
        """Return places among rows (M,) so that steps of a person count `weight` times.

        Raises:
            ValueError: the weight is below 1.
        """
        none = np.zeros(len(rows), dtype=bool)
        return repeated(none if self.person is None else self.person[rows], weight)

    @property
    def horizon(self) -> int:
        """T."""
        return int(self.plans.shape[2])

    def as_read_by(self, target: Signature) -> Planned:
        """Return it without goals and features of images that a target does not read."""
        data = self.data if target.goal_dim else self.data.without_goals()
        if not target.image_dim:
            data = replace(data, image_features=data.image_features[:, :0])
        return replace(self, data=data)

    @property
    def action_range(self) -> tuple[np.ndarray, np.ndarray]:
        """(A,) and (A,) float32, the smallest and the largest recorded or planned action."""
        actions = self.data.actions, self.plans.reshape(-1, self.plans.shape[3])
        low = np.minimum(*(each.min(axis=0) for each in actions))
        high = np.maximum(*(each.max(axis=0) for each in actions))
        return low, high

    @classmethod
    def sound(
        cls, target: Policy, data: Trajectories, plans: np.ndarray, person: np.ndarray | None = None
    ) -> Planned:
        """Return the steps of N that a target has sound plans for.

        Args:
            target: judges its own.
            data: N steps.
            plans: (N, S, T, A).
            person: (N,) bool, steps at which a person's actions replace the plans; None for none.

        Raises:
            ValueError: there are none; names the fault of the first.
        """
        if person is not None:
            plans = with_person(plans, data, person)
        flat = plans.reshape(-1, *plans.shape[2:])
        kept: np.ndarray = np.all(target.sound(flat).reshape(len(plans), -1), axis=1)
        if not kept.any():
            target.check(flat)
        left = data.where(kept)
        driven = None if person is None else person[kept]
        return cls(left, plans[kept], unit_of_actions(target, left), int((~kept).sum()), driven)


def with_person(plans: np.ndarray, data: Trajectories, person: np.ndarray) -> np.ndarray:
    """Return plans (N, S, T, A) in which a person's actions replace the target's.

    At a step that a person drove, they replace the plan as far as the person went on. What follows is the
    target's.

    Args:
        plans: the target's.
        data: N steps, with the executed actions.
        person: (N,) bool.
    """
    plans = plans.copy()
    for start, end in data.spans():
        for row in range(start, end):
            last = row
            while last < end and last - row < plans.shape[2] and person[last]:
                last += 1
            plans[row, :, : last - row] = data.actions[row:last]
    return plans


def unit_of_actions(target: Policy, data: Trajectories) -> np.ndarray:
    """Return the target's scale of actions (A,), or that of the recorded actions if it is all ones."""
    scale: np.ndarray = target.action_scale
    return Moments.measure(data.actions).scale if (scale == 1.0).all() else scale


def fresh_plans(
    target: Policy, observations: Observations, draws: np.ndarray, active: np.ndarray | None = None
) -> np.ndarray:
    """Return S plans of each of B robots (B, S, T, A), by draws (B, S, target.draws).

    The target is asked only for the `active` robots, (B,) bool; the others have zeros. Most episodes end long
    before the last one, and plans are most of the work.
    """
    if active is not None and not active.all():
        made = fresh_plans(target, observations.rows(active), draws[active])
        plans = np.zeros((len(draws), *made.shape[1:]), dtype=made.dtype)
        plans[active] = made
        return plans
    batch, samples = draws.shape[:2]
    repeated = observations.rows(np.repeat(np.arange(batch), samples))
    actions = target.propose(repeated, draws.reshape(batch * samples, -1)).actions
    every: np.ndarray = actions.reshape(batch, samples, *actions.shape[1:])
    return every
