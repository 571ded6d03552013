from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.tasks.camera import KitchenCamera, KitchenCameraExpert
from adahi_lab.tasks.kitchen import Kitchen
from adahi_lab.tasks.kitchen_camera import COLUMNS, ROWS, KitchenView


@pytest.fixture(scope="module")
def view() -> KitchenView:
    view, kitchen = KitchenView(), Kitchen()
    try:
        view.photograph(kitchen, np.array([0]))
    except RuntimeError as error:
        pytest.skip(str(error))
    return view


def test_labels_are_the_arm_and_what_it_is_to_move_without_noise() -> None:
    view, kitchen = KitchenView(), Kitchen()
    kitchen.reset(0, [1, 2])
    labels = view.labels(kitchen)
    assert labels.shape == (2, len(view.label_names))
    assert {"microwave_rad", "kettle_x_m", "light_switch_rad", "slide_cabinet_m"} <= set(view.label_names)
    kettle = view.label_names.index("kettle_x_m")
    place = kitchen.world.goal_indices["kettle"][0]
    np.testing.assert_array_equal(labels[:, kettle], kitchen.true_positions[:, place])


def test_the_kitchen_from_a_camera_is_a_task(view: KitchenView) -> None:
    task, expert = KitchenCamera(), KitchenCameraExpert()
    task.reset(0, [1, 2])
    expert.reset(0, [1, 2])
    first = task.observation
    assert first.shape == (2, task.spec.observation_dim)
    assert task.images.shape == (2, ROWS, COLUMNS, 3)
    task.step(expert.act(task))
    assert not np.array_equal(task.observation, first)
