# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that several verbs share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

from typer import CallbackParam, Option

from adahi_ros.core.assets import roots

SHIPPED = ("config", "checkpoints")  # verbs also write here


def is_shipped(path: Path) -> bool:
    """Whether this path exists and is a file shipped with the code."""
    path = path.resolve()
    return path.is_file() and any(
        path.is_relative_to((root / folder).resolve()) for root in roots() for folder in SHIPPED
    )


def replaceable(option: str, path: Path, overwrite: bool) -> Path:
    """Return the path of a file to write.

    Raises:
        ValueError: it is shipped with the package, and --overwrite is not given; names the option.
    """
    if is_shipped(path) and not overwrite:
        raise ValueError(f"{option}: {path} is shipped; must be another place, or give --overwrite")
    return path


def finite(param: CallbackParam, value: float | None) -> float | None:
    """Refuse NaN and infinity, which pass range checks."""
    if value is not None and not math.isfinite(value):
        raise ValueError(f"{param.name}: {value}, must be finite")
    return value


def each_bag(value: list[Path] | None) -> list[Path] | None:
    """Return bags with those in folders of bags, such as 'adahi record --episodes' writes."""
    from adahi_ros.bags.bag_files import bags_in

    return None if value is None else [bag for path in value for bag in bags_in(path)]


def number(help: str, least: float, most: float | None = None, name: str = "") -> Any:
    """Return an option for a finite number from `least` to `most`; `name` replaces that of the argument."""
    return Option(*([name] if name else []), min=least, max=most, callback=finite, help=help)


Overwrite = Annotated[bool, Option("--overwrite", help="Replace files that exist or are shipped.")]
Incomplete = Annotated[
    bool,
    Option("--incomplete", help="Read the readable part of bags that were cut off; report the rest."),
]
Namespace = Annotated[str, Option(help="Namespace of the robot.")]
ContractName = Annotated[str, Option("--contract", help="A shipped contract's name, or a YAML file.")]
