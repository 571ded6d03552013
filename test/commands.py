"""Commands as messages, for tests that play a robot's policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adahi_ros.contract.sinks.interface import Command
from adahi_ros.contract.sinks.joint_trajectory import JointTrajectorySink
from adahi_ros.nodes.common.qos import new_message


def trajectory(names: Sequence[str], positions: np.ndarray, stamp_ns: int) -> Any:
    """Return the JointTrajectory of positions (A,) at 20 Hz, whatever they are."""
    zeros = np.zeros(len(names))
    message = JointTrajectorySink().message(Command(names, "positions", zeros, 0.05, stamp_ns), new_message)
    message.points[0].positions = positions.tolist()
    return message
