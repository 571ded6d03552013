# SPDX-License-Identifier: Apache-2.0
"""Errors with the name of their file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def faults_of(path: Path) -> Iterator[None]:
    """Make errors in the block name the file."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
