# SPDX-License-Identifier: Apache-2.0
"""Conditions that must hold before a replica loads its policy, by name; an entry point of another package."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adahi_ros.core.registry import Registry
from adahi_ros.core.schema import Schema, checked


@dataclass(frozen=True)
class StartCondition(Schema, ABC):
    """A condition. A subclass is a frozen dataclass; its fields are keys beside `name` in a fleet's file."""

    @abstractmethod
    def check(self, checkpoint: Path) -> None:
        """Raise any exception where a replica with this policy must not start; it says why."""


START_CONDITIONS: Registry[type[StartCondition]] = Registry("adahi_ros.start_conditions", {}, StartCondition)


def start_condition(values: Mapping[Any, Any]) -> StartCondition:
    """Return the condition of a mapping with its name and fields.

    Raises:
        ValueError: there is none of this name, or a field is wrong; names it.
    """
    name = values.get("name")
    if not isinstance(name, str) or name not in START_CONDITIONS:
        raise ValueError(START_CONDITIONS.refusal("start_condition.name", name))
    fields = {key: value for key, value in values.items() if key != "name"}
    made: StartCondition = checked(START_CONDITIONS[name], fields, "start_condition")
    return made
