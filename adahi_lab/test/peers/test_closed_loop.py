from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from adahi_lab.peers import closed_loop
from adahi_ros.core.signature import GOAL, OBSERVATION, Feature, Signature
from benchmarks.clients import Client, jerk, longest_gap, loop_figures

TASK, SEED, FIRST, RATE_HZ = "ball_instructed", 3, 2_000_000, 20.0
LEVEL, OFF_THE_PLATE = np.zeros(2), np.array([0.3, 0.3])
HISTORY = 3
SIGNATURE = Signature(HISTORY, 16, 2, (Feature(OBSERVATION, 6),), (Feature(GOAL, 2),))


class FakeLink:
    """Carries ten bytes up and one down whenever it is asked, and notes when it is cut."""

    def __init__(self) -> None:
        self.requested = 0
        self.cuts: list[float] = []

    def carried(self) -> tuple[int, int]:
        self.requested += 1
        return 10 * self.requested, self.requested

    def cut(self, for_s: float) -> None:
        self.cuts.append(for_s)


class Robot:
    """A world, and a client whose script says in which periods it commands; all without a thread."""

    def __init__(self, episodes: int = 1, outage_s: float = 0.0, action: np.ndarray = LEVEL) -> None:
        self.now_s = 100.0
        self.link = FakeLink()
        drive = closed_loop.Drive(TASK, "", SEED, FIRST, episodes, outage_s)
        self.world = closed_loop.RealTimeWorld(drive, SIGNATURE, self.link, lambda: self.now_s)
        self.action = action
        self.ticks_s: list[float] = []
        self.silent: set[int] = set()

    def sleep(self, duration_s: float) -> None:
        self.now_s += duration_s
        if len(self.ticks_s) not in self.silent:
            self.world.command(self.action)
        self.ticks_s.append(self.now_s)

    def run_episode(self) -> closed_loop.EpisodeLog:
        self.ticks_s = []
        self.world.begin()
        self.now_s += 0.25
        self.world.command(self.action)
        self.world.run(self.sleep)
        return self.world.logs[-1]


def test_the_world_goes_by_the_clock_to_the_end_of_its_episode() -> None:
    robot = Robot()
    log = robot.run_episode()
    assert log.episode == FIRST
    assert not log.success
    assert len(log.moved) == len(robot.ticks_s) > closed_loop.CUT_STEPS[0]
    assert all(log.moved)
    assert log.start_s == pytest.approx(0.25)
    np.testing.assert_allclose(np.diff(robot.ticks_s), 1.0 / RATE_HZ)
    assert (log.bytes_up, log.bytes_down) == (10, 1)
    assert (log.asked_speed, log.asked_acceleration) == (0.0, 0.0)  # the plate is level from the start


def test_what_commands_ask_of_the_joints_is_in_the_log() -> None:
    log = Robot(action=OFF_THE_PLATE).run_episode()
    assert log.asked_speed == pytest.approx(0.3 * RATE_HZ)
    assert log.asked_acceleration == pytest.approx(0.3 * RATE_HZ**2)


def test_a_slow_machine_delays_no_later_period() -> None:
    robot = Robot()
    sleep, stalled = robot.sleep, 5

    def stalling(duration_s: float) -> None:
        sleep(duration_s)
        if len(robot.ticks_s) == stalled:
            robot.now_s += 0.12

    robot.sleep = stalling
    robot.run_episode()
    periods = (np.array(robot.ticks_s[stalled + 4 :]) - robot.ticks_s[0]) * RATE_HZ
    np.testing.assert_allclose(periods, np.arange(len(periods)) + stalled + 4, atol=1e-6)


def test_periods_without_a_command_are_missed_and_then_the_robot_is_held() -> None:
    robot = Robot()
    robot.silent = set(range(10, 16))
    log = robot.run_episode()
    assert np.flatnonzero(~np.array(log.moved)).tolist() == list(range(10, 16))
    allowed = round(closed_loop.MAX_COMMAND_AGE_S * RATE_HZ)
    assert log.still == 6 - allowed


def test_episodes_follow_each_other_and_only_so_many() -> None:
    robot = Robot(episodes=2, action=OFF_THE_PLATE)
    assert robot.world.left == 2
    first, second = robot.run_episode(), robot.run_episode()
    assert (first.episode, second.episode) == (FIRST, FIRST + 1)
    assert robot.world.left == 0
    with pytest.raises(ValueError, match="all 2 are over"):
        robot.world.begin()


def test_what_comes_after_the_end_moves_nothing() -> None:
    robot = Robot(episodes=2, action=OFF_THE_PLATE)
    robot.run_episode()
    robot.world.command(LEVEL)
    robot.world.begin()
    assert robot.world.tick()
    assert robot.world.logs[-1].episode == FIRST


def test_a_client_that_waits_for_observations_gets_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = Robot(action=OFF_THE_PLATE)
    robot.world.begin()
    robot.world.command(OFF_THE_PLATE)
    waits: list[bool] = []
    # In the place of another thread, which would move the world meanwhile.
    monkeypatch.setattr(robot.world._lock, "wait", lambda: waits.append(robot.world.tick()))
    before = robot.world.observe(wait=True)[0]
    assert not waits
    after = robot.world.observe(wait=True)[0]
    assert waits == [True]
    assert not np.array_equal(before, after)
    while robot.world.tick():
        pass
    for _ in range(2):  # the end is told again and again
        robot.world.observe(wait=True)
    assert waits == [True]


def test_the_link_is_cut_once_an_episode_at_a_step_of_its_own() -> None:
    robot = Robot(episodes=4, outage_s=1.0)
    cut_at = []
    for _ in range(4):
        robot.link.cuts = []
        robot.world.begin()
        while not robot.link.cuts:
            robot.world.command(LEVEL)
            robot.world.tick()
        assert robot.link.cuts == [1.0]
        log = robot.world._world.log  # type: ignore[union-attr]
        cut_at.append(len(log.moved) - 1)
        robot.world.run(robot.sleep)
        assert robot.link.cuts == [1.0, 0.0]  # mended at the end
    assert all(closed_loop.CUT_STEPS[0] <= step < closed_loop.CUT_STEPS[1] for step in cut_at)
    assert len(set(cut_at)) > 1


def test_calls_belong_to_their_episode() -> None:
    robot = Robot(episodes=2, action=OFF_THE_PLATE)
    robot.run_episode()
    robot.world.begin()
    robot.world.count_call()
    robot.world.count_call()
    robot.world.command(OFF_THE_PLATE)
    robot.world.run(robot.sleep)
    assert [log.calls for log in robot.world.logs] == [0, 2]


def test_logs_and_drives_are_read_as_they_were_written(tmp_path: Path) -> None:
    robot = Robot(action=OFF_THE_PLATE)
    log = robot.run_episode()
    closed_loop.save_logs([log], tmp_path / "logs.json")
    assert closed_loop.load_logs(tmp_path / "logs.json") == [log]
    drive = closed_loop.Drive(TASK, "target", SEED, FIRST, 2, 1.0, "10.0.0.2", 9123, {"action_horizon": 4})
    drive.save(tmp_path / "drive.json")
    assert closed_loop.Drive.load(tmp_path / "drive.json") == drive


def test_jerk_is_the_third_derivative() -> None:
    times = np.arange(20) / RATE_HZ
    cubic = np.stack([0.5 * times**3, np.zeros(20)], axis=1)
    assert jerk([cubic], RATE_HZ) == pytest.approx(3.0 / np.sqrt(2.0))
    assert jerk([cubic, cubic[:3]], RATE_HZ) == pytest.approx(3.0 / np.sqrt(2.0))  # too short to tell
    assert jerk([times[:, None] ** 2], RATE_HZ) == pytest.approx(0.0, abs=1e-6)
    assert jerk([np.zeros((9, 0))], RATE_HZ) is None


def test_figures_of_a_loop() -> None:
    joints = [[0.0]] * 4
    logs = [
        closed_loop.EpisodeLog(0, True, 0.1, joints, [True, False, False, True], 1, 2, 400, 40, 1.0, 10.0),
        closed_loop.EpisodeLog(1, False, 0.3, joints, [True, True, False, True], 0, 1, 400, 40, 3.0, 20.0),
    ]
    found = loop_figures(logs, 10.0)
    assert found["success_rate"] == 0.5
    assert found["calls_per_step"] == 3 / 8
    assert found["missed"] == 3 / 8
    assert found["still"] == 1 / 8
    assert found["start_s"] == pytest.approx(0.2)
    assert found["waiting_s"] == pytest.approx(0.2 + 0.15)
    assert found["longest_gap_most_s"] == pytest.approx(0.2)
    assert (found["bytes_up_per_step"], found["bytes_down_per_step"]) == (100.0, 10.0)
    assert found["asked_speed"] == 2.0
    assert (found["asked_acceleration"], found["asked_acceleration_most"]) == (15.0, 20.0)
    assert longest_gap([]) == 0


@pytest.mark.parametrize(
    "name", ["openpi", "openpi:x", "lerobot:0.5x:latest_only", "ours:plan_0", "ours:hybrid", "theirs:8"]
)
def test_a_client_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"clients:|plan_0|hybrid"):
        Client.parse(name, TASK)


def test_clients_by_name() -> None:
    assert Client.parse("openpi:4", TASK).settings == {"action_horizon": 4}
    assert Client.parse("ours:best", TASK).settings == {"method": "best"}
    settings = Client.parse("lerobot:0.5:latest_only", TASK).settings
    assert settings == {"chunk_size_threshold": 0.5, "aggregate_fn_name": "latest_only", "fps": RATE_HZ}
