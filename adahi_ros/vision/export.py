"""Writes an encoder's three files."""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any

import onnx
import torch
from safetensors.torch import save_file

from adahi_ros.policy.lerobot_encoder import RgbEncoder
from adahi_ros.policy.onnx_backend import DIGEST
from adahi_ros.policy.onnx_export import _strip
from adahi_ros.vision.convnet import KeypointNet
from adahi_ros.vision.encoder import EncoderFiles
from adahi_ros.vision.resnet import ResNet18

Network = KeypointNet | ResNet18

AnyNetwork = Network | RgbEncoder
"""What can be written: those that are trained here, and LeRobot's."""

ARCHITECTURES: dict[str, type[Network]] = {"keypoints": KeypointNet, "resnet18": ResNet18}


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
        config: what `make_network` made it of.
        training: how it was made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    weights = path.with_name(f"{path.name}.safetensors")
    save_file({name: value.contiguous() for name, value in network.state_dict().items()}, weights)
    files = EncoderFiles(weights, config, network.features, training)
    files.save_description()
    _export(network, files)
    return files


def _export(network: AnyNetwork, files: EncoderFiles) -> None:
    """Write the network as one ONNX file, which names the weights that it was made from."""
    # A frame at a time is all that is ever asked of it.
    example = torch.zeros(1, *files.config["image_size"], 3, dtype=torch.uint8)
    exporter_log = logging.getLogger("torch.onnx")
    level = exporter_log.level
    exporter_log.setLevel(logging.ERROR)  # it warns of packages that nothing here uses
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                network,
                (example,),
                input_names=["images"],
                output_names=["features"],
                dynamo=True,
                verbose=False,
            )
    finally:
        exporter_log.setLevel(level)
    if program is None:
        raise RuntimeError(f"{files.weights}: torch exported nothing")
    proto = program.model_proto
    _strip(proto)
    onnx.helper.set_model_props(proto, {DIGEST: files.digest()})
    with tempfile.TemporaryDirectory(dir=files.weights.parent) as scratch:
        partial = Path(scratch) / "encoder.onnx"
        onnx.save(proto, partial)
        partial.replace(files.weights.with_suffix(".onnx"))  # a kill during the write leaves no half file
