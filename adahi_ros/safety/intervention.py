# SPDX-License-Identifier: Apache-2.0
"""Why a command is not the action that was wanted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np


class Intervention(IntEnum):
    """The reasons. The numbers are those of `SafetyState.msg`; to count them is `Counter.update`."""

    POSITION = 0
    VELOCITY = 1
    ACCELERATION = 2
    STEP = 3
    NOT_FINITE = 4
    STALE = 5
    DISABLED = 6
    DEACTIVATED = 7
    EFFORT = 8
    UNVERIFIED = 9
    DISPLACED = 10
    FOLLOWING = 11
    DRIVER = 12
    WORKSPACE = 13
    GRIPPER = 14


@dataclass(frozen=True)
class Admitted:
    """What may go out.

    Attributes:
        action: (A,) float64, finite and within every limit. None where nothing may: to hold a position
            takes one, and none has been measured or commanded yet.
        interventions: why it is not the action that was wanted, each once; empty where it is.
    """

    action: np.ndarray | None
    interventions: tuple[Intervention, ...]
