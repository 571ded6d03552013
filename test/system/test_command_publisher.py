"""What stands between the policy and the wire, on a node that runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from adahi_msgs.msg import SafetyState
from std_msgs.msg import Bool
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from adahi_ros.nodes.common.messages import from_stamp, to_joint_state
from test.ball_contract import ball_contract
from test.system.stage import Robot, Stage, reliable_input

PERIOD_S = 0.05
LOW, HIGH, FASTEST, HARDEST = -0.03, 0.03, 0.1, 1.0
JOINTS = ("plate_roll_joint", "plate_pitch_joint")


@pytest.fixture(scope="module")
def limits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Limits so narrow that every draft of the test's policy leaves them."""
    limit = {"position": [LOW, HIGH], "velocity": FASTEST, "acceleration": HARDEST}
    path: Path = tmp_path_factory.mktemp("limits") / "limits.yaml"
    path.write_text(yaml.safe_dump({"limits": dict.fromkeys(JOINTS, limit)}))
    return path


class Watched:
    """A robot that shows its joints at rest at 0, whatever it is told, and what the node says of safety."""

    def __init__(self, stage: Stage, robot: Robot, process: Any) -> None:
        self.stage, self.robot, self.process = stage, robot, process
        self.safety: list[SafetyState] = stage.received(SafetyState, "safety_state")
        self.enable = stage.node.create_publisher(Bool, "enable", 10)
        self._set_enabled = stage.client(SetBool, "draft_policy/set_enabled")
        self.step = robot.next

    def set_enabled(self, enabled: bool) -> SetBool.Response:
        return self._set_enabled(SetBool.Request(data=enabled))

    def positions(self) -> np.ndarray:
        return np.array([command.points[-1].positions for command in self.robot.commands])

    def wait_for(self, kind: int) -> SafetyState:
        """Wait for a safety state that reports an intervention; return it."""

        def found() -> list[SafetyState]:
            return [state for state in self.safety if kind in state.interventions]

        self.stage.wait(lambda: bool(found()), f"intervention {kind}")
        return found()[-1]

    def actions(self) -> list[JointTrajectory]:
        """Commands but those of a hold, which come when they are due."""
        return [command for command in self.robot.commands if from_stamp(command.header.stamp) != 0]

    def holds(self) -> list[JointTrajectory]:
        return [command for command in self.robot.commands if from_stamp(command.header.stamp) == 0]


@pytest.fixture(scope="module")
def watched(stage: Stage, exported: Path, limits: Path) -> Iterator[Watched]:
    process = stage.start_draft(
        exported,
        gate__name="never",
        verifier_wait_s=0.0,
        contract=ball_contract(max_age_s=1.0),
        safety__limits=str(limits),
        safety__hold_after_s=0.3,
        command__lockstep=True,
        qos_overrides=reliable_input(),
    )
    watched = Watched(stage, Robot(stage), process)
    stage.activate()
    watched.robot.show_until_commanded(1)
    yield watched
    stage.processes.end()
    assert process.exit_code == 0
    assert "Traceback" not in process.output


def test_no_command_leaves_the_limits_and_each_intervention_is_published(watched: Watched) -> None:
    for _ in range(20):
        record = watched.step()
        assert all(LOW - 1e-6 <= value <= HIGH + 1e-6 for value in record.action)
        assert max(np.abs(record.draft_action)) > HIGH
    positions = watched.positions()
    assert ((positions >= LOW) & (positions <= HIGH)).all()
    assert (np.abs(np.diff(positions, axis=0)) <= FASTEST * PERIOD_S + 1e-12).all()
    state = watched.wait_for(SafetyState.INTERVENTION_POSITION)
    assert state.enabled
    assert not state.holding
    assert state.counts[SafetyState.INTERVENTION_POSITION] >= 1


def test_a_position_that_no_robot_gets_to_moves_nothing(watched: Watched) -> None:
    before = watched.step()
    watched.safety.clear()
    stamp = watched.robot.now()
    watched.robot.step += 1
    far = to_joint_state(JOINTS, np.array([1e5, 0.0]), np.zeros(2), stamp)
    watched.robot.joints_out.publish(far)
    watched.robot.state_out.publish(watched.robot.state(1, watched.robot.step, stamp))
    record = watched.robot.answer_to(1, watched.robot.step)
    assert np.abs(np.subtract(record.action, before.action)).max() <= FASTEST * PERIOD_S + 1e-6
    assert all(LOW <= value <= HIGH for value in watched.positions().ravel())
    watched.wait_for(SafetyState.INTERVENTION_POSITION)


def test_without_observations_the_robot_is_held(watched: Watched) -> None:
    watched.step()
    holds = len(watched.holds())
    # On a busy machine there may have been others, between the steps of other tests.
    held = max((state.counts[SafetyState.INTERVENTION_STALE] for state in watched.safety), default=0)
    watched.safety.clear()
    state = watched.wait_for(SafetyState.INTERVENTION_STALE)
    assert state.holding
    assert state.counts[SafetyState.INTERVENTION_STALE] == held + 1
    watched.stage.wait(lambda: watched.safety[-1].at_rest, "rest")
    assert watched.safety[-1].message.startswith("at rest")
    assert len(watched.holds()) == holds  # it rests since the gap
    record = watched.step()
    assert record.stamp_ns == from_stamp(watched.robot.commands[-1].header.stamp)
    watched.stage.wait(lambda: not watched.safety[-1].holding, "motion")
    assert not watched.safety[-1].at_rest


def test_a_false_on_enable_holds_until_a_true(watched: Watched) -> None:
    watched.step()
    watched.enable.publish(Bool(data=False))
    state = watched.wait_for(SafetyState.INTERVENTION_DISABLED)
    assert (state.enabled, state.holding) == (False, True)
    assert watched.step().action == ()  # nothing was commanded
    commands = len(watched.actions())
    assert watched.step().action == ()
    assert len(watched.actions()) == commands
    assert not watched.safety[-1].enabled
    watched.enable.publish(Bool(data=True))
    watched.stage.wait(lambda: watched.safety[-1].enabled, "enabled")


def test_the_service_enables_too(watched: Watched) -> None:
    watched.step()
    watched.safety.clear()
    response = watched.set_enabled(False)
    assert (response.success, response.message) == (True, "disabled, held")
    assert watched.wait_for(SafetyState.INTERVENTION_DISABLED).holding
    assert watched.set_enabled(True).success


def test_deactivation_holds_and_later_enabling_says_why_it_cannot(watched: Watched) -> None:
    watched.step()
    watched.safety.clear()
    assert watched.stage.change_state("deactivate")
    assert watched.wait_for(SafetyState.INTERVENTION_DEACTIVATED).holding
    response = watched.set_enabled(True)
    assert (response.success, response.message) == (False, "the node is not active")
    assert watched.stage.change_state("activate")


def test_a_node_that_must_end_holds_the_robot_first(watched: Watched) -> None:
    watched.step()
    before = len(watched.holds())
    watched.stage.end(watched.process)
    watched.stage.wait(lambda: len(watched.holds()) > before, "hold commands")


def test_it_moves_only_while_it_is_enabled_where_that_is_required(
    stage: Stage, exported: Path, limits: Path
) -> None:
    stage.clear()
    for former in [each for each in stage.node.publishers if each.topic_name.endswith("enable")]:
        stage.node.destroy_publisher(former)  # with a second publisher, only the service enables
    process = stage.start_draft(
        exported,
        gate__name="never",
        verifier_wait_s=0.0,
        contract=ball_contract(max_age_s=1.0),
        safety__require_enable=True,
        safety__enable_timeout_s=0.2,
    )
    watched = Watched(stage, Robot(stage), process)
    stage.activate()
    step = 0

    def answered() -> bool:
        nonlocal step
        step += 1
        watched.robot.show(1, step)
        return len(watched.robot.steps) >= 3

    watched.stage.wait(answered, "steps")
    assert watched.wait_for(SafetyState.INTERVENTION_DISABLED).holding
    assert not watched.robot.commands
    watched.enable.publish(Bool(data=True))
    watched.stage.wait(lambda: any(state.enabled for state in watched.safety), "enabled")
    watched.stage.wait(lambda: not watched.safety[-1].enabled, "time-out")
    assert watched.set_enabled(True).success

    def moved() -> bool:
        watched.robot.show(1, step)  # the same again: it is owed a command
        return len(watched.robot.commands) > 0

    watched.stage.wait(moved, "a command")
    assert process.exit_code is None
