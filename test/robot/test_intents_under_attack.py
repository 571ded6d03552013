"""A robot acts by no intent of another episode, task or encoder, or that is too old, whatever happens."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace

import pytest

from adahi_ros.protocol.description import Wants
from adahi_ros.protocol.notice import Notice
from adahi_ros.protocol.records import NO_PLAN
from adahi_ros.protocol.request import Reply, Request
from adahi_ros.protocol.window import WireWindow
from test.robot.conftest import OFFERED, PERIOD_S, MakeRobot, Robot
from test.robot.simulated import number_of
from test.robot.test_acting_by_intents import ENCODER, HORIZON, SIZE, StubIntent, acting, by_intent

STEPS, MOST_AGE = 100, 25  # fewer steps than numbers of an intent
GARBAGE = (
    {"intent_fingerprint": 0xBB},
    {"intent": (126,) * (SIZE - 1)},
    {"intent": (-128,) * SIZE},
    {"intent": (), "intent_fingerprint": 0},
    {"actions": (0.0,) * 2 * HORIZON},
    {"episode": 99},
)
__all__ = ["acting"]  # a fixture


def attacked(robot: Robot, draw: random.Random) -> int:
    """Let anything happen to a robot, and check each step; return how many steps acted by an intent."""
    robot.choose("age", 10.0)
    task, episode, step, acted = (1_000, 0), 1, 0, 0
    asked: dict[int, set[tuple[int, int, tuple[int, int]]]] = defaultdict(set)
    reply = robot.verifier.reply

    def noting(sent: int, request: Request, update: WireWindow) -> Reply:
        asked[int(number_of(request))].add((request.episode, request.step, task))
        return reply(sent, request, update)

    robot.verifier.reply = noting
    for _ in range(STEPS):
        event = draw.random()
        if event < 0.05:  # another task, whatever is in flight
            task = task[0], task[1] + 1
            robot.loop.notice(Notice(*task, task[1]))
        elif event < 0.08:  # the verifier restarts, and has forgotten all tasks
            task = task[0] + 1, 0
            robot.verifier.restart()
            robot.loop.notice(Notice(*task))
        elif event < 0.12:
            episode, step = episode + 1, 0
        elif event < 0.17:
            robot.link.delay_s = draw.choice([(0.005, 0.005), (0.3, 0.3), (0.1, 1.5), (3.0, 3.0)])
        elif event < 0.22:
            robot.link.loss = draw.choice([0.0, 0.0, 0.3, 1.0])
        garbage = draw.choice(GARBAGE) if draw.random() < 0.1 else {}
        robot.verifier.changes = {"assignment": task[1], **garbage}
        before = len(robot.records)
        robot.see(episode, step)
        robot.pass_time(PERIOD_S)
        for record in robot.records[before:]:
            if record.plan_age == NO_PLAN and record.action in ((), record.draft_action):
                continue
            (found,) = (requests for number, requests in asked.items() if by_intent(number) == record.action)
            assert any(
                where == record.episode and record.step - when <= MOST_AGE and made[1] == task[1]
                for where, when, made in found
                if made[0] == task[0] or not made[1]  # no task before and after a restart is the same
            )
            acted += 1
        step += draw.choice([1, 1, 1, 2])
    return acted


@pytest.mark.timeout(120)
@pytest.mark.parametrize("waits", [False, True])
def test_no_intent_acts_that_must_not(make_robot: MakeRobot, acting: StubIntent, waits: bool) -> None:
    acted = 0
    for seed in range(40):
        robot = make_robot("age", seed=seed, limit=3, plans=HORIZON, waits=waits, acting=acting).connect()
        robot.loop.controller.held.steps = MOST_AGE  # type: ignore[misc]
        acted += attacked(robot, random.Random(seed))
    assert acted > 500


def test_an_encoder_that_changes_in_the_episode_gives_no_intent(
    make_robot: MakeRobot, acting: StubIntent
) -> None:
    robot = make_robot("age", plans=HORIZON, acting=acting).connect()
    robot.session._wants = Wants(robot.policy.signature, OFFERED, intent=(ENCODER, SIZE))
    robot.choose("age", 5.0)
    robot.walk(range(8))
    robot.verifier.describe_intents("00000000000000cc", SIZE)
    robot.verifier.restart()
    last = robot.records[-1].action
    others = robot.walk(range(8, 60))
    assert {each.action for each in others if each.plan_age >= 0} == {last}  # the network fits that one
    robot.verifier.description = replace(robot.verifier.description, intent_fingerprint=ENCODER)
    assert robot.walk(range(60, 80))[-1].action != last
