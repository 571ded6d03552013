"""`adahi keys`, with a `ros2` that makes empty files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adahi_ros.security.keystores import COPIED
from test.cli.conftest import Run

ROS2 = f"""#!/bin/sh
case $2 in
create_keystore) mkdir -p "$3/public" "$3/private" "$3/enclaves" ;;
create_enclave) mkdir -p "$3/enclaves$4" && cd "$3/enclaves$4" && touch {" ".join(COPIED)} ;;
esac
"""


@pytest.fixture
def keystore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ros2").write_text(ROS2)
    (tmp_path / "ros2").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("ROS_DOMAIN_ID", "7")
    return tmp_path / "keys"


def test_it_says_which_machine_gets_what(keystore: Path, run: Run) -> None:
    result = run("keys", keystore, "--robots", "r1,r2")
    lines = "".join(result.output.split("\n")).replace(str(keystore), "\nkeys")
    for line in (
        "keys/machines/server: /adahi/server",
        "keys/machines/r1: /adahi/r1, /adahi/r1/drivers",
        "keys/machines/r2: /adahi/r2, /adahi/r2/drivers",
    ):
        assert f"\n{line}" in lines
    assert "for ROS_DOMAIN_ID=7 only" in lines
    assert (keystore / "machines/r2/enclaves/adahi/r2/drivers/key.pem").exists()


def test_policies_of_ones_own_are_read_in_the_place_of_ours(keystore: Path, tmp_path: Path, run: Run) -> None:
    with pytest.raises(FileNotFoundError, match=r"server\.policy\.xml"):
        run("keys", keystore, "--policies", tmp_path)
    assert not keystore.exists()


def test_who_has_no_keys_cannot_have_lost_them(keystore: Path, run: Run) -> None:
    with pytest.raises(ValueError, match="--revoke: 'r9'"):
        run("keys", keystore, "--revoke", "r9")
