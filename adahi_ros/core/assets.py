# SPDX-License-Identifier: Apache-2.0
"""Finds the files beside the code: launch, config, checkpoints."""

from __future__ import annotations

from pathlib import Path

PACKAGE = "adahi_ros"
CHECKPOINTS = "checkpoints"
ENCODERS = "checkpoints/encoders"
SHIPPED = ("config", "checkpoints")  # verbs also write here


def _roots() -> list[Path]:
    module = Path(__file__)
    checkout = module.resolve().parents[2]  # resolved: colcon --symlink-install links to the source
    if (checkout / "package.xml").is_file():
        return [checkout]
    # Installed at PREFIX/lib/pythonX.Y/site-packages (or dist-packages): share/ is at PREFIX.
    return [parent / "share" / PACKAGE for parent in module.parents]


def asset(relative: str) -> Path:
    """Return the file or folder at this path below the checkout or, installed, below share/adahi_ros.

    Args:
        relative: such as "config/ball.yaml" or "checkpoints/ball".

    Raises:
        FileNotFoundError: there is no such file; the message names the searched places.
    """
    roots = [root for root in _roots() if root.is_dir()]
    for root in roots:
        if (root / relative).exists():
            return root / relative
    places = ", ".join(map(str, roots)) or f"no share/{PACKAGE} above {__file__}"
    raise FileNotFoundError(f"{relative}: not found (looked in {places})")


def named(name: str, folder: str) -> Path:
    """Return the path of a name in a parameter file or a contract.

    Args:
        name: of a checkpoint, such as "ball/draft"; a relative one is below the folder.
        folder: of the package's, `CHECKPOINTS` or `ENCODERS`.

    Raises:
        FileNotFoundError: the name is relative, and there is no such folder.
    """
    path = Path(name).expanduser()
    return path if path.is_absolute() else asset(folder) / path


def is_shipped(path: Path) -> bool:
    """Whether this path exists and is a file shipped with the code."""
    path = path.resolve()
    return path.is_file() and any(
        path.is_relative_to((root / folder).resolve()) for root in _roots() for folder in SHIPPED
    )


def shipped(relative: str) -> bool:
    """Whether there is a file or folder at this path; see `asset`."""
    return any((root / relative).exists() for root in _roots())
