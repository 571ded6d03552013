from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import yaml

from adahi_lab.tasks import gymnasium_task, make, make_expert
from adahi_lab.tasks.gymnasium_task import described_expert
from adahi_lab.tasks.task_interface import Task


class Drift(gym.Env[np.ndarray, np.ndarray]):
    """A point is pushed towards a goal; it ends where the point goes astray, or with success if asked to."""

    def __init__(self, ends_with_success: bool = True, bounded: bool = True):
        limit = 1.0 if bounded else np.inf
        self.ends_with_success = ends_with_success
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (3,))
        self.action_space = gym.spaces.Box(-limit, limit, (1,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.position, self.goal = self.np_random.uniform(-1.0, 1.0, 2)
        self.push = 0.0
        return self._seen(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        assert action.dtype == np.float32
        self.push = float(action[0])
        self.position += 0.1 * self.push
        arrived = abs(self.position - self.goal) < 0.1
        astray = abs(self.position) > 1.5
        terminated = astray or (arrived and self.ends_with_success)
        return self._seen(), float(arrived), terminated, False, {"arrived": arrived}

    def _seen(self) -> np.ndarray:
        return np.array([self.goal, self.push, self.position], dtype=np.float32)


class DriftExpert:
    def reset(self, seed: int, episodes: Any) -> None:
        self.count = len(episodes)

    def act(self, task: Any) -> np.ndarray:
        return np.clip(10.0 * (task.goal - task.joint_positions), -1.0, 1.0)


class FussyExpert(DriftExpert):
    def __init__(self, gain: float) -> None:
        self.gain = gain


gym.register("adahi_test/Drift-v0", entry_point=lambda **options: Drift(**options))

DRIFT = {
    "name": "drift",
    "environment": "adahi_test/Drift-v0",
    "frame_id": "line",
    "control_rate_hz": 10,
    "max_steps": 40,
    "observation": ["goal_m", "push", "position_m"],
    "joints": {"slider": "position_m"},
    "goal": ["goal_m"],
    "action": ["push"],
    "command_field": "velocities",
    "success": {"info": "arrived"},
    "success_text": "within 10 cm of the goal",
    "subtask": "arrived",
    "expert": "module:name",
}

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write DRIFT with other values (None leaves one out); return the file's name."""

    def described(**other: Any) -> str:
        values = {name: value for name, value in {**DRIFT, **other}.items() if value is not None}
        path = tmp_path / "drift.yaml"
        path.write_text(yaml.safe_dump(values))
        return str(path)

    return described


def run(task: Task, expert: DriftExpert, steps: int = 40) -> np.ndarray:
    """Act, return (steps, E, O)."""
    seen = []
    for _ in range(steps):
        seen.append(task.observation)
        task.step(expert.act(task))
    return np.stack(seen)


def test_entries_are_joints_state_and_goal(write: Write) -> None:
    task = make(write())
    task.reset(3, [0, 1])
    spec = task.spec
    assert (spec.name, spec.joint_names, spec.state_names, spec.goal_dim) == (
        "drift",
        ("slider",),
        ("push",),
        1,
    )
    goal, start = task.goal, task.joint_positions
    task.step(np.array([[0.5], [-7.0]]))
    np.testing.assert_allclose(task.joint_positions - start, [[0.05], [-0.1]], atol=1e-6)  # -7 is clipped
    np.testing.assert_allclose(task.joint_velocities, [[0.5], [-1.0]], atol=1e-5)
    np.testing.assert_array_equal(task.state, [[0.5], [-1.0]])
    np.testing.assert_array_equal(task.goal, goal)
    expected = np.concatenate([task.joint_positions, task.state], axis=1, dtype=np.float32)
    np.testing.assert_array_equal(task.observation, expected)


@pytest.mark.parametrize(
    ("success", "ends_with_success"),
    [
        ("terminated", True),
        ({"info": "arrived"}, True),
        ({"info": "arrived"}, False),
        ({"return_above": 0}, False),
    ],
)
def test_success_is_reported_as_described(write: Write, success: Any, ends_with_success: bool) -> None:
    task = make(write(success=success, kwargs={"ends_with_success": ends_with_success}))
    task.reset(0, range(5))
    before = task.success
    assert not before.any()
    run(task, DriftExpert())
    assert task.success.all()
    assert task.completed.all()
    assert task.fulfilled.all()
    assert not task.failed.any()
    near = np.abs(task.joint_positions - task.goal)
    assert np.all(near < 0.1 + 1e-6)  # stands still since


def test_what_ends_without_success_has_failed_and_stands_still(write: Write) -> None:
    task = make(write(success={"return_above": 1e6}, kwargs={"ends_with_success": False}))
    task.reset(0, [0])
    for _ in range(30):
        task.step(np.ones((1, 1)))
    assert task.failed.all()
    assert task.done.all()
    assert not task.success.any()
    still = task.observation
    task.step(-np.ones((1, 1)))
    np.testing.assert_array_equal(task.observation, still)
    np.testing.assert_array_equal(task.joint_velocities, [[0.0]])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"frame_id": None}, "frame_id: missing"),
        ({"frames": "x"}, "frames: unknown, must be one of name, "),
        ({"max_steps": 2.5}, "max_steps: 2.5, must be an integer"),
        ({"control_rate_hz": -0.5}, "control_rate_hz: -0.5, must be a number above 0"),
        ({"control_rate_hz": float("inf")}, "control_rate_hz: inf, must be a number above 0"),
        ({"action": "push"}, "action: 'push', must be a list of texts"),
        ({"joints": ["position_m"]}, r"joints: \['position_m'\], must be a mapping"),
        ({"joints": {"slider": "x"}}, "joints: 'x', must be one of goal_m, push, position_m"),
        ({"goal": ["position_m"]}, r"joints, goal: \['position_m', 'position_m'\], must name no entry twice"),
        ({"observation": ["a", "a", "b"]}, r"observation: \['a', 'a', 'b'\], must be .* at least one name"),
        ({"observation": ["goal_m", "position_m"]}, "observation: 2 names, must be 3 as the environment has"),
        ({"action": ["push", "pull"]}, "action: 2 names, must be 1 as the environment has"),
        ({"success": {"info": 3}}, r"success: \{'info': 3\}, must be terminated, \{info: KEY\} or"),
        ({"success": "always"}, "success: 'always', must be terminated"),
        ({"command_field": "voltage"}, "command_field: 'voltage', must be one of positions"),
        ({"joints": {}}, r"command_names: \(\), must be 1 names"),
        ({"expert": "nobody"}, "expert: 'nobody', must be module:name"),
        ({"environment": "Nowhere-v0"}, "environment, kwargs: 'Nowhere-v0'"),
        ({"kwargs": {"speed": 3}}, r"environment, kwargs: 'adahi_test/Drift-v0' with \{'speed': 3\}"),
        ({"kwargs": {"bounded": False}}, "environment: 'adahi_test/Drift-v0', must have bounded actions"),
        ({"modules": ["adahi_nowhere"]}, "modules: 'adahi_nowhere', must be importable"),
        ({"environment": "CartPole-v1"}, "environment: action space Discrete.2., must be a Box"),
    ],
)
def test_faults_name_file_field_and_what_is_allowed(
    write: Write, other: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=rf"drift\.yaml: {message}"):
        make(write(**other))


def test_what_is_no_description_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "list.yaml"
    path.write_text("[1, 2]")
    with pytest.raises(ValueError, match=r"list\.yaml: file: \[1, 2\], must be a mapping"):
        make(str(path))
    path.write_text("{")
    with pytest.raises(ValueError, match=r"list\.yaml: not YAML"):
        make(str(path))
    with pytest.raises(FileNotFoundError, match=r"nowhere\.yaml"):
        make(str(tmp_path / "nowhere.yaml"))
    with pytest.raises(ValueError, match=r"task: 'bowl', expected one of ball, .* or a file NAME\.yaml"):
        make("bowl")


def test_an_expert_is_a_class_or_a_function(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    experts = SimpleNamespace(
        Kind=DriftExpert, Fussy=FussyExpert, act=lambda task: np.full((len(task.done), 1), 0.25)
    )
    monkeypatch.setitem(sys.modules, "drift_experts", experts)
    file = write(expert="drift_experts:act")
    task, expert = make(file), make_expert(file)
    expert.reset(0, [0, 1])
    task.reset(0, [0, 1])
    np.testing.assert_array_equal(expert.act(task), [[0.25], [0.25]])
    assert isinstance(make_expert(write(expert="drift_experts:Kind")), DriftExpert)
    with pytest.raises(ValueError, match=r"drift\.yaml: expert: 'drift_experts:none', must be"):
        make_expert(write(expert="drift_experts:none"))
    with pytest.raises(ValueError, match=r"expert: 'drift_experts:Fussy', must need no .*'gain'"):
        make_expert(write(expert="drift_experts:Fussy"))


def test_the_modules_that_a_file_runs_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = SimpleNamespace(expert="json:loads")
    monkeypatch.setattr(gymnasium_task, "load_description", lambda path: named)
    with pytest.warns(UserWarning, match=r"task\.yaml: imports and runs the code of json"):
        described_expert(tmp_path / "task.yaml")
    gymnasium_task._warn_of_code(tmp_path, ("adahi_lab.tasks",))
