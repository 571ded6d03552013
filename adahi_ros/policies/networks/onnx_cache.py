# SPDX-License-Identifier: Apache-2.0
"""Exported networks: beside their weights, or in the user's cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnxruntime as ort

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.policies.networks.onnx_files import DIGEST, content_of, hash_of, noted_hash, session_of

FULL = ".onnx"
"""Suffix of exported networks."""


def cache_folder() -> Path:
    """Return the user's folder for files that can be rebuilt."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "adahi_ros"


class Session(Protocol):
    """Runs an exported network."""

    def run(self, outputs: Sequence[str], inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Return the outputs of these names."""

    def get_inputs(self) -> Sequence[Any]:
        """Return the inputs, each with a `name`."""


OpenSession = Callable[[Path, str, Callable[[Path], None]], Session]
"""`onnx_session`, or another of `SESSIONS`."""


def onnx_session(weights: Path, digest: str, export: Callable[[Path], None]) -> ort.InferenceSession:
    """Open the exported network of a checkpoint, exporting it first where necessary.

    The file beside the checkpoint is used if it was made from these weights and its hash is noted;
    otherwise one in the user's cache.

    Args:
        weights: the checkpoint's.
        digest: of the network.
        export: writes the network to a path; raises ImportError without torch.

    Raises:
        CheckpointError: the exported file is damaged or does not match its noted hash; or there is
            none, and torch is not installed to export it.
    """
    return opened(weights, digest, FULL, export)[1]


def opened(
    weights: Path, digest: str, suffix: str, make: Callable[[Path], None], by: str = "an export"
) -> tuple[Path, ort.InferenceSession]:
    """Return a network's file with a suffix, made if missing, and the session that runs it.

    Args:
        weights: the checkpoint's.
        digest: of the network.
        suffix: of the file beside the checkpoint, or of that in the user's cache.
        make: writes it to a path; raises ImportError where a package is missing.
        by: what writes it beside the checkpoint, for the error.

    Raises:
        CheckpointError: as `onnx_session`.
    """
    beside = weights.with_suffix(suffix)
    if beside.is_file() and noted_hash(beside) is not None:
        session = session_of(beside)
        if session.get_modelmeta().custom_metadata_map.get(DIGEST) == digest:
            return beside, session
    cached = cache_folder() / f"{digest}{suffix}"
    if not cached.is_file() or hash_of(content_of(cached)) != noted_hash(cached):
        try:
            make(cached)
        except ImportError as error:
            raise CheckpointError(
                f"{weights}: not exported to ONNX yet, and this machine cannot ({error}); "
                f"copy the {suffix} and the .json that {by} writes, or choose the torch backend"
            ) from None
    return cached, session_of(cached)
