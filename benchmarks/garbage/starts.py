"""Nodes that are started with garbage parameters: each starts, or says what is wrong with which."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter

from adahi_ros.nodes.common.parameters import rows
from adahi_ros.nodes.launching.domain import exclusive_domain, loopback_environment
from adahi_ros.nodes.monitoring import bag_recorder_node, path_markers_node
from adahi_ros.nodes.robot import draft_policy_node
from adahi_ros.nodes.server import target_verifier_node
from adahi_ros.nodes.simulation import robot_simulator_node

from .values import Garbage

NODES: tuple[tuple[Any, Any], ...] = (
    (draft_policy_node.DraftPolicyNode, rows(draft_policy_node.DraftPolicyParameters)),
    (target_verifier_node.TargetVerifierNode, rows(target_verifier_node.TargetVerifierParameters)),
    (robot_simulator_node.RobotSimulatorNode, rows(robot_simulator_node.RobotSimulatorParameters)),
    (bag_recorder_node.BagRecorderNode, rows(bag_recorder_node.BagRecorderParameters)),
    (path_markers_node.PathMarkersNode, rows(path_markers_node.PathMarkersParameters)),
)


HELD = ExitStack()  # by this process, to its end


@cache
def _context() -> Context:
    """Return a place on this machine where nobody else is."""
    domain = HELD.enter_context(exclusive_domain())
    os.environ.update(loopback_environment(domain))
    context = Context()
    rclpy.init(context=context, domain_id=domain)
    return context


def _value(row: Any, garbage: Garbage) -> Any:
    """Draw a value, of the parameter's type most of the time."""
    kind = type(row.default) if garbage.chance(0.7) else garbage.pick((bool, int, float, str, list))
    if kind is bool:
        return garbage.chance(0.5)
    if kind is int:
        return garbage.integer(-(2**63), 2**63 - 1)
    if kind is float:
        return garbage.float()
    if kind is str:
        return garbage.pick((*row.choices, garbage.text()))
    numbers: Sequence[Any] = garbage.pick(([], [garbage.text()], ["a", "a"], [1.0, 2.0], [1], ["x", "y"]))
    return numbers


def start(garbage: Garbage, folder: Path) -> None:
    """One node, with up to three parameters that are garbage.

    Raises:
        ValueError: what the node says.
    """
    make, table = garbage.pick(NODES)
    drawn = [garbage.pick(table) for _ in range(garbage.count(1, 3))]
    values = [
        Parameter(row.name, value=_value(row, garbage)) for row in {row.name: row for row in drawn}.values()
    ]
    node = make(
        context=_context(),
        parameter_overrides=values,
        use_global_arguments=False,
        enable_rosout=False,
        start_parameter_services=False,
    )
    try:
        if make is draft_policy_node.DraftPolicyNode:
            _configure(node)
    finally:
        node.destroy_node()


def _configure(node: Any) -> None:
    said: list[str] = []
    log = node.get_logger()
    node.get_logger = lambda: _Listening(log, said)
    if node.trigger_configure() == TransitionCallbackReturn.SUCCESS:
        node.trigger_cleanup()
        return
    if any("Error(" in line for line in said):  # the node tells by repr what is no error of ours
        raise AssertionError(said[-1])
    raise ValueError(said[-1])


class _Listening:
    """A logger that remembers errors."""

    def __init__(self, log: Any, said: list[str]) -> None:
        self._log, self._said = log, said

    def error(self, message: str, **options: Any) -> None:
        self._said.append(message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)
