"""What a robot's diagnostics say of stand-ins for its session and its loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.core.health_level import Health, Level
from adahi_ros.gates.interface import LinkEstimate
from adahi_ros.protocol.records import Reason, StepRecord
from adahi_ros.robot.diagnosis import (
    NO_OBSERVATION_S,
    Diagnosis,
    News,
    calibration_warning,
    deadline_warnings,
)
from adahi_ros.robot.loop import Totals
from adahi_ros.robot.session import VerifierState

Make = Callable[..., StepRecord]


class Robot:
    """A robot whose session and loop say what the test wants."""

    def __init__(self, link: VerifierState = VerifierState.READY, trouble: str = "") -> None:
        self.diagnosis = Diagnosis(9.0)
        self.diagnosis.active = True
        self.session: Any = SimpleNamespace(
            link=link, trouble=trouble, misnamed="", on_trial=False, estimate=lambda now_s: LinkEstimate()
        )
        self.totals, self.gate, self.withheld = Totals(), {"threshold": 0.25, "rate": 0.1}, False
        self.drafts = True
        self.observe(9.5)

    @property
    def loop(self) -> Any:
        trigger = SimpleNamespace(gate=SimpleNamespace(state=self.gate))
        return SimpleNamespace(
            totals=self.totals,
            fallback=SimpleNamespace(
                withholds=self.withheld, drafts=self.drafts, label="drafts are executed"
            ),
            controller=SimpleNamespace(
                config=SimpleNamespace(trigger=trigger), held=SimpleNamespace(figures={})
            ),
            assignments=None,
            plan_fault="",
        )

    def observe(self, at_s: float) -> None:
        self.diagnosis.observed(round(at_s * NANOSECONDS), at_s)

    def news(self, now_s: float) -> News | None:
        return self.diagnosis.news(self.session, self.loop, now_s)

    def report(
        self,
        now_s: float = 10.0,
        enabled: bool = True,
        stopped: bool = False,
        verifiers: Mapping[str, object] = {},
        person: str = "",
    ) -> Health:
        beside = enabled, stopped, {"velocity": 3}, verifiers, now_s, round(now_s * NANOSECONDS), person
        return self.diagnosis.report(self.session, self.loop, *beside)


def after_steps(make: Make, count: int, reason: Reason = Reason.NONE) -> Totals:
    totals = Totals()
    for index in range(count):
        totals.count(reason)
        verified = reason is Reason.NONE and index % 2 == 0
        totals.add(make(transmitted=verified, verified=verified, accepted=(True,)))
    return totals


@pytest.mark.parametrize(
    ("changes", "level", "message"),
    [
        ({}, Level.OK, "stepping"),
        ({"active": False}, Level.OK, "inactive"),
        ({"active": False, "refusal": "refused to start"}, Level.ERROR, "refused to start"),
        ({"link": VerifierState.MISMATCHED, "trouble": "action_dim: 2"}, Level.ERROR, "action_dim: 2"),
        ({"link": VerifierState.UNRESPONSIVE, "trouble": "too slow"}, Level.OK, "stepping"),
        ({"totals": Totals(undrafted=1)}, Level.ERROR, "no sound action for an observation, no command"),
        ({"faults": 1}, Level.WARN, "input ignored"),
        ({"stopped": True, "enabled": False}, Level.WARN, "held: stopped by the operator"),
        ({"enabled": False}, Level.WARN, "held: not enabled"),
        ({"enabled": False, "person": "driver: no power"}, Level.WARN, "held: driver: no power"),
        ({"person": "no takeover for 0.5 s"}, Level.WARN, "held: no takeover for 0.5 s"),
        ({"withheld": True}, Level.ERROR, "held: no reply of the target"),
        ({"observed_s": 9.9 - NO_OBSERVATION_S}, Level.ERROR, "no observation"),
        ({"observed_s": 8.0, "enabled": False}, Level.ERROR, "no observation"),
        ({"observed_s": 8.0, "stopped": True, "enabled": False}, Level.ERROR, "no observation"),
        ({"observed_s": 8.0, "faults": 1}, Level.ERROR, "no observation, input ignored"),
        ({"observed_s": 8.0, "active": False}, Level.OK, "inactive"),
    ],
)
def test_a_robot_says_what_is_worst(changes: dict[str, Any], level: Level, message: str) -> None:
    robot = Robot(changes.get("link", VerifierState.READY), changes.get("trouble", ""))
    robot.diagnosis.active = changes.get("active", True)
    robot.diagnosis.refusal = changes.get("refusal", "")
    robot.totals, robot.withheld = changes.get("totals", Totals()), changes.get("withheld", False)
    robot.observe(changes.get("observed_s", 9.5))
    for _ in range(changes.get("faults", 0)):
        robot.diagnosis.ignored("goal")
    given = {name: changes[name] for name in ("enabled", "stopped", "person") if name in changes}
    found = robot.report(10.0, **given)
    assert found[:2] == (level, message)


def test_what_was_reported_is_no_news(step_record: Make) -> None:
    robot = Robot()
    robot.totals = after_steps(step_record, 10, Reason.DEADLINE)
    for _ in range(2):
        robot.diagnosis.ignored("goal[0]")
    robot.observe(10.5)
    assert robot.report(10.0)[1] == "input ignored"
    level, message, figures = robot.report(11.0)
    assert (level, message, figures["rate_hz"]) == (Level.OK, "stepping", "0.0")
    news = figures["fallbacks.deadline"], figures["ignored.goal[0]"], figures["safety.velocity"]
    assert news == (10, 2, 3)
    robot.totals = after_steps(step_record, 12, Reason.DEADLINE)
    robot.observe(12.0)
    assert robot.report(12.0)[:2] == (Level.WARN, "drafts executed without the target's reply")
    robot.totals = after_steps(step_record, 13, Reason.DEADLINE)
    robot.drafts = False
    plan = "the plan is executed, then the robot is held, without the target's reply"
    assert robot.report(12.5)[1] == plan


def test_figures(step_record: Make) -> None:
    robot = Robot()
    nothing = robot.report(9.25).values
    assert nothing["transmission_rate"] == nothing["acceptance"] == "nan"
    robot = Robot()
    robot.totals = after_steps(step_record, 20)
    robot.observe(9.99)
    figures = robot.report(10.0, verifiers={"/server/verify_draft.answers": 7}).values
    expected = {
        "steps": 20,
        "rate_hz": "20.0",
        "transmission_rate": "0.500",
        "acceptance": "1.000",
        "link": "verifier ready",
        "observation_age_s": "0.010",
        "verifiers./server/verify_draft.answers": 7,
        "gate.threshold": "0.250",
        "gate.rate": "0.100",
    }
    assert figures.items() >= expected.items()
    robot.totals = Totals()
    for codes in ((), (True, False), (True, True)):  # replies without codes keep none, and change none
        robot.totals.add(step_record(accepted=codes))
    assert robot.report(11.0).values["acceptance"] == "0.500"


def test_news_of_the_link() -> None:
    robot = Robot()
    assert robot.news(0.0) == News(Level.OK, "verifier ready")
    robot.session.on_trial = True  # it may be gone in a moment
    assert robot.news(0.0) is None
    robot.totals.steps = 5
    for link, quiet_s in ((VerifierState.ABSENT, 1.0), (VerifierState.UNRESPONSIVE, 10.0)):
        robot.session.link, robot.session.trouble = link, "gone"
        gone = News(Level.WARN, "gone")
        assert [robot.news(quiet_s * part) for part in (0.0, 0.9, 1.0, 1.5)] == [gone, None, gone, None]


@pytest.mark.parametrize(
    ("steps", "refuses", "begins"),
    [(0, True, "refused to start, verifier of another kind"), (1, False, "verifier of another kind, drafts")],
)
def test_a_mismatch_keeps_a_robot_from_beginning_but_does_not_stop_it(
    steps: int, refuses: bool, begins: str
) -> None:
    robot = Robot(VerifierState.MISMATCHED, "action_dim: 2")
    robot.totals.steps = steps
    news = robot.news(0.0)
    assert news is not None
    assert (news.level, news.refuses, robot.diagnosis.refusal) == (Level.ERROR, refuses, news.text * refuses)
    assert news.text.startswith(begins)
    assert news.text.endswith(": action_dim: 2")


@pytest.mark.parametrize(
    ("deadline_s", "beginnings"),
    [
        (0.03, []),
        (0.05, ["deadline_s: 0.05, should be below the control period, 0.05 s"]),
        (
            1.0,
            ["deadline_s: 1, should be below", "deadline_s: 1, should be at most safety.hold_after_s, 0.5"],
        ),
    ],
)
def test_an_unwise_deadline_is_reported(deadline_s: float, beginnings: list[str]) -> None:
    warnings = deadline_warnings(deadline_s, 0.05, 0.5)
    assert len(warnings) == len(beginnings)
    assert all(map(str.startswith, warnings, beginnings))


def test_a_calibration_of_another_policy_is_reported() -> None:
    assert calibration_warning(None, "a") is calibration_warning("a", "a") is None
    news = calibration_warning("b", "a")
    assert news is not None
    assert news.startswith("calibration.draft: b, but the draft policy is a")
