# SPDX-License-Identifier: Apache-2.0
"""The backend `int8`: weights and activations of eight bits, on ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from adahi_ros.policies.networks.onnx_cache import FULL, Session, opened

INT8 = ".int8.onnx"
"""Suffix of a network with eight bits."""


class _RowByRow:
    """Runs a network row by row.

    Quantised activations are scaled by the range of the whole batch: otherwise the result of one robot would
    depend on the other robots in the batch.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def run(self, outputs: Sequence[str], inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        rows = max(1, len(next(iter(inputs.values()))))
        made = [
            self._session.run(outputs, {name: values[row : row + 1] for name, values in inputs.items()})
            for row in range(rows)
        ]
        return made[0] if rows == 1 else [np.concatenate(each) for each in zip(*made, strict=True)]

    def get_inputs(self) -> Sequence[Any]:
        inputs: Sequence[Any] = self._session.get_inputs()
        return inputs


def int8_session(weights: Path, digest: str, export: Callable[[Path], None]) -> Session:
    """Open the network with weights and activations of eight bits, quantising the exported one first.

    A row's output is the same in every batch. Arguments, places and errors are those of
    `onnx_session`; it needs the package onnx, and torch where the network is not exported either.
    """

    def make(path: Path) -> None:
        from adahi_lab.papers.dyq_vla.quantization import quantize

        quantize(opened(weights, digest, FULL, export)[0], path)

    return _RowByRow(opened(weights, digest, INT8, make, "'adahi export --int8'")[1])
