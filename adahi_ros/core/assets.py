# SPDX-License-Identifier: Apache-2.0
"""Finds the files beside the code: launch, config, checkpoints."""

from __future__ import annotations

import os
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from adahi_ros.core.missing_assets import not_found

GROUP = "adahi_ros.assets"
"""Entry points of packages with files that are found as ours are; the value is the package's name."""
DATA = "adahi_checkpoints"  # a package without code
CHECKPOINTS = "checkpoints"
ENCODERS = "checkpoints/encoders"


@cache
def _added() -> tuple[str, ...]:
    return tuple(sorted({entry.module.partition(".")[0] for entry in entry_points(group=GROUP)}))


def _checkout(package: str) -> list[Path]:
    """Return the folder of a package's checkout; none if it is installed elsewhere."""
    spec = find_spec(package)
    places = (spec.submodule_search_locations if spec else None) or []
    folders = (Path(place).resolve().parent for place in places)  # resolved: colcon links to the source
    return [folder for folder in folders if (folder / "package.xml").is_file()]


def roots() -> list[Path]:
    """Return the checkouts or, installed, the folders below which shipped files may be."""
    checkout, found, packages = Path(__file__).resolve().parents[2], [], ["adahi_ros", *_added(), DATA]
    if (checkout / "package.xml").is_file():  # others may be installed, as in a sourced workspace
        found = [checkout, *(folder for package in _added() for folder in _checkout(package))]
        packages = [package for package in _added() if not _checkout(package)]
    # Installed at PREFIX/lib/pythonX.Y/site-packages (or dist-packages): share/ is at PREFIX.
    sourced = filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep))
    shares = [prefix / "share" for prefix in (*Path(__file__).parents, *map(Path, sourced))]
    return found + [path for share in shares for name in packages if (path := share / name).is_dir()]


def asset(relative: str) -> Path:
    """Return the file or folder at this path below a checkout or, installed, below share/PACKAGE.

    Args:
        relative: such as "config/verifier.yaml" or "checkpoints/ball".

    Raises:
        FileNotFoundError: there is no such file; the message names the searched places and, for a checkpoint,
            the command that installs it.
    """
    for root in roots():
        if os.path.exists(root / relative):  # pathlib's would raise for a name that is too long
            return root / relative
    raise not_found(relative, roots())


def asset_files(folder: str, pattern: str = "*.yaml") -> list[Path]:
    """Return the shipped files in a folder, such as "config/contracts", of all packages; sorted by name."""
    found = {path for root in roots() for path in (root / folder).glob(pattern)}
    return sorted(found, key=lambda each: (each.name, each))


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
