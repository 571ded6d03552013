# SPDX-License-Identifier: Apache-2.0
"""Topics, services, actions, QoS and parameters of every node, as Markdown.

Topics, services, actions and their QoS come from nodes that were started and activated.
"""

from __future__ import annotations

import inspect
import io
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from typing import Any, NamedTuple

from rclpy.action import get_action_server_names_and_types_by_node  # type: ignore[attr-defined]
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.parameter import Parameter as Value
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from adahi_ros.core.assets import asset
from adahi_ros.core.registry import Argument
from adahi_ros.nodes.common.command_line import listed
from adahi_ros.nodes.launching.modules import MODULES

NAMESPACE = "/robot_namespace"
SCRATCH = "SCRATCH"  # in a setting: a folder that is removed afterwards
ROS_ITSELF = ("rcl_interfaces", "lifecycle_msgs", "type_description_interfaces")

# Each node, and the parameters of each start; their names describe the differences.
Settings = Mapping[str, Mapping[str, Any]]
NODES: dict[str, Settings] = {
    "draft_policy_node": {
        "": {
            "verifier_wait_s": 0.0,
            "contract": "ball",
            "checkpoint": "ball/draft",
            "safety.limits": "ball",
        },
        "a camera in `contract`": {
            "verifier_wait_s": 0.0,
            "contract": "ball_camera",
            "checkpoint": "ball_camera/draft",
            "safety.limits": "ball",
        },
    },
    "policy_runner_node": {"": {}},
    "target_verifier_node": {
        "": {"checkpoint": "ball/target"},
        "`assigns`": {"checkpoint": "ball/target", "assigns": True},
    },
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
    "scene_checker_node": {"": {}},
    "bag_recorder_node": {
        "": {"contract": "ball", "out": f"{SCRATCH}/bag"},
        "`episodes`": {"contract": "ball", "out": f"{SCRATCH}/bags", "episodes": True},
    },
}


class End(NamedTuple):
    """One end of a node's topic, service or action, as the page shows it."""

    verb: str
    name: str
    kind: str
    qos: str
    overridable: bool


def node_sections() -> Iterator[str]:
    """Iterate over the sections of the nodes; rclpy must be initialised."""
    for module, settings in NODES.items():
        yield _node(module, settings)


def _node(name: str, settings: Settings) -> str:
    module = import_module(MODULES.get(name, f"adahi_lab.nodes.{name}"))
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
    parts.append("\n".join([*head, *(_parameter(*each) for each in _joined(listed(declared)))]))
    return "\n\n".join(parts) + "\n"


def _when(end: End, ends: Mapping[str, set[End]]) -> str:
    """Return the settings with which a node has an end; empty if it always has it."""
    by_default = end in ends[""]
    differing = [label for label, found in ends.items() if (end in found) != by_default]
    return f"{'not ' if by_default else ''}with {', '.join(differing)}" if differing else ""


def _joined(listed: Iterable[tuple[Argument, str]]) -> list[tuple[Argument, str]]:
    """Return parameters, each with all components that have the same one."""
    found: list[tuple[Argument, str]] = []
    for row, component in listed:
        at = next((at for at, (other, _) in enumerate(found) if component and other == row), None)
        if at is None:
            found.append((row, component))
        else:
            found[at] = row, f"{found[at][1]}`, `{component}"
    return found


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
    """Start a node, and yield its ends, without those of every ROS node."""
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
        for redirect in (redirect_stdout, redirect_stderr):  # a node's output is not for the page
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
    depth = "all" if qos.history == HistoryPolicy.KEEP_ALL else str(qos.depth)
    words = ["reliable" if qos.reliability == ReliabilityPolicy.RELIABLE else "best effort", depth]
    if qos.durability == DurabilityPolicy.TRANSIENT_LOCAL:
        words.append("transient local")
    return ", ".join(words)
