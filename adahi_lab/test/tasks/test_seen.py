"""A world whose camera is for the target alone: what the robot observes says nothing of the picture."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.tasks import make, make_expert, names
from adahi_lab.tasks.camera import BallSeen
from adahi_ros.server.received_images import ReceivedImages
from adahi_ros.vision.images import to_jpeg
from adahi_ros.vision.interface import QUALITY

EPISODES = [3, 0, 8]


@pytest.fixture(scope="module")
def world() -> BallSeen:
    return BallSeen()


@pytest.mark.parametrize("name", names())
def test_this_shows_its_images_to_the_target_alone_and_no_other(name: str) -> None:
    assert make(name).spec.images_for_target == (name == "ball_seen")


def test_observations_follow_actions_whatever_the_picture_shows(world: BallSeen) -> None:
    observed, pictures = [], []
    for turn in (1.0, -1.0):
        world.reset(2, EPISODES)
        world.watched._goal = turn * world.watched._goal  # type: ignore[attr-defined]
        rows = [world.observation]
        pictures.append(world.images)
        for step in range(15):
            world.step(np.full((3, 2), 0.1 * np.sin(step)))
            rows.append(world.observation)
        observed.append(np.stack(rows))
    np.testing.assert_array_equal(observed[0], observed[1])
    assert (pictures[0] != pictures[1]).any(axis=(1, 2, 3)).all()


def test_the_target_sees_what_a_verifier_makes_of_the_jpegs(world: BallSeen) -> None:
    expert, verifier = make_expert("ball_seen"), ReceivedImages(world.encoder)
    for each in (world, expert):
        each.reset(1, EPISODES)
    for _ in range(5):
        received = [verifier.encode(to_jpeg(image, QUALITY)) for image in world.images]
        np.testing.assert_array_equal(world.image_features, received)
        world.step(expert.act(world))
