# SPDX-License-Identifier: Apache-2.0
"""Speculative sampling of action codes.

Leviathan et al., "Fast inference from transformers via speculative decoding" (2023), section 2.3;
the ADAHI paper, section III-B1. Codebooks are independent, so each is tested by itself; where codes depend on
those before them, the target's distributions decide.

The caller passes uniform draws, so every result can be repeated.
"""

from __future__ import annotations

import numpy as np

from adahi_ros.acceptance.interface import Acceptance, Verdict
from adahi_ros.core.proposal import Proposal, probabilities_at, residual, sample


def speculative_sample(
    p: np.ndarray, q: np.ndarray, codes: np.ndarray, uniforms: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Accept or resample codes so that the result is distributed as q.

    That holds for all codes sampled from p. It does not hold for codes that a gate selected by their
    values (gates that are not `blind`): these are no sample of p.

    Args:
        p: (..., N, K), the distributions of the sampled codes.
        q: (..., N, K), the target's.
        codes: (..., N).
        uniforms: (..., N, 2), in [0, 1): for the test, and for the resampling.

    Returns:
        codes (..., N) int64 and whether each was accepted (..., N) bool.
    """
    p_code = probabilities_at(p, codes).astype(np.float64)
    q_code = probabilities_at(q, codes).astype(np.float64)
    # u < min(1, q/p), without the division: right for p = 0 too, and always true for q = p > 0.
    accepted = uniforms[..., 0] * p_code < q_code
    resampled = sample(residual(p, q), uniforms[..., 1])
    return np.where(accepted, codes, resampled), accepted


class Speculative(Acceptance):
    """Accepts or resamples each code of a draft.

    Where codes are not independent, the target's distributions do so: `CodeDistribution.decided`.
    """

    exact = True
    needs_codes = True
    gives_codes = True

    def verify(self, draft: Proposal, target: Proposal, draws: np.ndarray) -> Verdict:
        """See `Acceptance`.

        Raises:
            ValueError: the draft has no codes.
        """
        ours, theirs = draft.distribution, target.distribution
        if ours is None or theirs is None:
            raise ValueError("rule: speculative, must be replace or distance for proposals without codes")
        codes, accepted = theirs.decided(ours, draws) or speculative_sample(
            ours.probabilities, theirs.probabilities, ours.codes, draws
        )
        return Verdict(theirs.actions_of(codes), accepted, codes=codes)
