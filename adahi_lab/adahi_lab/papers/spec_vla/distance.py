# SPDX-License-Identifier: Apache-2.0
"""Distance: the draft is kept while it is near the target's own proposal.

Relaxed acceptance for numeric actions, as Spec-VLA (arXiv 2507.22424) does for tokens. The result is not
distributed as the target's own proposals, but its distance from one is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_ros.acceptance.interface import Acceptance, Verdict
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.registry import argument


@dataclass(eq=False)
class Distance(Acceptance):
    """Keeps a draft with every entry, at every step, near the target's; otherwise the target's plan.

    If a draft is shorter than the target's plan, the rest is the target's.
    """

    needs_actions = True
    keeps_drafts = True

    within: float = argument(
        0.25, "Largest difference of each entry of an action, in action scales", 0.0, 1e6
    )

    def verify(self, draft: Proposal, target: Proposal, draws: np.ndarray) -> Verdict:
        """See `Acceptance`; one part, the whole draft."""
        count = min(draft.actions.shape[1], target.actions.shape[1])
        own = draft.actions[:, :count]
        near = (np.abs(own - target.actions[:, :count]) <= self.within * self.action_scale).all(
            axis=(1, 2)
        ) & (count > 0)
        actions = target.actions.copy()
        actions[near, :count] = own[near]
        return Verdict(actions, near[:, None])
