"""What the account of a robot's steps finds wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from adahi_lab.bench.robot_log import SILENCE, Command, RobotLog, Shown, mistimed, unaccounted
from adahi_ros.protocol.records import Reason, StepRecord

COUNT = 6


@pytest.fixture
def log(tmp_path: Path, step_record: Callable[..., StepRecord]) -> RobotLog:
    """Six observations at 10 Hz, all commanded by their drafts, all right."""
    log = RobotLog(tmp_path / "nothing")
    for step in range(COUNT):
        log.shown.append(Shown(0.1 * step, step, 0, step, [0.0], []))
        log.commands.append(Command(0.1 * step + 0.01, step, [0.0, 0.0]))
        counts = (step + 1, *[0] * (len(Reason) - 1))
        log.records.append(step_record(stamp_ns=step, step=step, reason_counts=counts))
    return log


def test_observations_before_the_first_command_or_after_the_last_need_none(log: RobotLog) -> None:
    log.shown.insert(0, Shown(-0.1, 100, 9, 0, [0.0], []))
    log.shown.append(Shown(0.6, 101, 0, COUNT, [0.0], []))
    assert unaccounted(log) == []


def test_an_observation_without_a_command_is_found_unless_excused(log: RobotLog) -> None:
    log.shown.insert(3, Shown(0.25, 100, 0, 3, [0.0], []))
    assert unaccounted(log) == ["episode 0, step 3: 0 commands"]
    assert unaccounted(log, lambda shown: shown.stamp_ns == 100) == []


def test_a_second_command_is_found(log: RobotLog) -> None:
    log.commands.append(log.commands[2])
    assert unaccounted(log) == ["episode 0, step 2: 2 commands"]


def test_a_missing_record_is_found_by_the_step_and_by_the_counts(log: RobotLog) -> None:
    del log.records[2]
    found = unaccounted(log)
    assert found[0] == "episode 0, step 2: a command, but no record"
    assert found[1].startswith("episode 0, step 3: reason_counts (4, ")


def test_a_command_that_is_not_what_was_recorded_is_found(log: RobotLog) -> None:
    log.commands[4] = replace(log.commands[4], action=[0.5, 0.0])
    assert unaccounted(log) == ["episode 0, step 4: commanded [0.5, 0.0], recorded (0.0, 0.0)"]


def test_what_no_one_verified_must_be_the_draft(log: RobotLog) -> None:
    log.records[1] = replace(log.records[1], verified=False, draft_action=(0.5, 0.0))
    assert unaccounted(log) == ["episode 0, step 1: neither verified nor the draft"]


def test_a_command_that_a_newer_one_overtook_is_found(log: RobotLog) -> None:
    log.commands[2], log.commands[3] = log.commands[3], log.commands[2]
    assert unaccounted(log) == ["episode 0, step 2: its command came after that of a newer observation"]


def test_a_draft_policy_that_stops_is_found_and_a_restart_counts_from_0(log: RobotLog) -> None:
    for step in range(COUNT, COUNT + SILENCE + 1):
        assert unaccounted(log) == []
        log.shown.append(replace(log.shown[-1], stamp_ns=step, step=step))
    assert unaccounted(log) == [f"no command for the last {SILENCE + 1} observations"]
    last = log.shown[-1]
    log.commands.append(Command(2.01, last.stamp_ns, [0.0, 0.0]))
    counts = (1, *[0] * (len(Reason) - 1))
    log.records.append(replace(log.records[0], stamp_ns=last.stamp_ns, step=last.step, reason_counts=counts))
    assert unaccounted(log) == []


def test_a_robot_that_got_no_command_at_all_is_found(log: RobotLog) -> None:
    log.commands.clear()
    log.shown.extend(replace(log.shown[-1], stamp_ns=100 + each) for each in range(SILENCE))
    assert unaccounted(log) == [f"no command for the last {COUNT + SILENCE} observations"]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (
            {"reason": Reason.DEADLINE, "verified": False, "verify_ms": 0.0, "total_ms": 24.9},
            "given up after",
        ),
        ({"verify_ms": 2.0, "total_ms": 1.9}, "verified in 2.0 ms of 1.9 ms"),
        ({"verify_ms": 0.0}, "verified in 0.0 ms of 1.5 ms"),
        ({"transmitted": False, "verified": False, "verify_ms": 0.0}, "not transmitted, yet 400 bytes"),
    ],
)
def test_a_wait_that_cannot_be_is_found(
    step_record: Callable[..., StepRecord], change: dict[str, object], fault: str
) -> None:
    given_up = {"reason": Reason.DEADLINE, "verified": False, "verify_ms": 0.0, "total_ms": 400.0}
    assert mistimed([step_record(), step_record(**given_up)], 0.025) == []
    (found,) = mistimed([step_record(), step_record(step=1, **change)], 0.025)
    assert found.startswith(f"episode 0, step 1: {fault}")


def test_observations_are_counted_until_one_is_verified(log: RobotLog) -> None:
    assert log.since(0.0).unverified() == 0
    log.records[2:5] = [replace(record, verified=False) for record in log.records[2:5]]
    assert log.since(0.15).unverified() == 3
    assert log.since(0.55).unverified() is None


def test_a_log_is_read_line_by_line_while_it_is_written(log: RobotLog, tmp_path: Path) -> None:
    file = tmp_path / "robot.jsonl"
    read = RobotLog(file)
    read.read()
    assert read.shown == []
    lines = [
        json.dumps({kind: asdict(each)})
        for kind, each in (("shown", log.shown[0]), ("command", log.commands[0]), ("record", log.records[0]))
    ]
    file.write_text("\n".join(lines))  # the end of the last line is still to come
    read.read()
    assert (read.shown, read.commands, read.records) == (log.shown[:1], log.commands[:1], [])
    with file.open("a") as more:
        more.write("\n")
    read.read()
    assert read.records == log.records[:1]
    assert read.since(0.05).commands == []
    assert read.since(0.0).latencies_s() == pytest.approx([0.01])
