# SPDX-License-Identifier: Apache-2.0
"""Loads an image encoder from a node's parameters, and runs it once."""

from __future__ import annotations

import numpy as np

from adahi_ros.core.assets import ENCODERS, named
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.vision.encoder import Encoder, EncoderFiles, load_files


def encoder_from(name: str) -> Encoder:
    """Load an image encoder, and run it once, because the first run is slow.

    Args:
        name: below checkpoints/encoders, or a path.

    Raises:
        ParameterError: it cannot be loaded; has the reason.
    """
    try:
        encoder = Encoder.load(named(name, ENCODERS))
        encoder.encode(np.zeros((1, *encoder.image_size, 3), dtype=np.uint8))
    except (ValueError, OSError) as error:
        raise ParameterError(f"encoder: {name!r}, cannot be loaded: {error}") from error
    return encoder


def encoder_files_from(name: str) -> EncoderFiles:
    """Read the files of an encoder that only the verifier runs. Arguments and errors as above."""
    try:
        return load_files(named(name, ENCODERS))
    except (ValueError, OSError) as error:
        raise ParameterError(f"encoder: {name!r}, cannot be read: {error}") from error
