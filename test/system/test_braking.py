"""However a node ends in motion, its commands brake within the limit of acceleration."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from trajectory_msgs.msg import JointTrajectory

from adahi_ros.nodes.common.executors import with_info
from adahi_ros.nodes.common.messages import from_stamp, to_joint_state
from adahi_ros.nodes.launching.child_processes import NodeProcess
from adahi_ros.nodes.launching.modules import MODULES
from adahi_ros.safety.envelope import RESTS
from test.ball_contract import ball_contract
from test.system.stage import DEEP, JOINTS, Robot, Stage, reliable_input

START = -20.0  # rad; whatever the policy wants is far from there
FASTEST, HARDEST = 1.44, 4.0  # rad/s, rad/s^2
TICKS = 6  # of braking at least; on a loaded machine a late observation often lets the arm rest
LATE = RESTS - 0.3  # periods between two commands, after which the arm may rest
SHORTER = 0.05  # periods by which the time between two commands may seem to differ
BREAKABLE = """
import os, time
from adahi_ros.nodes.robot import draft_policy_node
from adahi_ros.nodes.robot.command_publisher import CommandPublisher
from adahi_ros.robot.loop import ControlLoop
from adahi_ros.safety.guard import Guard

step, close, rests = ControlLoop.step, CommandPublisher.close, Guard._rests

def broken(loop, observation):
    if os.path.exists("{flag}"):
        raise RuntimeError("broken")
    step(loop, observation)

def lingers(publisher):
    close(publisher)
    time.sleep(1.0)  # so that DDS can send again what was lost

def noted(guard, now_s):
    rested = rests(guard, now_s)
    if rested and now_s - guard._motion.put_s >= 0.07:
        open("{rested}", "w").close()
    return rested

ControlLoop.step = broken
Guard._rests = noted
CommandPublisher.close = lingers
draft_policy_node.main()
"""


class Arm:
    """What a node sends to an arm that it sees at `START`.

    Attributes:
        sent: of each command its time by the node, s, the first joint's position, and whether it brakes.
    """

    def __init__(self, stage: Stage, period_s: float) -> None:
        self.sent: list[tuple[float, float, bool]] = []
        self._robot, self._period_s, self._over = Robot(stage), period_s, threading.Event()
        called = with_info(self._on_command)
        self._subscription = stage.node.create_subscription(JointTrajectory, "command", called, DEEP)
        self._thread = threading.Thread(target=self._show)
        self._thread.start()

    def _on_command(self, message: JointTrajectory, info: Any) -> None:
        brakes = from_stamp(message.header.stamp) == 0
        self.sent.append((1e-9 * info["source_timestamp"], message.points[0].positions[0], brakes))

    def _show(self) -> None:
        """Show observations at twice the control rate: a late one is no gap between two commands."""
        robot, step = self._robot, 0
        while not self._over.wait(self._period_s / 2):
            step, stamp = step + 1, robot.now()
            robot.joints_out.publish(to_joint_state(JOINTS, np.full(2, START), np.zeros(2), stamp))
            robot.state_out.publish(robot.state(1, step, stamp))

    def speed(self) -> float:
        """Return the speed of the last actions, rad/s."""
        actions = [(at_s, position) for at_s, position, brakes in self.sent if not brakes][-5:]
        (from_s, begin), (to_s, end) = actions[0], actions[-1]
        return (end - begin) / (to_s - from_s) if len(actions) == 5 else 0.0

    def fast(self) -> bool:
        enough = min(FASTEST / 2, TICKS * HARDEST * self._period_s)
        return len(self.sent) > 5 and self.speed() > enough

    def rests(self) -> bool:
        return len({(position, brakes) for _, position, brakes in self.sent[-2:]}) == 1 and self.sent[-1][2]

    def check_braking(self, blur: float, rested: bool) -> None:
        """Check what was sent after the last action, by the node's own times.

        Args:
            blur: of a speed, rad/s, where a timer of the node may have been early.
            rested: the node was late, so the arm rests since a gap.
        """
        first = 1 + max(number for number, (_, _, brakes) in enumerate(self.sent) if not brakes)
        if rested and len(self.sent) - first < 2:
            return
        times, positions, _ = np.array(self.sent[first:]).T
        periods = np.diff(times) / self._period_s
        whole = periods > 1.0 - SHORTER
        speeds, late = (np.diff(positions) / self._period_s)[whole], (periods > LATE)[whole]
        change, ticks = HARDEST * self._period_s, np.diff(np.flatnonzero(whole))
        if not whole.any():  # after a stall the arm may rest
            assert np.ptp(positions) <= change * self._period_s * len(positions)
            return
        assert speeds[-1] <= change + blur or rested  # it is at rest after that
        assert (np.diff(speeds) <= blur + 1e-9).all(), speeds
        stood = late[1:] & (speeds[1:] == 0.0)  # an arm that may rest is not set in motion again
        assert (stood | (np.diff(speeds) >= -change * ticks - blur - 1e-9)).all(), speeds
        before = np.diff([at_s for at_s, _, _ in self.sent[first - 6 : first + 1]]) / self._period_s
        if (before < 1.0).all() and not late[0]:
            assert speeds[0] > 0.9 * self.speed() - 3 * change

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._robot.stage.node.destroy_subscription(self._subscription)


@pytest.fixture
def _busy() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", "import os; os.nice(5)\nwhile True: pass"]) as process:
        yield
        process.kill()


def by_signal(number: signal.Signals) -> Callable[[Stage, NodeProcess, Path], None]:
    return lambda stage, process, flag: os.kill(process.pid, number)


def by_transitions(*numbers: int) -> Callable[[Stage, NodeProcess, Path], None]:
    def change(stage: Stage, process: NodeProcess, flag: Path) -> None:
        client = stage.node.create_client(ChangeState, "draft_policy/change_state")
        stage.wait(client.service_is_ready, "the service")
        for number in numbers:
            client.call_async(ChangeState.Request(transition=Transition(id=number)))

    return change


def by_error(stage: Stage, process: NodeProcess, flag: Path) -> None:
    flag.touch()


DEACTIVATE, CLEAN_UP = Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP
ENDS = {
    "SIGTERM": by_signal(signal.SIGTERM),
    "SIGINT": by_signal(signal.SIGINT),
    "deactivate": by_transitions(DEACTIVATE),
    "cleanup": by_transitions(DEACTIVATE, CLEAN_UP),
    "shutdown": by_transitions(Transition.TRANSITION_ACTIVE_SHUTDOWN),
    "error": by_error,
}


@pytest.mark.usefixtures("_busy")
@pytest.mark.parametrize(("rate_hz", "end"), [*((100.0, end) for end in ENDS), (20.0, "SIGTERM")])
def test_a_node_brakes_within_its_limits_however_it_ends(
    stage: Stage, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rate_hz: float, end: str
) -> None:
    flag, rested, limits = (tmp_path / name for name in ("flag", "rested", "limits.yaml"))
    (tmp_path / "breakable.py").write_text(BREAKABLE.format(flag=flag, rested=rested))
    monkeypatch.setitem(MODULES, "draft_policy_node", "breakable")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    limit = {"position": [-100.0, 100.0], "velocity": FASTEST, "acceleration": HARDEST, "max_step": np.inf}
    limits.write_text(yaml.safe_dump({"limits": {"default": limit}}))
    process = stage.start_draft(
        exported,
        gate__name="never",
        verifier_wait_s=0.0,
        contract=ball_contract(max_age_s=5.0, fps=rate_hz),
        draft_temperature=1e-3,  # so that it wants the same in each step
        command__lockstep=True,  # so that commands that brake are known by their stamps
        safety__limits=str(limits),
        qos_overrides=reliable_input(),
    )
    stage.activate()
    stage.processes.all.remove(process)  # it may end now
    arm = Arm(stage, 1.0 / rate_hz)
    try:
        stage.wait(arm.fast, "motion")
        ENDS[end](stage, process, flag)
        stage.wait(lambda: arm.rests() or rested.exists(), "rest")
    finally:
        arm.close()
        process.kill()
    lives = end in ("deactivate", "cleanup")
    arm.check_braking(2 * SHORTER * FASTEST if lives else 0.0, rested.exists())
