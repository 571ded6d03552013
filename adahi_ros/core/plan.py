# SPDX-License-Identifier: Apache-2.0
"""The planned actions by control step, and the blending of overlapping plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

CROSSFADE_STEPS = 2
ENSEMBLE_RATE = 0.01  # m of ACT (arXiv 2304.13705): of N replies, the i-th oldest weighs exp(-m i)
Blend = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From the number of blended replies, at least one, and the control steps from the present one on, (M, S)
and (S,), to the weight (M, S) of a new reply."""


def _crossfade(held: np.ndarray, steps: np.ndarray) -> np.ndarray:
    # A reply that comes after the present step's command is at two thirds in the next one, then alone.
    return np.broadcast_to(np.minimum(1.0, (steps + 1) / (CROSSFADE_STEPS + 1)), held.shape)


def _ensemble(held: np.ndarray, steps: np.ndarray) -> np.ndarray:
    # exp(-m n) over the sum of exp(-m i) for i from 0 to n, a geometric series
    series = np.expm1(-ENSEMBLE_RATE * (held + 1)) / np.expm1(-ENSEMBLE_RATE)
    return np.asarray(np.exp(-ENSEMBLE_RATE * held) / series)


LATEST = "latest"
BLENDS: dict[str, Blend] = {
    LATEST: lambda held, steps: np.ones(held.shape),
    "crossfade": _crossfade,
    "temporal_ensemble": _ensemble,
}


class Plan:
    """Actions of B robots by control step; for each step, the latest request takes precedence. A `Held`.

    So late, duplicate or reordered replies do no harm. With blending, a reply that is older than a
    stored one, or already included, is ignored.

    Args:
        batch: B.
        action_dim: A.
        blend: combines the actions for one step; by default the latest replaces the others.
        at_once: indices of actions that are never blended, such as a gripper's goals.
    """

    alone = False
    steps: int | None = None
    figures: Mapping[str, object] = MappingProxyType({})

    def __init__(
        self, batch: int, action_dim: int, blend: Blend = BLENDS[LATEST], at_once: Sequence[int] = ()
    ) -> None:
        self._blend, self._at_once = blend, list(at_once)
        self._nothing = np.zeros((batch, 0, action_dim), dtype=np.float32)
        self._first = 0  # control step of the first slot
        self.forget()

    def forget(self) -> None:
        """Drop all actions."""
        self._actions, batch = self._nothing, len(self._nothing)
        self._requested = np.zeros((batch, 0), dtype=np.int64)  # step of each action's request; -1: none
        self._replies = np.zeros((batch, 0), dtype=np.int64)  # in each action, since the last replacement
        self._left: tuple[int, np.ndarray] | None = None  # cache of `left`, used often in a step
        self._newest = np.full(batch, -1)  # step of the latest request with a reply; -1: none

    def splice(
        self, actions: np.ndarray, first_step: int, requested_at: int, rows: np.ndarray | None = None
    ) -> None:
        """Store actions.

        Args:
            actions: (M, T, A), for the control steps from `first_step` on.
            first_step: of them.
            requested_at: control step of the request.
            rows: the M robots, by mask or index; None for all.
        """
        self._left = None
        self._reach(first_step + actions.shape[1])
        skipped = max(0, self._first - first_step)  # for past steps
        begin = first_step + skipped - self._first
        slots = slice(begin, begin + max(0, actions.shape[1] - skipped))
        which = np.arange(len(self._actions)) if rows is None else np.arange(len(self._actions))[rows]
        share = self._share(which, slots, requested_at)
        held, new = self._actions[which, slots], actions[:, skipped:]
        weights = np.repeat(share[..., None], new.shape[2], axis=2)
        weights[..., self._at_once] = share[..., None] > 0.0
        self._actions[which, slots] = (1.0 - weights) * held + weights * new
        self._replies[which, slots] = np.where(share == 1.0, 1, self._replies[which, slots] + (share > 0.0))
        self._requested[which, slots] = np.maximum(self._requested[which, slots], requested_at)
        self._newest[which] = np.maximum(self._newest[which], requested_at)

    def _share(self, which: np.ndarray, slots: slice, requested_at: int) -> np.ndarray:
        """Return the weight of a reply in the blended actions, (M, S)."""
        requested, replies = self._requested[which, slots], self._replies[which, slots]
        alone = (replies == 0) | ((requested == requested_at) & (replies == 1))
        weights = self._blend(np.maximum(replies, 1), np.arange(slots.start, slots.stop))
        return np.where(alone, 1.0, np.where(requested < requested_at, weights, 0.0))

    def forget_before(self, step: int) -> None:
        """Drop the actions before a control step."""
        self._left = None
        gone = min(max(0, step - self._first), self._actions.shape[1])
        self._actions, self._requested = self._actions[:, gone:], self._requested[:, gone:]
        self._replies = self._replies[:, gone:]
        self._first = max(self._first, step)

    def at(self, step: int) -> np.ndarray:
        """Return the actions (B, A) for a control step; NaN for robots without one."""
        slot = step - self._first
        batch, slots, action_dim = self._actions.shape
        if not 0 <= slot < slots:
            return np.full((batch, action_dim), np.nan, dtype=np.float32)
        return np.where(self._requested[:, slot, None] >= 0, self._actions[:, slot], np.float32(np.nan))

    def age(self, step: int) -> np.ndarray:
        """Return the age (B,), in steps, of the request of a step's action; infinite without one."""
        slot = step - self._first
        if not 0 <= slot < self._actions.shape[1]:
            return np.full(len(self._actions), np.inf)
        requested = self._requested[:, slot]
        return np.where(requested < 0, np.inf, step - requested)

    def since(self, step: int) -> np.ndarray:
        """Return the age (B,), in steps, of the latest answered request; infinite without one."""
        return np.where(self._newest < 0, np.inf, step - self._newest)

    def left(self, step: int) -> np.ndarray:
        """Return the number of planned steps (B,) from this one on, without a gap."""
        if self._left is not None and self._left[0] == step:
            return self._left[1]
        if step < self._first:
            return np.zeros(len(self._requested), dtype=np.int64)
        present = self._requested[:, step - self._first :] >= 0
        gaps = np.concatenate([~present, np.ones((len(present), 1), dtype=bool)], axis=1)
        counts: np.ndarray = gaps.argmax(axis=1)
        self._left = step, counts
        return counts

    def coming(self, step: int, count: int) -> np.ndarray:
        """Return the actions (B, count, A) from a step on; NaN where a robot has none."""
        ahead = self.ahead(step, count)
        ahead[np.arange(count) >= self.left(step)[:, None]] = np.nan
        return ahead

    def ahead(self, step: int, count: int) -> np.ndarray:
        """Return the actions (B, count, A) from a step on, the last one repeated; zeros without any."""
        left = self.left(step)
        ahead = np.zeros((len(left), count, self._actions.shape[2]), dtype=np.float32)
        some = np.flatnonzero(left)
        slots = step - self._first + np.minimum(np.arange(count), left[some, None] - 1)
        ahead[some] = self._actions[some[:, None], slots]
        return ahead

    def _reach(self, end: int) -> None:
        missing = end - self._first - self._actions.shape[1]
        if missing > 0:
            batch, _, action_dim = self._actions.shape
            more = np.zeros((batch, missing, action_dim), dtype=np.float32)
            none = np.full((batch, missing), -1, dtype=np.int64)
            self._actions = np.concatenate([self._actions, more], axis=1)
            self._requested = np.concatenate([self._requested, none], axis=1)
            self._replies = np.concatenate([self._replies, np.zeros_like(none)], axis=1)
