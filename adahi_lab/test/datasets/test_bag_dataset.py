from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adahi_lab.datasets.bag_dataset import BagDataset, encoder_of, read_dataset
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.plain_contract import with_camera
from adahi_lab.reporting.bag_tables import dataset_table
from adahi_lab.reporting.dataset_figure import draw_dataset
from adahi_ros.bags.definitions import BagError
from adahi_ros.bags.survey import survey_bag
from adahi_ros.contract.contract import Action, Contract, Sink
from adahi_ros.contract.operators import operator
from adahi_ros.contract.parsing import parse_contract
from test.bags import conftest as toy

SECOND_NS = 1_000_000_000
Demonstrations = Callable[[int], Trajectories]


def lengths(found: BagDataset) -> list[int]:
    return np.diff(found.trajectories.ends, prepend=0).tolist()


def counts(found: BagDataset) -> dict[str, int]:
    both = {**found.summary["left_out"], **found.summary["episodes_ended_by"]}
    return {name: count for name, count in both.items() if count}


def test_what_was_recorded_comes_back_bit_by_bit(
    bag: Path, contract: Contract, demonstrations: Demonstrations
) -> None:
    found, data = read_dataset([bag], contract), demonstrations(2)
    for name in ("observations", "actions", "goals", "ends"):
        written, came = getattr(data, name), getattr(found.trajectories, name)
        assert came.dtype == written.dtype
        assert came.tobytes() == written.tobytes(), name
    assert found.trajectories.task == "toy"
    assert counts(found) == {}
    assert np.all(np.diff(found.stamps_ns) == 50_000_000)


def with_gripper(contract: Contract, joint: str, *recorded: Sink) -> Contract:
    """Return a contract with the goals of a gripper's ROS action after these parts of an action."""
    sink = contract.action.sinks[0]
    channel = replace(sink.channel, topic="hand", kind="control_msgs/action/GripperCommand")
    scale = (operator({"scale": 10.0}),)
    source = replace(
        sink.source, key="action.hand", channel=channel, select=(f"position.{joint}",), operators=scale
    )
    return replace(contract, action=Action((*recorded, replace(sink, source=source))))


def test_goals_of_a_ros_action_are_in_no_bag(bag: Path, contract: Contract) -> None:
    gripping = with_gripper(contract, "finger", *contract.action.sinks)
    with pytest.raises(BagError, match=r"contract: action.hand, goals of a ROS action are in no bag"):
        read_dataset([bag], gripping)
    found = survey_bag(bag, gripping)
    assert (found.observations, found.actions) == (360, 360)  # of the other sink


def test_the_measured_position_replaces_the_goals_of_a_gripper(bag: Path, contract: Contract) -> None:
    plain, warned = read_dataset([bag], contract).trajectories, list[str]()
    gripping = with_gripper(contract, "right_joint", *contract.action.sinks)
    found = read_dataset([bag], gripping, on_measured=warned.append).trajectories
    np.testing.assert_array_equal(found.actions[:, :2], plain.actions)
    np.testing.assert_array_equal(found.actions[:, 2], 10 * found.observations[:, 1])
    (warning,) = warned
    assert warning.startswith("contract: action.hand, goals of a ROS action are in no bag; the measured ")
    with pytest.raises(BagError, match=r"observations must have the measured position of finger, or the"):
        read_dataset(
            [bag], with_gripper(contract, "finger", *contract.action.sinks), on_measured=warned.append
        )
    with pytest.raises(BagError, match=r"at least one part of the action must be a topic$"):
        read_dataset([bag], with_gripper(contract, "right_joint"), on_measured=warned.append)


def test_a_bag_from_before_the_first_motion_is_surveyed(
    lines: list[Any], contract: Contract, in_bag: Callable[..., Path]
) -> None:
    still = in_bag([line for line in lines if line.topic != "command"])
    found = survey_bag(still, contract)
    assert (found.observations, found.actions) == (360, 0)


def test_bags_follow_each_other_and_no_episode_goes_on_in_the_next(
    lines: list[Any], contract: Contract, in_bag: Callable[..., Path]
) -> None:
    whole = in_bag(lines)
    halves = [in_bag(lines[:136]), in_bag(lines[136:])]  # amid the second episode, after a step
    assert lengths(read_dataset([whole, whole], contract)) == [30] * 24
    found = read_dataset(halves, contract)
    assert lengths(found) == [30, 15, 15, *[30] * 10]
    assert [bag["messages"]["/command"] for bag in found.summary["bags"]] == [45, 315]
    assert found.summary["topics"]["command"]["messages"] == 360


def test_figures_of_a_topic(bag: Path, contract: Contract) -> None:
    topics = read_dataset([bag], contract).summary["topics"]
    assert topics["joint_states"] == {
        "messages": 360,
        "rate_hz": 20.0,
        "largest_gap_s": 0.05,
        "age_ms": {"p50": 1.0, "p95": 1.0, "p99": 1.0, "max": 1.0},
    }
    assert topics["episode_result"]["messages"] == 12


def test_steps_without_an_action_are_left_out_and_counted(
    lines: list[Any], contract: Contract, in_bag: Callable[..., Path]
) -> None:
    commands = [line for line in lines if line.topic == "command"]
    dropped = {id(commands[index]) for index in (0, 7, 8, 359)}
    found = read_dataset([in_bag(line for line in lines if id(line) not in dropped)], contract)
    assert lengths(found) == [27, *[30] * 10, 29]
    assert counts(found) == {"steps_without_action": 4}
    nothing = [line for line in lines if line.topic != "command"][:30]
    with pytest.raises(BagError, match="no step has an observation and an action, expected at least one"):
        read_dataset([in_bag([*nothing, commands[-1]])], contract)


def test_failed_episodes_are_left_out_unless_they_are_wanted(
    lines: list[Any], contract: Contract, in_bag: Callable[..., Path]
) -> None:
    failed = [
        line._replace(message=toy.result(0, line.message.episode_id, success=False))
        if line.topic == "episode_result" and line.message.episode_id in (2, 3)
        else line
        for line in lines
    ]
    found = read_dataset([in_bag(failed)], contract)
    assert lengths(found) == [30] * 10
    assert counts(found) == {"failed_episodes": 2}
    kept = read_dataset([in_bag(failed)], contract, keep_failures=True)
    assert lengths(kept) == [30] * 12
    assert counts(kept) == {}


def test_a_robot_that_was_restarted_fails_only_the_episode_that_failed(
    demonstrations: Demonstrations, contract: Contract, in_bag: Callable[..., Path]
) -> None:
    """Its second episode 0 failed; the result came before the last step, to a recorder that was behind."""
    again = toy.recorded(demonstrations(2), toy.START_NS + 40 * SECOND_NS)[:91]
    result = toy.Line("episode_result", toy.result(0, 0, success=False), again[-5].received_ns)
    second = [*again[:-4], result, *again[-4:-1]]
    first = toy.recorded(demonstrations(2))[:91]
    found = read_dataset([in_bag([*first, *second])], contract)
    assert lengths(found) == [30]
    assert np.array_equal(found.trajectories.actions, demonstrations(2).actions[:30])
    assert found.summary["left_out"]["failed_episodes"] == 1


def refused(lines: list[Any]) -> list[Any]:
    """Let joint states come so late that the node would refuse them, and no step is made."""
    late = [line for line in lines if line.topic == "joint_states"]
    rest = [line for line in lines if line.topic != "joint_states"]
    return [*rest, *(line._replace(received_ns=line.received_ns + SECOND_NS) for line in late)]


@pytest.mark.parametrize("first_succeeds", [True, False])
def test_a_result_without_observations_says_nothing_of_the_run_before(
    first_succeeds: bool,
    demonstrations: Demonstrations,
    contract: Contract,
    in_bag: Callable[..., Path],
) -> None:
    """The second run's episode 0, of the same number, ends the other way."""
    runs = []
    for start_ns, success in ((0, first_succeeds), (40 * SECOND_NS, not first_succeeds)):
        run = toy.recorded(demonstrations(2), toy.START_NS + start_ns)[:91]
        stamp = run[-1].message.header.stamp
        result = toy.result(stamp.sec * SECOND_NS + stamp.nanosec, 0, success)
        runs.append([*run[:90], run[90]._replace(message=result)])
    first, second = runs
    other = toy.recorded(demonstrations(2))[91:182]  # episode 1, so that there is something in any case
    found = read_dataset([in_bag([*first, *other, *refused(second)])], contract)
    assert lengths(found) == ([30, 30] if first_succeeds else [30])
    assert found.summary["left_out"]["failed_episodes"] == (0 if first_succeeds else 1)
    assert found.summary["left_out"]["results_of_no_episode"] == 1


def test_a_result_from_before_an_episode_is_of_another(
    lines: list[Any], contract: Contract, in_bag: Callable[..., Path]
) -> None:
    """As the last word of an earlier run, which whoever subscribes late is told once more."""
    kept = toy.Line("episode_result", toy.result(toy.START_NS, 0, success=False), lines[5].received_ns + 1)
    found = read_dataset([in_bag([*lines[:6], kept, *lines[6:91]])], contract)
    assert lengths(found) == [30]
    assert counts(found) == {"results_of_no_episode": 1}


def test_a_bag_without_one_observation_is_named_with_its_commonest_faults(
    lines: list[Any], contract: Contract, contract_values: dict[str, Any], in_bag: Callable[..., Path]
) -> None:
    bag = in_bag(refused(lines))
    with pytest.raises(BagError) as clock:
        read_dataset([bag], contract)
    assert str(clock.value) == (
        f"{bag}: no step has an observation and an action, expected at least one (0 observations, "
        "360 actions; 360 times joint_states.header.stamp: 1.001 s old, at most max_age_s = 0.2 s allowed)"
    )

    joints = {**contract_values["observations"]["observation.joints"], "select": ["position.elbow"]}
    observations = {**contract_values["observations"], "observation.joints": joints}
    other = parse_contract({**contract_values, "observations": observations})
    with pytest.raises(
        BagError, match=r"360 times joint_states.name: \['left_joint', .* none of \['elbow'\]"
    ):
        read_dataset([in_bag(lines)], other)


def test_a_survey_counts_what_the_node_would_have_made(
    lines: list[Any], contract: Contract, contract_values: dict[str, Any], in_bag: Callable[..., Path]
) -> None:
    bad = [
        line._replace(message=replace(line.message, position=np.array([0.0, np.nan])))
        if line.topic == "joint_states" and index < 9
        else line
        for index, line in enumerate(lines)
    ]
    found = survey_bag(in_bag(bad), contract)
    assert (found.observations, found.actions) == (357, 360)
    assert found.refused == {
        "joint_states.position[1]": (3, "joint_states.position[1]: nan, must be finite as float32")
    }
    assert found.missed == {
        "joint_states": (3, "joint_states: no sample for a step has come (observation.joints)")
    }


def test_a_camera_of_another_size_than_the_encoders_is_named(contract_values: dict[str, Any]) -> None:
    assert encoder_of(parse_contract(with_camera(contract_values, "ball", 64, 64))) is not None
    words = (
        r"^contract of 'toy': observation.images.camera.apply.resize: \[96, 128\], must be \[64, 64\], the "
        r"image size of its encoder 'ball'$"
    )
    with pytest.raises(ValueError, match=words):
        encoder_of(parse_contract(with_camera(contract_values, "ball", 96, 128)))


def later(lines: list[Any], by_ns: int) -> list[Any]:
    """Move messages in time, by stamp and by arrival."""
    moved = []
    for line in lines:
        stamp = line.message.header.stamp
        header = toy.header(stamp.sec * SECOND_NS + stamp.nanosec + by_ns)
        moved.append(
            line._replace(message=replace(line.message, header=header), received_ns=line.received_ns + by_ns)
        )
    return moved


def test_a_gap_ends_an_episode_and_lost_steps_are_counted(
    lines: list[Any], contract: Contract, in_bag: Callable[..., Path]
) -> None:
    gap = [*lines[:45], *later(lines[45:], 2 * SECOND_NS)]
    found = read_dataset([in_bag(gap)], contract)
    assert lengths(found) == [15, 15, *[30] * 11]
    assert counts(found) == {"gaps": 1}
    lost = [line for index, line in enumerate(lines) if not 45 <= index < 54]
    found = read_dataset([in_bag(lost)], contract)
    assert lengths(found) == [27, *[30] * 11]
    assert counts(found) == {"missing_steps": 3}


def test_steps_that_go_back_end_an_episode_and_repeated_ones_are_skipped(
    lines: list[Any], contract: Contract, in_bag: Callable[..., Path]
) -> None:
    back = [*lines[:60], *later(lines[30:60], SECOND_NS)]
    found = read_dataset([in_bag(back)], contract)
    assert lengths(found) == [20, 10]
    assert counts(found) == {"jumps_back": 1}
    again = [*lines[:60], *later(lines[57:60], 10_000_000), *lines[60:91]]
    found = read_dataset([in_bag(again)], contract)
    assert lengths(found) == [30]
    assert counts(found) == {"repeated_steps": 1}


def test_a_goal_that_changes_ends_an_episode(
    lines: list[Any], contract: Contract, in_bag: Callable[..., Path]
) -> None:
    changed = [
        line._replace(message=replace(line.message, goal=line.message.goal + 1.0))
        if line.topic == "task_state" and 10 <= line.message.step_id < 90 and line.message.episode_id == 0
        else line
        for line in lines[:91]
    ]
    found = read_dataset([in_bag(changed)], contract)
    assert lengths(found) == [10, 20]
    assert counts(found) == {"goal_changes": 1}
    assert np.array_equal(found.trajectories.goals[1], found.trajectories.goals[0] + 1.0)


def test_input_that_is_refused_is_counted_by_field_and_shown(
    lines: list[Any], contract: Contract, in_bag: Callable[..., Path]
) -> None:
    bad = list(lines[:91])
    for index in (3, 6):  # joint states of the second and third step
        bad[index] = bad[index]._replace(
            message=replace(bad[index].message, position=np.array([0.0, np.nan]))
        )
    bad[11] = bad[11]._replace(message=replace(bad[11].message, points=[]))
    bad[12] = bad[12]._replace(received_ns=bad[12].received_ns + SECOND_NS)
    found = read_dataset([in_bag(bad)], contract)
    assert found.summary["missed"]["joint_states"]["count"] == 3
    assert found.summary["faults"] == {
        "joint_states.position[1]": {
            "count": 2,
            "first": "joint_states.position[1]: nan, must be finite as float32",
        },
        "command.points": {"count": 1, "first": "command.points: none, must be at least one"},
        "joint_states.header.stamp": {
            "count": 1,
            "first": "joint_states.header.stamp: 1.001 s old, at most max_age_s = 0.2 s allowed",
        },
    }
    assert lengths(found) == [26]
    assert counts(found) == {"steps_without_action": 1, "missing_steps": 3}


def test_a_robot_that_counts_for_itself_begins_episodes_at_gaps(
    lines: list[Any], contract_values: dict[str, Any], in_bag: Callable[..., Path]
) -> None:
    values = {name: value for name, value in contract_values.items() if name not in ("episode", "goal")}
    counting = parse_contract({**values, "paced_by": "joint_states"})
    failed = toy.Line("episode_result", toy.result(0, 77, success=False), lines[90].received_ns)
    apart = [*lines[:90], failed, *later(lines[91:181], 3 * SECOND_NS)]
    found = read_dataset([in_bag(apart)], counting, keep_failures=True)
    assert lengths(found) == [30, 30]
    assert counts(found) == {"gaps": 1}
    assert found.trajectories.goals.shape == (2, 0)
    assert lengths(read_dataset([in_bag(apart)], counting)) == [30]


def test_action_operators_are_applied(
    bag: Path, contract_values: dict[str, Any], demonstrations: Demonstrations
) -> None:
    action = {**contract_values["actions"]["action"], "apply": [{"scale": 2.0}]}
    doubled = parse_contract({**contract_values, "actions": {"action": action}})
    found = read_dataset([bag], doubled).trajectories
    assert np.array_equal(found.actions, 2.0 * demonstrations(2).actions)


def test_a_dataset_is_saved_with_its_contract_and_a_picture(
    bag: Path, contract: Contract, contract_file: Path, tmp_path: Path
) -> None:
    found = read_dataset([bag], contract)
    found.save(tmp_path / "new", str(contract_file), "adahi data from-bag toy")
    draw_dataset(found, tmp_path / "new/dataset.png")
    summary = json.loads((tmp_path / "new/dataset.json").read_text(), parse_constant=pytest.fail)
    assert (summary["episodes"], summary["steps"]) == (12, 360)
    assert summary["command"] == "adahi data from-bag toy"
    assert len(summary["contract"]["sha256"]) == 16
    assert (tmp_path / "new/contract.yaml").read_bytes() == contract_file.read_bytes()
    loaded = Trajectories.load(tmp_path / "new/trajectories.safetensors")
    assert np.array_equal(loaded.observations, found.trajectories.observations)
    assert (tmp_path / "new/dataset.png").read_bytes().startswith(b"\x89PNG")
    assert dataset_table(found).row_count == 4


def test_a_command_without_a_stamp_is_that_of_the_newest_observation(
    lines: list[Any], contract: Contract, in_bag: Callable[..., Path]
) -> None:
    """A robot sends stamp 0, and what it sends between two observations beside is a hold."""
    expected = read_dataset([in_bag(lines)], contract)
    unstamped = []
    for line in lines:
        if line.topic == "command":
            line = line._replace(message=replace(line.message, header=toy.header(0)))
            still = toy.command(0, np.zeros(2))
            unstamped.append(line)
            line = line._replace(message=still, received_ns=line.received_ns + 1)
        unstamped.append(line)
    found = read_dataset([in_bag(unstamped)], contract)
    np.testing.assert_array_equal(found.trajectories.actions, expected.trajectories.actions)
    assert lengths(found) == lengths(expected)
