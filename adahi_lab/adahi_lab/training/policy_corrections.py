# SPDX-License-Identifier: Apache-2.0
"""Corrections: steps of runs with a request, with the draft and the reply, or with a person's action.

A person who takes over corrects the policy where it goes wrong. Only these steps are taken as the person's,
as in HG-DAgger (Kelly et al., "HG-DAgger: Interactive Imitation Learning with Human Experts", 2019). They are
few, so they count several times, see `weighted` (Mandlekar et al., "Human-in-the-Loop Imitation Learning
using Remote Teleoperation", 2020).

A reply does not have the target's whole distribution. It has one action, and whether each drafted code was
accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.disturbances import WorldAround
from adahi_lab.evaluation.evaluate import Outcome
from adahi_lab.evaluation.loaded_policies import Bench
from adahi_lab.evaluation.rollout import Log
from adahi_lab.methods.method import Method
from adahi_lab.tasks import make
from adahi_lab.tasks.task_interface import Task
from adahi_lab.training.rows import Rows, repeated
from adahi_lab.training.step_dataset import step_goals, window_indices

PERSON_WEIGHT = 4  # by default; an action of a person is rarer, and was needed


@dataclass(frozen=True)
class Corrections(Rows):
    """N replies to N steps, or actions of a person.

    Attributes:
        windows: (N, H, O) float32, the draft's inputs, oldest first.
        goals: (N, G) float32, the draft's goals; G = 0 without a goal.
        drafted: (N, A) float32 in action units, the drafts.
        replied: (N, A) float32 in action units, the replies.
        accepted: (N, C) bool, of each drafted code; false for a person's.
        person: (N,) bool, the action is a person's.
        left_out: counts of unused steps with a reply, by reason.
    """

    windows: np.ndarray
    goals: np.ndarray
    drafted: np.ndarray
    replied: np.ndarray
    accepted: np.ndarray
    person: np.ndarray
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.arrays():
            if len(getattr(self, name)) != len(self):
                raise ValueError(f"{name}: {len(getattr(self, name))} rows, windows has {len(self)}")
        for name in ("windows", "goals", "drafted", "replied"):
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"{name}: holds values that are not finite")

    @classmethod
    def arrays(cls) -> list[str]:
        """Return the names of the fields with a row per reply."""
        return [name for name in super().arrays() if name != "left_out"]

    @property
    def acceptance(self) -> float | None:
        """The share of the replies that accept the whole draft; None without replies."""
        replies = self.accepted[~self.person]
        return float(replies.all(axis=1).mean()) if len(replies) else None

    def weighted(self, weight: int) -> Corrections:
        """Return them with each action of a person `weight` times.

        Raises:
            ValueError: the weight is below 1.
        """
        return self.rows(repeated(self.person, weight))

    @classmethod
    def joined(cls, parts: Sequence[Corrections]) -> Corrections:
        """Return several joined into one; at least one."""
        why = sorted({reason for part in parts for reason in part.left_out})
        left_out = {reason: sum(part.left_out.get(reason, 0) for part in parts) for reason in why}
        return replace(super().joined(parts), left_out=left_out)

    @classmethod
    def of_steps(
        cls,
        run: Trajectories,
        replies: np.ndarray,
        drafted: np.ndarray,
        accepted: np.ndarray,
        window_length: int,
        left_out: Mapping[str, int] | None = None,
        person: np.ndarray | None = None,
    ) -> Corrections:
        """Return the corrections of a run.

        Args:
            run: every observed step, T in all, with the executed actions.
            replies: (T,) bool, whether the executed action is the target's reply to this step, or a person's.
            drafted: (T, A).
            accepted: (T, C).
            window_length: H.
            left_out: see the class.
            person: (T,) bool, the executed action is a person's; None for no step.
        """
        windows = run.observations[window_indices(run, window_length)[replies]]
        return cls(
            windows.astype(np.float32),
            step_goals(run)[replies].astype(np.float32),
            drafted[replies].astype(np.float32),
            run.actions[replies].astype(np.float32),
            accepted[replies],
            np.zeros(int(replies.sum()), dtype=bool) if person is None else person[replies],
            dict(left_out or {}),
        )


def by_episode(log: Log, values: np.ndarray) -> np.ndarray:
    """Return values (T, E, ...) of the active steps, one episode after the other."""
    return np.concatenate([values[:count, number] for number, count in enumerate(log.active.sum(axis=0))])


def recorded_episodes(
    bench: Bench,
    method: Method,
    seed: int,
    episodes: Sequence[int],
    world: Task | WorldAround | None = None,
) -> tuple[Trajectories, Outcome]:
    """Run episodes of a task with a method; return all observations and commanded actions, and the outcome.

    Args:
        bench: task and policies.
        method: that acts.
        seed: of all draws.
        episodes: their numbers.
        world: runs the task, such as one with noise; None for the task alone.
    """
    world = make(bench.task) if world is None else world
    world.reset(seed, list(episodes))  # the rollout does this again; gives the first observation
    observations = [np.asarray(world.observation, dtype=np.float32)]

    def on_step() -> None:
        observations.append(np.asarray(world.observation, dtype=np.float32))

    log = method.run(bench, world, seed, episodes, on_step)
    recorded = Trajectories(
        world.spec.name,
        by_episode(log, np.stack(observations[:-1])),
        by_episode(log, log.action).astype(np.float32),
        np.asarray(world.goal, dtype=np.float32),
        np.cumsum(log.active.sum(axis=0)),
    )
    return recorded, Outcome(log, world.success, world.completed, world.fulfilled)
