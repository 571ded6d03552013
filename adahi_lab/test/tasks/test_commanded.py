"""Which command moves a task, and what does where none belongs to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adahi_lab.tasks import make, make_expert
from adahi_lab.tasks.commanded import CommandedTask, Motion, standing_still
from adahi_lab.tasks.demonstrations import Demonstrator
from adahi_lab.tasks.task_interface import Task
from adahi_ros.core.command_curve import Curve

SEED = 4
STILL_RAD = {"ball": 1e-12, "kitchen": 0.2}  # in half a second; the kitchen's arm sinks under its weight
FIRST_EPISODE = 6
MS = 1_000_000
STARTED_NS = 50 * MS
OFF_THE_PLATE = np.array([0.19, 0.2])


def commanded(**changes: Any) -> CommandedTask:
    """A ball on a plate, before its first state has been shown."""
    arguments: dict[str, Any] = {
        "seed": SEED,
        "episode": FIRST_EPISODE,
        "episodes": 0,
        "lockstep": False,
        "max_command_age_s": 0.15,
        "now_ns": STARTED_NS,
        **changes,
    }
    return CommandedTask(make("ball"), **arguments)


def motion_of(robot: CommandedTask, now_ns: int) -> Motion:
    """Return what moves it now; it must not wait for a command."""
    motion = robot.motion(now_ns)
    assert motion is not None
    return motion


def roll_off(robot: CommandedTask) -> int:
    """Let the ball roll off the plate; return how many steps that takes."""
    while not robot.advance(OFF_THE_PLATE):
        pass
    return robot.step


def test_in_lockstep_a_command_moves_the_state_that_it_belongs_to() -> None:
    robot = commanded(lockstep=True)
    listened = robot.listens
    for now_ns in (100 * MS, 200 * MS, 300 * MS):  # shown anew while no command comes
        robot.show(now_ns)
    assert (listened, robot.listens) == (False, True)
    action = np.array([0.05, -0.1])
    moves = {stamp: robot.take(action, stamp, 310 * MS) for stamp in (0, 99 * MS, 100 * MS, 300 * MS)}
    assert moves == {0: False, 99 * MS: False, 100 * MS: True, 300 * MS: True}
    assert robot.take(action, None, 310 * MS)  # its kind has no stamp
    with pytest.raises(ValueError, match=r"header\.stamp: 0\.001 s after the newest state"):
        robot.take(action, 301 * MS, 310 * MS)
    robot.advance(action)
    assert not robot.take(action, 300 * MS, 310 * MS)  # repeated: its state is past
    robot.show(400 * MS)
    assert not robot.take(action, 300 * MS, 410 * MS)
    assert robot.take(action, 400 * MS, 410 * MS)


def test_in_real_time_the_newest_command_is_executed_until_it_is_too_old() -> None:
    robot = commanded()
    robot.show(100 * MS)
    assert robot.motion(10_000 * MS) is None  # an episode's first command is waited for
    first, second, late = (np.array([0.01 * (k + 1), 0.0]) for k in range(3))
    assert not robot.take(first, 100 * MS, 110 * MS)
    robot.show(150 * MS)
    robot.take(second, 150 * MS, 160 * MS)
    robot.take(late, 100 * MS, 170 * MS)  # overtaken on its way
    at_last = motion_of(robot, 300 * MS)
    assert at_last.late_s is None
    np.testing.assert_array_equal(at_last.action, second)
    held = motion_of(robot, 301 * MS)
    assert held.late_s == pytest.approx(0.151)
    np.testing.assert_array_equal(held.action, robot.task.joint_positions[0])


@pytest.mark.parametrize("stamp_ns", [0, None])
def test_in_real_time_a_command_without_a_stamp_counts_from_receipt(stamp_ns: int | None) -> None:
    robot = commanded()
    robot.show(100 * MS)
    robot.take(np.zeros(2), stamp_ns, 1000 * MS)
    motion = motion_of(robot, 1150 * MS)
    assert motion.late_s is None
    motion = motion_of(robot, 1151 * MS)
    assert motion.late_s == pytest.approx(0.151)


def test_a_command_of_before_the_episode_does_not_move_it() -> None:
    robot = commanded()
    robot.show(100 * MS)
    robot.take(np.zeros(2), STARTED_NS - 1, 100 * MS)
    assert robot.motion(110 * MS) is None
    robot.take(np.zeros(2), STARTED_NS, 100 * MS)
    assert robot.motion(110 * MS) is not None
    roll_off(robot)
    assert robot.begin_next(500 * MS)
    assert not robot.listens
    robot.show(501 * MS)
    robot.take(np.zeros(2), 499 * MS, 510 * MS)
    assert robot.motion(510 * MS) is None
    robot.take(np.zeros(2), 500 * MS, 510 * MS)
    assert robot.motion(510 * MS) is not None


LIMIT = 2.0  # rad/s
PERIOD_NS = 50 * MS
AGE_NS = 40 * MS  # of the observation, when its command arrives


def drive(robot: CommandedTask, stamped: bool) -> float:
    """Command steps as large as the limit allows; return the largest speed asked of the controller."""
    largest = LIMIT * PERIOD_NS / 1e9
    for step in range(4):
        shown_ns = 100 * MS + step * PERIOD_NS
        robot.show(shown_ns)
        target, came_ns = np.full(2, (step % 2) * largest), shown_ns + AGE_NS
        robot.take(target, shown_ns if stamped else 0, came_ns)
        motion = motion_of(robot, came_ns)
        np.testing.assert_array_equal(motion.action, target)  # reached within the period
        robot.advance(motion.action)
    assert robot.controller is not None
    return float(robot.controller.peak_speed.max())


def test_a_command_timed_from_receipt_stays_within_the_limit() -> None:
    assert drive(commanded(), stamped=False) == pytest.approx(LIMIT)
    assert drive(commanded(), stamped=True) == pytest.approx(5.0 * LIMIT)


def test_a_point_beyond_the_period_is_approached_as_a_controller_does() -> None:
    robot = commanded()
    robot.show(100 * MS)
    point, unknown = np.array([0.1, -0.2]), np.full((1, 2), np.nan)
    robot.take(point, 0, 110 * MS, Curve(np.array([0.1]), point[None], unknown))
    for now_ns, share in ((110, 0.5), (135, 0.75), (160, 1.0), (200, 1.0)):
        motion = motion_of(robot, now_ns * MS)
        assert motion.velocities is not None
        np.testing.assert_allclose(motion.action, share * np.array([0.1, -0.2]))
        np.testing.assert_allclose(motion.velocities, (share < 1.0) * np.array([1.0, -2.0]))


def test_a_stamp_that_no_controller_would_take_moves_nothing() -> None:
    robot = commanded()
    robot.show(100 * MS)
    with pytest.raises(ValueError, match=r"header\.stamp: 0\.060 s old, must be at most 0\.05 s"):
        robot.take(OFF_THE_PLATE, 100 * MS, 160 * MS)
    with pytest.raises(ValueError, match=r"header\.stamp: 0\.200 s in the future, must be at most 0\.15 s"):
        robot.take(OFF_THE_PLATE, 360 * MS, 160 * MS)
    started = motion_of(robot, 160 * MS)  # an episode whose first command is late goes on
    np.testing.assert_array_equal(started.action, robot.task.joint_positions[0])
    robot.take(OFF_THE_PLATE, 150 * MS, 160 * MS)
    assert (motion_of(robot, 180 * MS).action != started.action).any()


def test_only_positions_in_real_time_go_through_a_controller() -> None:
    assert commanded().controller is not None
    assert commanded(lockstep=True).controller is None
    arguments = (SEED, FIRST_EPISODE, 0, False, 0.15, STARTED_NS)
    by_velocities = CommandedTask(make("kitchen"), *arguments)
    assert by_velocities.controller is None
    by_velocities.show(100 * MS)
    by_velocities.take(np.full(9, 0.1), 0, 110 * MS)
    motion = motion_of(by_velocities, 110 * MS)
    np.testing.assert_array_equal(motion.action, np.full(9, 0.1))
    assert motion.velocities is None


def test_episodes_follow_each_other_until_the_last_is_over() -> None:
    robot = commanded(episodes=2)
    world = make("ball")
    for episode in (FIRST_EPISODE, FIRST_EPISODE + 1):
        world.reset(SEED, [episode])
        assert (robot.episode, robot.step) == (episode, 0)
        np.testing.assert_array_equal(robot.task.state, world.state)
        steps = roll_off(robot)
        for step in range(steps):
            assert not world.done[0], step
            world.step(OFF_THE_PLATE[None])
        assert world.done[0]
        assert (robot.step, robot.success) == (steps, bool(world.success[0]))
        assert robot.begin_next(0) == (episode == FIRST_EPISODE)
    robot.show(100 * MS)
    assert robot.over
    assert not robot.listens


def test_in_a_demonstration_the_expert_is_shown_and_its_noise_executed() -> None:
    spec = make("ball").spec
    robot = commanded(demonstrator=Demonstrator(make_expert("ball"), spec, 0.5))
    alone = Demonstrator(make_expert("ball"), spec, 0.5)
    world = make("ball")
    world.reset(SEED, [FIRST_EPISODE])
    alone.reset(SEED, [FIRST_EPISODE])
    for step in range(3):
        wanted, executed = alone.act(world)
        shown = robot.show((step + 1) * MS)
        assert shown is not None
        np.testing.assert_array_equal(shown, wanted[0])
        motion = motion_of(robot, 1_000_000 * MS)  # however late its clock is
        assert motion.late_s is None
        np.testing.assert_array_equal(motion.action, executed[0])
        robot.advance(motion.action)
        world.step(executed)
        np.testing.assert_array_equal(robot.task.state, world.state)


@pytest.mark.parametrize("name", STILL_RAD)
def test_holding_still_is_no_motion(name: str) -> None:
    world: Task = make(name)
    world.reset(SEED, [FIRST_EPISODE])
    if name == "ball":  # the plate is level at the start
        for _ in range(5):
            world.step(np.array([[0.1, -0.2]]))
    before = world.joint_positions
    np.testing.assert_array_equal(standing_still(world), before[0] if name == "ball" else np.zeros(9))
    for _ in range(round(0.5 * world.spec.control_rate_hz)):
        world.step(standing_still(world)[None])
    np.testing.assert_allclose(world.joint_positions, before, atol=STILL_RAD[name])
