# SPDX-License-Identifier: Apache-2.0
"""Reasons why a command differs from its action."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np


class Intervention(IntEnum):
    """The reasons. The numbers are those of `SafetyState.msg`."""

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
    TAKEOVER = 15
    SHARED = 16
    MEASURED = 17


@dataclass(frozen=True)
class Admitted:
    """An admitted command.

    Attributes:
        action: (A,) float64, finite and within every limit. None where no command is possible: holding a
            position needs a measured or commanded one.
        interventions: why it differs from the wanted action, each once; empty if it does not.
    """

    action: np.ndarray | None
    interventions: tuple[Intervention, ...]
