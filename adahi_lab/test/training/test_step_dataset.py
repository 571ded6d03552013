from __future__ import annotations

import numpy as np

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.training.step_dataset import Moments, action_chunks


def uneven() -> Trajectories:
    """Episodes of 1, 4 and 7 steps; every number tells its step."""
    steps = np.arange(12, dtype=np.float32)
    return Trajectories(
        "toy",
        steps[:, None],
        np.stack([steps, -steps], axis=1),
        np.eye(3, dtype=np.float32),
        np.array([1, 5, 12]),
    )


def test_chunks_look_ahead_and_repeat_the_last_action_of_the_episode() -> None:
    chunks = action_chunks(uneven(), 3)
    assert chunks[:, :, 0].tolist()[:6] == [[0, 0, 0], [1, 2, 3], [2, 3, 4], [3, 4, 4], [4, 4, 4], [5, 6, 7]]
    np.testing.assert_array_equal(chunks[:, :, 1], -chunks[:, :, 0])
    np.testing.assert_array_equal(action_chunks(uneven(), 1)[:, 0], uneven().actions)


def test_moments_scale_to_unit_deviation_and_leave_what_never_moves() -> None:
    draw = np.random.default_rng(0)
    values = (draw.normal(size=(500, 3)) * [3.0, 0.01, 0.0] + [5.0, -1.0, 2.0]).astype(np.float32)
    moments = Moments.measure(values)
    scaled = (values - moments.mean) / moments.scale
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-4)
    np.testing.assert_allclose(scaled.std(axis=0), [1.0, 1.0, 0.0], atol=1e-4)
    assert Moments.measure(np.zeros((4, 0), np.float32)).scale.shape == (0,)
