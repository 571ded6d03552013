# SPDX-License-Identifier: Apache-2.0
"""Replace: the target's proposal, for any draft."""

from __future__ import annotations

import numpy as np

from adahi_ros.acceptance.interface import Acceptance, Verdict
from adahi_ros.core.proposal import Proposal


class Replace(Acceptance):
    """The target's own actions, for any draft."""

    exact = True
    gives_codes = True
    of_plans = True

    def verify(self, draft: Proposal, target: Proposal, draws: np.ndarray) -> Verdict:
        """See `Acceptance`."""
        ours, theirs = draft.distribution, target.distribution
        codes = None if theirs is None else theirs.codes
        if ours is None or codes is None or ours.codes.shape != codes.shape:
            return Verdict(target.actions, np.zeros((len(target.actions), 0), dtype=bool), codes=codes)
        return Verdict(target.actions, codes == ours.codes, codes=codes)
