"""Files that are nearly right: each is read, or refused by an error that says what is wrong."""

from __future__ import annotations

import copy
import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from adahi_msgs.msg import DraftStatus
from hypothesis import given
from hypothesis import strategies as st
from rclpy.serialization import serialize_message

from adahi_lab.calibration.bag_run import bag_run_figures, read_run
from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.datasets.bag_dataset import read_dataset
from adahi_lab.link.link_profile import load_profile
from adahi_lab.tasks.gymnasium_description import load_description
from adahi_lab.training.recipes import load_encoder_recipe, load_recipe
from adahi_ros.bags.bag_writer import BagWriter
from adahi_ros.contract.assembler import ObservationAssembler
from adahi_ros.contract.parsing import load_contract
from adahi_ros.core.assets import asset, asset_files
from adahi_ros.policies.backends import load_policy
from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.limits_file import load_limits
from adahi_ros.vision.encoder import Encoder
from test.commands import trajectory
from test.fuzz import conftest as garbage

JOINTS = ("plate_roll_joint", "plate_pitch_joint")
START_NS, PERIOD_NS, STEPS = 1_800_000_000_000_000_000, 50_000_000, 8
KINDS = {
    "/joint_states": "sensor_msgs/msg/JointState",
    "/task_state": "adahi_msgs/msg/TaskState",
    "/command": "trajectory_msgs/msg/JointTrajectory",
    "/draft_status": "adahi_msgs/msg/DraftStatus",
}
HAS = dict.fromkeys(("has_velocity_limits", "has_acceleration_limits", "has_position_limits"), True)
MOVEIT_ENTRY = {
    **HAS,
    "max_velocity": 2.0,
    "max_acceleration": 3.0,
    "min_position": -1.0,
    "max_position": 1.0,
}
MOVEIT = {"default_velocity_scaling_factor": 0.1, "joint_limits": dict.fromkeys(JOINTS, MOVEIT_ENTRY)}
TOKENS = (
    "",
    "[",
    "- - -",
    "\t",
    "&a [*a]",
    "a: b: c",
    "!!float ''",
    "!!int ''",
    "2001-99-99",
    "<<: 5",
    "--- a",
)
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
WRONG: tuple[Any, ...] = (math.nan, -1, "no such thing", None, [], {}, True, 1e300, 10**400)
STRANGE = ("{" * 3000, "[" * 100_000, "!!python/object/apply:os.getcwd []", "\ufeff", "{1: 2, [3]: 4}", BOMB)


def contract(path: Path) -> None:
    made = load_contract(str(path))
    ObservationAssembler(made, lambda images: images[:, 0, 0, :])
    made.measured(JOINTS)


def limits(path: Path) -> None:
    for names in (JOINTS, ("panda_joint1",)):
        read = load_limits(path, names)
        envelope = Envelope(read, "positions", 0.05)
        for wanted in (0.0, 1e300, np.nan):
            admitted = envelope.admit(np.full(len(names), wanted), None, 0.05).action
            assert admitted is None or np.abs(admitted).max() <= 1e9


def link(path: Path) -> None:
    profile = load_profile(path)
    profile.mean_loss()
    profile.transfer_ms(100.0)
    for time_s in (0.0, 1e-3, 1e9):
        profile.is_out(time_s)
        profile.state_at(time_s)


def policy(path: Path) -> None:
    load_policy(path.parent / "draft", "onnxruntime")


READERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "contract": (contract, "config/contracts/*.yaml"),
    "limits": (limits, "config/limits/*.yaml"),
    "urdf": (limits, "config/urdf/ball.urdf"),
    "calibration": (load_calibration, "config/ball*.yaml"),
    "link": (link, "config/links/*.yaml"),
    "recipe": (load_recipe, "config/recipes/*.yaml"),
    "encoder recipe": (load_encoder_recipe, "config/encoders/*.yaml"),
    "task": (load_description, "config/tasks/*.yaml"),
    "draft": (policy, "checkpoints/ball/draft.json"),
    "tokenizer": (policy, "checkpoints/ball/tokenizer.json"),
    "weights": (policy, "checkpoints/ball/draft.safetensors"),
    "encoder": (lambda path: Encoder.load(path.with_suffix("")), "checkpoints/encoders/ball.json"),
}


def fault_of(read: Callable[[Path], Any], path: Path) -> str:
    """Read; return what is said to be wrong. What comes out but ValueError and OSError is a crash."""
    try:
        read(path)
    except (ValueError, OSError) as error:
        return str(error) or pytest.fail(f"{error!r} says nothing")
    return ""


def broken_xml(draw: Callable[..., Any], text: str) -> bytes:
    root = ElementTree.fromstring(text)
    element = draw(st.sampled_from(list(root.iter())))
    if element.attrib and draw(st.booleans()):
        value = draw(st.from_regex(r"[ -~]{0,9}", fullmatch=True) | garbage.floats.map(str))
        element.set(draw(st.sampled_from(sorted(element.attrib))), value)
    elif len(element) and draw(st.booleans()):
        element.remove(draw(st.sampled_from(list(element))))
    else:
        element.append(copy.deepcopy(draw(st.sampled_from(list(root.iter())[1:]))))
    return ElementTree.tostring(root)


def broken(draw: Callable[..., Any], sound: Path) -> bytes:
    """Draw a file that is nearly this one; now and then torn, or nothing like it."""
    how = draw(st.sampled_from(("tree",) * 7 + ("torn", "token", "strange")))
    if how == "strange":
        return draw(st.sampled_from(STRANGE) | garbage.texts).encode()
    if sound.suffix == ".safetensors":
        return sound.read_bytes()[: draw(st.integers(0, sound.stat().st_size - 1))]
    if how == "torn":
        return garbage.torn(draw, sound.read_bytes())
    if sound.suffix == ".urdf":
        return broken_xml(draw, sound.read_text())
    if sound.suffix == ".json":
        return json.dumps(garbage.nearly(draw, json.loads(sound.read_text()))).encode()
    trees = [yaml.safe_load(sound.read_text()), *([MOVEIT] if sound.parent.name == "limits" else [])]
    text = yaml.safe_dump(garbage.nearly(draw, draw(st.sampled_from(trees))), sort_keys=False).encode()
    return text.replace(b": ", b": " + draw(st.sampled_from(TOKENS)).encode(), 2) if how == "token" else text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a sound policy and a sound encoder are."""
    folder = tmp_path_factory.mktemp("files")
    policies, encoders = asset("checkpoints/ball"), asset("checkpoints/encoders")
    for part in (*policies.glob("draft.*"), *policies.glob("tokenizer.*"), *encoders.glob("ball.*")):
        shutil.copy(part, folder)
    return folder


@pytest.mark.parametrize("kind", READERS)
@given(data=st.data())
def test_a_file_is_read_or_refused(kind: str, folder: Path, data: st.DataObject) -> None:
    read, pattern = READERS[kind]
    sound = data.draw(st.sampled_from(asset_files(".", pattern)))
    path = folder / sound.name
    before = path.read_bytes() if path.exists() else None
    path.write_bytes(broken(data.draw, sound))
    fault_of(read, path)
    if before is not None:
        path.write_bytes(before)


YAML = [kind for kind, (_, pattern) in READERS.items() if pattern.endswith(".yaml")]


@pytest.mark.parametrize("kind", YAML)
@given(data=st.data())
def test_a_wrong_value_is_refused_by_its_name_with_what_is_allowed(
    kind: str, folder: Path, data: st.DataObject
) -> None:
    read, pattern = READERS[kind]
    sound = data.draw(st.sampled_from(asset_files(".", pattern)))
    tree = yaml.safe_load(sound.read_text())
    container, key = data.draw(st.sampled_from(garbage.places(tree)))
    value = container[key] = data.draw(st.sampled_from(WRONG))
    (folder / sound.name).write_text(yaml.safe_dump(tree, sort_keys=False))
    fault = fault_of(read, folder / sound.name)
    named = isinstance(container, list) or str(key) in fault  # of a list its own name may do
    assert not fault or named or str(value) in fault
    assert not fault or re.search("must|missing|expected|only|lacks|no such|not found", fault)


def of_step(step: int) -> list[tuple[str, Any, int]]:
    """Return the messages of one step, by topic and time."""
    stamp_ns = START_NS + step * PERIOD_NS
    seen = garbage.observed(0, step, stamp_ns)
    status = DraftStatus(header=seen["task_state"].header, step_id=step, accepted=[True, True])
    command = trajectory(JOINTS, np.zeros(2), stamp_ns)
    fault = {**seen, "command": command, "draft_status": status}
    return [(f"/{topic}", message, stamp_ns + 10**6) for topic, message in fault.items()]


def write_bag(path: Path, storage: str, messages: list[tuple[str, Any, int]]) -> Path:
    bag = BagWriter(path, storage)
    for topic, kind in KINDS.items():
        bag.add(topic, kind)
    for topic, message, received_ns in messages:
        data = message if isinstance(message, bytes) else serialize_message(message)
        bag.write(topic, data, received_ns)
    bag.close()
    return path


@pytest.fixture(scope="module")
def sound_bags(folder: Path) -> dict[str, Path]:
    messages = [line for step in range(STEPS) for line in of_step(step)]
    return {storage: write_bag(folder / storage, storage, messages) for storage in ("mcap", "sqlite3")}


@given(data=st.data())
def test_a_bag_is_read_or_refused(sound_bags: dict[str, Path], data: st.DataObject) -> None:
    storage, sound = data.draw(st.sampled_from(sorted(sound_bags.items())))
    path, made = sound.parent / "bag", sound.parent / "made"
    for each in (path, made):
        shutil.rmtree(each, ignore_errors=True)
    how = data.draw(st.sampled_from(("messages", "torn", "torn", "metadata", "missing")))
    if how == "messages":
        messages = [line for step in range(STEPS) for line in of_step(step)]
        for at in data.draw(st.sets(st.integers(0, len(messages) - 1), min_size=1, max_size=3)):
            topic, message, received_ns = messages[at]
            bad = garbage.mutated(data.draw, message)
            if data.draw(st.booleans()):
                bad = garbage.torn(data.draw, serialize_message(message))
            messages[at] = topic, bad, received_ns
        write_bag(path, storage, messages)
    else:
        shutil.copytree(sound, path)
        file = data.draw(st.sampled_from(sorted(path.iterdir())))
        if how == "missing":
            file.unlink()
        elif how == "metadata":
            tree = yaml.safe_load((path / "metadata.yaml").read_text())
            (path / "metadata.yaml").write_text(yaml.safe_dump(garbage.nearly(data.draw, tree)))
        else:
            file.write_bytes(garbage.torn(data.draw, file.read_bytes()))
    fault_of(lambda path: read_dataset([path], load_contract("ball")).trajectories.save(made), path)
    fault_of(lambda path: bag_run_figures(read_run(path)), path)
