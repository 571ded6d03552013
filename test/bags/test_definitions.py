from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from adahi_ros.bags.definitions import BagError, types_of
from adahi_ros.core import assets

ROOT = Path(__file__).parents[2]
OURS = sorted(path.stem for path in (ROOT / "adahi_msgs/msg").glob("*.msg"))


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What setup.py installs below share/adahi_ros."""
    prefix = tmp_path_factory.mktemp("prefix")
    command = ["setup.py", "--quiet", "install_data", "--install-dir", str(prefix)]
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True, capture_output=True)
    return prefix / "share" / "adahi_ros"


def test_an_installed_package_brings_the_definitions_of_its_messages(
    share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)  # as where no ROS is
    monkeypatch.setattr(assets, "roots", lambda: [share])
    kinds = [f"adahi_msgs/msg/{name}" for name in OURS]
    store = types_of(kinds)
    assert kinds
    assert set(kinds) <= store.fielddefs.keys()


def test_a_message_that_no_one_defines_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    with pytest.raises(BagError, match="other_msgs/msg/Thing: unknown; expected other_msgs to be installed"):
        types_of(["other_msgs/msg/Thing"])
