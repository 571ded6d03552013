# SPDX-License-Identifier: Apache-2.0
"""ONNX files, and the JSON beside each, which has the hash of its ONNX file."""

from __future__ import annotations

import hashlib
from pathlib import Path

import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import (
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    NotImplemented,
    RuntimeException,
)

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.files import LARGEST_WEIGHTS, parse_json, read_bytes
from adahi_ros.core.written_files import save_json

DIGEST = "network_digest"


HASH = "onnx_sha256"


BROKEN = (Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, NotImplemented, RuntimeException)


def note_hash(path: Path) -> None:
    """Write the hash of an ONNX file into the JSON beside it, which may have more keys."""
    description = path.with_suffix(".json")
    described = parse_json(read_bytes(description)) if description.is_file() else {}
    save_json(description, {**described, HASH: hash_of(content_of(path))})


def noted_hash(path: Path) -> str | None:
    """Return the hash of an ONNX file according to the JSON beside it; None where it has none.

    Raises:
        CheckpointError: the file is not JSON.
    """
    description = path.with_suffix(".json")
    try:
        described = parse_json(read_bytes(description))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{description}: not JSON ({error})") from None
    return described.get(HASH) if isinstance(described, dict) else None


def hash_of(content: bytes) -> str:
    """Return the hash of an ONNX file's content, as the JSON beside it has it."""
    return hashlib.sha256(content).hexdigest()


def content_of(path: Path) -> bytes:
    """Read an ONNX file.

    Raises:
        CheckpointError: it cannot be read, or is too large.
    """
    try:
        return read_bytes(path, LARGEST_WEIGHTS)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: not an ONNX file ({error})") from None


def session_of(path: Path) -> ort.InferenceSession:
    """Open an ONNX file to be run by one thread, after a check of the hash in the JSON beside it.

    Raises:
        CheckpointError: the hash differs, or it is no ONNX file.
    """
    content, noted = content_of(path), noted_hash(path)
    if hash_of(content) != noted:
        raise CheckpointError(
            f"{path}: not the file that {path.with_suffix('.json').name} tells of: its SHA-256 is "
            f"{hash_of(content)}, {HASH} there is {noted}; copy both, or export both again"
        )
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # these networks are too small for several threads
    options.log_severity_level = 3
    try:
        return ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except BROKEN as error:
        raise CheckpointError(f"{path}: not an ONNX file; delete it to export it again ({error})") from None
