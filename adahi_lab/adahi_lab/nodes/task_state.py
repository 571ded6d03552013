# SPDX-License-Identifier: Apache-2.0
"""Converts arrays to the state of a task."""

from __future__ import annotations

import numpy as np
from adahi_msgs.msg import TaskState
from std_msgs.msg import Header

from adahi_ros.contract.sinks.interface import doubles
from adahi_ros.nodes.common.messages import to_stamp


def to_task_state(
    state: np.ndarray, goal: np.ndarray, episode: int, step: int, stamp_ns: int, frame_id: str = ""
) -> TaskState:
    """Make a TaskState from state (S,) and goal (G,), measured in a frame."""
    return TaskState(
        header=Header(stamp=to_stamp(stamp_ns), frame_id=frame_id),
        episode_id=episode,
        step_id=step,
        state=doubles(state),
        goal=doubles(goal),
    )
