# SPDX-License-Identifier: Apache-2.0
"""Tokens of a chunk of actions by each tokenizer of token policies, and what they lose.

    .venv/bin/python benchmarks/action_tokenizers.py TASK [--episodes 100]

Tokenizers are made from the first half of the expert's episodes, and measured on the second half.
"""

from __future__ import annotations

import time
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.lab.tasks.demonstrations import collect_parallel
from adahi_ros.lab.training.token_training import codec_of
from adahi_ros.policies.networks.step_dataset import action_chunks
from adahi_ros.policies.tokens.token_checkpoint import CodecSizes

LENGTH = 8
TOKENIZERS = {
    "64 bins": CodecSizes("bins", LENGTH, 64),
    "256 bins": CodecSizes("bins", LENGTH, 256),
    "DCT and byte pairs, 256": CodecSizes("fast", LENGTH, 256, 32),
    "DCT and byte pairs, 1024": CodecSizes("fast", LENGTH, 1024, 32),
}


def main(task: str, episodes: Annotated[int, typer.Option(min=2)] = 100, seed: int = 3) -> None:
    """Print the table."""
    data = collect_parallel(task, episodes, seed, 0.0, workers=1).trajectories
    half = len(data) // 2
    learned, held_out = data.episodes(range(half)), data.episodes(range(half, len(data)))
    table = narrow_table(
        f"{task}: chunks of {LENGTH} actions of {len(data) - half} held-out episodes",
        ["tokenizer"],
        ["mean tokens", "p99", "mean error", "largest", "decode us"],
        "errors in standard deviations of the actions",
    )
    for name, sizes in TOKENIZERS.items():
        codec = codec_of(learned, sizes)
        chunks = action_chunks(held_out, LENGTH)
        codes = codec.encode(chunks)
        started = time.perf_counter()
        decoded = codec.decode(codes)
        took_us = 1e6 * (time.perf_counter() - started) / len(chunks)
        error = np.abs(decoded - chunks) / codec.action_scale
        count = np.full(len(codes), codec.codebooks)
        if codec.end is not None:
            count = (codes != codec.end).sum(axis=1)
        table.add_row(
            name,
            number(float(count.mean()), 1),
            number(float(np.percentile(count, 99)), 0),
            number(float(error.mean()), 4),
            number(float(error.max()), 2),
            number(took_us, 1),
        )
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
