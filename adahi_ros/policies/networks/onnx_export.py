# SPDX-License-Identifier: Apache-2.0
"""Export of networks from torch to ONNX."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import torch

from adahi_ros.core.registry import at_place
from adahi_ros.core.written_files import replacing
from adahi_ros.policies.networks.network_checkpoint import NetworkCheckpoint
from adahi_ros.policies.networks.onnx_files import DIGEST, note_hash

NOTES = ("metadata_props", "doc_string")


def export(checkpoint: NetworkCheckpoint[Any], path: Path) -> None:
    """Write the network of a checkpoint as one ONNX file with a free batch size.

    The file names its weights, so that a stale one is never run; the JSON beside it gets its hash, so that
    no other file is run.

    Raises:
        CheckpointError: the weights are damaged or do not fit the configuration.
    """
    inputs, batch = checkpoint.inputs(), torch.export.Dim("batch")
    free = checkpoint.free_sizes()
    write_onnx(
        at_place(checkpoint.network)(checkpoint),
        # Two rows: with one, the exporter would take the batch size for a constant.
        tuple(torch.zeros(2, *shape) for shape in inputs.values()),
        path,
        checkpoint.digest(),
        input_names=list(inputs),
        output_names=list(checkpoint.outputs),
        dynamic_shapes=tuple(
            {0: batch, **{axis: torch.export.Dim(size) for axis, size in free.get(name, {}).items()}}
            for name in inputs
        ),
    )


def write_onnx(
    network: torch.nn.Module, example: tuple[torch.Tensor, ...], path: Path, digest: str, **how: Any
) -> None:
    """Write a network as one ONNX file, and its hash into the JSON beside it.

    Args:
        network: in eval mode.
        example: of its inputs.
        path: of the file.
        digest: of its weights.
        how: further arguments of `torch.onnx.export`.

    Raises:
        RuntimeError: torch exports nothing.
    """
    exporter_log = logging.getLogger("torch.onnx")
    level = exporter_log.level
    exporter_log.setLevel(logging.ERROR)  # it warns of packages that are not used here
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            program = torch.onnx.export(network, example, dynamo=True, verbose=False, **how)
    finally:
        exporter_log.setLevel(level)
    if program is None:
        raise RuntimeError(f"{path}: torch exported nothing")
    proto = program.model_proto
    _strip(proto)
    onnx.helper.set_model_props(proto, {DIGEST: digest})
    with replacing(path) as partial:
        onnx.save(proto, partial)
    note_hash(path)


def _strip(message: Any) -> None:
    """Remove the exporter's notes, which name files of this machine, from a model and all of its parts."""
    for field, value in message.ListFields():
        if field.name in NOTES:
            message.ClearField(field.name)
        elif field.message_type is not None:
            for part in value if isinstance(value, Sequence) else (value,):
                _strip(part)
