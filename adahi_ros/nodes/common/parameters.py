"""A node's parameters as a table: declared, described, checked, and read in one place."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    ParameterType,
    SetParametersResult,
)
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.exceptions import ParameterException
from rclpy.node import Node

from adahi_ros.nodes.common.bounds import shortened

LARGEST_INTEGER = 2**63 - 1
LAST_TYPE = ParameterType.PARAMETER_STRING_ARRAY
TOLD = 100  # characters of a value that is wrong
NO_NAMES = ("",)  # parameter files have no empty list of strings
FOR_OTHERS = ("calibration.", "qos_overrides.", "start_type_description_service")  # not in any table


def names_in(value: Sequence[str]) -> list[str]:
    """Return the names in a parameter that may be `NO_NAMES`."""
    return [name for name in value if name not in NO_NAMES]


class ParameterError(ValueError):
    """A parameter cannot be used; the message names it, its value and what is allowed."""


@dataclass(frozen=True)
class Parameter:
    """One row of the table.

    Attributes:
        name: with its unit, as `deadline_s`.
        default: its type is the parameter's type.
        description: for `ros2 param describe`.
        low: smallest number allowed; None for no bound, and for what is no number.
        high: largest number allowed.
        choices: the strings allowed; empty for any but the empty one.
        live: may be set while the node is configured; takes effect at the next control step.
        optional: a string may be empty.
        longest: characters that a string may have; None for no bound.
    """

    name: str
    default: bool | int | float | str | list[str]
    description: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    live: bool = False
    optional: bool = False
    longest: int | None = None

    @property
    def allowed(self) -> str:
        """What values may be given, for people."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.low is not None and self.high == LARGEST_INTEGER:
            return f"at least {self.low:g}"
        if self.low is not None and self.high is not None:
            return f"from {self.low:g} to {self.high:g}"
        if self.longest is not None:
            return f"a string of {int(not self.optional)} to {self.longest} characters"
        kinds = {
            bool: "true or false",
            int: "an integer",
            float: "a finite number",
            str: "a string" if self.optional else "a string, not empty",
        }
        return kinds.get(type(self.default), "strings, at least one (which may be ''), none twice")

    def descriptor(self) -> ParameterDescriptor:
        """Return what `ros2 param describe` shows."""
        when = "can be set at any time" if self.live else "read when the node starts or is configured"
        descriptor = ParameterDescriptor(
            name=self.name,
            description=self.description,
            additional_constraints=f"{self.allowed}; {when}",
        )
        if self.low is not None and self.high is not None:
            if isinstance(self.default, float):
                descriptor.floating_point_range = [
                    FloatingPointRange(from_value=float(self.low), to_value=float(self.high))
                ]
            else:
                descriptor.integer_range = [
                    IntegerRange(from_value=int(self.low), to_value=int(self.high), step=1)
                ]
        return descriptor

    def fault(self, value: Any) -> str | None:
        """Say what is wrong with a value of the right type that is within the range, if anything is."""
        if self.longest is not None and len(value) > self.longest:
            right = False
        elif isinstance(self.default, str):
            right = value in self.choices if self.choices else self.optional or bool(value)
        elif isinstance(self.default, list):
            right = len(value) > 0 and len(set(value)) == len(value)
        elif isinstance(self.default, float):
            right = math.isfinite(value)
        else:
            right = True
        return None if right else f"{self.name}: {shortened(repr(value), TOLD)}, must be {self.allowed}"


class Parameters:
    """Declares a table of parameters on a node and reads them.

    A wrong value from the command line or a file does not end the process: it is remembered, and
    `read` tells of it until a right value is set.

    Args:
        node: gets the parameters.
        table: one row per parameter.
    """

    def __init__(self, node: Node, table: Sequence[Parameter]) -> None:
        self._node = node
        self._table = {row.name: row for row in table}
        self._faults: dict[str, str] = {}
        self.frozen = False
        """While true, only live parameters can be set."""
        self.changed = False
        """A live parameter has been set since this was last made false."""
        for row in table:
            try:
                value = node.declare_parameter(row.name, row.default, row.descriptor()).value
                fault = row.fault(value)
            except ParameterException as error:  # of another type, or out of range
                node.declare_parameter(row.name, row.default, row.descriptor(), ignore_override=True)
                fault = f"{error}, must be {row.allowed}"
            if fault is not None:
                self._faults[row.name] = fault
        self._warn_of_unknown()
        for service in node.services:
            if service.srv_type in (SetParameters, SetParametersAtomically):
                service.callback = partial(_set_if_known, service.callback)
        node.add_on_set_parameters_callback(self._check)
        # Humble cannot tell after the fact; there, what passes `_check` is taken for set.
        self._tells_afterwards = hasattr(node, "add_post_set_parameters_callback")
        if self._tells_afterwards:
            node.add_post_set_parameters_callback(self._note)

    def _warn_of_unknown(self) -> None:
        """Name what the command line or a file sets and no node of this kind has."""
        for name in getattr(self._node, "_parameter_overrides", {}):
            if name not in self._table and name != "use_sim_time" and not name.startswith(FOR_OTHERS):
                near = difflib.get_close_matches(name, self._table, 1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self._table)}"
                self._node.get_logger().warning(f"{name}: no parameter of this node, ignored; {hint}")

    def told_beside(self, name: str) -> Any:
        """Return what a parameter file says that is not in the table; None where it does not."""
        told = getattr(self._node, "_parameter_overrides", {}).get(name)
        return None if told is None else told.value

    def read(self) -> dict[str, Any]:
        """Return every parameter's value by its name.

        Raises:
            ParameterError: some were given a wrong value.
        """
        if self._faults:
            raise ParameterError("; ".join(self._faults.values()))
        return {name: self._node.get_parameter(name).value for name in self._table}

    def _check(self, parameters: list[Any]) -> SetParametersResult:
        for parameter in parameters:
            row = self._table.get(parameter.name)
            if row is None:
                continue
            if self.frozen and not row.live:
                reason = f"{row.name}: can be set only while the node is unconfigured"
                return SetParametersResult(successful=False, reason=reason)
            fault = row.fault(parameter.value)
            if fault is not None:
                return SetParametersResult(successful=False, reason=fault)
        if not self._tells_afterwards:
            self._note(parameters)
        return SetParametersResult(successful=True)

    def _note(self, parameters: list[Any]) -> None:
        """Take notice of what has been set; `_check` cannot, since others may refuse it after that."""
        for parameter in parameters:
            if parameter.name in self._table:
                self._faults.pop(parameter.name, None)
                self.changed = True


def _set_if_known(set_all: Callable[[Any, Any], Any], request: Any, response: Any) -> Any:
    """Refuse a request of a type that ROS does not have; rclpy would raise, and the node would end."""
    for parameter in request.parameters:
        kind = parameter.value.type
        if kind > LAST_TYPE:
            name = shortened(repr(parameter.name), TOLD)
            refused = SetParametersResult(reason=f"{name}: type {kind}, must be one from 0 to {LAST_TYPE}")
            if isinstance(request, SetParameters.Request):
                response.results = [refused] * len(request.parameters)
            else:
                response.result = refused
            return response
    return set_all(request, response)
