from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from adahi_lab.reporting.cameras_table import cameras_table, draw_cameras

Shown = Callable[..., str]
NAMES = ("features", "raw", "jpeg_90", "jpeg_1000_bytes", "none")


def figures(raw_as_features: bool = True, transmitted: bool = True) -> dict[str, Any]:
    method = {
        "success_rate": 0.93,
        "success_ci95": [0.862, 0.966],
        "transmission_rate": 0.613,
        "acceptance": 0.514 if transmitted else None,
        "request_bytes": 21056.2 if transmitted else None,
        "response_bytes": 56.0 if transmitted else None,
    }
    return {
        "task": "kitchen_camera",
        "episodes": 1000,
        "image_size": [64, 48],
        "views": {view: {"hybrid": method, "uncertainty": method} for view in NAMES},
        "image_ms": {
            view: dict.fromkeys(("robot", "verifier"), 0.276 if view in NAMES[1:4] else None)
            for view in NAMES
        },
        "raw_as_features": raw_as_features,
    }


def test_it_says_what_was_not_measured_on_the_air(shown: Shown) -> None:
    text = shown(cameras_table(figures()))
    assert "9216 bytes for each JPEG" in text
    assert "bit for bit those of features" in text
    assert "NOT those of features" in shown(cameras_table(figures(raw_as_features=False)))


def test_it_is_drawn(tmp_path: Path) -> None:
    for number, each in enumerate((figures(), figures(transmitted=False))):
        path = tmp_path / f"{number}.png"
        draw_cameras(each, path)
        assert path.read_bytes().startswith(b"\x89PNG")
