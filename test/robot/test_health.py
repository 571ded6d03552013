from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from adahi_ros.core.health_level import Level
from adahi_ros.gates.interface import LinkEstimate
from adahi_ros.protocol.records import Reason, StepRecord
from adahi_ros.robot.robot_health import (
    NO_OBSERVATION_S,
    HealthWatch,
    LinkNews,
    RobotState,
    calibration_warning,
    deadline_warnings,
)
from adahi_ros.robot.session import VerifierState
from adahi_ros.robot.steps import Totals

WELL = RobotState(
    active=True,
    refusal="",
    link=VerifierState.READY,
    trouble="",
    totals=Totals(),
    estimate=LinkEstimate(),
    faults=Counter(),
    missed=Counter(),
    heard_s=9.5,
    observation_age_s=0.01,
    enabled=True,
    stopped=False,
    withheld=False,
    interventions={"velocity": 3},
    verifiers={},
    gate={},
)


def test_what_a_gate_has_learned_is_told() -> None:
    figures = HealthWatch(9.0).report(replace(WELL, gate={"threshold": 0.25, "rate": 0.1}), 10.0).values
    assert (figures["gate.threshold"], figures["gate.rate"]) == ("0.250", "0.100")


def test_what_several_verifiers_were_asked_is_told() -> None:
    verifiers = {"/server/verify_draft.answers": 7}
    figures = HealthWatch(9.0).report(replace(WELL, verifiers=verifiers), 10.0).values
    assert figures["verifiers./server/verify_draft.answers"] == 7


def after_steps(make: Callable[..., StepRecord], count: int, reason: Reason = Reason.NONE) -> Totals:
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
        ({"faults": Counter(goal=1)}, Level.WARN, "input ignored"),
        ({"stopped": True, "enabled": False}, Level.WARN, "held: stopped by the operator"),
        ({"enabled": False}, Level.WARN, "held: not enabled"),
        ({"withheld": True}, Level.ERROR, "held: no reply of the target"),
        ({"heard_s": 9.9 - NO_OBSERVATION_S}, Level.ERROR, "no observation"),
        ({"heard_s": 8.0, "enabled": False}, Level.ERROR, "no observation"),
        ({"heard_s": 8.0, "stopped": True, "enabled": False}, Level.ERROR, "no observation"),
        ({"heard_s": 8.0, "faults": Counter(goal=1)}, Level.ERROR, "no observation, input ignored"),
        ({"heard_s": 8.0, "active": False}, Level.OK, "inactive"),
    ],
)
def test_a_robot_says_what_is_worst(changes: dict[str, Any], level: Level, message: str) -> None:
    assert HealthWatch(9.0).report(replace(WELL, **changes), 10.0)[:2] == (level, message)


def test_what_was_reported_is_no_news(step_record: Callable[..., StepRecord]) -> None:
    watch = HealthWatch(9.0)
    vitals = replace(
        WELL,
        totals=after_steps(step_record, 10, Reason.DEADLINE),
        faults=Counter({"goal[0]": 2}),
        heard_s=10.5,
    )
    assert watch.report(vitals, 10.0)[1] == "input ignored"
    level, message, figures = watch.report(vitals, 11.0)
    assert (level, message) == (Level.OK, "stepping")
    assert figures["rate_hz"] == "0.0"
    assert (figures["fallbacks.deadline"], figures["ignored.goal[0]"], figures["safety.velocity"]) == (
        10,
        2,
        3,
    )
    more = replace(vitals, totals=after_steps(step_record, 12, Reason.DEADLINE), heard_s=12.0)
    assert watch.report(more, 12.0)[:2] == (Level.WARN, "drafts executed without the target's reply")


def test_figures(step_record: Callable[..., StepRecord]) -> None:
    vitals = replace(WELL, totals=after_steps(step_record, 20))
    figures = HealthWatch(9.0).report(vitals, 10.0)[2]
    assert (figures["steps"], figures["rate_hz"], figures["transmission_rate"]) == (20, "20.0", "0.500")
    assert (figures["acceptance"], figures["link"], figures["observation_age_s"]) == (
        "1.000",
        "verifier ready",
        "0.010",
    )
    totals = Totals()
    for codes in ((), (True, False), (True, True)):  # replies without codes keep none, and change none
        totals.add(step_record(accepted=codes))
    assert HealthWatch(9.0).report(replace(WELL, totals=totals), 10.0)[2]["acceptance"] == "0.500"
    nothing = HealthWatch(9.0).report(WELL, 10.0)[2]
    assert (nothing["transmission_rate"], nothing["acceptance"]) == ("nan", "nan")


def test_news_of_the_link() -> None:
    news = LinkNews()
    ready = news.of(VerifierState.READY, "", False, 0, "drafts are executed", 0.0)
    assert ready is not None
    assert (ready.level, ready.text) == (Level.OK, "verifier ready")
    assert (
        news.of(VerifierState.READY, "", True, 0, "drafts are executed", 0.0) is None
    )  # on trial: it may be gone in a moment
    for link, quiet_s in ((VerifierState.ABSENT, 1.0), (VerifierState.UNRESPONSIVE, 10.0)):
        told = [
            news.of(link, "gone", False, 5, "drafts are executed", quiet_s * part)
            for part in (0.0, 0.9, 1.0, 1.5)
        ]
        assert [each is not None for each in told] == [True, False, True, False]
        assert told[0] is not None
        assert (told[0].level, told[0].text, told[0].refuses) == (Level.WARN, "gone", False)


def test_a_mismatch_keeps_a_robot_from_beginning_but_does_not_stop_it() -> None:
    before, amid = (
        LinkNews().of(VerifierState.MISMATCHED, "action_dim: 2", False, steps, "drafts are executed", 0.0)
        for steps in (0, 1)
    )
    assert before is not None
    assert before.refuses
    assert before.text == "refused to start, verifier of another kind: action_dim: 2"
    assert amid is not None
    assert not amid.refuses
    assert amid.text == "verifier of another kind, drafts are executed: action_dim: 2"
    assert before.level is amid.level is Level.ERROR


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
def test_an_unwise_deadline_is_told(deadline_s: float, beginnings: list[str]) -> None:
    warnings = deadline_warnings(deadline_s, 0.05, 0.5)
    assert len(warnings) == len(beginnings)
    assert all(map(str.startswith, warnings, beginnings))


def test_a_calibration_of_another_policy_is_told() -> None:
    assert calibration_warning(None, "a") is None
    assert calibration_warning("a", "a") is None
    told = calibration_warning("b", "a")
    assert told is not None
    assert told.startswith("calibration.draft: b, but the draft policy is a")
