"""`adahi fleet`: which file is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from adahi_ros.cli.fleet_up import up
from adahi_ros.core.assets import asset


def test_a_file_that_is_nowhere_is_named_with_those_that_are_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = sorted(each.name for each in asset("config/fleets").glob("*.yaml"))
    with pytest.raises(
        ValueError, match=rf"^nothere.yaml: neither here nor in .*fleets, which has {names[0]}"
    ):
        up(Path("nothere.yaml"))
