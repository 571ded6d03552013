"""Runs a VQ-BeT with ONNX Runtime, which needs neither torch nor its start-up time on the robot."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnxruntime as ort

from adahi_ros.networks.checkpoint_files import CheckpointError
from adahi_ros.networks.onnx_files import DIGEST, content_of, hash_of, noted_hash, session_of
from adahi_ros.policy.vqbet.checkpoint import Checkpoint
from adahi_ros.policy.vqbet.code_policy import CodePolicy, Prediction


def cache_folder() -> Path:
    """Return where the user keeps what can be made anew."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "adahi_ros"


def onnx_session(checkpoint: Checkpoint) -> ort.InferenceSession:
    """Open the exported network of a checkpoint, exporting it first where that has not been done.

    The file beside the checkpoint is taken if it was made from these very weights, and its hash is noted;
    else one in the user's cache.

    Raises:
        CheckpointError: the exported file is damaged, or is not the one whose hash is noted; or there is
            none, and torch is not here to make it.
    """
    digest = checkpoint.digest()
    beside = checkpoint.weights.with_suffix(".onnx")
    if beside.is_file() and noted_hash(beside) is not None:
        session = session_of(beside)
        if session.get_modelmeta().custom_metadata_map.get(DIGEST) == digest:
            return session
    cached = cache_folder() / f"{digest}.onnx"
    if not cached.is_file() or hash_of(content_of(cached)) != noted_hash(cached):
        try:
            from adahi_ros.policy.vqbet.onnx_export import export
        except ImportError as error:
            raise CheckpointError(
                f"{checkpoint.weights}: not exported to ONNX yet, and this machine cannot ({error}); "
                f"copy the .onnx and the .json that 'adahi export' writes, or choose the torch backend"
            ) from None
        export(checkpoint, cached)
    return session_of(cached)


class OnnxPolicy(CodePolicy):
    """A `Policy` on ONNX Runtime; same output as `TorchPolicy` within 1e-4."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint.sizes, checkpoint.decoder, checkpoint.digest())
        self._session = onnx_session(checkpoint)

    def predict(self, windows: np.ndarray, goals: np.ndarray) -> Prediction:
        """See `CodePolicy.predict`."""
        logits, offsets = self._session.run(("logits", "offsets"), {"windows": windows, "goals": goals})
        return Prediction(logits, offsets)
