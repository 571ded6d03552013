# SPDX-License-Identifier: Apache-2.0
"""Writes an encoder's three files."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from adahi_lab.encoders.convnet import KeypointNet
from adahi_lab.encoders.lerobot_encoder import RgbEncoder
from adahi_lab.encoders.pixels import Pixels
from adahi_lab.encoders.resnet import ResNet18
from adahi_ros.core.written_files import save_json
from adahi_ros.policies.networks.onnx_export import write_onnx
from adahi_ros.vision.encoder import FORMAT, KIND, EncoderFiles

Network = KeypointNet | Pixels | ResNet18

AnyNetwork = Network | RgbEncoder
"""Architectures that can be written: those trained here, and LeRobot's."""

ARCHITECTURES: dict[str, type[Network]] = {"keypoints": KeypointNet, "pixels": Pixels, "resnet18": ResNet18}


def make_network(config: dict[str, Any]) -> Network:
    """Return an untrained network.

    Args:
        config: `architecture`, a key of `ARCHITECTURES`, `image_size`, and the sizes of its layers.

    Raises:
        ValueError: no such architecture or size; names field, value and what is allowed.
    """
    sizes = dict(config)
    name = sizes.pop("architecture")
    if name not in ARCHITECTURES:
        raise ValueError(f"architecture: {name!r}, must be one of {', '.join(ARCHITECTURES)}")
    try:
        return ARCHITECTURES[name](**sizes)
    except TypeError as error:
        raise ValueError(f"size: {sizes}, must be what '{name}' takes ({error})") from None


def save_encoder(
    path: Path, network: AnyNetwork, config: dict[str, Any], training: dict[str, Any]
) -> EncoderFiles:
    """Write the weights, their description and the network as ONNX.

    Args:
        path: the files' common name, without suffix.
        network: in eval mode.
        config: the argument of `make_network`.
        training: how it was made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:  # a stopped run keeps the old files
        weights = Path(scratch) / f"{path.name}.safetensors"
        save_file({name: value.contiguous() for name, value in network.state_dict().items()}, weights)
        files = EncoderFiles(weights, config, network.features, training)
        description = {
            "format": FORMAT,
            "kind": KIND,
            "fingerprint": files.digest(),
            "features": files.features,
            "config": config,
            "training": training,
        }
        save_json(weights.with_suffix(".json"), description)
        # It only ever runs on one frame at a time.
        example = (torch.zeros(1, *config["image_size"], 3, dtype=torch.uint8),)
        names = {"input_names": ["images"], "output_names": ["features"]}
        write_onnx(network, example, weights.with_suffix(".onnx"), files.digest(), **names)
        for made in sorted(Path(scratch).iterdir()):
            made.replace(path.parent / made.name)
    return replace(files, weights=path.parent / weights.name)
