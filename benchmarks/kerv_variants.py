"""KERV's proposer without one of its parts, to be run beside it.

adahi evaluate TASK --methods kerv,benchmarks/kerv_variants.py:NothingRepaired --episodes 100 --seed 11
"""

from __future__ import annotations

import math

from adahi_ros.policy.interface import Policy
from adahi_ros.robot.kalman import RectifiedProposer


class NothingRepaired(RectifiedProposer):
    """What is rejected is verified."""

    gate, threshold = "expected_error", 0.0

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy, resting=math.inf)


class TighterBounds(RectifiedProposer):
    """What is rejected is verified, and bounds of the threshold are 0.4 of what they were."""

    gate, threshold = "expected_error", 0.0

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy, least=0.1, most=0.3, resting=math.inf)


class AlwaysRepaired(RectifiedProposer):
    """No rest after a repair."""

    gate, threshold = "expected_error", 0.0

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy, resting=0)
