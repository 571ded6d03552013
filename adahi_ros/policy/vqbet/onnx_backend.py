"""Runs a VQ-BeT with ONNX Runtime, which needs neither torch nor its start-up time on the robot."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import (
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    NotImplemented,
    RuntimeException,
)

from adahi_ros.files import LARGEST_WEIGHTS, parse_json, read_bytes, save_json
from adahi_ros.policy.interface import Prediction
from adahi_ros.policy.vqbet.checkpoint import Checkpoint, CheckpointError

DIGEST = "network_digest"
HASH = "onnx_sha256"
BROKEN = (Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, NotImplemented, RuntimeException)


def note_hash(path: Path) -> None:
    """Write the hash of an ONNX file into the JSON beside it, which may say more."""
    description = path.with_suffix(".json")
    said = parse_json(read_bytes(description)) if description.is_file() else {}
    save_json(description, {**said, HASH: _hash(_content(path))})


def noted_hash(path: Path) -> str | None:
    """Return what the JSON beside an ONNX file says that its hash is; None where it says nothing.

    Raises:
        CheckpointError: the JSON is none.
    """
    description = path.with_suffix(".json")
    try:
        said = parse_json(read_bytes(description))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{description}: not JSON ({error})") from None
    return said.get(HASH) if isinstance(said, dict) else None


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _content(path: Path) -> bytes:
    try:
        return read_bytes(path, LARGEST_WEIGHTS)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: not an ONNX file ({error})") from None


def session_of(path: Path) -> ort.InferenceSession:
    """Open an ONNX file, to be run by one thread: the very one that the JSON beside it tells of.

    Raises:
        CheckpointError: it is another, or none.
    """
    content, told = _content(path), noted_hash(path)
    if _hash(content) != told:
        raise CheckpointError(
            f"{path}: not the file that {path.with_suffix('.json').name} tells of: its SHA-256 is "
            f"{_hash(content)}, {HASH} there is {told}; copy both, or make both anew"
        )
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # these networks are too small to share out
    options.log_severity_level = 3
    try:
        return ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except BROKEN as error:
        raise CheckpointError(f"{path}: not an ONNX file; delete it to have it made anew ({error})") from None


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
    if not cached.is_file() or _hash(_content(cached)) != noted_hash(cached):
        try:
            from adahi_ros.policy.vqbet.onnx_export import export
        except ImportError as error:
            raise CheckpointError(
                f"{checkpoint.weights}: not exported to ONNX yet, and this machine cannot ({error}); "
                f"copy the .onnx and the .json that 'adahi export' writes, or choose the torch backend"
            ) from None
        export(checkpoint, cached)
    return session_of(cached)


class OnnxPolicy:
    """A `Policy` on ONNX Runtime; same output as `TorchPolicy` within 1e-4."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.spec = checkpoint.spec
        self.decoder = checkpoint.decoder
        self.digest = checkpoint.digest()
        self._session = onnx_session(checkpoint)

    def predict(self, windows: np.ndarray, goals: np.ndarray) -> Prediction:
        """See `Policy.predict`."""
        logits, offsets = self._session.run(("logits", "offsets"), {"windows": windows, "goals": goals})
        return Prediction(logits, offsets)
