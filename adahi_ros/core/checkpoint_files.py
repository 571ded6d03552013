# SPDX-License-Identifier: Apache-2.0
"""Descriptions of checkpoints: JSON beside weights, which `tensor_files` reads. No pickle."""

from __future__ import annotations

from pathlib import Path

from adahi_ros.core.files import read_json
from adahi_ros.core.texts import abridged

FORMAT = 1


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged, or of another tokenizer; the message has file and reason.

    The message is shortened, since it may quote the file.
    """

    def __init__(self, message: str) -> None:
        super().__init__(abridged(message))


def kind_of(path: Path) -> str | None:
    """Return the kind of the checkpoint at `DIRECTORY/NAME`; None where it names none.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    kind = read_description(description_file(path)).get("kind")
    return kind if isinstance(kind, str) else None


def description_of_kind(path: Path, kind: str) -> tuple[Path, dict[str, object]]:
    """Return the description of a checkpoint at `DIRECTORY/NAME`, with or without suffix, and its file.

    Raises:
        CheckpointError: it is missing, damaged, or of another kind.
    """
    file = description_file(path)
    meta = read_description(file)
    if meta.get("kind") != kind:
        raise CheckpointError(f"{file}: kind: {meta.get('kind')!r}, must be {kind!r}")
    return file, meta


def description_file(path: Path) -> Path:
    """Return the JSON file of the checkpoint at `DIRECTORY/NAME`, with or without suffix."""
    return path if path.suffix == ".json" else path.with_name(path.name + ".json")


def read_description(path: Path) -> dict[str, object]:
    """Return the description of a checkpoint; raises CheckpointError where it is invalid."""
    try:
        value = read_json(path)
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such checkpoint") from None
    except ValueError as error:
        raise CheckpointError(str(error)) from None
    if value.get("format") != FORMAT:
        raise CheckpointError(f"{path}: format: must be {FORMAT}")
    return value
