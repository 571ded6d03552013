from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from adahi_lab.evaluation.task_contract import contract_values
from adahi_lab.tasks.task_interface import Task
from adahi_ros.contract.contract import Channel
from adahi_ros.contract.parsing import ContractError, load_contract, parse_contract
from adahi_ros.core.assets import asset, asset_files

ARM: dict[str, Any] = {
    "robot_type": "arm",
    "robot_interface": "ros2",
    "fps": 30,
    "x-qos": {"state": {"depth": 50}},
    "observations": {
        "observation.images.front": {
            "channel": {"topic": "/front/image_raw/compressed", "type": "sensor_msgs/msg/CompressedImage"},
            "align": {"strategy": "hold", "timeline": "header"},
            "apply": [{"resize": [96, 128]}],
        },
        "observation.state": [
            {
                "channel": {
                    "topic": "/joint_states",
                    "type": "sensor_msgs/msg/JointState",
                    "qos": {"reliability": "reliable", "history": "keep_last", "depth": 50},
                },
                "select": ["position.shoulder", "position.elbow", "velocity.elbow"],
                "apply": ["rad2deg"],
            },
            {
                "channel": {
                    "topic": "/gripper",
                    "type": "std_msgs/msg/Float64MultiArray",
                    "dtype": "float32",
                    "qos": {
                        "reliability": "reliable",
                        "durability": "transient_local",
                        "history": "keep_all",
                    },
                },
                "select": ["data.0:2"],
            },
        ],
    },
    "encoder": "ball",
    "actions": {
        "action": {
            "channel": {
                "topic": "/arm/command",
                "type": "trajectory_msgs/msg/JointTrajectory",
                "safety": "hold",
            },
            "select": ["positions.shoulder", "positions.elbow"],
        }
    },
    "rewards": {"next.reward": {"channel": {"topic": "/reward", "type": "std_msgs/msg/Float64"}}},
    "adjunct": [{"channel": {"topic": "/tf", "type": "tf2_msgs/msg/TFMessage"}}],
}
ACTION: dict[str, Any] = ARM["actions"]["action"]
GRIPPER = "control_msgs/action/GripperCommand"
HAND: dict[str, Any] = {"channel": {"topic": "hand", "type": GRIPPER}, "select": ["position.finger"]}
LIFT: dict[str, Any] = {
    "channel": {"topic": "lift/commands", "type": "std_msgs/msg/Float64MultiArray"},
    "select": ["data.0"],
    "names": ["mast"],
    "field": "positions",
}
QOS = ("observations", "observation.images.front", "channel", "qos")


def test_a_contract_in_rosettas_format_is_taken() -> None:
    contract = parse_contract(ARM)
    assert (contract.number_dim, contract.goal_dim, contract.action.size) == (5, 0, 2)
    assert contract.numbers[1].select == ("data.0", "data.1")
    assert contract.numbers[1].align.timeline == "receive"  # such messages have no header
    assert contract.paced_by == "/joint_states"
    assert list(contract.channels) == ["/front/image_raw/compressed", "/gripper", "/joint_states"]
    assert contract.channels["/joint_states"].reliability == "reliable"
    assert contract.channels["/gripper"] == Channel(
        "/gripper", "std_msgs/msg/Float64MultiArray", "reliable", "transient_local", "keep_all", 10
    )
    assert (contract.cameras[0].rows, contract.cameras[0].columns) == (96, 128)
    assert contract.measured(["elbow", "gripper"]).unknown == ("gripper",)  # though in degrees


def test_an_action_is_that_of_all_its_sinks_each_in_its_own_units() -> None:
    hand = {**HAND, "max_effort": 20.0, "apply": [{"scale": 100.0}]}  # centimetres, to the policy
    action = parse_contract({**ARM, "actions": {"arm": ACTION, "hand": hand, "lift": LIFT}}).action
    assert (action.size, action.sinks[1].arguments) == (4, {"max_effort": 20.0})
    assert [sink.is_ros_action for sink in action.sinks] == [False, True, False]
    wire = action.to_wire(np.array([0.5, -0.5, 4.0, 0.3]))
    assert wire.tolist() == [0.5, -0.5, 0.04, 0.3]
    assert action.from_wire(wire).tolist() == [0.5, -0.5, 4.0, 0.3]
    assert [part.tolist() for part in action.parts(wire)] == [[0.5, -0.5], [0.04], [0.3]]


def test_images_may_be_for_the_target_only_where_there_are_any() -> None:
    assert not parse_contract(ARM).images_for_target
    assert parse_contract({**ARM, "images_for_target": True}).images_for_target
    blind = {key: each for key, each in ARM.items() if key != "encoder"}
    assert parse_contract(blind).images_for_target  # as in contracts of Rosetta
    with pytest.raises(ValueError, match=r"encoder: '', must name one where there are cameras"):
        parse_contract({**blind, "images_for_target": False})
    blind["observations"] = {"observation.state": ARM["observations"]["observation.state"]}
    with pytest.raises(
        ValueError, match=r"^images_for_target: True, must be true or false, true only with cam"
    ):
        parse_contract({**blind, "images_for_target": True})


def test_a_joint_that_two_robots_have_is_taken_for_neither() -> None:
    def part(topic: str, *joints: str) -> dict[str, Any]:
        channel = {"topic": topic, "type": "sensor_msgs/msg/JointState"}
        return {"channel": channel, "select": [f"position.{joint}" for joint in joints]}

    state = [part("leader/joint_states", "elbow"), part("joint_states", "elbow", "wrist")]
    again = part("joint_states", "wrist")  # of one topic it is the same joint
    observations = {"observation.state": state, "observation.again": again}
    values = {key: each for key, each in ARM.items() if key != "encoder"}
    contract = parse_contract({**values, "observations": observations, "paced_by": "joint_states"})
    assert contract.measured(["wrist"]).unknown == ()
    with pytest.raises(ValueError, match=r"position.elbow: of leader/joint_states and joint_states, must be"):
        contract.measured(["elbow", "wrist"])


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("fps",), 0, "fps: 0, must be a number from"),
        (("speed",), 1, r"^speed: unknown, must be one of robot_type"),
        (("robot_type",), "", "robot_type: '', must be a word"),
        (("images_for_target",), "yes", "images_for_target: 'yes', must be true or false"),
        (("paced_by",), "/nobody", "paced_by: '/nobody', must be one of /front"),
        (("observations",), {}, "observations: {}, must be of 1 entries at least"),
        (
            ("observations", "observation.state"),
            [],
            r"observation.state: \[\], must be of 1 entries at least",
        ),
        (("observations",), [1], r"observations: \[1\], must be a mapping"),
        (("actions",), {}, "actions: {}, must be of 1 entries at least"),
        (("actions", 7), HAND, r"actions\[7\]: 7, must be a word"),
        (("actions", "again"), ACTION, "action.channel.topic: .* twice, must be one action's"),
        (
            ("actions", "again"),
            {**ACTION, "channel": {**ACTION["channel"], "topic": ACTION["channel"]["topic"].lstrip("/")}},
            "action.channel.topic: '/.*' and '[^/].*' of again, both .*, must be one action's",
        ),
        (
            ("actions", "action", "names"),
            ["a", "b"],
            "actions.action.names: .*, must be there where field is",
        ),
        (("actions", "action", "max_effort"), 5.0, "action.max_effort: unknown, must be one of channel"),
        (("actions", "action", "channel", "type"), GRIPPER, r"action.select: .* must be \[position.JOINT\]"),
        (("actions", "hand"), {**HAND, "select": ["position."]}, r"hand.select: .* \[position.JOINT\]"),
        (("actions", "hand"), {**HAND, "names": ["a"], "field": "effort"}, "hand.names: .* select names the"),
        (
            ("actions", "action"),
            {**ACTION, "names": ["a", "b"], "field": "velocities"},
            r"action.names: \['a', 'b'\], must not be there: select names the entries of trajectory_msgs",
        ),
        (("actions", "hand"), {**HAND, "max_effort": -1.0}, "hand.max_effort: -1.0, must be from 0"),
        (("actions", "lift"), {**LIFT, "names": ["mast", "mast"]}, "lift.names: .* must be 1 different"),
        (("actions", "lift"), {**LIFT, "field": "force"}, "lift.field: 'force', must be one of positions"),
        (("actions", "action", "select"), [], "action.select: .* must be of 1 entries at least"),
        (("actions", "action", "select"), ["positions"], "action.select: 'positions', .* must be FIELD.NAME"),
        (("actions", "action", "select"), ["positions.a", "positions.a"], "must not name a field twice"),
        (("actions", "action", "apply"), ["sqrt"], r"action.apply\[0\]: .*sqrt.*, must be one of rad2deg"),
        (("actions", "action", "apply"), [{"scale": 0}], r"action.apply\[0\].scale: 0"),
        (("actions", "action", "apply"), [{"scale": [1.0, 0]}], r"action.apply\[0\].scale: 0"),
        (("actions", "action", "apply"), [{"scale": []}], r"action.apply\[0\].scale: \[\]"),
        (
            ("actions", "action", "apply"),
            [{"scale": [1.0, 2.0, 3.0]}],
            "action.apply: a list of 3 numbers, must have 2, as select",
        ),
        (
            ("actions", "action", "apply"),
            [{"scale": 1e-320}],
            r"action.apply\[0\].scale: 1e-320, must be from 1e-09",
        ),
        (
            ("actions", "action", "apply"),
            [{"rad2deg": 2}],
            r"action.apply\[0\].rad2deg: 2, takes no argument",
        ),
        (("actions", "action", "channel", "topic"), "/arm//command", "topic: '/arm//command', must be names"),
        (("actions", "action", "channel", "type"), "JointTrajectory", "type: .* must be PACKAGE/msg/TYPE"),
        (("actions", "action", "channel", "decoder"), "os:system", "channel.decoder: unknown"),
        (("observations", "observation.images.front", "apply"), [], r"must be \[resize"),
        (
            ("observations", "observation.images.front", "apply"),
            [{"resize": [0, 64]}],
            r".*'resize': .*must be .*, two integers from 1 to 4096",
        ),
        (
            ("observations", "observation.images.front", "align"),
            {"tolerance_ms": -1},
            "tolerance_ms: -1, must be a number from 0",
        ),
        (
            QOS,
            {"reliability": "system_default"},
            "qos.reliability: 'system_default', must be one of best_effort",
        ),
        (QOS, {"depth": 10**9}, "qos.depth: 1000000000, must be an integer from 1 to 10000"),
        (QOS, {"lifespan": 1}, "qos.lifespan: unknown, must be one of reliability, durability"),
        (
            ("goal",),
            {
                "channel": {"topic": "/gripper", "type": "std_msgs/msg/Float64MultiArray"},
                "select": ["data.0"],
            },
            "goal.channel.qos: /gripper has two, must have one",
        ),
    ],
)
def test_what_is_wrong_is_named(path: tuple[str, ...], value: Any, words: str) -> None:
    values = copy.deepcopy(ARM)
    place = values
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    with pytest.raises(ValueError, match=words):
        parse_contract(values)


URDF_NAMES = ["panda_joint1", "left/shoulder-pan.joint", "Revolute 39", "关节1", "r1_(2)#"]
NO_NAMES = ["a\nb", "a\x1b[2J", "</script>", "a<b", 'a"b', "a'b", " a", "a ", "a&b", "a\u202eb", "x" * 201]


@pytest.mark.parametrize(("names", "fits"), [(URDF_NAMES, True), *(([name], False) for name in NO_NAMES)])
def test_names_are_those_that_urdf_files_have(names: list[str], fits: bool) -> None:
    for name in names:
        for path in (
            ("observations", "observation.state", 0, "select", 0, f"position.{name}"),
            ("actions", "action", "select", 0, f"positions.{name}"),
            ("actions", "lift", "names", 0, name),
            ("actions", "hand", "select", 0, f"position.{name}"),
        ):
            values = copy.deepcopy(ARM)
            values["actions"] |= copy.deepcopy({"lift": LIFT, "hand": HAND})
            place: Any = values
            for step in path[:-2]:
                place = place[step]
            place[path[-2]] = path[-1]
            if fits:
                parse_contract(values)
            else:
                with pytest.raises(
                    ValueError, match=r"\[0\]: .*, must be a text of 1 to 200 printable characters"
                ):
                    parse_contract(values)


@pytest.mark.parametrize("word", ["a\nb", "<b>", "a\x1b"])
def test_no_other_word_of_a_contract_is_a_command_or_a_tag(word: str) -> None:
    for key, value in (
        ("robot_type", word),
        ("paced_by", word),
        *([("encoder", word)] if word != "<b>" else []),  # it may be any path
        ("observations", {**ARM["observations"], word: ARM["observations"]["observation.state"]}),
        ("actions", {word: ACTION}),
    ):
        with pytest.raises(ValueError, match=f"{key}.*, must be "):
            parse_contract({**copy.deepcopy(ARM), key: value})


WRITTEN_BY_HAND = {
    "franka_panda",
    "panda_droid",
    "panda_kitchen",
    "so101",
    "so101_lerobot",
    "ur5e",
}  # of no task
SHIPPED = {path.stem for path in asset_files("config/contracts")}


@pytest.mark.parametrize("name", sorted(SHIPPED - WRITTEN_BY_HAND))
def test_a_shipped_contract_is_what_the_command_writes(name: str, seeing: Callable[[str], Task]) -> None:
    values = yaml.safe_load(asset(f"config/contracts/{name}.yaml").read_text())
    assert values == contract_values(seeing(name))
    assert load_contract(name).robot_type == name


@pytest.mark.parametrize("name", sorted(WRITTEN_BY_HAND))
def test_a_shipped_contract_without_a_task_observes_joints_it_commands(name: str) -> None:
    contract = load_contract(name)
    assert contract.robot_type == {"panda_kitchen": "kitchen"}.get(name, name)
    names = [path.partition(".")[2] for path in contract.action.select]
    assert contract.measured(names).unknown == ()


def test_a_file_that_is_no_contract_is_named(tmp_path: Path) -> None:
    path = tmp_path / "arm.yaml"
    path.write_text("fps: [")
    with pytest.raises(ContractError, match=r"arm.yaml: not YAML"):
        load_contract(str(path))
    with pytest.raises(ContractError, match=r"contract: '/nowhere.yaml', no such file"):
        load_contract("/nowhere.yaml")
    with pytest.raises(ContractError, match=r"contract: 'arm', must be a YAML file or one of ball"):
        load_contract("arm")


HUGE = "k" * 70_000


@pytest.mark.parametrize(
    ("values", "names", "allows"),
    [
        (HUGE, "file: 'kkk", "must be a mapping"),
        ({**ARM, HUGE: 1}, "kkk", "must be one of robot_type, fps"),
        ({**ARM, "fps": HUGE}, "fps: 'kkk", "must be a number from 1e-06 to 1e+06"),
        ({**ARM, "robot_type": [HUGE]}, "robot_type: ['kkk", "must be a word"),
        ({**ARM, "observations": {HUGE: 1}}, "observations.kkk", "must be a word of 1 to 200"),
        ({**ARM, "x\x1b[31m\n": 1, "\x1b[31m\n": 1}, "?[31m?", "must be one of robot_type, fps"),
    ],
    ids=["whole", "key", "value", "list", "source", "unprintable"],
)
def test_a_fault_is_reported_in_short_whatever_is_in_the_file(
    values: Any, names: str, allows: str, tmp_path: Path
) -> None:
    path = tmp_path / "arm.yaml"
    path.write_text(yaml.safe_dump(values))
    with pytest.raises(ContractError) as caught:
        load_contract(str(path))
    stated = str(caught.value)
    assert stated.startswith(f"{path}: {names}")
    assert allows in stated
    assert len(stated) <= 1000
    assert stated.isprintable()


@pytest.mark.parametrize("name", [HUGE, f"{HUGE}.yaml", "a" * 300])
def test_a_name_that_is_too_long_for_a_file_is_that_of_no_contract(name: str) -> None:
    with pytest.raises(ContractError, match=r"^contract: '(aaa|kkk).*must be a YAML file or one of"):
        load_contract(name)
