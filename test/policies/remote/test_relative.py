"""Plans whose actions are relative to the state of the request, made absolute."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from adahi_ros.core.plan import Plan
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.schema import checked
from adahi_ros.core.signature import Feature, Observations
from adahi_ros.policies.remote.relative import Relative
from adahi_ros.policies.remote.target_fields import RelativeEntry
from adahi_ros.protocol.request import RequestError
from adahi_ros.server.verifier import TargetVerifier, VerificationRequest

POSE = ["pose.x", "pose.y", "pose.z"]
VECTOR = [f"turn.{axis}" for axis in "xyz"]
QUATERNION = [f"q.{axis}" for axis in "xyzw"]
NAMES = [*POSE, *VECTOR, *QUATERNION, "gripper"]


def entry(**values: Any) -> RelativeEntry:
    made: RelativeEntry = checked(RelativeEntry, {"actions": POSE, "state": "arm", **values})
    return made


def absolute(plan: np.ndarray, state: np.ndarray, names: list[str], **values: Any) -> np.ndarray:
    """Return the absolute plans (B, T, A) of relative ones, whose names are those of the only entry."""
    features = (Feature("arm", state.shape[1]),)
    seen = np.stack([np.full_like(state, 99.0), state], axis=1)  # an older observation, too
    made = Relative([entry(actions=names, **values)], names, features).absolute(
        plan.astype(np.float32), Observations({"arm": seen.astype(np.float32)}, {}, (), {})
    )
    assert made.dtype == np.float32
    return made


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_joints_are_added_to_those_of_the_request_and_the_gripper_is_not() -> None:
    relative = Relative([entry(actions=["b", "a"], at=1)], ["a", "b", "gripper"], (Feature("arm", 3),))
    plan = np.array([[[1, 2, 3], [4, 5, 6]], [[0, 0, 0], [1, 1, 1]]], np.float32)
    seen = Observations({"arm": np.array([[[0, 10, 20]], [[0, 30, 40]]], np.float32)}, {}, (), {})
    expected = [[[21, 12, 3], [24, 15, 6]], [[40, 30, 0], [41, 31, 1]]]
    np.testing.assert_array_equal(relative.absolute(plan, seen), expected)
    assert plan[0, 0, 0] == 1  # the answer is not changed


def test_chained_actions_are_each_relative_to_the_one_before() -> None:
    plan = np.ones((1, 4, 1))
    made = absolute(plan, np.array([[5.0]]), ["a"], chained=True)
    np.testing.assert_array_equal(made[0, :, 0], [6, 7, 8, 9])


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("frame", ["base", "tool"])
@pytest.mark.parametrize("rotation", ["rotation_vector", "quaternion"])
@pytest.mark.parametrize("state_rotation", ["rotation_vector", "quaternion"])
@pytest.mark.parametrize("positions", [False, True])
def test_poses_compose_as_scipys_do(
    rng: np.random.Generator, chained: bool, frame: str, rotation: str, state_rotation: str, positions: bool
) -> None:
    robots, steps = 3, 6
    starts = Rotation.random(robots, random_state=1)
    turns = Rotation.from_rotvec(rng.normal(size=(robots * steps, 3)))
    at, moved = rng.normal(size=(robots, 3)), rng.normal(size=(robots, steps, 3))
    numbers = {"rotation_vector": Rotation.as_rotvec, "quaternion": Rotation.as_quat}
    relative = numbers[rotation](turns).reshape(robots, steps, -1)
    state = numbers[state_rotation](starts)
    if positions:
        relative, state = np.concatenate([moved, relative], axis=2), np.concatenate([at, state], axis=1)
    names = (POSE if positions else []) + (VECTOR if rotation == "rotation_vector" else QUATERNION)
    given = {"rotation": rotation, "frame": frame, "chained": chained, "state_rotation": state_rotation}
    made = absolute(relative, state, names, **given)
    for robot in range(robots):
        place, heading = at[robot], starts[robot]
        for step in range(steps):
            turn, move = turns[robot * steps + step], moved[robot, step]
            new_place = place + (heading.apply(move) if frame == "tool" else move)
            new_heading = heading * turn if frame == "tool" else turn * heading
            found = made[robot, step]
            if positions:
                np.testing.assert_allclose(found[:3], new_place, atol=2e-5)
                found = found[3:]
            read = {"rotation_vector": Rotation.from_rotvec, "quaternion": Rotation.from_quat}[rotation](
                found
            )
            assert (read * new_heading.inv()).magnitude() < 1e-5
            if chained:
                place, heading = new_place, new_heading


@pytest.mark.parametrize("rotation", ["rotation_vector", "quaternion"])
def test_a_turn_past_half_a_turn_has_no_jump_in_its_numbers(rotation: str) -> None:
    turns = Rotation.from_rotvec(np.linspace(0.0, 2.0, 21)[:, None] * [[0, 0, 1]])
    start = Rotation.from_rotvec([[0, 0, 3.0]])
    names = VECTOR if rotation == "rotation_vector" else QUATERNION
    relative, state = (
        (turns.as_rotvec(), start.as_rotvec())
        if rotation == "rotation_vector"
        else (turns.as_quat(), -start.as_quat())
    )
    made = absolute(relative[None], state, names, rotation=rotation)[0]
    np.testing.assert_allclose(made[0], state[0], atol=1e-6)
    assert np.abs(np.diff(made, axis=0)).max() < 0.11
    if rotation == "rotation_vector":
        np.testing.assert_allclose(made[-1], [0, 0, 5.0], atol=1e-5)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"actions": ["elbow"]}, r"relative\[0\].actions: 'elbow', must be one of action_names: pose.x"),
        ({"state": "goal"}, r"relative\[0\].state: 'goal', must be one of state: arm"),
        ({"at": 5}, r"relative\[0\].at: 5, must leave 3 of the 7 numbers of arm"),
        ({"frame": "tool"}, r"relative\[0\].rotation: missing, must be there with frame"),
        ({"rotation": "quaternion"}, r"relative\[0\].actions: 3 names, must be 4 of a quaternion, or 7"),
        (
            {"actions": [*POSE, *VECTOR], "rotation": "rotation_vector", "at": 2},
            r"at: 2, must leave 6 of the 7",
        ),
        (
            {"actions": VECTOR, "rotation": "rotation_vector", "state_rotation": "quaternion", "at": 4},
            r"at: 4, must leave 4 of the 7",
        ),
    ],
)
def test_entries_that_cannot_be_used_are_refused(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Relative([entry(**values)], NAMES, (Feature("arm", 7),))


def test_an_action_is_in_one_entry_only() -> None:
    with pytest.raises(ValueError, match=r"^relative: 'pose.y', must be in one entry only"):
        Relative([entry(), entry(actions=["pose.y"])], NAMES, (Feature("arm", 7),))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"rotation": "euler"}, r"rotation: 'euler', must be one of quaternion, rotation_vector"),
        ({"frame": "camera"}, r"frame: 'camera', must be one of base, tool"),
        ({"at": -1}, r"at: -1, must be an integer from 0"),
    ],
)
def test_fields_of_an_entry_are_checked(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        entry(**values)


SPEED = 0.1  # of the robot below, per step
HORIZON = 8
FILE = {
    "timeout_s": 10.0,
    "horizon": HORIZON,
    "action_names": ["x", "gripper"],
    "state": {"arm": {"size": 1, "as": "observation/joint_position"}},
    "relative": [{"actions": ["x"], "state": "arm"}],
    "action_range": {"low": [-9, -9], "high": [9, 9]},
}


def onward(observation: dict[str, Any]) -> dict[str, Any]:
    """Answer with a motion at constant speed, relative to what is seen, and a closed gripper."""
    ahead = SPEED * np.arange(1, HORIZON + 1, dtype=np.float32)
    return {"actions": np.stack([ahead, np.ones_like(ahead)], axis=1)}


@pytest.fixture
def served() -> Iterator[Any]:
    pytest.importorskip("msgpack")
    pytest.importorskip("websockets.sync.server")
    from test.policies.remote.openpi_server import PolicyServer, Serving

    policy = PolicyServer(Serving(onward))
    policy.start()
    yield policy
    policy.stop()


def driven(target: Any, late: int, shifted: bool) -> np.ndarray:
    """Return the positions of a robot that requests a plan at every second step.

    Args:
        target: of plans.
        late: steps from a request to its reply; the first reply is there at once.
        shifted: the robot adds relative actions to its position at the reply, and not at the request.
    """
    position, positions, plan = 0.0, [], Plan(1, 2)
    coming: dict[int, tuple[int, np.ndarray]] = {}
    for step in range(20):
        if step % 2 == 0:
            seen = Observations({"arm": np.full((1, 1, 1), position, np.float32)}, {}, (), {})
            actions = target.propose(seen, np.zeros((1, 0), np.float32)).actions
            coming[step + late if step else 0] = step, actions - [position * shifted, 0.0]
        if step in coming:
            requested_at, actions = coming.pop(step)
            plan.splice(np.add(actions, [position * shifted, 0.0]), requested_at, requested_at)
        position, gripper = map(float, plan.at(step)[0])
        assert gripper == 1.0  # an absolute action
        positions.append(position)
    return np.array(positions)


def test_a_late_reply_does_not_shift_a_relative_plan(served: Any) -> None:
    from adahi_ros.policies.remote.openpi import OpenPiTarget

    target = OpenPiTarget(Path(), **FILE, url=served.url)
    steady = SPEED * np.arange(1, 21)
    for late in range(5):
        np.testing.assert_allclose(driven(target, late, shifted=False), steady, atol=1e-5)
    np.testing.assert_allclose(driven(target, 0, shifted=True), steady, atol=1e-5)
    jumps = np.diff(driven(target, 3, shifted=True))  # by what it moved meanwhile
    np.testing.assert_allclose(jumps.max(), 4 * SPEED, atol=1e-5)


def test_a_state_without_a_pose_fails_only_its_robots_request(served: Any) -> None:
    from adahi_ros.policies.remote.openpi import OpenPiTarget

    served.does.answer = lambda _: {"actions": np.tile(np.array([0, 0, 0, 1.0], np.float32), (HORIZON, 1))}
    file = {
        **{name: each for name, each in FILE.items() if name != "action_range"},
        "action_names": QUATERNION,
        "state": {"arm": {"size": 4}},
        "relative": [{"actions": QUATERNION, "state": "arm", "rotation": "quaternion"}],
    }
    target = OpenPiTarget(Path(), **file, url=served.url)
    window = np.array([[[0, 0, 0, 0]], [[0, 0, 0.6, 0.8]]], np.float32)
    request = VerificationRequest(
        Observations({"arm": window}, {}, (), {}), Proposal(np.zeros((2, 0, 4), np.float32))
    )
    fault, verdict = TargetVerifier(target, "replace").verify_each(request, np.zeros((2, 0, 2)))
    assert isinstance(fault, RequestError)
    assert not isinstance(verdict, Exception)
    np.testing.assert_allclose(verdict.actions[0, 0], [0, 0, 0.6, 0.8], atol=1e-6)
