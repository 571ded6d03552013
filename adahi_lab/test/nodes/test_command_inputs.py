"""What a simulated robot is commanded on several topics, put together."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.nodes.command_inputs import Joined, check_takes
from adahi_ros.contract.commanded import commanded_by_sink
from test.contract.test_commanded import NUMBERS, TRAJECTORY, TWO


def test_a_robot_takes_what_is_its_own() -> None:
    parts = commanded_by_sink(TWO)
    joints, kinds = ["mast", "elbow", "wrist"], [TRAJECTORY, NUMBERS]
    check_takes(TWO, parts, joints, "positions", kinds)
    with pytest.raises(
        ValueError, match=r"contract: commands \['elbow', 'wrist', 'mast'\], must be \['mast'\]"
    ):
        check_takes(TWO, parts, ["mast"], "positions", kinds)
    for field, takes in (("velocities", kinds), ("positions", kinds[:1])):
        with pytest.raises(
            ValueError, match=rf"contract: .* has positions as .*, must have {field} as one of"
        ):
            check_takes(TWO, parts, joints, field, takes)


def test_an_action_is_of_the_newest_of_each_sink_and_as_old_as_the_oldest() -> None:
    joined = Joined(commanded_by_sink(TWO), ["mast", "elbow", "wrist"])
    assert joined.add(0, np.array([1.0, 2.0]), 30) is None
    assert joined.add(0, np.array([3.0, 4.0]), 40) is None
    action, stamp = joined.add(1, np.array([5.0]), None) or (None, None)
    assert action is not None
    assert (action.tolist(), stamp) == ([5.0, 3.0, 4.0], 40)  # who cannot tell makes nothing older
    action, stamp = joined.add(1, np.array([6.0]), 20) or (None, None)
    assert action is not None
    assert (action.tolist(), stamp) == ([6.0, 3.0, 4.0], 20)
