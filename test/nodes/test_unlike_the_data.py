"""An observation in another unit than the target's data holds the arm before it moves, and after a jump."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("rclpy")

from adahi_ros.contract.assembler import ObservationAssembler
from adahi_ros.robot.session import VerifierSession
from adahi_ros.safety.holds import Event, Hold, State
from adahi_ros.safety.intervention import Intervention
from test.nodes.in_process import NodesInProcess
from test.nodes.test_other_publishers import LOOKS_S, Arm

WRONG = "observation: position.lift is -0.7; the policy learnt -60 to -20: rad instead of degrees?"


@pytest.fixture
def arm(nodes: NodesInProcess, exported: Path) -> Iterator[Arm]:
    with closing(Arm(nodes, exported / "draft")) as arm:
        yield arm


def test_each_fault_of_images_is_logged_once(
    arm: Arm, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    faults = "front: no image has colour", "wrist: 9 x 9 pixels are enlarged to 48 x 64"
    monkeypatch.setattr(ObservationAssembler, "picture_faults", faults)
    arm.policy()
    arm.runs()
    arm.enable()
    arm.moves()
    logged = capfd.readouterr().err
    assert [logged.count(fault) for fault in faults] == [1, 1]


def test_the_arm_is_held_by_name_until_it_fits_and_a_press(arm: Arm, monkeypatch: pytest.MonkeyPatch) -> None:
    said = [WRONG]
    monkeypatch.setattr(VerifierSession, "unlike", lambda self, observed: said[0])
    policy = arm.policy()
    arm.runs()
    assert WRONG in arm.held(Intervention.MEASURED)
    assert not arm.commands
    said[0] = ""
    arm.wait(lambda: "press enable afresh" in arm.states[-1].message, "that it fits")
    assert not arm.commands
    arm.enable()
    arm.moves()
    said[0] = WRONG  # a person may move the arm anywhere later
    arm.nodes.wait_s(LOOKS_S)
    arm.moves()
    holds = policy._operator.permission.holds
    holds.happen(Event.JUMPS)  # the driver was started again, in another unit
    arm.wait(lambda: holds[Hold.UNLIKE] is State.LASTS, "that it does not fit")
    holds.happen(Event.STEADY)
    arm.enable()
    assert WRONG in arm.held(Intervention.MEASURED)
    arm.nodes.wait_s(LOOKS_S)
    assert WRONG in arm.held(Intervention.MEASURED)


def test_an_arm_is_compared_after_a_fault_that_a_press_ended_at_once(
    arm: Arm, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [""]
    monkeypatch.setattr(VerifierSession, "unlike", lambda self, observed: said[0])
    permission = arm.policy()._operator.permission
    arm.runs()
    arm.moves()
    said[0] = WRONG
    permission.driver("it was started again")
    permission.driver("")
    permission.set_enabled(True, time.monotonic())
    assert permission.holds[Hold.DRIVER] is State.CLEAR
    assert WRONG in arm.held(Intervention.MEASURED)
