# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference.md from the code: what the nodes are asked and offer, the messages, the command.

    python tools/reference.py [--check]

Topics, services, actions and their QoS are those of nodes that were started for it, in a domain of their own,
those with a lifecycle active; the parameters are those that they declare, the messages their own files.
"""

from __future__ import annotations

import argparse
import difflib
import html
import inspect
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import fields
from importlib import import_module
from typing import Any, NamedTuple

import rclpy
from rclpy.action import get_action_server_names_and_types_by_node  # type: ignore[attr-defined]
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.parameter import Parameter as Value
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.utilities import try_shutdown

from adahi_ros.core.assets import asset
from adahi_ros.core.registry import Argument
from adahi_ros.core.schema import checked
from adahi_ros.lab.nodes.domain import exclusive_domain, loopback_environment
from adahi_ros.nodes.common.command_line import listed
from adahi_ros.nodes.launching.modules import MODULES
from adahi_ros.safety.command_limits import LIMITS
from adahi_ros.safety.entry_limits import ENTRY_LIMITS

PAGE = "reference.md"
NAMESPACE = "/robot_namespace"
SCRATCH = "SCRATCH"  # in a setting: a folder that is gone afterwards
ROS_ITSELF = ("rcl_interfaces", "lifecycle_msgs", "type_description_interfaces")

# Each node, and the parameters with which it is started; what these are called says what makes a difference.
Settings = Mapping[str, Mapping[str, Any]]
NODES: dict[str, Settings] = {
    "draft_policy_node": {
        "": {"verifier_wait_s": 0.0},
        "a camera in `contract`": {
            "verifier_wait_s": 0.0,
            "contract": "ball_camera",
            "checkpoint": "ball_camera/draft",
        },
    },
    "policy_runner_node": {"": {}},
    "target_verifier_node": {"": {}},
    "robot_simulator_node": {
        "": {},
        "a camera in `task`": {"task": "ball_camera"},
        "`demonstrate`": {"demonstrate": True},
        "`speed` not 1": {"speed": 2.0},
    },
    "path_markers_node": {
        "": {
            "robot_description": str(asset("config/urdf/ball.urdf")),
            "tip_link": "plate_corner",
        },
        "`point_of_action`": {"point_of_action.x": 0},
    },
    "bag_recorder_node": {"": {"out": f"{SCRATCH}/bag"}},
    "recording_robot_node": {
        "": {"log": f"{SCRATCH}/log"},
        "`clock_jump_s`": {"log": f"{SCRATCH}/log", "clock_jump_s": 1.0},
    },
}

HEAD = """\
# Reference: nodes, messages, command

Written from the code by `python tools/reference.py`; a test compares. What it means together is in
[nodes.md](nodes.md).

Names are relative to the node's namespace unless they begin with a slash; `~` is the node's own name. QoS is
the reliability, and how many of the newest are kept; *override* marks what ROS's `qos_overrides` parameters
can change. *Live* parameters can be set while the node is active and take effect at the next control step;
the others are read when it starts or is configured. What ROS gives every node is left out: parameter
services, the services of a lifecycle node, `/clock` with `use_sim_time`.
"""


class End(NamedTuple):
    """One end of a topic, service or action that a node has, as the page shows it."""

    verb: str
    name: str
    kind: str
    qos: str
    overridable: bool


def page() -> str:
    """Return the text of the page."""
    nodes = [_node(module, settings) for module, settings in NODES.items()]
    return "\n".join(
        [
            HEAD,
            "# Nodes\n",
            *nodes,
            _limits(),
            "# Messages, services and actions\n",
            *_interfaces(),
            _command(),
        ]
    )


def _node(name: str, settings: Settings) -> str:
    module = import_module(MODULES[name])
    kind = next(
        each
        for _, each in inspect.getmembers(module, inspect.isclass)
        if issubclass(each, Node) and each.__module__ == module.__name__
    )
    ends = {label: set(_ends(kind, values)) for label, values in settings.items()}
    lines = [
        f"| {end.verb} | `{end.name}` | {end.kind} | {end.qos} | {'yes' if end.overridable else ''} "
        f"| {_when(end, ends)} |"
        for end in sorted(set().union(*ends.values()), key=lambda end: (ORDER.index(end.verb), end))
    ]
    parts = [f"## {name}", inspect.cleandoc(module.__doc__ or "")]
    if lines:
        parts.append("\n".join(["| | name | type | QoS | override | |", "|---|---|---|---|---|---|", *lines]))
    head = ["| parameter | type | default | allowed | live | |", "|---|---|---|---|---|---|"]
    declared = getattr(module, f"{kind.__name__.removesuffix('Node')}Parameters")
    parts.append("\n".join([*head, *(_parameter(*each) for each in listed(declared))]))
    return "\n\n".join(parts) + "\n"


def _when(end: End, ends: Mapping[str, set[End]]) -> str:
    """Say with which settings a node has an end; nothing where it always has."""
    by_default = end in ends[""]
    differing = [label for label, found in ends.items() if (end in found) != by_default]
    return f"{'not ' if by_default else ''}with {', '.join(differing)}" if differing else ""


def _parameter(row: Argument, component: str) -> str:
    if isinstance(row.default, list):
        kind, default = "string array", ", ".join(row.default)
    else:
        kind = {bool: "bool", int: "integer", float: "double", str: "string"}[type(row.default)]
        default = str(row.default).lower() if kind == "bool" else str(row.default)
    live = "yes" if row.live else ""
    about = f"`{component}`: {row.description}" if component else row.description
    return f"| `{row.name}` | {kind} | {default} | {row.allowed} | {live} | {about} |"


# Nodes that are really started

ORDER = ("subscribes", "publishes", "serves", "calls")


def _ends(kind: type[Node], values: Mapping[str, Any]) -> Iterator[End]:
    """Start a node, and yield what it has beside what ROS gives every one."""
    with _started(kind, values) as node:
        overridable = set(node.get_parameters_by_prefix("qos_overrides"))
        handles: dict[str, list[tuple[Any, Any, Any]]] = {
            "subscribes": [(each.topic_name, each.msg_type, each) for each in node.subscriptions],
            "publishes": [(each.topic_name, each.msg_type, each) for each in node.publishers],
            "serves": [(each.srv_name, each.srv_type, each) for each in node.services],
            "calls": [(each.srv_name, each.srv_type, each) for each in node.clients],
        }
        for verb, found in handles.items():
            for name, message, handle in found:
                package, folder = message.__module__.split(".")[:2]
                if package in ROS_ITSELF and verb != "calls":
                    continue
                full = node.resolve_service_name(name) if folder == "srv" else node.resolve_topic_name(name)
                yield End(
                    verb,
                    _relative(full, node),
                    f"{package}/{folder}/{message.__name__}",
                    _qos(handle.qos_profile),
                    any(each.startswith(f"{full}.") for each in overridable),
                )
        for name, kinds in get_action_server_names_and_types_by_node(
            node, node.get_name(), node.get_namespace()
        ):
            yield End("serves", _relative(name, node), kinds[0], "", False)


@contextmanager
def _started(kind: type[Node], values: Mapping[str, Any]) -> Iterator[Node]:
    with ExitStack() as stack:
        for redirect in (redirect_stdout, redirect_stderr):  # what a node has to say is not for the page
            stack.enter_context(redirect(io.StringIO()))
        scratch = stack.enter_context(tempfile.TemporaryDirectory())
        overrides = [
            Value(name, value=value.replace(SCRATCH, scratch) if isinstance(value, str) else value)
            for name, value in values.items()
        ]
        node = kind(namespace=NAMESPACE, parameter_overrides=overrides)  # type: ignore[call-arg]
        stack.callback(node.destroy_node)
        if isinstance(node, LifecycleNode):
            for transition in (node.trigger_configure, node.trigger_activate):
                if transition() != TransitionCallbackReturn.SUCCESS:
                    raise RuntimeError(f"{node.get_name()}: cannot be active with {dict(values)}")
            stack.callback(node.trigger_cleanup)
            stack.callback(node.trigger_deactivate)
        yield node


def _relative(full: str, node: Node) -> str:
    own = f"{node.get_fully_qualified_name()}/"
    if full.startswith(own):
        return f"~/{full.removeprefix(own)}"
    return full.removeprefix(f"{NAMESPACE}/")


def _qos(qos: QoSProfile) -> str:
    words = ["reliable" if qos.reliability == ReliabilityPolicy.RELIABLE else "best effort", str(qos.depth)]
    if qos.durability == DurabilityPolicy.TRANSIENT_LOCAL:
        words.append("transient local")
    return ", ".join(words)


# What is written down already


def _limits() -> str:
    """Return the keys of a file of limits."""
    of_entries = [
        f"| `limits.NAME.{name}` | {_allowed(limit.number)} | {limit.meaning} |"
        for name, limit in ENTRY_LIMITS.items()
    ]
    of_commands = [
        f"| `{name}` | a mapping of {', '.join(field.name for field in fields(LIMITS[name]))} "
        f"| {' '.join(inspect.cleandoc(LIMITS[name].__doc__ or '').split())} |"
        for name in LIMITS.shipped
    ]
    head = "# Limits\n\nKeys of the file `safety.limits`; NAME is a commanded entry, or `default`.\n"
    return "\n".join([head, "| key | allowed | |\n|---|---|---|", *of_entries, *of_commands, ""])


def _allowed(kind: Any) -> str:
    """Return which values a type of a file allows, as its error says."""
    try:
        checked(kind, object())
    except ValueError as error:
        return str(error).partition(", must be ")[2]
    return ""


def _interfaces() -> Iterator[str]:
    for path in sorted(asset("adahi_msgs").glob("*/*.*")):
        if path.suffix in (".msg", ".srv", ".action"):
            yield f"## adahi_msgs/{path.parent.name}/{path.stem}\n\n```\n{path.read_text().rstrip()}\n```\n"


def _command() -> str:
    """Return the verbs of `adahi` by what its own documentation says of them."""
    # By a process, for this room does not import that one.
    docs = subprocess.run(
        [sys.executable, "-m", "typer", "adahi_ros.cli", "utils", "docs", "--name", "adahi"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = re.findall(r"^#+ `(adahi [^`]+)`\n\n(.+?)\n\n.*?^\$ (.+?)$", docs, re.DOTALL | re.MULTILINE)
    rows = [
        f"| `{verb}` | {' '.join(html.unescape(about).split())} |"
        for verb, about, usage in found
        if not usage.endswith("COMMAND [ARGS]...")  # a group, whose verbs follow
    ]
    head = "# The command\n\nArguments, options and defaults of each: `--help`.\n\n| verb | |\n|---|---|"
    return "\n".join([head, *rows, ""])


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or with --check tell how it differs from the code; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; status 1 where the page is not current"
    )
    check = parser.parse_args(arguments).check
    with exclusive_domain() as domain:
        os.environ.update(loopback_environment(domain))
        rclpy.init(args=["--ros-args", "--log-level", "error"])
        try:
            text = page()
        finally:
            try_shutdown()
    path = asset("docs") / PAGE
    if not check:
        path.write_text(text)
        return 0
    written = path.read_text()
    sys.stdout.writelines(
        difflib.unified_diff(written.splitlines(True), text.splitlines(True), PAGE, "the code")
    )
    return int(written != text)


if __name__ == "__main__":
    sys.exit(main())
