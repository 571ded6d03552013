# SPDX-License-Identifier: Apache-2.0
"""Prefix: of a draft of several actions, as many stand as are near to the target's own, from the first on.

Sequence-wise relaxed acceptance, after HeiSD (arXiv 2603.17573): what is told near or far is not an entry by
itself but all that belong together. Theirs are position, rotation and gripper of one action, 30 bins in all
and 15 in any entry; here an action is one sequence, and the next is looked at where the one before stands.
"""

from __future__ import annotations

import numpy as np

from adahi_ros.acceptance.interface import Acceptance, Verdict
from adahi_ros.core.proposal import Proposal

TOGETHER = 2.0 / 3.0  # of what one entry may be off, all may be on average: 30 bins of three times 15
FAR = 1e6  # of what an entry may be off
LONGEST = 64  # actions that are looked at: a reply has no more parts


class Prefix(Acceptance):
    """Keeps a draft up to its first action that is not near to the target's; the rest is the target's.

    Args:
        within: (A,) in action units, how far off an entry may be, and the mean over an action two thirds of
            it; infinite where nobody says, as on a robot.
    """

    needs_actions = True
    takes_distance = True

    def __init__(self, within: np.ndarray | float = np.inf) -> None:
        self._within = within

    def verify(
        self,
        draft: Proposal,
        target: Proposal,
        draws: np.ndarray,
        round_trip_ms: np.ndarray | None = None,
    ) -> Verdict:
        """See `Acceptance`; a part for each action, or one, not kept, where there is none."""
        count = min(draft.actions.shape[1], target.actions.shape[1], LONGEST)
        actions = target.actions.copy()
        if not count:
            return Verdict(actions, np.zeros((len(actions), 1), dtype=bool))
        own = draft.actions[:, :count]
        # Nothing off, where nothing may be, is near; and what is far may be as far as you like.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            off = np.nan_to_num(np.abs(own - actions[:, :count]) / self._within, posinf=FAR).clip(max=FAR)
        near = (off <= 1.0).all(axis=2) & (off.mean(axis=2) <= TOGETHER)
        kept = np.logical_and.accumulate(near, axis=1)
        actions[:, :count] = np.where(kept[..., None], own, actions[:, :count])
        return Verdict(actions, kept)
