# SPDX-License-Identifier: Apache-2.0
"""A node's parameters: declared and described by a frozen dataclass; checked and read here.

A field is a parameter of its name, and a field that is a dataclass itself a group of them: the field
`threshold` of the group `gate` is the parameter `gate.threshold`.
"""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import partial
from typing import Any, Generic, TypeVar

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

from adahi_ros.core.texts import shortened

P = TypeVar("P")
V = TypeVar("V")
LARGEST_INTEGER = 2**63 - 1
LAST_TYPE = ParameterType.PARAMETER_STRING_ARRAY
TOLD = 100  # characters of a value that is wrong
NO_NAMES = ("",)  # parameter files have no empty list of strings
FOR_OTHERS = ("calibration.", "qos_overrides.", "start_type_description_service")  # of no node's own


class ParameterError(ValueError):
    """A parameter cannot be used; the message names it, its value and what is allowed."""


@dataclass(frozen=True)
class Parameter:
    """One parameter, as ROS is told of it.

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
        return None if right else self.refusal(value)

    def refusal(self, value: Any) -> str:
        """Say that a value, which may be of a wrong type, cannot be, and what can."""
        must = f"{self.name}: {shortened(repr(value), TOLD)}, must be {self.allowed}"
        if isinstance(self.default, float) and type(value) is int:  # to ROS, 1 is no 1.0
            must += f", with a decimal point as in {shortened(repr(float(value)), TOLD)}"
        return must


def parameter(
    default: V,
    description: str,
    low: float | None = None,
    high: float | None = None,
    *,
    choices: tuple[str, ...] = (),
    live: bool = False,
    optional: bool = False,
    longest: int | None = None,
) -> V:
    """Declare a field of a dataclass as a parameter; the arguments are those of `Parameter`.

    The default of names is a tuple of them, which may be empty.
    """
    described = {
        "description": description,
        "low": low,
        "high": high,
        "choices": choices,
        "live": live,
        "optional": optional,
        "longest": longest,
    }
    return field(default=default, metadata=described)


def group(kind: type[V], name: str = "") -> V:
    """Declare a field of a dataclass as a group of parameters.

    Args:
        kind: the dataclass of the group.
        name: what the names of its parameters begin with, before the dot; empty for the field's own name.
    """
    return field(default_factory=kind, metadata={"group": name})


def _inside(within: str, each: Field[Any]) -> tuple[Any, str]:
    """Return the dataclass of a field that is a group, None for one that is none, and how its names begin."""
    if "group" not in each.metadata:
        return None, within
    return each.default_factory, f"{within}{each.metadata['group'] or each.name}."


def rows(kind: type[Any], within: str = "") -> tuple[Parameter, ...]:
    """Return what a dataclass declares, in the order of its fields; all names begin with `within`."""
    found: list[Parameter] = []
    for each in fields(kind):
        inner, inside = _inside(within, each)
        if inner is not None:
            found += rows(inner, inside)
        else:
            default: Any = each.default
            if isinstance(default, tuple):
                default = list(default or NO_NAMES)
            found.append(Parameter(f"{within}{each.name}", default, **each.metadata))
    return tuple(found)


def filled(kind: type[P], values: Mapping[str, Any], within: str = "") -> P:
    """Return the parameters of a dataclass from values by their names; what is not given has its default.

    Of strings it makes a tuple, an empty one of `NO_NAMES`.
    """
    given: dict[str, Any] = {}
    for each in fields(kind):  # type: ignore[arg-type]  # no type says that it is a dataclass
        inner, inside = _inside(within, each)
        name = f"{within}{each.name}"
        if inner is not None:
            given[each.name] = filled(inner, values, inside)
        elif name in values:
            value = values[name]
            names = isinstance(value, list)
            given[each.name] = tuple(one for one in value if one not in NO_NAMES) if names else value
    return kind(**given)


class Parameters(Generic[P]):
    """Declares the parameters of a dataclass on a node and reads them.

    A wrong value from the command line or a file does not end the process: it is remembered, and
    `read` tells of it until a right value is set.

    Args:
        node: gets the parameters.
        kind: the dataclass.
    """

    def __init__(self, node: Node, kind: type[P]) -> None:
        self._node = node
        self._kind = kind
        table = rows(kind)
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
            except ParameterException:  # of another type, or out of range
                node.declare_parameter(row.name, row.default, row.descriptor(), ignore_override=True)
                fault = row.refusal(self.told_beside(row.name))
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
        """Name files with nothing for this node, and what is set and no node of this kind has."""
        if "--params-file" in sys.argv:
            from adahi_ros.nodes.common.parameter_files import unheeded

            for file in unheeded(sys.argv, self._node.get_fully_qualified_name()):
                self._node.get_logger().warning(file)
        for name in getattr(self._node, "_parameter_overrides", {}):
            if name not in self._table and name != "use_sim_time" and not name.startswith(FOR_OTHERS):
                near = difflib.get_close_matches(name, self._table, 1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self._table)}"
                self._node.get_logger().warning(f"{name}: no parameter of this node, ignored; {hint}")

    def told_beside(self, name: str) -> Any:
        """Return what a parameter file says that is no parameter of the node; None where it does not."""
        told = getattr(self._node, "_parameter_overrides", {}).get(name)
        return None if told is None else told.value

    def read(self) -> P:
        """Return what the parameters are now.

        Raises:
            ParameterError: some were given a wrong value.
        """
        if self._faults:
            raise ParameterError("; ".join(self._faults.values()))
        return filled(self._kind, {name: self._node.get_parameter(name).value for name in self._table})

    def _check(self, parameters: list[Any]) -> SetParametersResult:
        for parameter in parameters:
            row = self._table.get(parameter.name)
            if row is None:
                continue
            if self.frozen and not row.live and not self._is_as_before(parameter):
                reason = f"{row.name}: can be set only while the node is unconfigured"
                return SetParametersResult(successful=False, reason=reason)
            fault = row.fault(parameter.value)
            if fault is not None:
                return SetParametersResult(successful=False, reason=fault)
        if not self._tells_afterwards:
            self._note(parameters)
        return SetParametersResult(successful=True)

    def _is_as_before(self, parameter: Any) -> bool:
        """Whether a parameter is to be set to what it is, as by a node's own dump that is loaded again."""
        before = self._node.get_parameter(parameter.name)
        return bool(before.type_ == parameter.type_ and before.value == parameter.value)

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
