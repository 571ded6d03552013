"""Where Ray is not installed, whoever asks for it is told what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from adahi_ros.server.ray import ray_head
from adahi_ros.server.ray.ray_head import RayHead
from adahi_ros.server.ray.ray_policies import RayPolicies


@pytest.fixture(autouse=True)
def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_head, "find_spec", lambda name: None)


def test_what_to_install_is_reported(tmp_path: Path) -> None:
    message = r"ray: not installed; a fleet needs: pip install -r requirements/ray\.txt"
    with pytest.raises(ImportError, match=message):
        RayHead(1, tmp_path)
    with pytest.raises(ImportError, match=message):
        RayPolicies([], "auto", print)
