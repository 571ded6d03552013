from __future__ import annotations

import numpy as np

from adahi_lab.tasks.libero.grip_points import HANDLES_M, GripPoints

NAMES = (
    *(f"hand_{axis}_m" for axis in "xyz"),
    *(f"plate_1_{axis}_m" for axis in "xyz"),
    *(f"wooden_cabinet_1_{drawer}_level_m" for drawer in HANDLES_M),
    *(f"{fixture}_{axis}_m" for fixture in ("wooden_cabinet_1", "flat_stove_1") for axis in "xy"),
)
STATE = np.array([0.1, 0.2, 1.0, 0.0, 0.0, 0.9, -0.05, 0.0, 0.0, -0.3, -0.4, 0.2])


def test_nearness_is_of_every_point_that_the_scene_has() -> None:
    points = GripPoints(NAMES)
    assert points.names[::3] == (
        "plate_1_nearness_x",
        "wooden_cabinet_1_top_handle_nearness_x",
        "wooden_cabinet_1_middle_handle_nearness_x",
        "flat_stove_1_knob_nearness_x",
    )
    assert points.nearness(STATE).shape == (len(points.names),) == (12,)
    assert GripPoints(NAMES[:3]).names == ()
    assert GripPoints(NAMES[:3]).nearness(STATE[:3]).shape == (0,)
