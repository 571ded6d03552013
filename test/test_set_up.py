"""The set-up builds control_msgs for the tests where ROS 2 does not have it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def set_up(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("set_up_venv")


@pytest.mark.parametrize(
    ("has_it", "built"), [(False, ["adahi_msgs", "control_msgs"]), (True, ["adahi_msgs"])]
)
def test_control_msgs_is_built_where_ros_lacks_it(
    set_up: Any, tmp_path: Path, has_it: bool, built: list[str]
) -> None:
    packages = tmp_path / "share" / "ament_index" / "resource_index" / "packages"
    packages.mkdir(parents=True)
    (packages / ("control_msgs" if has_it else "std_msgs")).touch()
    ros = set_up.Ros("jazzy", {"AMENT_PREFIX_PATH": [str(tmp_path)]})
    assert [package.name for package in set_up.message_packages(ros)] == built


def test_colcon_does_not_install_the_control_msgs_of_the_tests(set_up: Any) -> None:
    assert (set_up.CONTROL_MSGS / "COLCON_IGNORE").is_file()
    assert set_up.CONTROL_MSGS in set_up.message_packages(set_up.Ros())
