"""Exported networks: beside their weights, or in the user's cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import onnxruntime as ort

from adahi_ros.networks.checkpoint_files import CheckpointError
from adahi_ros.networks.onnx_files import DIGEST, content_of, hash_of, noted_hash, session_of


def cache_folder() -> Path:
    """Return where the user keeps what can be made anew."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "adahi_ros"


def onnx_session(weights: Path, digest: str, export: Callable[[Path], None]) -> ort.InferenceSession:
    """Open the exported network of a checkpoint, exporting it first where that has not been done.

    The file beside the checkpoint is taken if it was made from these very weights, and its hash is noted;
    else one in the user's cache.

    Args:
        weights: the checkpoint's.
        digest: of the network.
        export: writes the network to a path; raises ImportError where torch is not here.

    Raises:
        CheckpointError: the exported file is damaged, or is not the one whose hash is noted; or there is
            none, and torch is not here to make it.
    """
    beside = weights.with_suffix(".onnx")
    if beside.is_file() and noted_hash(beside) is not None:
        session = session_of(beside)
        if session.get_modelmeta().custom_metadata_map.get(DIGEST) == digest:
            return session
    cached = cache_folder() / f"{digest}.onnx"
    if not cached.is_file() or hash_of(content_of(cached)) != noted_hash(cached):
        try:
            export(cached)
        except ImportError as error:
            raise CheckpointError(
                f"{weights}: not exported to ONNX yet, and this machine cannot ({error}); "
                f"copy the .onnx and the .json that 'adahi export' writes, or choose the torch backend"
            ) from None
    return session_of(cached)
