# SPDX-License-Identifier: Apache-2.0
"""JSON files of LeRobot's checkpoints."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TypeVar

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.files import read_json
from adahi_ros.core.schema import Schema, checked

T = TypeVar("T", bound="LeRobotSchema")
CONFIG = "config.json"
ACTION = "action"


class LeRobotSchema(Schema):
    """A `Schema` of the fields used here; LeRobot writes more."""

    @classmethod
    def prepared(cls, values: dict[object, object]) -> dict[object, object]:
        """See `Schema`."""
        names = {each.name.rstrip("_") for each in fields(cls)}  # type: ignore[arg-type]
        return {name: value for name, value in values.items() if name in names}


def read_config(kind: type[T], path: Path) -> T:
    """Return the content of a JSON file.

    Raises:
        CheckpointError: it is missing, or has other content; names file, field and value.
    """
    try:
        made: T = checked(kind, read_json(path))
        return made
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such file; expected the folder of a LeRobot policy") from None
    except ValueError as error:
        fault = str(error).removeprefix(f"{path}: ")
        raise CheckpointError(f"{path}: {fault}") from None
