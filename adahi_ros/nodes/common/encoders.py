# SPDX-License-Identifier: Apache-2.0
"""An image encoder from a node's parameters, ready to encode at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adahi_ros.core.assets import ENCODERS, named
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.vision.encoder import Encoder, EncoderFiles, load_files

if TYPE_CHECKING:
    from adahi_ros.vision.visual_cache import CachedEncoder


def encoder_from(name: str) -> Encoder:
    """Load an image encoder, and let it encode once: the first time takes many times as long.

    Args:
        name: of one below checkpoints/encoders, or a path.

    Raises:
        ParameterError: it cannot be loaded; says why.
    """
    try:
        encoder = Encoder.load(named(name, ENCODERS))
        encoder.encode(np.zeros((1, *encoder.image_size, 3), dtype=np.uint8))
    except (ValueError, OSError) as error:
        raise ParameterError(f"encoder: {name!r}, cannot be loaded: {error}") from error
    return encoder


def cached_encoder_from(name: str) -> CachedEncoder:
    """Load an image encoder that keeps what has not changed. Arguments and errors as above."""
    from adahi_ros.vision.visual_cache import CachedEncoder  # few robots want one

    try:
        encoder = CachedEncoder(named(name, ENCODERS))
        encoder.encode(np.zeros((1, *encoder.image_size, 3), dtype=np.uint8))
    except (ValueError, OSError) as error:
        raise ParameterError(f"encoder_cache: of {name!r}, cannot be had: {error}") from error
    encoder.forget()
    return encoder


def encoder_files_from(name: str) -> EncoderFiles:
    """Read what an image encoder is, of a verifier: it is not run here. Arguments and errors as above."""
    try:
        return load_files(named(name, ENCODERS))
    except (ValueError, OSError) as error:
        raise ParameterError(f"encoder: {name!r}, cannot be read: {error}") from error
