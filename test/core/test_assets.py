from __future__ import annotations

import shutil
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from adahi_ros.cli import options
from adahi_ros.core import assets, missing_assets


def module_at(path: Path) -> ModuleType:
    """Import assets.py as if it were installed at this path."""
    path.parent.mkdir(parents=True)
    shutil.copy(assets.__file__, path)
    spec = spec_from_file_location("installed_assets", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_checkout_holds_its_own_files() -> None:
    assert assets.asset("package.xml").read_text().startswith("<?xml")
    assert assets.asset("config").is_dir()


@pytest.mark.parametrize("packages", ["lib/python3.12/site-packages", "local/lib/python3.10/dist-packages"])
def test_installed_finds_share_of_its_prefix(tmp_path: Path, packages: str) -> None:
    installed = module_at(tmp_path / packages / "adahi_ros" / "assets.py")
    file = tmp_path / "share" / "adahi_ros" / "config" / "ball.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("alpha: 0.5")
    assert installed.asset("config/ball.yaml") == file


def test_what_is_installed_is_shipped_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = module_at(tmp_path / "lib" / "python3.12" / "site-packages" / "adahi_ros" / "assets.py")
    monkeypatch.setattr(options, "roots", installed.roots)
    file = tmp_path / "share" / "adahi_ros" / "config" / "ball.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("alpha: 0.5")
    (tmp_path / "link.yaml").symlink_to(file)
    (tmp_path / "own.yaml").write_text("alpha: 0.5")
    assert options.is_shipped(file)
    assert options.is_shipped(tmp_path / "link.yaml")
    assert not options.is_shipped(tmp_path / "own.yaml")
    assert not options.is_shipped(file.with_name("new.yaml"))


def test_missing_file_is_named_with_where_it_was_looked_for(tmp_path: Path) -> None:
    installed = module_at(tmp_path / "lib" / "python3.12" / "site-packages" / "adahi_ros" / "assets.py")
    (tmp_path / "share" / "adahi_ros").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match=rf"checkpoints/none: not found \(looked in {tmp_path}/share"):
        installed.asset("checkpoints/none")


@pytest.fixture
def installed(tmp_path: Path) -> ModuleType:
    """The module where only the checkpoints of ball are installed."""
    (tmp_path / "share" / "adahi_ros" / "checkpoints" / "ball").mkdir(parents=True)
    return module_at(tmp_path / "lib" / "python3.12" / "site-packages" / "adahi_ros" / "assets.py")


def test_a_checkpoint_that_is_not_installed_names_the_command_that_does(
    installed: ModuleType, tmp_path: Path
) -> None:
    ball = tmp_path / "share/adahi_ros/checkpoints/ball"
    assert installed.named("ball/draft", "checkpoints") == ball / "draft"
    with pytest.raises(FileNotFoundError, match=r"colcon build --base-paths SOURCE/checkpoints"):
        installed.named("kitchen/plans/target", "checkpoints")
    assert missing_assets.how_to_get("config/kitchen.yaml", installed.roots()) == ""


def test_the_package_of_checkpoints_is_found_in_any_sourced_workspace(
    installed: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = tmp_path / "other" / "share" / "adahi_checkpoints" / "checkpoints" / "kitchen" / "plans"
    plans.mkdir(parents=True)
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/nowhere:{tmp_path / 'other'}")
    assert installed.named("kitchen/plans/target", "checkpoints") == plans / "target"
    assert installed.shipped("checkpoints/kitchen")
    Path(str(installed.__file__)).parents[2].joinpath("package.xml").touch()  # a checkout
    monkeypatch.setattr(installed, "_added", lambda: ("adahi_checkpoints",))
    assert installed.named("kitchen/plans/target", "checkpoints") == plans / "target"


@pytest.mark.parametrize("name", ["x" * 5000, "a/" * 3000, "y" * 300, "a\0b", "a\x1b[2J", "~nobody_there/x"])
def test_a_name_that_no_file_can_have_is_not_found(name: str) -> None:
    assert not assets.shipped(f"config/{name}.yaml")
    with pytest.raises(FileNotFoundError, match=r"config/.*: not found") as caught:
        assets.asset(f"config/{name}.yaml")
    assert len(str(caught.value)) < 2000
    assert str(caught.value).isprintable()
    with pytest.raises(FileNotFoundError, match="not found"):
        assets.named(f"{name}/draft", assets.CHECKPOINTS)
