# SPDX-License-Identifier: Apache-2.0
"""The frozen encoder: from frames to features, on ONNX Runtime alone.

A checkpoint is three files: `NAME.safetensors` with the weights, `NAME.json` with their description and
training, and `NAME.onnx`, the network that runs; the JSON has its hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.files import LARGEST_WEIGHTS, parse_json, read_bytes
from adahi_ros.policies.networks.network_checkpoint import network_digest
from adahi_ros.policies.networks.onnx_files import DIGEST, session_of

FORMAT = 1
KIND = "encoder"
MOST_FEATURES = 100_000
MOST_PIXELS = 1 << 24
LARGEST = float(np.finfo(np.float16).max)


@dataclass(frozen=True)
class EncoderFiles:
    """An encoder on disk, read but not yet running.

    Attributes:
        weights: path of its safetensors file.
        config: architecture, image size and the sizes of its layers.
        features: F, number of features per frame.
        training: how it was made.
    """

    weights: Path
    config: dict[str, Any]
    features: int
    training: dict[str, Any]

    @property
    def image_size(self) -> tuple[int, int]:
        """Rows and columns of a frame."""
        rows, columns = self.config["image_size"]
        return rows, columns

    @property
    def fingerprint(self) -> str:
        """See `digest`."""
        return self.digest()

    def digest(self) -> str:
        """Return 16 hexadecimal digits of the SHA-256 of the network: its configuration and weights."""
        return network_digest(self.config, read_bytes(self.weights, LARGEST_WEIGHTS))


def load_files(path: Path) -> EncoderFiles:
    """Read an encoder's description from `NAME.json`, or from the same path with another or no suffix.

    Raises:
        CheckpointError: it is missing, damaged, or not of the weights beside it.
    """
    path = path if path.suffix in (".json", ".onnx", ".safetensors") else path.with_name(f"{path.name}.json")
    description, weights = path.with_suffix(".json"), path.with_suffix(".safetensors")
    for needed in (description, weights):
        if not needed.is_file():
            raise CheckpointError(f"{needed}: no such checkpoint")
    try:
        meta = parse_json(read_bytes(description))
        if (meta["format"], meta["kind"]) != (FORMAT, KIND):
            raise ValueError(f"format, kind: {meta['format']}, {meta['kind']}, must be {FORMAT}, {KIND}")
        features = meta["features"]
        if type(features) is not int or not 1 <= features <= MOST_FEATURES:
            raise ValueError(f"features: {features!r}, must be an integer from 1 to {MOST_FEATURES}")
        size = meta["config"]["image_size"]
        sound = isinstance(size, list) and all(type(side) is int and side >= 1 for side in size)
        if not sound or len(size) != 2 or size[0] * size[1] > MOST_PIXELS:
            raise ValueError(f"image_size: {size!r}, must be rows and columns, {MOST_PIXELS} pixels at most")
        files = EncoderFiles(weights, dict(meta["config"]), features, meta.get("training", {}))
        noted = meta["fingerprint"]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{description}: not the description of an encoder ({error})") from None
    if noted != files.digest():
        raise CheckpointError(
            f"{description}: fingerprint: {noted}, the weights beside it are {files.digest()}"
        )
    return files


class Encoder:
    """Turns frames into features, one frame at a time: the same bits in every batch.

    Its features have the precision of float16, so that they are sent in two bytes each without loss.

    Attributes:
        features: F.
        image_size: rows and columns of a frame.
        fingerprint: 16 hexadecimal digits of its configuration and weights.
    """

    def __init__(self, session: ort.InferenceSession, files: EncoderFiles) -> None:
        self.features = files.features
        self.image_size = files.image_size
        self.fingerprint = files.fingerprint
        self._session = session

    @classmethod
    def load(cls, path: Path) -> Encoder:
        """Open a checkpoint, by the path of any of its files or their common name.

        Raises:
            CheckpointError: a file is missing or damaged, or the files are not of one encoder.
        """
        files = load_files(path)
        network = files.weights.with_suffix(".onnx")
        if not network.is_file():
            raise CheckpointError(f"{network}: no such checkpoint")
        session = session_of(network)
        made_of = session.get_modelmeta().custom_metadata_map.get(DIGEST)
        if made_of != files.digest():
            raise CheckpointError(
                f"{network}: made of weights {made_of}, those beside it are {files.digest()}"
            )
        shapes = [each.shape for each in (*session.get_inputs(), *session.get_outputs())]
        expected = [[1, *files.config["image_size"], 3], [1, files.features]]
        if shapes != expected:
            raise CheckpointError(
                f"{network}: of shapes {shapes}, must be {expected}, as its description says"
            )
        return cls(session, files)

    def encode(self, images: np.ndarray) -> np.ndarray:
        """Return the features (B, F) float32 of images (B, H, W, 3) uint8.

        Raises:
            ValueError: wrong shape or type.
        """
        frame = (*self.image_size, 3)
        if images.ndim != 4 or images.shape[1:] != frame or images.dtype != np.uint8:
            raise ValueError(f"images: {images.dtype} {images.shape}, must be uint8 (B, {str(frame)[1:]}")
        features = np.empty((len(images), self.features), dtype=np.float32)
        for row in range(len(images)):
            (features[row],) = self._session.run(("features",), {"images": images[row : row + 1]})[0]
        return np.clip(features, -LARGEST, LARGEST).astype(np.float16).astype(np.float32)
