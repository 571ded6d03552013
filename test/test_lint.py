"""The linters of ROS, where it is sourced: of its XML files. Python is ruff's and mypy's."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("package.xml", "adahi_msgs/package.xml")
OTHERS = ("config", "launch")


@pytest.mark.parametrize("paths", [PACKAGES, OTHERS])
def test_xml_is_well_formed_and_what_its_schema_says(
    paths: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    lint = pytest.importorskip("ament_xmllint.main", reason="ament_xmllint comes with ROS 2, not from PyPI")
    code = lint.main([*(str(ROOT / path) for path in paths), "--extensions", "xml", "urdf"])
    said = "".join(capfd.readouterr())
    if paths == PACKAGES and "failed to load external entity" in said:
        pytest.skip("the schema of package.xml cannot be reached at download.ros.org")
    assert code == 0, said
