# SPDX-License-Identifier: Apache-2.0
"""A node's parameters: a frozen dataclass declares and describes them; this module checks and reads them.

A field is a parameter of the same name. A field that is a dataclass is a group: the field `threshold` of the
group `gate` is the parameter `gate.threshold`. The class attribute `renamed` has pairs of a former and the
present name, of a parameter, or of a group with a dot behind it.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping
from dataclasses import Field, field, fields
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
from rclpy.parameter import Parameter

from adahi_ros.core.gone_names import gone
from adahi_ros.core.registry import SHOWN, Argument, argument, arguments_beside, as_default
from adahi_ros.core.texts import shortened
from adahi_ros.nodes.common.parameter_files import unheeded

P = TypeVar("P")
V = TypeVar("V")
LAST_TYPE = ParameterType.PARAMETER_STRING_ARRAY
NO_NAMES = ("",)  # parameter files have no empty list of strings
SIMULATED = "use_sim_time"  # rclpy's: with another clock, every message would be too old or too new
FOR_OTHERS = ("calibration.", "qos_overrides.", "start_type_description_service")  # not in the dataclass


class ParameterError(ValueError):
    """A parameter cannot be used; the message names it, its value and what is allowed."""


parameter = argument
"""Declare a field of a dataclass as a parameter."""


def _descriptor(row: Argument) -> ParameterDescriptor:
    """Return what `ros2 param describe` shows."""
    when = "can be set at any time" if row.live else "read when the node starts or is configured"
    descriptor = ParameterDescriptor(
        name=row.name, description=row.description, additional_constraints=f"{row.allowed}; {when}"
    )
    if row.low is not None and row.high is not None:
        if isinstance(row.default, float):
            descriptor.floating_point_range = [
                FloatingPointRange(from_value=float(row.low), to_value=float(row.high))
            ]
        else:
            descriptor.integer_range = [IntegerRange(from_value=int(row.low), to_value=int(row.high), step=1)]
    return descriptor


def _refusal(row: Argument, value: object) -> str:
    """Return why a value of any ROS type is refused, and what is allowed."""
    if isinstance(row.default, float) and type(value) is int:  # ROS does not convert 1 to 1.0
        return f"{row.refusal(value)}, with a decimal point as in {shortened(repr(float(value)), SHOWN)}"
    return row.refusal(value)


def group(kind: type[V], name: str = "") -> V:
    """Declare a field of a dataclass as a group of parameters.

    Args:
        kind: the dataclass of the group.
        name: prefix of its parameters' names, before the dot; empty for the field's own name.
    """
    return field(default_factory=kind, metadata={"group": name})


def arguments_of_named(name: str) -> Mapping[str, object]:
    """Declare a field of a group as the arguments of the component that its parameter `name` names.

    Each field of the component becomes a parameter of the group. It may not have the name of another one.
    """
    return field(default_factory=dict, metadata={"of": name})


def _inside(within: str, each: Field[Any]) -> tuple[Any, str]:
    """Return the dataclass of a field that is a group, else None, and the prefix of its names."""
    if "group" not in each.metadata:
        return None, within
    return each.default_factory, f"{within}{each.metadata['group'] or each.name}."


def rows(kind: type[Any], within: str = "") -> tuple[Argument, ...]:
    """Return a dataclass's parameters in the order of its fields; `within` is the prefix of all names."""
    found: list[Argument] = []
    for each in fields(kind):
        inner, inside = _inside(within, each)
        if inner is not None:
            found += rows(inner, inside)
        elif "of" not in each.metadata:
            found.append(Argument(f"{within}{each.name}", as_default(each.default), **each.metadata))
    return tuple(found)


def filled(kind: type[P], values: Mapping[str, object], within: str = "") -> P:
    """Make a dataclass from parameters' values by name; missing ones have their defaults.

    Lists of strings become tuples, `NO_NAMES` an empty one.
    """
    given: dict[str, object] = {}
    for each in fields(kind):  # type: ignore[arg-type]  # no type says that it is a dataclass
        inner, inside = _inside(within, each)
        name = f"{within}{each.name}"
        if inner is not None:
            given[each.name] = filled(inner, values, inside)
        elif "of" in each.metadata:
            row = next(row for row in rows(kind, within) if row.name == within + each.metadata["of"])
            named = [each.name for each in arguments_beside(row, values.get)]
            given[each.name] = {name.removeprefix(within): values[name] for name in named if name in values}
        elif name in values:
            value = values[name]
            given[each.name] = (
                tuple(one for one in value if one not in NO_NAMES) if isinstance(value, list) else value
            )
    return kind(**given)


class Parameters(Generic[P]):
    """Declares the parameters of a dataclass on a node and reads them.

    A wrong value from the command line or a file does not end the process: `read` raises until a correct
    value is set.

    Args:
        node: gets the parameters.
        kind: the dataclass.
    """

    def __init__(self, node: Node, kind: type[P]) -> None:
        self._node = node
        self._kind = kind
        self._table: dict[str, Argument] = {}
        self._faults: dict[str, str] = {}
        self.frozen = False
        """While true, only live parameters can be set."""
        self.changed = False
        """A live parameter has been set since this was last made false."""
        self._own = {row.name for row in rows(kind)}
        for row in rows(kind):
            self._declare(row)
        self._check_names()
        for service in node.services:
            if service.srv_type in (SetParameters, SetParametersAtomically):
                service.callback = partial(_set_if_known, service.callback)
        node.add_on_set_parameters_callback(self._check)
        # Humble has no callback after setting: there, what passes `_check` counts as set.
        self._tells_afterwards = hasattr(node, "add_post_set_parameters_callback")
        if self._tells_afterwards:
            node.add_post_set_parameters_callback(self._note)

    def _declare(self, row: Argument) -> None:
        """Declare a parameter, and the arguments of the component that it names."""
        if row.name not in self._table:
            try:
                value = self._node.declare_parameter(row.name, row.default, _descriptor(row)).value
                fault = row.fault(value)
            except ParameterException:  # of another type, or out of range
                self._node.declare_parameter(row.name, row.default, _descriptor(row), ignore_override=True)
                fault = _refusal(row, self.value_beside(row.name))
            self._table[row.name] = row
            if fault is not None:
                self._faults[row.name] = fault
        if row.names is not None:
            for each in arguments_beside(row, lambda name: self._node.get_parameter(name).value):
                if each.name in self._own:
                    self._faults[row.name] = f"{each.name}: a parameter of the node, must be no argument too"
                else:
                    self._declare(each)

    def _check_names(self) -> None:
        """Warn of files without a section for this node, and of unknown parameters; refuse former names."""
        if "--params-file" in sys.argv:
            for file in unheeded(sys.argv, self._node.get_fully_qualified_name()):
                self._node.get_logger().warning(file)
        for name in getattr(self._node, "_parameter_overrides", {}):
            if name not in self._table and name != SIMULATED and not name.startswith(FOR_OTHERS):
                if now := _present_name(self._kind, name):
                    self._faults[name] = f"{name}: gone since 0.4.0, must be {now}"
                    continue
                near = difflib.get_close_matches(name, self._table, 1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self._table)}"
                was = gone(name) or gone(name.partition(".")[0])
                self._node.get_logger().warning(f"{name}{was}: no parameter of this node, ignored; {hint}")

    def value_beside(self, name: str) -> Any:
        """Return a value from the parameter files that the node does not declare; None without one."""
        override = getattr(self._node, "_parameter_overrides", {}).get(name)
        return None if override is None else override.value

    def read(self) -> P:
        """Return the current values.

        Raises:
            ParameterError: some values are wrong.
        """
        if self._faults:
            raise ParameterError("; ".join(self._faults.values()))
        return filled(self._kind, {name: self._node.get_parameter(name).value for name in self._table})

    def _check(self, parameters: list[Parameter]) -> SetParametersResult:
        for parameter in parameters:
            row = self._table.get(parameter.name)
            if row is None and parameter.name != SIMULATED:
                continue
            if self.frozen and not (row and row.live) and not self._is_as_before(parameter):
                reason = f"{parameter.name}: can be set only while the node is unconfigured"
                return SetParametersResult(successful=False, reason=reason)
            if row is None:
                continue
            fault = row.fault(parameter.value)
            if fault is not None:
                return SetParametersResult(successful=False, reason=fault)
        if not self._tells_afterwards:
            self._note(parameters)
        return SetParametersResult(successful=True)

    def _is_as_before(self, parameter: Parameter) -> bool:
        """Whether a parameter keeps its value, for example when a node's own dump is loaded."""
        before = self._node.get_parameter(parameter.name)
        return bool(before.type_ == parameter.type_ and before.value == parameter.value)

    def _note(self, parameters: list[Parameter]) -> None:
        """Record what has been set; `_check` cannot, because later callbacks may refuse it."""
        for parameter in parameters:
            row = self._table.get(parameter.name)
            if row is not None:
                self._faults.pop(row.name, None)
                self.changed = True
                if row.names is not None:
                    self._declare(row)


def _present_name(kind: type[Any], former: str) -> str | None:
    """Return the name that a parameter has now; None where it never had this one."""
    renamed: dict[str, str] = dict(getattr(kind, "renamed", ()))
    group, _, rest = former.partition(".")
    return renamed.get(former) or (f"{renamed[group + '.']}{rest}" if f"{group}." in renamed else None)


def _set_if_known(set_all: Callable[[Any, Any], Any], request: Any, response: Any) -> Any:
    """Refuse a parameter of an unknown type; rclpy would raise, and the node would end."""
    for parameter in request.parameters:
        kind = parameter.value.type
        if kind > LAST_TYPE:
            name = shortened(repr(parameter.name), SHOWN)
            refused = SetParametersResult(reason=f"{name}: type {kind}, must be one from 0 to {LAST_TYPE}")
            if isinstance(request, SetParameters.Request):
                response.results = [refused] * len(request.parameters)
            else:
                response.result = refused
            return response
    return set_all(request, response)
