"""The policy's node and its curves of commands on a real joint_trajectory_controller."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy")

from adahi_msgs.msg import SafetyState, TaskState
from builtin_interfaces.msg import Duration
from rcl_interfaces.srv import GetParameters
from rclpy.action import ActionClient  # type: ignore[attr-defined]
from std_msgs.msg import Bool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from adahi_lab.nodes.task_state import to_task_state
from adahi_ros.core.assets import asset
from adahi_ros.nodes.common.messages import to_stamp
from test.ball_contract import ball_contract
from test.controllers.manager import CONTROLLER, RATE_HZ, TOPIC, Manager, span, speeds
from test.core import test_command_curve as model
from test.system.conftest import staged
from test.system.stage import DEADLINE_S, DEEP, JOINTS, Stage

START = -20.0  # rad; whatever the policy wants is far from there
SPEED, ACCELERATION, PERIOD_S = 0.6, 3.0, 0.05  # rad/s, rad/s^2, s
LAG_S = 4.0 * PERIOD_S  # until a stop begins, until the curve follows, after a late command, and whole steps
HELD_S, STANDS = 0.5, 1e-3  # s, rad
AGAIN_S, RELEASED_S = 2.0, 0.5
WINDOW = RATE_HZ // 10
JUMPS = 1.5  # times the limit of speed, within a tenth of a second; a loaded machine is late with messages


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged() as stage:
        yield stage


@pytest.fixture
def manager(stage: Stage, tmp_path: Path) -> Iterator[Manager]:
    manager = Manager(stage, tmp_path)
    yield manager
    manager.kill()


class RealController(model.JointTrajectoryController):
    """The controller of a manager, instead of its model; all joints do the same."""

    def __init__(self, stage: Stage, manager: Manager, from_desired_state: bool) -> None:
        super().__init__(1.0 / RATE_HZ, from_desired_state)
        manager.start(0.0, from_desired_state=from_desired_state, simulated=True)
        self._manager, self._begin_ns = manager, manager.now_ns
        self._sent = stage.node.create_publisher(JointTrajectory, TOPIC, DEEP)
        self._ask = stage.client(GetParameters, f"{CONTROLLER}/get_parameters")
        stage.wait(lambda: self._sent.get_subscription_count() > 0, "the controller")

    def _at(self, time_s: float) -> int:
        return self._begin_ns + round(1e9 * time_s)

    def receive(self, stamp_s: float, points: list[model.Point], now_s: float) -> None:
        message = JointTrajectory(joint_names=JOINTS)
        message.header.stamp = to_stamp(self._at(stamp_s) if stamp_s else 0)
        for each in points:
            passed = Duration(nanosec=round(1e9 * each.time_s))
            point = JointTrajectoryPoint(positions=[each.position] * len(JOINTS), time_from_start=passed)
            point.velocities = [] if math.isnan(each.velocity) else [each.velocity] * len(JOINTS)
            message.points.append(point)
        self._sent.publish(message)
        self._sent.wait_for_all_acked()
        self._ask(GetParameters.Request())  # it answers after what came before

    def tick(self, now_s: float) -> None:
        while self._manager.now_ns < self._at(now_s) - 1000:
            output = self._manager.tick()
        if output is not None and math.isnan(self.positions[-1]):
            self.positions[-1] = float(output.measured[0])
        self.positions.append(math.nan if output is None else float(output.places[0]))


# Ten starts from rest, after more than the controller's `cmd_timeout`; their ends are sudden.
STARTS = np.hstack([np.repeat([[0.5], [-0.5]] * 5, 25, axis=1), np.full((10, 15), np.nan)]).ravel()
PLANS = {
    "smooth": (model.wanted_positions(True, 3), 0.01),
    "steps": (model.wanted_positions(False, 3), 0.015),
    "starts": (STARTS, 0.05),
}


@pytest.mark.parametrize("from_desired_state", [True, False])
@pytest.mark.parametrize(("wanted", "most"), PLANS.values(), ids=PLANS)
def test_a_real_controller_stays_within_speed_and_acceleration(
    stage: Stage, manager: Manager, wanted: np.ndarray, most: float, from_desired_state: bool
) -> None:
    controller = RealController(stage, manager, from_desired_state)
    made = model.followed(wanted, jitter_s=0.005, controller=controller)
    assert np.abs(made.speeds).max() <= model.ROUNDING * model.SPEED
    assert (made.accelerations > model.ROUNDING).mean() <= most
    assert np.ptp(made.positions) > 1.0


@pytest.mark.parametrize("from_desired_state", [True, False])
def test_a_point_by_itself_makes_jerks_on_a_real_controller(
    stage: Stage, manager: Manager, from_desired_state: bool
) -> None:
    """So the limits above can be broken."""
    controller = RealController(stage, manager, from_desired_state)
    made = model.followed(model.wanted_positions(True, 3), curved=False, controller=controller)
    assert (made.accelerations > model.ROUNDING).mean() > 0.05
    assert made.accelerations.max() > 10.0


class Cell:
    """A policy's node in front of a controller, its task and its operator's deadman."""

    def __init__(self, stage: Stage, manager: Manager, checkpoints: Path, folder: Path) -> None:
        self.stage, self.manager = stage, manager
        self.safety: list[SafetyState] = stage.received(SafetyState, "safety_state")
        self._tasks = stage.node.create_publisher(TaskState, "task_state", DEEP)
        self._deadman = stage.node.create_publisher(Bool, "enable", 100)
        self._next_s, self._step, self._pressed = 0.0, 0, False
        manager.beside = self._show
        values = yaml.safe_load(Path(ball_contract(tolerance_ms=100.0, max_age_s=0.2)).read_text())
        del values["episode"]  # nothing sets the arm elsewhere
        values["actions"]["action"]["channel"]["topic"] = TOPIC
        limit = {"position": [-100.0, 100.0], "velocity": SPEED, "acceleration": ACCELERATION}
        limits = {name: {**limit, "max_step": 0.3, "following": 0.2} for name in JOINTS}
        values["driver"] = yaml.safe_load(asset("config/contracts/franka_panda.yaml").read_text())["driver"]
        for name, content in (("contract", values), ("limits", {"limits": limits})):
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(content))
        stage.start_draft(
            checkpoints,
            gate__name="never",
            verifier_wait_s=0.0,
            contract=str(folder / "contract.yaml"),
            command__lockstep=False,
            draft_temperature=1e-3,
            safety__require_enable=True,
            safety__hold_after_s=0.2,
            safety__limits=str(folder / "limits.yaml"),
        )
        stage.activate()
        self.run(lambda: self._deadman.get_subscription_count() > 0 and bool(self.safety), "the node")

    def _show(self) -> None:
        """Show a step of the task and the deadman, if it is time."""
        self.stage.check()
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s, self._step = now_s + PERIOD_S, self._step + 1
            stamp_ns = self.stage.node.get_clock().now().nanoseconds
            self._tasks.publish(to_task_state(np.zeros(4), np.zeros(2), 1, self._step, stamp_ns))
            self._deadman.publish(Bool(data=self._pressed))

    def run(self, done: Callable[[], bool], what: str) -> None:
        self.stage.observer.wait_until(done, DEADLINE_S, what, self._show)

    def press(self, pressed: bool) -> None:
        self._pressed, self._next_s = pressed, 0.0
        self._show()

    def press_afresh(self) -> None:
        """Let the deadman go and press it, again if a press does not count; wait until the arm is fast."""
        self.press(False)
        self.run(lambda: not self.safety[-1].enabled, "the deadman let go")

        def fast() -> bool:
            self._pressed = self.safety[-1].enabled or time.monotonic() % AGAIN_S > RELEASED_S
            outputs = self.manager.outputs[-20:]
            return len(outputs) == 20 and bool(speeds(outputs).min() > 0.95 * SPEED)

        self.run(fast, "motion")

    def ticks(self, count: int) -> None:
        before = len(self.manager.outputs)
        self.run(lambda: len(self.manager.outputs) >= before + count, "ticks")

    def check_held(self) -> None:
        """Check that the arm is held in time, with a reason."""
        since_s = time.monotonic()
        self.run(lambda: bool(self.safety[-1].holding), "a hold")
        assert time.monotonic() - since_s < HELD_S
        assert self.safety[-1].message
        self.run(lambda: bool(self.safety[-1].at_rest), "rest")

    def check_moves_only_after_a_press(self) -> None:
        """Check that the controller stands from its start on, and then moves from the measured place."""
        before = len(self.manager.outputs)
        self.ticks(RATE_HZ)
        outputs = self.manager.outputs[before:]
        assert span(outputs) < STANDS
        assert np.abs(outputs[0].places - outputs[0].measured).max() < STANDS
        self.press_afresh()
        self.check_speeds(before)

    def check_speeds(self, since: int) -> None:
        outputs = self.manager.outputs[since:]
        assert np.abs(speeds(outputs, WINDOW)).max() <= JUMPS * SPEED


@pytest.fixture
def cell(stage: Stage, manager: Manager, exported: Path, tmp_path: Path) -> Cell:
    manager.start(START)
    return Cell(stage, manager, exported, tmp_path)


def test_ten_starts_keep_the_speed_and_ten_stops_the_braking_path(cell: Cell) -> None:
    outputs = cell.manager.outputs
    for _ in range(10):
        cell.press_afresh()
        begin = outputs[-1].places
        cell.press(False)
        cell.ticks(RATE_HZ)
        assert span(outputs[-RATE_HZ // 2 :]) < STANDS
        assert (outputs[-1].places - begin).max() <= SPEED**2 / (2.0 * ACCELERATION) + LAG_S * SPEED
    cell.check_speeds(0)


def test_a_controller_that_was_deactivated_moves_only_after_a_press(cell: Cell) -> None:
    cell.press_afresh()
    cell.manager.switch(deactivate_controllers=[CONTROLLER])
    cell.check_held()
    cell.manager.switch(activate_controllers=[CONTROLLER])
    cell.check_moves_only_after_a_press()


def test_a_manager_that_was_killed_moves_only_after_a_press(cell: Cell) -> None:
    cell.press_afresh()
    cell.manager.kill()
    cell.check_held()
    cell.manager.start(float(cell.manager.outputs[-1].places[0]))
    cell.check_moves_only_after_a_press()


def test_a_controller_without_a_commanded_joint_is_never_moved(
    stage: Stage, manager: Manager, exported: Path, tmp_path: Path
) -> None:
    manager.start(START, joints=JOINTS[:1])
    cell = Cell(stage, manager, exported, tmp_path)
    cell.press(True)
    cell.ticks(3 * RATE_HZ)
    assert cell.safety[-1].holding
    assert JOINTS[1] in cell.safety[-1].message
    assert span(cell.manager.outputs) < STANDS


def goal_of(cell: Cell) -> str:
    """Have this process's node send the controller a goal of seconds; return what is said of it."""
    from control_msgs.action import FollowJointTrajectory

    action = f"{CONTROLLER}/follow_joint_trajectory"
    client = ActionClient(cell.stage.node, FollowJointTrajectory, action)
    cell.run(client.server_is_ready, "the action")
    point = JointTrajectoryPoint(positions=[START] * len(JOINTS), time_from_start=Duration(sec=30))
    trajectory = JointTrajectory(joint_names=JOINTS, points=[point])
    sent = client.send_goal_async(FollowJointTrajectory.Goal(trajectory=trajectory))
    cell.run(sent.done, "an answer")
    assert sent.result().accepted
    return f"a goal of {cell.stage.node.get_name()} executes on /{action}"


def test_a_goal_on_the_controller_holds_the_policy_by_name(cell: Cell) -> None:
    cell.press_afresh()
    said = goal_of(cell)
    cell.check_held()
    assert any(said in each.message for each in cell.safety)


def test_a_goal_that_executes_refuses_the_policy_by_name(cell: Cell) -> None:
    cell.press_afresh()  # so the node has discovered all of the controller
    assert cell.stage.change_state("deactivate")
    cell.ticks(RATE_HZ)  # a command that brakes would end the goal
    said = goal_of(cell)
    cell.ticks(RATE_HZ // 4)
    assert not cell.stage.change_state("activate")
    assert f"cannot be activated: {said}" in cell.stage.processes.all[0].output
