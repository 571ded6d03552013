"""A policy as LeRobot wrote it into test/data/lerobot."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

DATA = Path(__file__).parents[3] / "test/data/lerobot"


@pytest.fixture
def parallel(tmp_path: Path) -> Path:
    """A policy of LeRobot's without its ResNet, to be changed."""
    return Path(shutil.copytree(DATA / "parallel", tmp_path / "policies" / "parallel"))
