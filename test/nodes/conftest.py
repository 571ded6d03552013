"""What the tests of nodes and of launch files share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def sourced_workspace() -> None:
    """Skip where `ros2 launch` would not find this package's nodes."""
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix

    try:
        prefix = Path(get_package_prefix("adahi_ros"))
    except PackageNotFoundError:
        pytest.skip("adahi_ros is not built by colcon in a sourced workspace")
    if not (prefix / "lib" / "adahi_ros" / "draft_policy_node").exists():
        pytest.skip("adahi_ros is not built by colcon in a sourced workspace")
