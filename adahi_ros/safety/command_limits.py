# SPDX-License-Identifier: Apache-2.0
"""Limits of a whole command, by their keys in a file of limits. A new one is a file and a line in `LIMITS`.

They act last, on commands within the limits of each entry. So they never widen a limit: they only brake.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adahi_ros.core.registry import Registry
from adahi_ros.core.schema import Schema, checked
from adahi_ros.core.yaml_files import read_yaml

YAML_SUFFIXES = (".yaml", ".yml")
Judge = Callable[[np.ndarray, np.ndarray], bool]
"""Whether the robot may go from one command (A,), NaN where unknown, to another (A,)."""


@dataclass(frozen=True)
class CommandLimit(Schema, ABC):
    """One limit. A subclass is a frozen dataclass; its fields are the keys of its mapping in the file.

    Where its judge refuses, the robot brakes within all other limits, and `SafetyState` reports `workspace`.
    The judge checks each command, and the path on which the robot would brake from it.
    """

    @abstractmethod
    def judge(self, commanded: Mapping[str, str], folder: Path) -> Judge:
        """Return the judge of commands. It must let a robot that is outside return.

        Args:
            commanded: the A commanded entries, and the quantity of each, such as positions.
            folder: of the file of limits.

        Raises:
            ValueError: names the field, its value and what was allowed.
        """


LIMITS: Registry[type[CommandLimit]] = Registry(
    "adahi_ros.limits", {"workspace": "adahi_ros.safety.workspace:Workspace"}, CommandLimit
)
"""Keys of a file of limits, beside `limits`."""


def load_command_limits(path: Path, commanded: Mapping[str, str]) -> dict[str, Judge]:
    """Return the judges of commands, by the keys of a file of limits.

    Args:
        path: of the file; only our YAML can have them.
        commanded: as in `CommandLimit.judge`.

    Raises:
        FileNotFoundError: no such file.
        ValueError: names file, field, value and what was allowed.
    """
    values: Any = read_yaml(path) if path.suffix in YAML_SUFFIXES else None
    judges = {}
    for name in LIMITS if isinstance(values, dict) else ():
        if name in values:
            try:
                judges[name] = checked(LIMITS[name], values[name]).judge(commanded, path.parent)
            except ValueError as error:
                raise ValueError(f"{path}: {name}: {error}") from None
    return judges
