# SPDX-License-Identifier: Apache-2.0
"""Replace: the target's proposal, for any draft."""

from __future__ import annotations

import numpy as np

from adahi_ros.acceptance.interface import Acceptance, Verdict
from adahi_ros.core.proposal import Proposal


class Replace(Acceptance):
    """The target's own actions, for any draft."""

    exact = True

    def verify(
        self,
        draft: Proposal,
        target: Proposal,
        draws: np.ndarray,
        round_trip_ms: np.ndarray | None = None,
    ) -> Verdict:
        """See `Acceptance`."""
        ours, theirs = draft.distribution, target.distribution
        if ours is None or theirs is None or ours.codes.shape != theirs.codes.shape:
            return Verdict(target.actions, np.zeros((len(target.actions), 0), dtype=bool))
        return Verdict(target.actions, theirs.codes == ours.codes)
