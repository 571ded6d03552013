# SPDX-License-Identifier: Apache-2.0
"""Prefix: of a draft of several actions, the leading ones near the target's own are kept.

Sequence-wise relaxed acceptance: groups of entries are near or far, not single entries. HeiSD's groups are
position, rotation and gripper of one action (arXiv 2603.17573). Here an action is one group, and each is
checked only if the previous one is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_ros.acceptance.interface import Acceptance, Verdict
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.registry import argument

TOGETHER = 2.0 / 3.0  # largest mean distance as a share of an entry's
FAR = 1e6  # times the largest distance of an entry
LONGEST = 64  # checked actions: a reply has no more parts


@dataclass(eq=False)
class Prefix(Acceptance):
    """Keeps a draft up to its first action far from the target's.

    The mean difference over an action is at most two thirds of the largest one of an entry.
    """

    needs_actions = True

    within: float = argument(
        0.25, "Largest difference of each entry of an action, in action scales", 0.0, 1e6
    )

    def verify(self, draft: Proposal, target: Proposal, draws: np.ndarray) -> Verdict:
        """See `Acceptance`; a part for each action, or one, not kept, without actions."""
        count = min(draft.actions.shape[1], target.actions.shape[1], LONGEST)
        actions = target.actions.copy()
        if not count:
            return Verdict(actions, np.zeros((len(actions), 1), dtype=bool))
        own = draft.actions[:, :count]
        # A distance of 0 is near even if `within` is 0; far distances are clipped.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            off = np.abs(own - actions[:, :count]) / (self.within * self.action_scale)
            off = np.nan_to_num(off, posinf=FAR).clip(max=FAR)
        near = (off <= 1.0).all(axis=2) & (off.mean(axis=2) <= TOGETHER)
        kept = np.logical_and.accumulate(near, axis=1)
        actions[:, :count] = np.where(kept[..., None], own, actions[:, :count])
        return Verdict(actions, kept)
