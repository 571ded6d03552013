from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from adahi_lab.evaluation.step_link import Across, LinkCourse, StepLink

STEPS, EPISODES = 400, range(40)


def trips(link: StepLink, episodes: range = EPISODES, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return steps taken and who is lost, (T, E), of a request at every step."""
    course = LinkCourse(link, seed, episodes)
    taken, lost = zip(*(course.round_trip(step) for step in range(STEPS)), strict=True)
    return np.stack(taken), np.stack(lost)


def test_the_lost_share_is_the_loss_and_takes_as_long_as_the_timeout() -> None:
    link = StepLink(delay=2, jitter=1, loss=0.3)
    taken, lost = trips(link)
    assert abs(lost.mean() - 0.3) < 0.02
    assert (taken[lost] == link.timeout).all()
    assert (taken[~lost] < link.timeout).all()


def test_outages_last_and_come_as_often_as_requested() -> None:
    link = StepLink(outage=8, between=32)
    _, down = trips(link)  # without a delay, lost is who is down
    assert not down[0].any()
    ends = (down[:-1] & ~down[1:]).sum()
    begins = (~down[:-1] & down[1:]).sum()
    assert down[:-1].sum() / ends == pytest.approx(8, rel=0.15)
    assert (~down[:-1]).sum() / begins == pytest.approx(32, rel=0.15)


def test_a_reply_that_would_be_there_in_an_outage_is_lost() -> None:
    _, down = trips(StepLink(outage=8, between=32))
    _, lost = trips(StepLink(delay=5, outage=8, between=32))
    np.testing.assert_array_equal(lost[:-5], down[:-5] | down[5:])


def test_draws_are_addressed_by_seed_and_episode_and_step() -> None:
    link = StepLink(1, 4, 0.2, 5, 20)
    taken, lost = trips(link)
    alone = trips(link, range(7, 8))
    np.testing.assert_array_equal(alone[0][:, 0], taken[:, 7])
    np.testing.assert_array_equal(alone[1][:, 0], lost[:, 7])
    course = LinkCourse(link, 3, EPISODES)  # asked about late, and out of order
    for step in (300, 2):
        np.testing.assert_array_equal(course.round_trip(step)[0], taken[step])
    assert not np.array_equal(trips(link, seed=4)[0], taken)


def test_who_is_held_repeats_a_position_and_stops_a_velocity() -> None:
    executed = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(Across(StepLink(), "positions").hold(executed), executed)
    np.testing.assert_array_equal(Across(StepLink(), "velocities").hold(executed), np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"delay": -1}, "delay: -1, must be a whole number from 0 to 10000"),
        ({"jitter": 0.5}, "jitter: 0.5, must be a whole number from 0 to 10000"),
        ({"loss": 1.0}, "loss: 1.0, must be at least 0 and below 1"),
        ({"outage": 0.5}, "outage: 0.5, must be 0, or at least 1 and finite"),
        ({"between": float("nan")}, "between: nan, must be at least 1 and finite"),
    ],
)
def test_what_no_link_can_be_is_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        StepLink(**values)
