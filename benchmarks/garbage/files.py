"""Garbage files, each read as the package reads it: only errors that name what is wrong may come out."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from adahi_ros.assets import asset
from adahi_ros.contract.assembler import ObservationAssembler
from adahi_ros.contract.parsing import load_contract
from adahi_ros.gates.parameter_file import load_calibration
from adahi_ros.nodes.common.messages import to_image, to_joint_state, to_task_state
from adahi_ros.nodes.common.policies import encoder_from
from adahi_ros.policy.backends import load_policy
from adahi_ros.policy.vqbet.recipe import load_recipe
from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.limits import load_limits
from adahi_ros.tasks.gymnasium_description import load_description
from adahi_ros.vision.recipe import load_encoder_recipe
from adahi_ros.wireless.link.profile import load_profile

from .trees import as_json, as_xml, as_yaml
from .values import Garbage

Read = Callable[[Garbage, Path], None]
"""Makes a file in a folder, and reads it."""

MOVEIT = {
    "default_velocity_scaling_factor": 0.1,
    "joint_limits": {
        name: {
            **{f"has_{kind}_limits": True for kind in ("velocity", "acceleration", "position")},
            "max_velocity": 2.0,
            "max_acceleration": 3.0,
            "min_position": -1.0,
            "max_position": 1.0,
        }
        for name in ("plate_roll_joint", "plate_pitch_joint")
    },
}
NAMES = ("plate_roll_joint", "plate_pitch_joint")
NOW_NS = 1_800_000_000_000_000_000


def contract(garbage: Garbage, folder: Path) -> None:
    """A contract; where it can be read, an observation is assembled by it."""
    given = garbage.pick(sorted(asset("config/contracts").glob("*.yaml")))
    path = folder / "contract.yaml"
    path.write_bytes(as_yaml(yaml.safe_load(given.read_text()), garbage))
    made = load_contract(str(path))
    assembler = ObservationAssembler(made, lambda images: images[:, 0, 0, :])
    made.measured(NAMES)
    for topic, message in _shown().items():
        assembler.add(topic, message, NOW_NS)


def _shown() -> dict[str, Any]:
    """Return one message of each topic of a robot."""
    return {
        "camera/image_raw": to_image(np.zeros((64, 64, 3), dtype=np.uint8), NOW_NS),
        "joint_states": to_joint_state(NAMES, np.zeros(2), np.zeros(2), NOW_NS),
        "task_state": to_task_state(np.zeros(4), np.zeros(2), 0, 0, NOW_NS),
    }


def limits(garbage: Garbage, folder: Path) -> None:
    """Limits as our YAML, MoveIt's, or a URDF; where they can be read, an envelope stands on them."""
    if garbage.chance(0.3):
        path = folder / "robot.urdf"
        path.write_bytes(as_xml(asset("config/urdf/ball.urdf").read_text(), garbage))
    else:
        trees = [yaml.safe_load(each.read_text()) for each in sorted(asset("config/limits").glob("*.yaml"))]
        path = folder / "limits.yaml"
        path.write_bytes(as_yaml(garbage.pick([MOVEIT, *trees]), garbage))
    read = load_limits(path, garbage.pick((NAMES, ("panda_joint1",), ("cart_joint",))))
    envelope = Envelope(read, garbage.pick(("positions", "velocities", "accelerations", "effort")), 0.05)
    for _ in range(3):
        wanted = [garbage.float() for _ in read.names]
        admitted = envelope.admit(wanted, None, abs(garbage.float())).action  # type: ignore[arg-type]
        if admitted is not None and not all(abs(value) <= 1e9 for value in admitted):
            raise AssertionError(f"the envelope lets {admitted} through")


def calibration(garbage: Garbage, folder: Path) -> None:
    """A parameter file of `adahi calibrate`."""
    path = folder / "robot.yaml"
    given = garbage.pick(("ball", "kitchen", "swarm", "inverted_pendulum", "ball_camera"))
    path.write_bytes(as_yaml(yaml.safe_load(asset(f"config/{given}.yaml").read_text()), garbage))
    load_calibration(path)


def link(garbage: Garbage, folder: Path) -> None:
    """A link profile; where it can be read, it is asked what the link is like."""
    given = garbage.pick(sorted(asset("config/links").glob("*.yaml")))
    path = folder / "link.yaml"
    path.write_bytes(as_yaml(yaml.safe_load(given.read_text()), garbage))
    profile = load_profile(path)
    profile.mean_loss()
    profile.transfer_ms(100.0)
    for time_s in (0.0, 1e-3, 1e9):
        profile.is_out(time_s)
        profile.state_at(time_s)


def recipe(garbage: Garbage, folder: Path) -> None:
    """A recipe of policies or of an encoder, or the description of a task."""
    path = folder / "recipe.yaml"
    source, load = garbage.pick(
        (("recipes", load_recipe), ("encoders", load_encoder_recipe), ("tasks", load_description))
    )
    given = garbage.pick(sorted(asset(f"config/{source}").glob("*.yaml")))
    path.write_bytes(as_yaml(yaml.safe_load(given.read_text()), garbage))
    load(path)


def checkpoint(garbage: Garbage, folder: Path) -> None:
    """A policy or an encoder whose description is garbage, or whose weights are cut off."""
    if garbage.chance(0.3):
        _encoder(garbage, folder)
        return
    shutil.copytree(
        asset("checkpoints/ball"), folder / "ball", ignore=shutil.ignore_patterns("chunks", "target*")
    )
    name = garbage.pick(("draft.json", "tokenizer.json", "draft.json", "tokenizer.json", "draft.safetensors"))
    path = folder / "ball" / name
    if path.suffix == ".json":
        path.write_bytes(as_json(json.loads(path.read_text()), garbage))
    else:
        data = path.read_bytes()
        path.write_bytes(data[: garbage.count(0, len(data) - 1)])
    load_policy(folder / "ball" / "draft", "onnxruntime")


def _encoder(garbage: Garbage, folder: Path) -> None:
    for given in asset("checkpoints/encoders").glob("ball.*"):
        shutil.copy(given, folder)
    path = folder / "ball.json"
    path.write_bytes(as_json(json.loads(path.read_text()), garbage))
    encoder_from(str(folder / "ball"))


FILES: dict[str, Read] = {
    "contracts": contract,
    "limits": limits,
    "calibrations": calibration,
    "links": link,
    "recipes": recipe,
    "checkpoints": checkpoint,
}


def read_garbage(read: Read, garbage: Garbage) -> str:
    """Make and read one file; return the error that names what is wrong, empty where nothing is.

    Raises:
        Exception: something else came out: a crash.
    """
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="adahi_ros_") as folder:
        os.chdir(folder)
        try:
            read(garbage, Path(folder))
        except (ValueError, OSError) as error:
            return str(error) or type(error).__name__
        finally:
            os.chdir(before)
    return ""
