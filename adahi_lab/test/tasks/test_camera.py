from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.tasks import make, make_expert
from adahi_lab.tasks.ball import BallBalancing
from adahi_lab.tasks.ball_camera import ROWS, BallView
from adahi_lab.tasks.camera import CameraExpert, CameraTask, Film, make_view
from adahi_lab.tasks.frames import EVERY, record_frames

STEPS = 15


def played(task: CameraTask, expert: CameraExpert, episodes: list[int], steps: int = STEPS) -> None:
    task.reset(4, episodes)
    expert.reset(4, episodes)
    for _ in range(steps):
        task.step(expert.act(task))


def test_a_tilt_lifts_what_is_forward_or_left_as_rep_103_says() -> None:
    def extent(action: list[float]) -> np.ndarray:
        task = BallBalancing()
        task.reset(0, [0])
        for _ in range(10):
            task.step(np.array([action]))
        bright = BallView().photograph(task, np.array([0]))[0].min(axis=-1) > 180
        half = ROWS // 2
        return np.array(
            [bright[:half].sum(), bright[half:].sum(), bright[:, :half].sum(), bright[:, half:].sum()]
        )

    forward, back, left, right = extent([0.0, 0.15])  # positive pitch lowers the front edge
    assert forward < back
    forward, back, left, right = extent([0.15, 0.0])  # positive roll lifts the left edge
    assert left > right


def test_frames_and_features_are_the_same_alone_and_side_by_side() -> None:
    together, expert = make("ball_camera"), make_expert("ball_camera")
    assert isinstance(together, CameraTask)
    assert isinstance(expert, CameraExpert)
    played(together, expert, [3, 0, 8])
    alone = make("ball_camera")
    assert isinstance(alone, CameraTask)
    for row, episode in enumerate([3, 0, 8]):
        played(alone, expert, [episode], STEPS - 1)
        alone.images, alone.state  # noqa: B018 (a look changes nothing)
        alone.step(expert.act(alone))
        np.testing.assert_array_equal(alone.images[0], together.images[row])
        np.testing.assert_array_equal(alone.observation[0], together.observation[row])


def test_the_episode_is_the_one_of_the_task_that_is_looked_at() -> None:
    task, expert = make("ball_camera"), make_expert("ball_camera")
    ball, its_expert = make("ball"), make_expert("ball")
    for world, driver in ((task, expert), (ball, its_expert)):
        world.reset(1, [5, 6])
        driver.reset(1, [5, 6])
        for _ in range(STEPS):
            world.step(driver.act(world))
    np.testing.assert_array_equal(task.joint_positions, ball.joint_positions)
    np.testing.assert_array_equal(task.goal, ball.goal)
    assert task.spec.joint_names == ball.spec.joint_names
    assert task.spec.frame_id == "plate"


def test_a_frame_is_taken_once_per_step_and_only_when_somebody_looks() -> None:
    taken: list[int] = []

    class Counting(BallView):
        def photograph(self, task: BallBalancing, rows: np.ndarray) -> np.ndarray:
            taken.extend(rows)
            return super().photograph(task, rows)

    task = BallBalancing()
    film = Film(task, Counting())
    task.reset(0, [0, 1])
    film.reset(0, [0, 1])
    for _ in range(3):
        task.step(np.zeros((2, 2)))
        film.advance(np.array([True, True]))
    assert taken == []
    film.images[:] = 0  # a copy
    assert film.images.any()
    assert taken == [0, 1]


def test_an_encoder_for_frames_of_another_size_is_refused() -> None:
    encoder = CameraTask("ball").encoder
    encoder.image_size = (32, 32)
    with pytest.raises(ValueError, match=r"encoder: for frames of \(32, 32\), must be \(64, 64\)"):
        CameraTask("ball", encoder)


def test_a_task_that_no_camera_looks_at_is_reported() -> None:
    with pytest.raises(ValueError, match="task: 'swarm', must be one that a camera looks at: ball, "):
        make_view("swarm")
    with pytest.raises(ValueError, match="task: 'ball', must be one that a camera looks at"):
        CameraExpert("ball").act(BallBalancing())


def test_frames_to_learn_from_are_the_same_for_any_number_of_processes() -> None:
    images, labels = record_frames("ball", 12, 3, 0.3)
    assert images.shape[1:] == (ROWS, ROWS, 3)
    assert labels.shape == (len(images), len(BallView.label_names))
    reported: list[tuple[int, int]] = []
    shared = record_frames("ball", 12, 3, 0.3, 2, lambda done, episodes: reported.append((done, episodes)))
    np.testing.assert_array_equal(shared[0], images)
    np.testing.assert_array_equal(shared[1], labels)
    assert sorted(reported)[-1] == (12, 12)
    assert len(images) > 12 * 30 / EVERY
