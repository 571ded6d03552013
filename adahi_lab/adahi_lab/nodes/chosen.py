# SPDX-License-Identifier: Apache-2.0
"""Texts of launch files that depend on an argument."""

from __future__ import annotations

from collections.abc import Mapping

from launch.launch_context import LaunchContext
from launch.substitution import Substitution

from adahi_ros.core.schema import shown

BOOLEAN = ("true", "false", "True", "False")


class Chosen(Substitution):
    """The text for the value of an argument; launch's `PythonExpression` would run the value as Python.

    Args:
        argument: its name.
        texts: by value.
        default: value where the argument is not declared yet.

    Raises:
        ValueError: on use; the value has no text. Names the argument, its value and what is allowed.
    """

    def __init__(self, argument: str, texts: Mapping[str, str], default: str = "") -> None:
        super().__init__()
        self._argument, self._texts, self._default = argument, texts, default

    def describe(self) -> str:
        """Return what `ros2 launch --show-args` prints."""
        return f"by {self._argument}: " + ", ".join(
            f"{value!r} gives {text!r}" for value, text in self._texts.items()
        )

    def perform(self, context: LaunchContext) -> str:
        """See `Substitution`."""
        value = context.launch_configurations.get(self._argument, self._default)
        if value not in self._texts:
            allowed = ", ".join(map(repr, self._texts))
            raise ValueError(f"{self._argument}: {shown(value)}, must be one of {allowed}")
        return self._texts[value]
