# SPDX-License-Identifier: Apache-2.0
"""Sets when a robot requests the next plan, by the corrector's own error estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from adahi_lab.calibration.calibrate import Wanted, calibrate_recorded
from adahi_lab.calibration.target_plans import Planned, RecordedTarget, numbered
from adahi_lab.evaluation.loaded_policies import Policies
from adahi_ros.policies.absent import AbsentPolicy
from adahi_ros.policies.corrector.corrector import Corrector

GATE = "expected_error"
PLANS_USED = 0.5  # of a plan's actions, on average


class Asking(NamedTuple):
    """A gate.

    Attributes:
        threshold: of the gate `GATE`.
        rate: share of recorded observations with a request.
    """

    threshold: float
    rate: float


def asking_rate(horizon: int) -> float:
    """Return the share of steps with a request if half of each plan of so many actions is executed."""
    return 1.0 / max(2.0, PLANS_USED * horizon)


def ask_by_expected_error(
    planned: Planned, corrector: Corrector, digest: str, episodes: Sequence[int], seed: int
) -> Asking:
    """Return the expected error at which to request, so that on average half of each plan is executed.

    In open loop, at recorded observations.

    Args:
        planned: the recording and the target's plans.
        corrector: of its plans.
        digest: of the target.
        episodes: numbers of those to measure on, preferably not used in training.
        seed: of all draws.
    """
    target, recorded = RecordedTarget(planned, digest), numbered(planned).episodes(episodes)
    signature = target.signature
    absent = AbsentPolicy(recorded.observations.shape[1], signature.goal_dim, signature.action_dim)
    absent.signature = replace(absent.signature, conditions=corrector.signature.conditions)
    policies = Policies(absent, target, target, corrector)
    method = f"corrector:{GATE}"
    wanted = Wanted(asking_rate(planned.horizon), methods=[method])
    found = calibrate_recorded(policies, recorded, wanted, seed)
    return Asking(found.thresholds[method], found.figures["measured_rates"][method])
