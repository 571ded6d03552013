# SPDX-License-Identifier: Apache-2.0
"""`adahi contract`: what a robot's observation and action are made of, as a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from adahi_ros.cli import options
from adahi_ros.cli.terminal import command_line, console, say
from adahi_ros.core.assets import asset, asset_files
from adahi_ros.core.texts import nearest
from adahi_ros.core.written_files import replacing

if TYPE_CHECKING:
    from adahi_ros.bags.survey import BagSurvey
    from adahi_ros.contract.contract import Channel, Contract
    from adahi_ros.core.signature import ImageInput
    from adahi_ros.protocol.description import Description, Wants


def write(
    name: Annotated[
        str, Argument(help="A shipped contract, such as that of an arm: so101. An unknown name lists all.")
    ],
    out: Annotated[Path | None, Option(help="File to write. Default: NAME.yaml here.")] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Write a copy of a shipped contract, to start from."""
    from adahi_ros.contract.parsing import SHIPPED

    known = [path.stem for path in asset_files(SHIPPED)]
    if name not in known:
        raise ValueError(
            f"{name}: no contract of that name; must be one of {', '.join(known)}{nearest(name, known)}"
        )
    path = options.replaceable("--out", out if out is not None else Path(f"{name}.yaml"), overwrite)
    if path.exists() and not overwrite:  # somebody may have changed it
        raise ValueError(f"--out: {path}, exists; must be another file, or give --overwrite")
    shipped = asset(f"{SHIPPED}/{name}.yaml").read_text()  # with the comments, which say what to change
    with replacing(path) as partial:
        partial.write_text(f"# Written by: {command_line()}\n{shipped}")
    say(f"contract: {path}")


def check(
    contract: Annotated[str, Argument(help="A shipped contract's name, or a YAML file.")],
    bags: Annotated[
        list[Path] | None,
        Option(
            "--bag",
            callback=options.each_bag,
            help="Check it against this bag, or each in this folder; may be given several times.",
        ),
    ] = None,
    limits: Annotated[
        list[Path] | None,
        Option(
            help="Warn of joints that are not in these limits (shipped name or file) or URDF; repeatable. "
            "Default: the shipped limits of the robot type."
        ),
    ] = None,
    target: Annotated[
        Path | None,
        Option(help="Compare it, the limits and the bags with this target file: sizes, names, rate, units."),
    ] = None,
    namespace: options.Namespace = "",
    incomplete: options.Incomplete = False,
) -> None:
    """Check a contract and show what it makes; of a bag, how much, and what is refused.

    Exit code 1: a bag has no observation, samples slower than fps or another action topic, or cannot be read;
    two publishers measure one commanded joint; or the target does not fit.
    """
    from adahi_ros.bags.definitions import BagError
    from adahi_ros.bags.survey import survey_bag, too_slow
    from adahi_ros.contract.parsing import load_contract
    from adahi_ros.robot.compatibility import named_values

    read = load_contract(contract)
    for line in (*_parts(read), *_joints(read, limits or ())):
        say(line)
    described, wants = _target(read, target, limits or ())
    fault = None if described is None else wants.mismatch(described)
    if described is not None:
        say(f"target: {fault or 'fits'}")
    wrong = fault is not None
    for line in () if described is None or fault else _pictures(read, described.signature.images):
        say(f"  {line}")
        wrong |= "must be" in line
    for bag in bags or ():
        try:
            with console.status(f"reading {bag}"):
                found = survey_bag(bag, read, namespace, say if incomplete else None)
        except BagError as error:
            if len(bags or ()) == 1:
                raise
            say(f"error: {error}")  # the others may be good
            wrong = True
            continue
        slow, absent = too_slow(found.rate_hz, read), list(_unrecorded(bag, read, namespace, incomplete))
        for line in (*_found(bag, found), *([f"  warning: {slow}"] if slow else ()), *absent):
            say(line)
        wrong |= bool(slow) or any("warning" in line for line in absent)
        for sink in read.action.sinks:
            if sink.is_ros_action:
                say(f"  {sink.key}: goals of a ROS action are in no bag, and are not counted")
        observed = named_values(read, found.quantiles)
        unlike = "" if described is None or fault else wants.unlike(described, observed)
        if unlike:
            say(f"  {unlike}")
        wrong |= bool(found.measured_twice or unlike or not found.observations)
    if wrong:
        raise Exit(1)


def _target(
    contract: Contract, path: Path | None, limits: Sequence[Path]
) -> tuple[Description | None, Wants]:
    """Return a target as its verifier would describe it, and what the robot wants of it.

    Raises:
        ValueError: file or limits cannot be used; names the field, its value and what is allowed.
    """
    from adahi_ros.contract.commanded import commanded
    from adahi_ros.core.yaml_files import read_yaml
    from adahi_ros.policies.backends import load_policy
    from adahi_ros.policies.remote.lerobot_metadata import DESCRIBED_BY_FILES
    from adahi_ros.protocol.description import Description
    from adahi_ros.robot.compatibility import wants_of_plans
    from adahi_ros.safety.limits_file import load_limits

    files = [] if path is None else _limits_files(contract, limits)
    what = commanded(contract.action)
    wants = wants_of_plans(contract, load_limits(files[0], what.names) if files else None)
    if path is None:
        return None, wants
    values = read_yaml(path) if path.is_file() else None
    if isinstance(values, dict) and str(values.get("kind")) in DESCRIBED_BY_FILES:
        signature, *ranges = DESCRIBED_BY_FILES[values["kind"]](path.parent, values)
    else:
        policy = load_policy(path, "onnxruntime")
        signature, ranges = policy.signature, list(policy.ranges)
    return Description(
        path.stem, "replace", signature, feature_ranges=ranges[0], action_ranges=ranges[1]
    ), wants


def _pictures(contract: Contract, wanted: Sequence[ImageInput]) -> Iterator[str]:
    """Yield lines: what a target sees of each camera, and what spoils it."""
    from adahi_ros.vision.images import spoiled, whole

    sizes = {camera.key: (camera.rows, camera.columns) for camera in contract.cameras}
    for image in wanted:
        size, (rows, columns) = sizes[image.name], (image.rows, image.columns)
        unlike = spoiled(size, rows, columns) == "stretched"
        how = ("" if not unlike else ", with black borders" if image.padded else ", stretched") or ", whole"
        yield f"{image.name}: {size[0]} x {size[1]}; the target sees it as {rows} x {columns}{how}"
        least = whole(size, rows, columns) if image.padded else (rows, columns)
        if size[0] < least[0] or size[1] < least[1]:
            yield (
                f"{image.name}.apply.resize: {list(size)}, must be at least {list(least)}: else the target "
                "sees it enlarged"
            )
        elif image.padded and not unlike:
            yield (
                f"warning: {image.name}.apply.resize: {list(size)} leaves no borders to the target: where it "
                "is not the camera's own size, the image is stretched"
            )


def _limits_files(contract: Contract, files: Sequence[Path]) -> list[Path]:
    """Return the given files or shipped limits, or those of the robot type, if there are any."""
    from adahi_ros.safety.named_limits import limits_of_task, limits_path

    shipped = limits_of_task(contract.robot_type)
    return [limits_path(str(each)) for each in files] or ([limits_path(shipped)] if shipped else [])


def _parts(contract: Contract) -> Iterator[str]:
    """Yield lines: observation and action of a contract, and their topics."""
    from adahi_ros.contract.fields import NAMED
    from adahi_ros.contract.sinks import SINKS

    yield f"{contract.robot_type}: {contract.rate_hz:g} steps per second, paced by {contract.paced_by}"
    yield f"observation: {_size(contract)}"
    for source in contract.numbers:
        yield f"  {source.key}: {source.channel.topic} [{', '.join(source.select)}]"
    for camera in contract.cameras:
        yield f"  {camera.key}: {camera.channel.topic}, {camera.rows} x {camera.columns}"
    goal, action = contract.goal, contract.action
    yield f"goal: {contract.goal_dim} numbers" + (f" [{', '.join(goal.select)}]" if goal else "")
    counted = contract.episode
    yield f"episodes: {'the robot counts them' if counted is None else ', '.join(counted.select)}"
    yield f"action: {action.size} numbers [{', '.join(action.select)}]"
    named = [sink for sink in action.sinks if sink.is_ros_action or sink.channel.kind in NAMED]
    names = [path.partition(".")[2] for sink in named for path in sink.source.select]
    unknown = contract.measured(names).unknown
    if unknown:
        yield f"  not observed where they stand: {', '.join(unknown)}"
    yield "topics:"
    for channel in contract.channels.values():
        yield f"  observed {_topic(channel)}"
    for sink in action.sinks:
        yield f"  {sink.key} {sink.channel.topic}: {sink.channel.kind}"
        if sink.channel.kind not in SINKS:
            yield f"  warning: no node commands by {sink.channel.kind}, only by {', '.join(SINKS)}"
    for monitor in contract.driver:
        running = ", ".join(map(str, monitor.running))
        yield f"  driver {monitor.topic}: {monitor.type}, {monitor.field} must be {running}"


def _joints(contract: Contract, files: Sequence[Path]) -> Iterator[str]:
    """Compare the names of joints with those of the robot: a misspelt one makes no observation."""
    from adahi_ros.core.texts import nearest
    from adahi_ros.safety.limits_file import joints_of

    paths = _limits_files(contract, files)
    known = frozenset[str]().union(*map(joints_of, paths))
    names = contract.joint_names
    if names and not paths:
        yield "joints: compared with no robot; --limits FILE names its limits or its URDF"
    elif names and known:
        places = ", ".join("/".join(path.parts[-2:]) for path in paths)
        wrong = [name for name in names if name not in known]
        yield f"joints: {len(names) - len(wrong)} of {len(names)} are in {places}"
        for name in wrong:
            near = nearest(name, known)
            if near or name in contract.commanded_names:
                yield f"  warning: {name!r} is not in {places}{near}"
            else:  # a joint without a motor, such as a pendulum's, has no limits
                yield f"  {name!r} is only observed, and is not in {places}"


def _size(contract: Contract) -> str:
    """Return how many numbers an observation has; with cameras that depends on the encoder.

    Raises:
        ValueError: the encoder takes images of another size.
    """
    from adahi_ros.core.assets import ENCODERS, named
    from adahi_ros.core.checkpoint_files import CheckpointError
    from adahi_ros.vision.encoder import Encoder

    numbers, cameras = contract.number_dim, len(contract.cameras)
    if not cameras:
        return f"{numbers} numbers, no camera"
    counted = f"{numbers} numbers, {cameras} camera{'s' if cameras > 1 else ''}"
    if contract.images_for_target:
        counted += " for the target alone"
        if not contract.encoder:  # the target reads them
            return counted
        counted += ","
    try:
        encoder = Encoder.load(named(contract.encoder, ENCODERS))
    except CheckpointError as error:  # the contract may well come first
        return f"{counted} of an encoder that is missing ({error})"
    contract.check_image_size(encoder.image_size)
    whole = numbers + cameras * encoder.features
    return f"{counted} of {encoder.features} features (encoder {contract.encoder}): {whole} in all"


def _topic(channel: Channel) -> str:
    words = [channel.reliability, "all kept" if channel.history == "keep_all" else f"depth {channel.depth}"]
    if channel.durability == "transient_local":
        words.append("transient local")
    return f"{channel.topic}: {channel.kind}, {', '.join(words)}"


def _unrecorded(bag: Path, contract: Contract, namespace: str, incomplete: bool) -> Iterator[str]:
    """Yield lines: topics of the action that the bag has not, and those of the same type that it has."""
    from adahi_ros.bags.bag_reader import topics_in
    from adahi_ros.bags.recorded_topics import absolute, topics_of

    there = topics_in(bag, (lambda loss: None) if incomplete else None)
    for topic, kind in topics_of(contract).items():
        name = absolute(topic, namespace)
        if name not in there and topic not in contract.channels:
            alike = [each for each, found in there.items() if found == kind]
            has = f"; of its type it has {', '.join(alike)}" if alike else nearest(name, there)
            yield f"  {'warning: ' if has else ''}{name}: the action's topic is not in the bag{has}"


def _found(bag: Path, found: BagSurvey) -> Iterator[str]:
    """Yield lines: how many observations and actions a bag has for a contract."""
    yield f"{bag}: {found.observations} observations, {found.actions} actions"
    for count, first in (*found.refused.values(), *found.missed.values()):
        yield f"  {count} times {first}"
    if not (found.refused or found.missed):
        yield "  nothing was refused"
    yield from (f"  {fault}" for fault in found.measured_twice)
    yield from (f"  warning: {fault}" for fault in found.picture_faults)
    for topic, count in found.repeated.items():
        if not found.measured_twice:
            yield f"  warning: {topic}: {count} messages repeat the stamp of the one before"
