# SPDX-License-Identifier: Apache-2.0
"""Finds the files beside the code: launch, config, checkpoints."""

from __future__ import annotations

import os
from pathlib import Path

from adahi_ros.core.missing_assets import not_found

PACKAGES = "adahi_ros", "adahi_checkpoints"  # the second one has the checkpoints that the first leaves out
CHECKPOINTS = "checkpoints"
ENCODERS = "checkpoints/encoders"


def roots() -> list[Path]:
    """Return the checkout alone or, installed, the folders below which shipped files may be."""
    checkout = Path(__file__).resolve().parents[2]  # resolved: colcon --symlink-install links to the source
    if (checkout / "package.xml").is_file():
        return [checkout]
    # Installed at PREFIX/lib/pythonX.Y/site-packages (or dist-packages): share/ is at PREFIX.
    sourced = [prefix for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix]
    prefixes = [*Path(__file__).parents, *map(Path, sourced)]
    return [path for at in prefixes for name in PACKAGES if (path := at / "share" / name).is_dir()]


def asset(relative: str) -> Path:
    """Return the file or folder at this path below the checkout or, installed, below share/adahi_ros.

    Checkpoints are also found in the package adahi_checkpoints.

    Args:
        relative: such as "config/ball.yaml" or "checkpoints/ball".

    Raises:
        FileNotFoundError: there is no such file; the message names the searched places and, for a checkpoint,
            the command that installs it.
    """
    for root in roots():
        if os.path.exists(root / relative):  # pathlib's would raise for a name that is too long
            return root / relative
    raise not_found(relative, roots())


def named(name: str, folder: str) -> Path:
    """Return the path of a name in a parameter file or a contract.

    Args:
        name: of a checkpoint, such as "ball/draft"; a relative one is below the folder.
        folder: of the package's, `CHECKPOINTS` or `ENCODERS`.

    Raises:
        FileNotFoundError: the name is relative, and its folder is not there.
    """
    path = Path(os.path.expanduser(name))  # pathlib's would raise for an unknown user
    return path if path.is_absolute() else asset(str(folder / path.parent)) / path.name


def shipped(relative: str) -> bool:
    """Whether there is a file or folder at this path; see `asset`."""
    return any(os.path.exists(root / relative) for root in roots())
