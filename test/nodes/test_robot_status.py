"""What is heard of robots, and which topics are robots."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from adahi_ros.nodes.monitoring.robot_status import (
    LINK_FIGURES,
    ROBOTS_MOST,
    STATUS_TYPE,
    SeenRobot,
    SeenRobots,
)
from adahi_ros.protocol.records import Reason, StepRecord

Make = Callable[..., StepRecord]


def counts(steps: int, **fallbacks: int) -> tuple[int, ...]:
    """Steps so far by reason, of so many."""
    by_reason = [fallbacks.get(reason.name.lower(), 0) for reason in Reason]
    by_reason[Reason.NONE] = steps - sum(by_reason)
    return tuple(by_reason)


def link_state(**changes: Any) -> Any:
    return SimpleNamespace(
        **{"robot_id": "one", "verifier": 1, **dict.fromkeys(LINK_FIGURES, 0.0), **changes}
    )


def diagnostics(name: str, **changes: Any) -> Any:
    values = {"hardware_id": "", "level": b"\0", "message": "", "values": (), **changes}
    return SimpleNamespace(name=name, **values)


@pytest.fixture
def robot() -> SeenRobot:
    return SeenRobot("/draft_status", window_s=5.0)


def test_figures_are_of_the_recent_steps_and_of_all(step_record: Make) -> None:
    robot = SeenRobot("/r1/draft_status", window_s=5.0)
    for step in range(100):  # one a tenth of a second, every other sent, every fourth kept, two too late
        sent = step % 2 == 0
        late = step in (10, 80)
        record = step_record(
            robot_id="one",
            step=step,
            transmitted=sent,
            verified=sent and not late,
            accepted=(True, step % 4 == 0) if sent and not late else (),
            reason=Reason.DEADLINE if late else Reason.NONE,
            reason_counts=counts(step + 1, deadline=(step >= 10) + (step >= 80)),
            verify_ms=float(step),
            score=step / 10,
        )
        robot.add_step(record, step / 10)
    figures = robot.figures(10.0)
    assert (figures["robot_id"], figures["namespace"]) == ("one", "/r1")
    assert figures["age_s"] == pytest.approx(0.1)
    assert figures["score"] == pytest.approx(9.9)
    recent = figures["recent"]
    assert recent["steps"] == len(recent["scores"]) == 50
    assert recent["rate_hz"] == pytest.approx(10.0)
    assert recent["transmission_rate"] == 0.5
    assert recent["acceptance"] == pytest.approx(11 / 24)
    assert recent["fallbacks"] == {"deadline": 1}
    assert 50.0 < recent["verify_ms"]["p50"] < recent["verify_ms"]["p95"] <= 98.0
    assert figures["since_activation"]["steps"] == 100
    assert figures["since_activation"]["fallbacks"] == {"deadline": 2}
    gone = robot.figures(20.0)
    assert gone["age_s"] == pytest.approx(10.1)
    assert gone["recent"]["steps"] == 0
    assert gone["recent"]["rate_hz"] is gone["recent"]["total_ms"] is None
    assert gone["since_activation"]["steps"] == 100


def test_the_rate_counts_steps_whose_status_got_lost(robot: SeenRobot, step_record: Make) -> None:
    for step in (0, 7, 20):
        robot.add_step(step_record(reason_counts=counts(step + 1)), step / 20)
    assert robot.figures(1.0)["recent"]["rate_hz"] == pytest.approx(20.0)


def test_a_new_activation_begins_again(robot: SeenRobot, step_record: Make) -> None:
    robot.add_step(step_record(reason_counts=counts(500)), 0.0)
    robot.add_step(step_record(reason_counts=counts(1)), 1.0)
    figures = robot.figures(1.0)
    assert (figures["recent"]["steps"], figures["since_activation"]["steps"]) == (1, 1)


def test_what_is_not_finite_or_not_received_is_null(robot: SeenRobot, step_record: Make) -> None:
    before = robot.figures(0.0)
    assert before["age_s"] is before["link"] is before["safety"] is before["diagnostics"] is None
    robot.add_step(step_record(score=float("inf"), deviation=float("nan")), 0.0)
    robot.add("link", link_state(verifier=3, rtt_ms=float("nan"), loss=0.25), 0.0)
    figures = robot.figures(0.0)
    json.dumps([before, figures], allow_nan=False)
    assert figures["recent"]["scores"] == [None]
    assert figures["link"]["rtt_ms"] is None
    assert figures["link"]["loss"] == 0.25
    assert figures["link"]["verifier"] == "unresponsive"


def test_the_plan_is_that_of_the_newest_step(robot: SeenRobot, step_record: Make) -> None:
    assert robot.figures(0.0)["plan"] is None
    robot.add_step(step_record(), 0.0)
    assert robot.figures(0.0)["plan"] is None  # it drafts
    followed = {"proposer": "corrector", "plan_age": 3, "plan_left": 13, "requests_pending": 1}
    actions = {"draft_action": (0.0, 4.0), "planned_action": (3.0, 0.0)}
    robot.add_step(step_record(step=1, expected_error=0.25, **followed, **actions), 0.1)
    assert robot.figures(0.1)["plan"] == {
        "proposer": "corrector",
        "age": 3,
        "left": 13,
        "expected_error": 0.25,
        "correction": pytest.approx((25 / 2) ** 0.5),
        "requests_pending": 1,
    }
    robot.add_step(step_record(step=2, proposer="corrector", requests_pending=2, draft_action=()), 0.2)
    over = {"proposer": "corrector", "age": None, "left": 0, "expected_error": None, "correction": None}
    assert robot.figures(0.2)["plan"] == {**over, "requests_pending": 2}
    robot.add_step(step_record(**followed, expected_error=float("inf"), planned_action=(1.0, 2.0, 3.0)), 0.3)
    figures = robot.figures(0.3)["plan"]
    assert figures["expected_error"] is figures["correction"] is None  # not finite; of another length
    json.dumps(robot.figures(0.3), allow_nan=False)


def test_steps_without_a_command_are_held(robot: SeenRobot, step_record: Make) -> None:
    robot.add_step(step_record(action=()), 0.0)
    robot.add_step(step_record(step=1, action=(), reason=Reason.PERSON), 0.1)
    robot.add_step(step_record(step=2), 0.2)
    assert robot.figures(0.2)["recent"]["held"] == 1


def test_replies_without_codes_are_neither_kept_nor_changed(robot: SeenRobot, step_record: Make) -> None:
    robot.add_step(step_record(accepted=()), 0.0)
    assert robot.figures(0.0)["recent"]["acceptance"] is None
    robot.add_step(step_record(step=1, accepted=(True, False)), 0.1)
    assert robot.figures(0.1)["recent"]["acceptance"] == 0.0


def test_safety_is_reported_by_kind(robot: SeenRobot) -> None:
    robot.add(
        "safety",
        SimpleNamespace(
            robot_id="arm",
            enabled=False,
            holding=True,
            message="stale",
            interventions=[1, 5, 99],
            counts=[0, 3, 0, 0, 0, 9, 0, 0],
        ),
        0.0,
    )
    safety = robot.figures(0.5)["safety"]
    assert safety["interventions"] == ["velocity", "stale", "99"]
    assert {kind: count for kind, count in safety["counts"].items() if count} == {"velocity": 3, "stale": 9}
    assert (safety["enabled"], safety["holding"], safety["age_s"]) == (False, True, 0.5)
    assert robot.figures(0.5)["robot_id"] == "arm"


def test_diagnostics_are_reported_by_level_with_figures_since_activation(robot: SeenRobot) -> None:
    pairs = {"transmission_rate": "0.6", "acceptance": "nan", "misses": "words"}
    values = [SimpleNamespace(key=key, value=value) for key, value in pairs.items()]
    robot.add("diagnostics", diagnostics("/draft_policy", hardware_id="arm", level=b"\1", values=values), 1.0)
    figures = robot.figures(1.5)
    assert figures["robot_id"] == "arm"
    assert figures["diagnostics"] == {"age_s": 0.5, "level": "WARN", "message": "", "values": pairs}
    since: dict[str, Any] = {"steps": None, "fallbacks": {}, "transmission_rate": 0.6, "acceptance": None}
    since["person"] = 0
    assert figures["since_activation"] == since


TOPICS = {
    "/r1/draft_status": [STATUS_TYPE],
    "/r2/draft_status": [STATUS_TYPE],
    "/r2/arm/renamed": [STATUS_TYPE],
    "/r22/draft_status": [STATUS_TYPE],
    "/r2/link_state": ["adahi_msgs/msg/LinkState"],
    "/r2/listened_to": [STATUS_TYPE],
}


EVIL = "\x1b]0;ok\x07\x1b[2J\nfine"


def test_no_publisher_reaches_the_terminal_with_control_characters(step_record: Make) -> None:
    fleet = SeenRobots("", 5.0)
    fleet.find({"/r\x1b[1m/draft_status": [STATUS_TYPE], f"/{EVIL}": [STATUS_TYPE]}, lambda topic: True)
    for robot in fleet.robots.values():
        robot.add_step(step_record(robot_id=EVIL, gate=EVIL, message=EVIL, proposer=EVIL, plan_age=1), 1.0)
        pair = SimpleNamespace(key=EVIL, value=EVIL)
        robot.add("diagnostics", diagnostics("n", message=EVIL, level=b"\x1b", values=[pair]), 1.0)
        robot.add("link", link_state(), 1.0)
    found = fleet.figures(1.0)
    assert found[0]["message"] == "?]0;ok??[2J?fine"
    texts = json.dumps(found)
    assert "\\u" not in texts
    assert "\\n" not in texts


def published(topic: str) -> bool:
    return topic != "/r2/listened_to"


@pytest.mark.parametrize("namespace", ["r2", "/r2/"])
def test_a_robot_is_a_topic_of_the_namespace_that_somebody_publishes(namespace: str) -> None:
    fleet = SeenRobots(namespace, window_s=5.0)
    found = [robot.topic for robot in fleet.find(TOPICS, published)]
    assert found == list(fleet.robots) == ["/r2/draft_status", "/r2/arm/renamed"]
    assert fleet.elsewhere == {"/r1/draft_status", "/r22/draft_status"}
    assert fleet.find(TOPICS, published) == []
    (late,) = fleet.find(TOPICS, lambda topic: True)
    assert late.topic == "/r2/listened_to"


def test_without_a_namespace_all_robots_are_shown_ordered_by_topic() -> None:
    fleet = SeenRobots("", window_s=5.0)
    fleet.find(TOPICS, published)
    topics = [each["topic"] for each in fleet.figures(0.0)]
    assert topics == ["/r1/draft_status", "/r2/arm/renamed", "/r2/draft_status", "/r22/draft_status"]
    assert not fleet.elsewhere
    fleet.find({f"/{number}/draft_status": [STATUS_TYPE] for number in range(1000)}, published)
    assert len(fleet.robots) == ROBOTS_MOST


@pytest.mark.parametrize(
    ("status", "received"),
    [
        (diagnostics("/r1/draft_policy: control"), True),
        (diagnostics("/r1/draft_policy"), True),
        (diagnostics("/r1/played", hardware_id="one"), True),
        (diagnostics("/r1/camera", hardware_id="camera"), False),
        (diagnostics("/r2/draft_policy", hardware_id="one"), False),
        (diagnostics("/draft_policy", hardware_id="one"), False),
    ],
)
def test_diagnostics_go_to_the_robot_that_they_are_of(status: Any, received: bool) -> None:
    fleet = SeenRobots("", window_s=5.0)
    (robot,) = fleet.find({"/r1/draft_status": [STATUS_TYPE]}, published)
    robot.add("link", link_state(), 0.0)
    fleet.add_diagnostics(status, {"/r1/draft_status": {"/r1/draft_policy"}}.__getitem__, 1.0)
    assert (robot.figures(1.0)["diagnostics"] is not None) == received
