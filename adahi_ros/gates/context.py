"""What a robot knows when it decides whether to ask."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from adahi_ros.policy.drafting import Draft


@dataclass(frozen=True)
class LinkEstimate:
    """What the robot knows of its link; NaN before the first question.

    Attributes:
        rtt_ms: average round-trip time, without the target's compute.
        rtt_deviation_ms: average distance from it.
        loss: average share of questions that seem to have lost a packet on their way.
        misses: average share of questions without an answer by the deadline.
        goodput_bytes_s: of questions answered in time and their answers, per second.
        questions: asked so far.
        answers: of them, answered in time.
    """

    rtt_ms: float = math.nan
    rtt_deviation_ms: float = math.nan
    loss: float = math.nan
    misses: float = math.nan
    goodput_bytes_s: float = 0.0
    questions: int = 0
    answers: int = 0


@dataclass(frozen=True)
class GateContext:
    """What B robots know when they decide.

    Attributes:
        draft: what they would do.
        deviation: (B,), its action deviation.
        uniforms: (B,) in [0, 1), for gates that decide by chance.
        windows: (B, H, O) float32, what they see.
        goals: (B, G) float32.
        link: how the way to the target is; None where there is no link, as in an evaluation in process.
    """

    draft: Draft
    deviation: np.ndarray
    uniforms: np.ndarray
    windows: np.ndarray
    goals: np.ndarray
    link: LinkEstimate | None = None
