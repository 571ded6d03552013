# SPDX-License-Identifier: Apache-2.0
"""Corrections: steps of runs at which the target was asked, with what was drafted and what came back.

The target's whole distribution is not on the air. What a robot hears is one action, and of each code whether
it is its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from adahi_ros.core.trajectories import Trajectories
from adahi_ros.lab.evaluation.evaluate import Outcome
from adahi_ros.lab.evaluation.loaded_policies import Bench
from adahi_ros.lab.evaluation.rollout import Log
from adahi_ros.lab.methods.method import Method
from adahi_ros.lab.tasks import make
from adahi_ros.lab.training.reservoir import Rows
from adahi_ros.policies.networks.step_dataset import step_goals, window_indices


@dataclass(frozen=True)
class Corrections(Rows):
    """N replies to N steps.

    Attributes:
        windows: (N, H, O) float32, what the draft read, oldest first.
        goals: (N, G) float32, what it was told; G = 0 where that is nothing.
        drafted: (N, A) float32 in action units, what was asked about.
        replied: (N, A) float32 in action units, what came back.
        accepted: (N, C) bool, of each code that was drafted.
        left_out: how many steps with a reply are not among these, by why.
    """

    windows: np.ndarray
    goals: np.ndarray
    drafted: np.ndarray
    replied: np.ndarray
    accepted: np.ndarray
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
        """Return the names of what has a row for each reply."""
        return [name for name in super().arrays() if name != "left_out"]

    @property
    def acceptance(self) -> float | None:
        """The share of drafts that were accepted whole; None of none."""
        return float(self.accepted.all(axis=1).mean()) if len(self) else None

    @classmethod
    def joined(cls, parts: Sequence[Corrections]) -> Corrections:
        """Return all of some, at least one."""
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
    ) -> Corrections:
        """Return the corrections of a run.

        Args:
            run: every step that was observed, T in all; its actions are those that were executed.
            replies: (T,) bool, whether that is the target's reply to this very step.
            drafted: (T, A).
            accepted: (T, C).
            window_length: H.
            left_out: see the class.
        """
        windows = run.observations[window_indices(run, window_length)[replies]]
        return cls(
            windows.astype(np.float32),
            step_goals(run)[replies].astype(np.float32),
            drafted[replies].astype(np.float32),
            run.actions[replies].astype(np.float32),
            accepted[replies],
            dict(left_out or {}),
        )


def by_episode(log: Log, values: np.ndarray) -> np.ndarray:
    """Return values (T, E, ...) of the active steps, one episode after the other."""
    return np.concatenate([values[:count, number] for number, count in enumerate(log.active.sum(axis=0))])


def recorded_episodes(
    bench: Bench, method: Method, seed: int, episodes: Sequence[int]
) -> tuple[Trajectories, Outcome]:
    """Run episodes of a task with a method; return all that was observed and executed, and the outcome."""
    world = make(bench.task)
    world.reset(seed, list(episodes))  # as the rollout does again: what is observed first
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


def corrected_episodes(
    bench: Bench, method: Method, seed: int, episodes: Sequence[int]
) -> tuple[Corrections, Outcome]:
    """Run episodes with a method that drafts and waits for replies; return its corrections, and outcome."""
    run, outcome = recorded_episodes(bench, method, seed, episodes)
    signature, log = bench.policies.draft.signature, outcome.log
    answered = by_episode(log, log.transmitted)
    refused = answered & by_episode(log, log.refused)
    corrections = Corrections.of_steps(
        replace(run, goals=run.goals[:, : signature.goal_dim]),
        answered & ~refused,
        by_episode(log, log.draft_action),
        by_episode(log, log.accepted),
        signature.history,
        {"refused": int(refused.sum())} if refused.any() else {},
    )
    return corrections, outcome
