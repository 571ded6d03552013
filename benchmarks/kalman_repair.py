# SPDX-License-Identifier: Apache-2.0
"""The proposer `rectified` without one of its parts, to be run beside it.

adahi evaluate TASK --methods rectified:expected_error@0,benchmarks/kalman_repair.py:CLASS --episodes 100
"""

from __future__ import annotations

import math

from adahi_ros.policies.interface import Policy
from adahi_ros.proposers.kalman import RectifiedProposer

TIGHTER = (1.0, 0.1, 0.3)  # tolerance, least, most


class NothingRepaired(RectifiedProposer):
    """Rejected actions are verified."""

    gate, threshold = "expected_error", 0.0

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy, resting=math.inf)


class TighterBounds(RectifiedProposer):
    """Bounds of the threshold are 0.4 of what they were."""

    gate, threshold = "expected_error", 0.0

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy, *TIGHTER)


class TighterNothingRepaired(RectifiedProposer):
    """Both."""

    gate, threshold = "expected_error", 0.0

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy, *TIGHTER, resting=math.inf)


class AlwaysRepaired(RectifiedProposer):
    """No rest after a repair."""

    gate, threshold = "expected_error", 0.0

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy, resting=0)
