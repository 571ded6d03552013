# SPDX-License-Identifier: Apache-2.0
"""Self-correction as in E2CL's released code: a correction that would be refused, too, is not executed.

adahi evaluate ball --methods benchmarks/self_correction.py:JudgedTwiceProposer --episodes 100
"""

from __future__ import annotations

import numpy as np

from adahi_ros.core.assets import asset
from adahi_ros.policies.interface import Policy
from adahi_ros.policies.self_correction import SelfCorrection
from adahi_ros.proposers.self_correcting import SelfCorrectingProposer

FILE = "checkpoints/ball/feedback.safetensors"


class JudgedTwice(SelfCorrection):
    """Judges its correction as it judges a draft.

    Attributes:
        above: see `SelfCorrectingProposer`.
    """

    above = 0.5

    def judge(
        self, windows: np.ndarray, goals: np.ndarray, drafted: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `SelfCorrection`; a draft is not refused where its correction would be."""
        refused, corrected = super().judge(windows, goals, drafted)
        again, _ = super().judge(windows, goals, corrected)
        return np.where(again > self.above, 0.0, refused), corrected


class JudgedTwiceProposer(SelfCorrectingProposer):
    """Executes a correction only where it would be accepted."""

    gate, rule = "never", "replace"

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy, str(asset(FILE)), JudgedTwice.above)
        self._network = JudgedTwice(**vars(self._network))
