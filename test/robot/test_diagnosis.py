"""What a robot's diagnostics tell of it, from one activation to the next, in simulated time."""

from __future__ import annotations

from typing import Any

import pytest

from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.core.health_level import Health, Level
from adahi_ros.protocol.request import RequestFault
from adahi_ros.robot.diagnosis import Diagnosis, News
from test.robot.conftest import Robot

PERIOD_S = 0.05


def report(condition: Diagnosis, robot: Robot, **changes: Any) -> Health:
    values: dict[str, Any] = {
        "enabled": True,
        "stopped": False,
        "interventions": {"velocity": 3},
        "verifiers": {},
        **changes,
    }
    now_s = robot.link.now_s
    return condition.report(robot.session, robot.loop, now_s=now_s, now_ns=int(now_s * NANOSECONDS), **values)


@pytest.fixture
def condition(robot: Robot) -> Diagnosis:
    made = Diagnosis(robot.link.now_s)
    made.active = True
    return made


def test_inputs_are_counted_until_the_next_activation(robot: Robot, condition: Diagnosis) -> None:
    for _ in range(2):
        condition.ignored("goal[0]")
    condition.missed("joint_states")
    robot.pass_time(0.5)
    level, message, figures = report(condition, robot)
    assert (level, message) == (Level.WARN, "input ignored")
    assert (figures["ignored.goal[0]"], figures["missed.joint_states"]) == (2, 1)
    assert (figures["active"], figures["link"], figures["safety.velocity"]) == (True, "verifier ready", 3)
    robot.pass_time(0.5)
    assert report(condition, robot)[:2] == (Level.OK, "stepping")  # it was told
    condition.forget(robot.link.now_s)
    robot.pass_time(0.5)
    assert not [name for name in report(condition, robot)[2] if name.startswith(("ignored", "missed"))]


def test_a_robot_without_observations_is_in_error_and_shows_their_age(
    robot: Robot, condition: Diagnosis
) -> None:
    robot.pass_time(0.9)
    level, message, figures = report(condition, robot)
    assert (level, message, figures["observation_age_s"]) == (Level.OK, "stepping", "inf")
    robot.pass_time(0.2)
    assert report(condition, robot)[:2] == (Level.ERROR, "no observation")
    condition.observed(int((robot.link.now_s - 0.25) * NANOSECONDS), robot.link.now_s)
    robot.pass_time(0.5)
    level, message, figures = report(condition, robot)
    assert (level, message, figures["observation_age_s"]) == (Level.OK, "stepping", "0.750")
    condition.begin(robot.link.now_s)
    robot.pass_time(0.9)
    level, message, figures = report(condition, robot)
    assert (level, message, figures["observation_age_s"]) == (Level.OK, "stepping", "inf")


def test_observations_that_are_back_after_a_silence_are_news(robot: Robot, condition: Diagnosis) -> None:
    def observed() -> News | None:
        now_s = robot.link.now_s
        return condition.observed(int(now_s * NANOSECONDS), now_s)

    robot.pass_time(0.9)
    assert observed() is None
    robot.pass_time(2.5)
    assert observed() == News(Level.OK, "observations arrive again after 2.5 s without one")
    robot.pass_time(PERIOD_S)
    assert observed() is None
    condition.begin(robot.link.now_s)
    robot.pass_time(3.0)
    assert observed() == News(Level.OK, "the first observation arrived after 3.0 s")


def test_why_nothing_arrives_is_logged_once_it_lasts(robot: Robot, condition: Diagnosis) -> None:
    assert not condition.waits(robot.link.now_s)
    robot.pass_time(1.1)
    assert condition.waits(robot.link.now_s)
    news = News(Level.WARN, "no observation: /a has no publisher")
    assert [condition.lacks("/a has no publisher") for _ in range(3)] == [None, news, None]
    assert report(condition, robot)[:2] == (Level.ERROR, news.text)
    assert [condition.lacks(text) for text in ("", "/a has no publisher", "/a has no publisher")] == [
        None,
        None,
        news,
    ]
    condition.begin(robot.link.now_s)
    assert [condition.lacks("/a has no publisher") for _ in range(2)] == [None, news]


def mismatched(robot: Robot) -> None:
    """Have the verifier be of another tokenizer, and say so."""
    robot.loop.stop()
    robot.verifier.speak("0" * 16)
    robot.loop.start(10.0)
    robot.pass_time(1.0)


def test_a_robot_that_refused_to_begin_says_why_until_its_next_start(
    robot: Robot, condition: Diagnosis
) -> None:
    mismatched(robot)
    news = condition.news(robot.session, robot.loop, robot.link.now_s)
    assert news is not None
    assert news.refuses
    assert news.text.startswith("refused to start, verifier of another kind: ")
    assert condition.refusal == news.text
    condition.active = False
    robot.loop.stop()
    condition.forget(robot.link.now_s)
    robot.pass_time(1.0)
    assert report(condition, robot)[:2] == (Level.ERROR, news.text)
    condition.begin(robot.link.now_s)
    robot.pass_time(1.0)
    assert report(condition, robot)[:2] == (Level.OK, "inactive")


def test_a_mismatch_amid_the_steps_refuses_nothing(robot: Robot, condition: Diagnosis) -> None:
    robot.walk(range(1))
    robot.verifier.speak("0" * 16)
    robot.verifier.changes = {"status": int(RequestFault.TOKENIZER_MISMATCH)}
    robot.walk(range(1, 40))
    news = condition.news(robot.session, robot.loop, robot.link.now_s)
    assert news is not None
    assert (news.level, news.refuses, condition.refusal) == (Level.ERROR, False, "")


def test_a_robot_whose_name_is_refused_learns_it_once_an_activation(
    robot: Robot, condition: Diagnosis
) -> None:
    now_s = robot.link.now_s
    for _ in range(2):
        condition.begin(now_s)
        robot.session.misnamed = "robot_id: 'x', must be 'arm' on this service"
        news = condition.news(robot.session, robot.loop, now_s)
        assert news is not None
        assert (news.level, news.refuses) == (Level.WARN, False)
        assert news.text == f"the verifier refuses this robot: {robot.session.misnamed}"
        again = condition.news(robot.session, robot.loop, now_s)
        assert again is not None
        assert again.text == "verifier ready"
