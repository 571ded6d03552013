# SPDX-License-Identifier: Apache-2.0
"""`adahi lerobot`: the files of a robot, from a policy of LeRobot's, and a driver of its arm."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Exit, Option

from adahi_ros.cli import options
from adahi_ros.cli.terminal import command_line, say
from adahi_ros.start import become

if TYPE_CHECKING:
    from adahi_ros.policies.remote.described import PolicyMetadata

DRIVE = "lerobot"
ARM = "adahi_ros.nodes.robot.lerobot_arm"
DRIVERS = {"so101_ros2": "so101", DRIVE: "so101_lerobot"}
"""Contracts of drivers that run LeRobot's own classes: their zero is LeRobot's."""
STATE, ACTION, SUFFIX = "observation.state", "action", ".pos"
NAMES = ("contract.yaml", "target.yaml", "params.yaml", "slow.yaml")
CENTRE, TICKS = 2047, 4095  # of a servo's turn; drivers without LeRobot's calibration have their zero there
GRIPPER = "gripper"
SO101 = ("so101", "so100", "so_follower")  # as the robot types of LeRobot's datasets begin
UNITS = ("degrees", "range")
OFTEN_S, SHARE = 0.8, 0.4  # a request is sent after so long, or this share of a plan, whichever is less
SLOWER = 10.0


def init(
    pretrained: Annotated[Path, Argument(help="The folder pretrained_model that LeRobot wrote.")],
    out: Annotated[Path, Option(help="Folder to write.")],
    dataset: Annotated[
        Path | None, Option(help="The dataset that it learned from: its rate, and the order of its joints.")
    ] = None,
    driver: Annotated[
        str,
        Option(help="lerobot for 'drive', so101_ros2, or another driver's contract: shipped, or a file."),
    ] = DRIVE,
    calibration: Annotated[
        Path | None,
        Option(
            help="LeRobot's calibration of the arm, JSON: for --unit range, and drivers with another zero."
        ),
    ] = None,
    unit: Annotated[
        str,
        Option(help="LeRobot's unit of the joints: degrees, or range for -100 to 100 (use_degrees: false)."),
    ] = UNITS[0],
    limits: Annotated[
        str | None,
        Option(
            help="Limits of another arm: a shipped name, or a YAML file. Default: those of the driver's arm."
        ),
    ] = None,
    reply_s: Annotated[
        float | None, options.number("Measured time from a request to its reply, in seconds.", 0.0, 60.0)
    ] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Write contract, target file, parameters and slow limits for a policy of LeRobot's.

    Run it on the server, where the policy is, and copy the folder to the same path on the robot. It reads
    JSON files; LeRobot need not be installed. Exit code 1: they do not fit, for example by unit.
    """
    from adahi_ros.contract.parsing import parse_contract
    from adahi_ros.core.files import read_json
    from adahi_ros.core.learnt_units import clamped
    from adahi_ros.policies.remote.lerobot_metadata import described_by_files, metadata_of
    from adahi_ros.protocol.description import Description
    from adahi_ros.robot.compatibility import wants_of_plans
    from adahi_ros.safety.limits_file import load_limits
    from adahi_ros.safety.named_limits import limits_of_task, limits_path

    if unit not in UNITS:
        raise ValueError(f"--unit: {unit!r}, must be one of {', '.join(UNITS)}")
    if calibration is not None and driver in DRIVERS and unit != "range":
        raise ValueError(f"--calibration: {calibration}, must be left out for degrees; --unit range needs it")
    written = [out / name for name in NAMES]
    for path in written:
        if path.exists() and not overwrite:
            raise ValueError(f"--out: {path}, exists; must be another folder, or give --overwrite")
    own = metadata_of(pretrained)
    info, motors = _info(dataset), {} if calibration is None else read_json(calibration)
    if own.pads:  # any size fits: the one that it learned from shows as much, with the same borders
        own = replace(own, images={key: _size(info, key, size) for key, size in own.images.items()})
    contract = _contract(own, info, driver, motors, unit)
    if lacks := [key for key in own.images if info and key not in info["features"]]:
        raise ValueError(f"--dataset: {dataset}, lacks {', '.join(lacks)}; must be the policy's own")
    kind = str(info.get("robot_type") or SO101[0])
    if driver in DRIVERS and not kind.startswith(SO101):
        if limits is None:
            raise ValueError(
                f"--dataset: robot_type {kind!r}, must be an SO-101 for the limits of {driver!r}; else give "
                "--limits"
            )
        contract["robot_type"] = kind  # the limits of an SO-101 are not its own
    limits = limits or limits_of_task(contract["robot_type"])
    if not limits:
        raise ValueError(f"--limits: none, must be given: {contract['robot_type']!r} has no shipped limits")
    read = parse_contract(contract)
    state = {STATE: {"entries": list(read.named[STATE])}}
    target = {"kind": "lerobot", "folder": str(pretrained.resolve()), "rate_hz": read.rate_hz}
    target |= {"action_names": list(read.action.select), "state": state}
    if own.pads:
        target["images"] = {key: {"size": list(size), "padded": True} for key, size in own.images.items()}
    parameters = _parameters(own, read.rate_hz, written[0], reply_s)
    known = load_limits(limits_path(limits), read.commanded_names)  # refuses before anything is written
    for path, values in zip(written, (contract, target, parameters, _slow(limits_path(limits))), strict=True):
        _write(path, values)
    say("\n".join(f"written: {path}" for path in written))
    say(f"{read.rate_hz:g} steps per second, {own.horizon} actions a plan: {', '.join(read.action.select)}")
    if dataset is None:
        say("--dataset: none: rate and order of the joints are the driver's; compare them")
    for camera in read.cameras:
        say(f"{camera.key}: from {camera.channel.topic}; to change it, edit {written[0]}")
    if own.instruction:
        say(f"the policy reads an instruction: set the parameter instruction in {written[2]}")
    signature, observed, acted = described_by_files(out, target)
    described = Description("lerobot", "replace", signature, feature_ranges=observed, action_ranges=acted)
    wants = wants_of_plans(read, known)
    if fault := wants.mismatch(described):
        say(f"does not fit: {fault}")
        raise Exit(1)
    if beyond := clamped(wants.offered.quantities[ACTION], acted):
        say(f"limited: {beyond}; in another unit? Then give --driver CONTRACT.yaml with a scale in apply")
    say(f"units and order fit the policy's data, as far as known; next: adahi doctor {written[2]}")


def drive(context: Context, namespace: options.Namespace = "") -> None:
    """Drive an arm by LeRobot's own classes, until Ctrl-C: publish joints and cameras, take commands.

    Arguments as those of lerobot-teleoperate, --robot.type and so on; --teleop for a leader arm; then
    --ros-args, with the parameters silence_s, max_step and torque_off.
    """
    from adahi_ros.policies.remote.lerobot_metadata import INSTALL

    if find_spec("lerobot") is None:
        raise ImportError(f"lerobot drive: LeRobot is not installed: {INSTALL}")
    become(ARM, *context.args, namespace=namespace)


def _contract(
    own: PolicyMetadata, info: dict[str, Any], driver: str, motors: dict[str, Any], unit: str
) -> dict[str, Any]:
    """Return a driver's contract with the joints, the rate, the units and the cameras of a policy."""
    from adahi_ros.contract.fields import expanded
    from adahi_ros.contract.parsing import contract_path
    from adahi_ros.core.yaml_files import read_yaml

    if set(own.state) != {STATE}:
        raise ValueError(f"config.json: reads {', '.join(own.state) or 'no state'}, must be {STATE} alone")
    contract: dict[str, Any] = read_yaml(contract_path(DRIVERS.get(driver, driver)))
    observed = contract["observations"].get(STATE)
    parts = [observed] if isinstance(observed, dict) else observed or []
    for source in (*parts, *contract["actions"].values()):
        source["select"] = list(expanded(source["select"]))
    orders = [
        _joints(info, feature, [joint for each in sources for joint in _joints_of(each)], size)
        for feature, sources, size in (
            (STATE, parts, own.state[STATE]),
            (ACTION, contract["actions"].values(), own.action_dim),
        )
    ]
    same_zero = driver in DRIVERS
    for source in (*parts, *contract["actions"].values()):
        source["apply"] = _operators(source, motors, unit, same_zero)
    actions = {key: _ordered([source], orders[1]) for key, source in contract["actions"].items()}
    if surplus := [key for key, sources in actions.items() if not sources]:
        raise ValueError(
            f"--driver: {driver}: the policy commands nothing of {', '.join(surplus)}; remove it in a copy "
            "of the contract"
        )
    actions = dict(sorted(actions.items(), key=lambda each: orders[1].index(_joints_of(each[1][0])[0])))
    found = [joint for (source,) in actions.values() for joint in _joints_of(source)]
    if found != orders[1]:
        raise ValueError(f"--driver: {driver}: commands {', '.join(found)}, must be {', '.join(orders[1])}")
    known = contract["observations"]
    cameras = {
        key: {**known[key], "apply": [{"resize": list(size)}]}
        if isinstance(known.get(key), dict)
        else {
            "channel": {
                "topic": f"{'' if driver == DRIVE else '/'}{key.rpartition('.')[2]}/image_raw/compressed",
                "type": "sensor_msgs/msg/CompressedImage",
            },
            "apply": [{"resize": list(size)}],
            "align": {"strategy": "hold", "tolerance_ms": 100},
        }
        for key, size in own.images.items()
    }
    contract["fps"] = float(info.get("fps", contract["fps"]))
    if cameras:
        contract["images_for_target"] = True
    contract["observations"] = {STATE: _ordered(parts, orders[0]), **cameras}
    contract["actions"] = {key: source for key, (source,) in actions.items()}
    return contract


def _info(dataset: Path | None) -> dict[str, Any]:
    from adahi_ros.core.files import read_json

    if dataset is None:
        return {}
    path = dataset / "meta/info.json"
    if not path.is_file():
        raise ValueError(f"--dataset: {dataset}, has no meta/info.json, must be a LeRobotDataset here")
    info = read_json(path)
    features, fps = info.get("features"), info.get("fps")
    if not isinstance(features, dict) or not isinstance(fps, int | float):
        raise ValueError(f"{path}: must have fps and features, as LeRobot writes them")
    return info


def _size(info: dict[str, Any], camera: str, otherwise: tuple[int, int]) -> tuple[int, int]:
    """Return the rows and columns of a camera in the data, (rows, columns, 3) or (3, rows, columns).

    Raises:
        ValueError: the shape is another one.
    """
    found = info.get("features", {}).get(camera, {}).get("shape") or (3, *otherwise)
    if len(found) != 3 or 3 not in (found[0], found[2]):
        raise ValueError(f"{camera}.shape: {found}, must be [rows, columns, 3] or [3, rows, columns]")
    rows, columns = found[:2] if found[2] == 3 else found[1:]
    return int(rows), int(columns)


def _joints(info: dict[str, Any], feature: str, known: list[str], size: int) -> list[str]:
    """Return the names of a feature's entries in the order of the data, else in that of the driver."""
    from adahi_ros.core.texts import nearest

    found = info.get("features", {}).get(feature)
    names = (found.get("names") if isinstance(found, dict) else None) or known
    if isinstance(names, dict):  # {motors: [...]} of older datasets
        names = next(iter(names.values()))
    if not isinstance(names, list):
        raise ValueError(f"{feature}: names: {names!r}, must be a list of joints")
    joints = [str(name).removesuffix(SUFFIX).removeprefix("main_") for name in names]
    for joint in joints:
        if joint not in known:
            raise ValueError(
                f"{feature}: {joint!r}{nearest(joint, known)}, must be one of the driver's: "
                f"{', '.join(known)}; of another arm give the contract, --driver CONTRACT.yaml; or rename it "
                "in a copy of the dataset's meta/info.json, and compare the unit"
            )
    if len(joints) != size:
        raise ValueError(
            f"{feature}: {', '.join(joints)}, must be the {size} entries that the policy has; of another arm "
            "give --driver, such as ur5e"
        )
    return joints


def _joints_of(source: dict[str, Any]) -> list[str]:
    return list(source.get("names", ())) or [path.partition(".")[2] for path in source["select"]]


def _ordered(sources: list[dict[str, Any]], joints: list[str]) -> list[dict[str, Any]]:
    """Return sources with their joints in an order; one source more where another one is between."""
    place = {joint: (source, at) for source in sources for at, joint in enumerate(_joints_of(source))}
    parts: list[tuple[dict[str, Any], list[int]]] = []
    for source, at in (place[joint] for joint in joints if joint in place):
        if parts and parts[-1][0] is source:
            parts[-1][1].append(at)
        else:
            parts.append((source, [at]))
    return [
        {
            **source,
            **{key: [source[key][at] for at in places] for key in ("select", "names") if key in source},
            "apply": _at(source["apply"], places),
        }
        for source, places in parts
    ]


def _at(operators: list[Any], places: list[int]) -> list[Any]:
    """Return operators for some of a source's entries: lists have a number for each."""
    return [
        {
            name: [value[at] for at in places] if isinstance(value, list) else value
            for name, value in each.items()
        }
        if isinstance(each, dict)
        else each
        for each in operators
    ]


def _operators(source: dict[str, Any], motors: dict[str, Any], unit: str, same_zero: bool) -> list[Any]:
    """Return what makes LeRobot's unit of a driver's positions in rad, as LeRobot's calibration has it."""
    joints = _joints_of(source)
    if (same_zero and (joints == [GRIPPER] or unit == "degrees")) or (unit == "degrees" and not motors):
        return list(source.get("apply", []))
    offsets, scales = [], []
    for joint in joints:
        motor: dict[str, Any] = motors.get(joint) or {}
        try:
            low, high = float(motor["range_min"]), float(motor["range_max"])
            turned = -1.0 if motor.get("drive_mode") else 1.0
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f"--calibration: {joint}: {motor}, must have range_min and range_max, as LeRobot's file has"
            ) from None
        if high <= low:
            raise ValueError(f"--calibration: {joint}: range_max {high:g}, must be above range_min {low:g}")
        zero = low if joint == GRIPPER else (low + high) / 2.0
        offsets.append(round((CENTRE - zero) * 360.0 / TICKS, 4))
        whole = 100.0 if joint == GRIPPER else 200.0
        in_unit = same_zero if joint == GRIPPER else unit == "degrees"
        scales.append(1.0 if in_unit else round(turned * whole / (high - low) * TICKS / 360.0, 6))
    found: list[Any] = list(source.get("apply", [])) if same_zero else ["rad2deg", {"offset": offsets}]
    if set(scales) != {1.0}:
        found.append({"scale": scales})
    return found


def _parameters(own: PolicyMetadata, rate_hz: float, contract: Path, reply_s: float | None) -> dict[str, Any]:
    """Return the parameters of both nodes."""
    threshold = max(1, math.floor(min(OFTEN_S * rate_hz, SHARE * own.horizon)))
    if reply_s is not None:
        steps = math.ceil(reply_s * rate_hz)
        if 2 * steps > own.horizon:
            raise ValueError(
                f"--reply-s: {reply_s:g}, must be at most {own.horizon / 2 / rate_hz:.2g}, half of a plan: "
                "use a faster device, or a policy with longer plans"
            )
        threshold = min(threshold, own.horizon - steps - 1)
    robot: dict[str, Any] = {
        "checkpoint": "",
        "proposer.name": "plan",
        "contract": str(contract.resolve()),
        "wait_policy": "ahead",
        "execution_horizon": own.horizon,
        "gate": {"name": "age", "threshold": float(threshold)},
        "safety": {"limits": str((contract.parent / NAMES[3]).resolve())},
    }
    sent = {"verification": {"reliability": "reliable"}}  # requests with images are many packets
    nodes = {"/**/draft_policy": {**robot, **sent}, "/**/target_verifier": sent}
    return {name: {"ros__parameters": values} for name, values in nodes.items()}


def _slow(limits: Path) -> dict[str, Any]:
    from adahi_ros.core.yaml_files import read_yaml

    file: dict[str, Any] = read_yaml(limits)
    for entry in file["limits"].values():
        if "velocity" in entry:
            entry["velocity"] = round(entry["velocity"] / SLOWER, 6)
    return file


def _write(path: Path, values: dict[str, Any]) -> None:
    import yaml

    from adahi_ros.core.written_files import replacing

    values = json.loads(json.dumps(values))  # nothing is shared: ROS reads no aliases
    path.parent.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(values, sort_keys=False, default_flow_style=None, width=110)
    with replacing(path) as partial:
        partial.write_text(f"# Written by: {command_line()}\n{text}")
