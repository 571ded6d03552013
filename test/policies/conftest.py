"""Checkpoints of LeRobot's, as test/data/lerobot has them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data/lerobot"


@pytest.fixture
def parallel(tmp_path: Path) -> Path:
    """A policy of LeRobot's without its ResNet, to be changed."""
    return Path(shutil.copytree(DATA / "parallel", tmp_path / "policies" / "parallel"))
