# SPDX-License-Identifier: Apache-2.0
"""The error for shipped files that are not there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from adahi_ros.core.texts import abridged

CHECKPOINTS = "checkpoints"


def not_found(relative: str, searched: Sequence[Path]) -> FileNotFoundError:
    """Return the error for a file or folder that is not below the folders that were searched."""
    places = ", ".join(map(str, searched)) or f"no share/adahi_ros above {__file__}"
    how = how_to_get(relative, searched)
    return FileNotFoundError(f"{abridged(relative)}: not found (looked in {places}){how}")


def how_to_get(relative: str, searched: Sequence[Path]) -> str:
    """Return the end of a message about a missing file: how to install a checkpoint; else nothing."""
    in_checkout = any((root / "setup.py").is_file() for root in searched)
    if in_checkout or not Path(relative).is_relative_to(CHECKPOINTS):
        return ""
    return (
        "; checkpoints are a package of their own, adahi_checkpoints. Build it, and source the workspace "
        f"again: colcon build --base-paths SOURCE/{CHECKPOINTS}, where SOURCE is a checkout of adahi_ros"
    )
