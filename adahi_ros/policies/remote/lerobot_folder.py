# SPDX-License-Identifier: Apache-2.0
"""The folder that LeRobot wrote a policy to, and LeRobot itself, of any version from 0.4 on."""

from __future__ import annotations

from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from adahi_ros.core.files import read_json
from adahi_ros.policies.remote.lerobot_metadata import CONFIG, INSTALL, PROCESSORS, WEIGHTS, no_policy

BACKBONE = "pretrained_backbone_weights"


def checked_folder(beside: Path, folder: str) -> Path:
    """Return the folder of a policy.

    Raises:
        ValueError: it is another one; says which, and what to do.
    """
    path = beside / folder
    missing = [name for name in (CONFIG, WEIGHTS, *PROCESSORS) if not (path / name).is_file()]
    if not missing:
        return path
    raise ValueError(f"folder: {folder!r}, {no_policy(path, folder, missing[0])}")


def read_config(path: Path) -> Any:
    """Return a policy's configuration, also where another version of LeRobot wrote it.

    All weights come from the policy's own file, so it names none to download.

    Raises:
        ValueError: this LeRobot cannot use it; names the fields.
    """
    import draccus
    from lerobot.configs.policies import PreTrainedConfig

    values = read_json(path / CONFIG)
    types = PreTrainedConfig.get_known_choices()
    this = f"LeRobot {version('lerobot')}"
    if (kind := values.pop("type", None)) not in types:
        raise ValueError(f"{CONFIG}: type: {kind!r}, must be one that {this} has here: {', '.join(types)}")
    known = {each.name for each in fields(types[kind])}
    values = {name: value for name, value in values.items() if name in known or value is not None}
    if newer := sorted(values.keys() - known):
        raise ValueError(f"{CONFIG}: {', '.join(newer)}: saved by a newer LeRobot than {this}; {INSTALL}")
    try:
        config = draccus.decode(types[kind], values)
    except Exception as error:  # draccus hides LeRobot's own reason behind its own
        raise ValueError(f"{CONFIG}: {error.__cause__ or error}") from error
    if not config.input_features:
        allowed = "must name what the policy reads, as LeRobot's trainer writes it"
        raise ValueError(f"{CONFIG}: input_features: {config.input_features}, {allowed}")
    if hasattr(config, BACKBONE):
        setattr(config, BACKBONE, None)
    return config


def import_lerobot() -> None:
    """Import LeRobot with its plugins, even where torchvision was built for another torch than this one.

    Raises:
        ImportError: it is not installed; names the package to install.
    """
    try:
        import torchvision  # noqa: F401
    except RuntimeError:  # for CUDA, beside a torch without it: the two missing operators are never called
        for operator in ("nms", "qnms"):
            torch.library.define(
                f"torchvision::{operator}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            )
    except ImportError:
        pass  # LeRobot is then missing, too
    try:
        import lerobot.policies.factory  # noqa: F401
        from lerobot.utils.import_utils import register_third_party_plugins
    except ImportError as error:
        raise ImportError(f"{error}; the kind lerobot needs: {INSTALL}") from error
    register_third_party_plugins()  # packages lerobot_policy_*
