"""A stop in a gap of the observations: a lift's velocity is braked, and an arm gets no command."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from trajectory_msgs.msg import JointTrajectory

from adahi_lab.evaluation.task_contract import contract_values
from adahi_lab.tasks import make
from adahi_ros.safety.intervention import Intervention
from test.nodes.in_process import NodesInProcess
from test.nodes.test_other_publishers import FAST_S, Arm

LIFT = "lift/command"


@pytest.fixture
def arm(nodes: NodesInProcess, exported: Path) -> Iterator[Arm]:
    with closing(Arm(nodes, exported / "draft")) as arm:
        yield arm


@pytest.fixture
def contract(tmp_path: Path) -> Path:
    """The ball's first joint is an arm, whose positions are commanded; the second is a lift."""
    values = contract_values(make("ball"))
    values["observations"]["observation.joints"]["align"]["tolerance_ms"] = 50.0
    whole = values["actions"].pop("action")
    joint = whole["select"][1].partition(".")[2]
    lift = {"channel": {**whole["channel"], "topic": LIFT}, "select": [f"velocities.{joint}"]}
    values["actions"]["action.arm"] = {**whole, "select": whole["select"][:1]}
    values["actions"]["action.lift"] = {**whole, **lift}
    path = tmp_path / "lift.yaml"
    path.write_text(yaml.safe_dump({**values, "max_age_s": 1.0}, sort_keys=False))
    return path


def test_a_stop_in_a_gap_brakes_the_lift_and_commands_no_position(arm: Arm, contract: Path) -> None:
    lift: list[JointTrajectory] = []
    arm.observer.node.create_subscription(JointTrajectory, LIFT, lift.append, 100)
    shown = threading.Event()
    shown.set()
    arm.policy(values={"contract": str(contract)})
    arm.nodes.every(FAST_S, lambda: arm.measure(arm.driver) if shown.is_set() else None)
    arm.nodes.every(0.05, lambda: arm.step() if shown.is_set() else None)
    arm.moves()
    shown.clear()
    arm.nodes.wait_s(0.25)
    arm.commands.clear()
    lift.clear()
    arm.held(Intervention.STALE)
    arm.wait(lambda: len(lift) > 1, "that the lift is braked")
    assert arm.commands == []
    assert {each for message in lift for each in message.points[0].velocities} == {0.0}
