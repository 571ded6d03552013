"""Verifiers that are of another policy, come later, are gone, or were never there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from adahi_ros.core.health_level import Level
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import RequestFault
from adahi_ros.robot.hedged_transport import FIRST_NAMED_S, QUIET_S, REFRESH_S
from adahi_ros.robot.session import DESCRIBE_RETRY_S, VerifierState
from test.robot.hedging.conftest import HedgedRobot, MakeHedged, requests_to
from test.robot.simulated import WEIGHTS, SimulatedVerifier

OTHER = "fedcba9876543210"
REFUSED = (
    "verifier backup is not asked: policy_fingerprint: unknown, so its weights may differ; "
    "verification.hedge_unknown: true allows it"
)
ALLOWED = "verifier backup is asked although its weights are unknown"


@pytest.mark.parametrize(
    ("change", "trouble"),
    [
        (lambda backup: backup.describe_otherwise(parameters=12), "parameters: 12, must be {own}"),
        (
            lambda backup: backup.load(OTHER),
            f"policy_fingerprint: {OTHER}, must be {WEIGHTS}; it has other weights",
        ),
    ],
)
def test_a_backup_of_another_policy_is_refused_by_name_and_gets_no_request(
    make_hedged: MakeHedged, change: Callable[[SimulatedVerifier], None], trouble: str
) -> None:
    robot = make_hedged("at_once")
    right = robot.backup.description
    change(robot.backup)
    robot.connect()
    robot.steps(5)
    assert robot.news[0].level is Level.ERROR
    trouble = trouble.format(own=right.signature.parameters)
    assert robot.texts == [f"verifier backup is not asked: {trouble}"]
    assert requests_to(robot.backup_link) == 0
    assert robot.figure("backup.trouble") == trouble
    robot.backup.description = right
    robot.pass_time(DESCRIBE_RETRY_S + 0.1)
    robot.steps(1, first=5)
    assert requests_to(robot.backup_link) == 1


@pytest.mark.parametrize("unknown", [("first",), ("backup",), ("first", "backup")])
@pytest.mark.parametrize(("allowed", "text", "requested"), [(False, REFUSED, 0), (True, ALLOWED, 50)])
def test_a_backup_with_unknown_weights_needs_permission_and_warns_once(
    make_hedged: MakeHedged, unknown: tuple[str, ...], allowed: bool, text: str, requested: int
) -> None:
    robot = make_hedged("at_once", hedge_unknown=allowed)
    for name, verifier in (("first", robot.verifier), ("backup", robot.backup)):
        verifier.load("" if name in unknown else WEIGHTS)
    robot.connect()
    robot.steps(50)  # it describes itself again meanwhile
    assert robot.texts == [text]
    assert robot.news[0].level is Level.WARN
    assert (requests_to(robot.link), requests_to(robot.backup_link)) == (50, requested)


def test_a_backup_that_loads_other_weights_is_found_out_while_queried(make_hedged: MakeHedged) -> None:
    robot = make_hedged("at_once").connect()
    robot.steps(2)
    robot.backup.load(OTHER)
    robot.pass_time(REFRESH_S)
    requested = requests_to(robot.backup_link)
    robot.steps(3, first=2)
    assert requests_to(robot.backup_link) == requested
    robot.backup.load(WEIGHTS)
    robot.pass_time(DESCRIBE_RETRY_S + 0.1)
    robot.steps(1, first=5)
    assert requests_to(robot.backup_link) == requested + 1
    assert robot.changes == [VerifierState.READY]  # the first was there all the time


def test_a_first_that_loads_other_weights_is_followed_by_the_backup(make_hedged: MakeHedged) -> None:
    robot = make_hedged("at_once").connect()
    robot.steps(2)
    robot.verifier.load(OTHER)
    robot.pass_time(REFRESH_S + 0.5)
    assert robot.changes == [VerifierState.READY, VerifierState.ABSENT, VerifierState.READY]
    requested = requests_to(robot.backup_link)
    robot.steps(2, first=2)
    assert requests_to(robot.backup_link) == requested
    robot.backup.load(OTHER)
    robot.pass_time(DESCRIBE_RETRY_S + 0.1)
    robot.steps(1, first=4)
    assert requests_to(robot.backup_link) == requested + 1
    assert all(record.verified for record in robot.records)


def test_without_the_first_the_backup_names_the_target_and_may_change(make_hedged: MakeHedged) -> None:
    robot = make_hedged()
    robot.link.present = False
    robot.loop.start(10.0)
    robot.pass_time(FIRST_NAMED_S + 0.1)
    assert robot.session.link is VerifierState.READY
    robot.steps(2)
    robot.backup.load(OTHER)
    robot.pass_time(REFRESH_S + 0.5)
    robot.steps(2, first=2)
    assert robot.session.link is VerifierState.READY
    assert all(record.verified for record in robot.records)


def test_that_a_verifier_is_gone_or_back_is_logged_once_each(robot: HedgedRobot) -> None:
    robot.backup_link.present = False
    robot.pass_time(2 * QUIET_S)
    assert robot.texts == ["verifier backup is gone"]
    assert robot.news[-1].level is Level.WARN
    robot.backup_link.present = True
    robot.pass_time(2 * QUIET_S)
    assert robot.texts[1:] == ["verifier backup is back"]
    assert robot.news[-1].level is Level.OK
    for present in (False, True) * 20:  # in QUIET_S twice
        robot.backup_link.present = present
        robot.pass_time(QUIET_S / 20)
    robot.pass_time(QUIET_S)
    assert len(robot.texts) <= 5
    assert robot.texts[-1] == "verifier backup is back"


def test_the_first_says_what_the_target_is_however_late(make_hedged: MakeHedged) -> None:
    """The session shakes hands anew, and the backup is not asked any more."""
    robot = make_hedged("at_once")
    robot.link.present = False
    robot.backup.describe_otherwise(parameters=12)
    robot.connect()
    robot.steps(2)
    robot.link.present = True
    robot.pass_time(1.0)
    assert robot.session.link is VerifierState.READY
    assert robot.session.target.parameters == robot.verifier.description.signature.parameters
    requested = requests_to(robot.backup_link)
    robot.steps(2, first=2)
    assert (requests_to(robot.link), requests_to(robot.backup_link)) == (2, requested)
    assert all(record.verified for record in robot.records)


def test_a_backup_carries_on_where_the_first_is_gone_without_a_gap(robot: HedgedRobot) -> None:
    robot.steps(3)
    robot.link.present = False
    robot.steps(5, first=3)
    assert all(record.verified for record in robot.records)
    assert robot.changes == [VerifierState.READY]
    robot.backup_link.present = False
    robot.pass_time(0.2)
    assert robot.session.link is VerifierState.ABSENT
    robot.link.present = True
    robot.pass_time(0.2)
    robot.steps(2, first=8)
    assert robot.records[-1].verified


def test_where_neither_replies_the_breaker_opens_until_a_probe_succeeds(robot: HedgedRobot) -> None:
    robot.steps(3)
    robot.verifier.replies = robot.backup.replies = False
    robot.steps(6, first=3)
    assert robot.session.link is VerifierState.UNRESPONSIVE
    robot.backup.replies = True
    robot.pass_time(1.0)
    assert robot.session.link is VerifierState.READY
    robot.steps(2, first=9)
    assert all(record.verified for record in robot.records[-2:])


def test_the_first_that_knows_no_such_target_is_named(make_hedged: MakeHedged) -> None:
    robot = make_hedged()
    robot.verifier.description = replace(robot.verifier.description, protocol=99)
    robot.loop.start(10.0)
    robot.pass_time(1.0)
    assert robot.session.link is VerifierState.MISMATCHED
    assert robot.session.trouble.startswith("protocol")


def test_a_robot_that_goes_by_plans_is_not_starved_by_a_dead_first(make_hedged: MakeHedged) -> None:
    robot = make_hedged(gate="never", plans=8).connect()
    for step in range(100):
        if step == 40:
            robot.verifier.replies = False
        robot.see(1, step)
        robot.pass_time(0.05)
    assert all(record.planned for record in robot.records[2:])


def test_a_dead_backup_gets_only_probes(robot: HedgedRobot) -> None:
    robot.link.delay_s = (0.005, 0.04)
    robot.backup.replies = False
    robot.steps(30)
    requested = requests_to(robot.backup_link)
    robot.steps(170, first=30)
    assert requests_to(robot.backup_link) == requested
    assert robot.backup_link.described > 20


def test_a_first_that_cannot_say_what_it_is_at_the_start_is_queried_again(make_hedged: MakeHedged) -> None:
    robot = make_hedged()
    robot.backup_link.present = False
    robot.verifier.undescribed = "target: no policy of this name is there"
    robot.loop.start(10.0)
    robot.pass_time(2.5 * DESCRIBE_RETRY_S)
    assert robot.session.link is VerifierState.MISMATCHED
    assert robot.session.trouble == robot.verifier.undescribed
    robot.verifier.undescribed = ""
    robot.pass_time(DESCRIBE_RETRY_S)
    assert robot.session.link is VerifierState.READY


def test_a_refusal_is_reported_at_once_where_the_other_is_dead(robot: HedgedRobot) -> None:
    robot.link.delay_s = (0.005, 0.04)
    robot.backup.replies = False
    robot.steps(30)
    robot.verifier.changes = {"status": int(RequestFault.TARGET_UNAVAILABLE)}
    requested = requests_to(robot.backup_link)
    robot.steps(1, first=30)
    assert robot.records[-1].reason is Reason.REFUSED
    assert requests_to(robot.backup_link) == requested
