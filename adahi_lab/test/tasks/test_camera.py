from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.tasks import make, make_expert
from adahi_lab.tasks.ball import BallBalancing
from adahi_lab.tasks.ball_camera import REACH_M, ROWS, BallView
from adahi_lab.tasks.camera import CameraExpert, CameraTask, Film, exposed, make_view
from adahi_lab.tasks.frames import EVERY, record_frames

STEPS = 15


def played(task: CameraTask, expert: CameraExpert, episodes: list[int], steps: int = STEPS) -> None:
    task.reset(4, episodes)
    expert.reset(4, episodes)
    for _ in range(steps):
        task.step(expert.act(task))


def redness(frame: np.ndarray) -> np.ndarray:
    """How much of each pixel is the ball's colour."""
    excess: np.ndarray = np.clip(frame[..., 0].astype(float) - frame[..., 2] - 30.0, 0.0, None)
    return excess


def place_of_the_ball(frame: np.ndarray) -> np.ndarray:
    """Where the red is, in metres at the height of the plate's centre."""
    weight = redness(frame)
    side = REACH_M * (1.0 - (2.0 * np.arange(ROWS) + 1.0) / ROWS)
    return np.array([weight.sum(axis=1) @ side, weight.sum(axis=0) @ side]) / weight.sum()


def test_the_view_shows_the_ball_where_it_is_finer_than_a_pixel() -> None:
    task = BallBalancing()
    task.reset(0, range(50))
    frames = BallView().photograph(task, np.arange(50))
    assert frames.shape == (50, ROWS, ROWS, 3)
    for frame, state in zip(frames, task.state, strict=True):
        # The level plate: the ball's centre is a little nearer than the plate.
        np.testing.assert_allclose(place_of_the_ball(frame), state[:2] * 0.75 / 0.73, atol=0.002)


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


def test_an_episode_that_is_done_is_not_photographed_again() -> None:
    task, expert = make("ball_camera"), make_expert("ball_camera")
    assert isinstance(task, CameraTask)
    task.reset(0, [0, 1])
    expert.reset(0, [0, 1])
    while not task.done.all():
        task.step(expert.act(task))
    before, features = task.images, task.state
    task.step(np.zeros((2, 2)))
    np.testing.assert_array_equal(task.images, before)
    np.testing.assert_array_equal(task.state, features)


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


def test_what_is_given_is_a_copy() -> None:
    task = make("ball_camera")
    assert isinstance(task, CameraTask)
    for given in (task.images, task.state, task.observation):
        kept = given.copy()
        given[:] = 0
        assert kept.any()
    assert task.images.any()
    assert task.state.any()


def test_a_sensors_frame_differs_with_its_draws_and_stays_near_the_picture() -> None:
    images = np.full((3, 8, 6, 3), 128, dtype=np.uint8)
    draws = np.array([[0.5, 0.1, 0.2], [0.5, 0.7, 0.4], [0.999, 0.1, 0.2]])
    seen = exposed(images, draws).astype(float)
    assert not np.array_equal(seen[0], seen[1])
    assert np.abs(seen[:2] - 128).max() < 12
    assert seen[2].mean() > 1.05 * seen[0].mean()
    np.testing.assert_array_equal(exposed(images[1:2], draws[1:2])[0], seen[1])


def test_the_shipped_encoder_tells_the_balls_place() -> None:
    task, expert = CameraTask("ball"), make_expert("ball_camera")
    features, places = [], []
    task.reset(9, range(20))
    expert.reset(9, range(20))
    for _ in range(30):
        features.append(task.observation)
        places.append(task.watched.state[:, :2])
        task.step(expert.act(task))
    rows = np.concatenate(features)
    rows = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    wanted = np.concatenate(places)
    fitted, *_ = np.linalg.lstsq(rows[::2], wanted[::2], rcond=None)
    error = rows[1::2] @ fitted - wanted[1::2]
    assert np.sqrt(np.mean(np.square(error))) < 0.01  # m; a pixel is as wide


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
