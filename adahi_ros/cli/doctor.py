# SPDX-License-Identifier: Apache-2.0
"""`adahi doctor`."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.text import Text
from typer import Argument, Exit, Option

from adahi_ros import __version__
from adahi_ros.cli import options
from adahi_ros.cli.terminal import console, say
from adahi_ros.core.domains import used_domains
from adahi_ros.core.texts import printable

if TYPE_CHECKING:
    from adahi_ros.nodes.robot.examination import Examination
    from adahi_ros.robot.checks import Finding, Robot

STYLES = {"OK": ("ok", "green"), "WARN": ("warning", "yellow"), "ERROR": ("error", "bold red")}
LEVEL, NAME = 9, 14  # columns of a finding
DISCOVERY_S = 1.5
GPU_S = 10.0  # for nvidia-smi


def doctor(
    params: Annotated[
        Path | None,
        Argument(help="ROS parameter file of the robot, as for robot.launch.py; without it less is checked."),
    ] = None,
    limits: Annotated[str, Option(help="As safety_limits:= of robot.launch.py.")] = "",
    duration: Annotated[float, options.number("How long to listen, s.", 0.5, 600.0)] = 3.0,
    namespace: options.Namespace = "",
    verifier_namespace: Annotated[str, Option(help="As verifier_namespace:= of robot.launch.py.")] = "",
    as_json: Annotated[bool, Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check what is usually wrong with a robot, most important first, and say what to do.

    It publishes nothing, and moves nothing. Run it on the robot, in the environment of its node.
    Exit code 1: there is an error.
    """
    from adahi_ros.core.health_level import Level
    from adahi_ros.core.node_parameters import parameters_for
    from adahi_ros.core.yaml_files import read_yaml
    from adahi_ros.nodes.robot.examination import Examination
    from adahi_ros.robot.checks import Finding, Surroundings, check

    node = f"/{namespace.strip('/')}/draft_policy".replace("//", "/")
    given = {} if params is None else parameters_for(read_yaml(params), node)
    given |= {"safety.limits": limits} if limits else {}
    others, robot, received = used_domains(), None, dict[str, Any]()
    findings: list[tuple[str, Finding]] = []
    with Examination(namespace, given, verifier_namespace) as examination:
        examination.wait(DISCOVERY_S)
        try:
            if params is not None:
                robot = examination.robot()
                received = _survey(examination, robot, duration)
        except (ValueError, OSError) as error:
            limited = "safety.limits" in str(error)
            action = f"correct it{', or give --limits, as safety_limits:=' * limited}; then run this again"
            findings.append(("parameters", Finding(Level.ERROR, str(error), action)))
            robot = None
        seen = Surroundings(
            **examination.seen(robot),
            **received,
            environment=os.environ,
            domains=[each for each in others if each != examination.domain],
            versions=f"adahi_ros {__version__}, Python {platform.python_version()}",
            gpu=_gpu(),
            free_bytes=shutil.disk_usage(".").free,
        )
    findings += check(seen, robot)
    if as_json:
        rows = [{"check": name, **each._asdict(), "level": each.level.name} for name, each in findings]
        say(json.dumps(rows))
    else:
        for name, finding in findings:
            _show(name, finding)
    if any(finding.level is Level.ERROR for _, finding in findings):
        raise Exit(1)


def _survey(examination: Examination, robot: Robot, duration: float) -> dict[str, Any]:
    """Return the arguments of `Surroundings` on the messages of some seconds."""
    from adahi_ros.bags.bag_reader import Received
    from adahi_ros.bags.survey import survey

    with console.status(f"listens for {duration:g} s"):
        messages = examination.messages(robot.contract, duration, robot.wants.target)
        found = survey((Received(*each) for each in messages), robot.contract)
    return {
        "observations": found.observations,
        "refused": {field: f"{count} times {first}" for field, (count, first) in found.refused.items()},
        "missed": {topic: f"{count} times {first}" for topic, (count, first) in found.missed.items()},
        "pictures": found.picture_faults,
        "values": found.quantiles,
    }


def _show(name: str, finding: Finding) -> None:
    word, style = STYLES[finding.level.name]
    text, action = printable(finding.text), printable(finding.action)  # words of other nodes are no new lines
    console.print(Text(word.ljust(LEVEL), style) + Text(f"{name.ljust(NAME)}{text}"), soft_wrap=True)
    if action:
        console.print(Text(f"{' ' * (LEVEL + NAME)}-> {action}", "dim"), soft_wrap=True)


def _gpu() -> str:
    """Return the GPUs of this machine, for people."""
    if shutil.which("nvidia-smi") is None:
        return "none of NVIDIA's here; only the verifier's machine may need one"
    command = ["nvidia-smi", "--query-gpu=name,memory.free", "--format=csv,noheader"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=GPU_S, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return f"no GPU can be used: {error}"
    return f"{'; '.join(found.strip().splitlines())} free"
