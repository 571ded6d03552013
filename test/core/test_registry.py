from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from adahi_ros.core.registry import Argument, Registry, RegistryError

GROUP = "adahi_ros.colours"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where Python looks for packages."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def install(folder: Path, package: str, *lines: str) -> None:
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join((f"[{GROUP}]", *lines)))


def test_without_other_packages_it_is_what_is_shipped() -> None:
    colours = Registry(GROUP, {"red": 1, "blue": 2})
    assert dict(colours) == {"red": 1, "blue": 2}
    assert list(colours) == ["red", "blue"]
    assert len(colours) == 2
    assert "green" not in colours
    with pytest.raises(KeyError, match="green"):
        colours["green"]


def test_another_package_adds_to_it_and_is_imported_when_it_is_used(installed: Path) -> None:
    (installed / "registry_paint.py").write_text("GREEN = object()")
    install(installed, "paint", "green = registry_paint:GREEN")
    colours = Registry[object](GROUP, {"red": 1})
    assert list(colours) == ["red", "green"]
    assert "green" in colours
    assert len(colours) == 2
    assert "registry_paint" not in sys.modules
    assert colours["green"] is sys.modules["registry_paint"].GREEN
    assert colours["green"] is colours["green"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("green = registry_nowhere:GREEN", "ModuleNotFoundError: No module named 'registry_nowhere'"),
        ("green = registry_broken:GREEN", "ZeroDivisionError: division by zero"),
        ("green = json:GREEN", "AttributeError: module 'json' has no attribute 'GREEN'"),
    ],
)
def test_what_cannot_be_imported_is_named_and_harms_no_other(installed: Path, line: str, reason: str) -> None:
    (installed / "registry_broken.py").write_text("1 / 0")
    install(installed, "paint", line, "black = json:dumps")
    colours = Registry[object](GROUP, {"red": 1})
    assert "green" in colours
    message = f"{GROUP}: 'green' of paint: {line.partition(' = ')[2]} cannot be imported ({reason})"
    with pytest.raises(RegistryError, match=f"^{re.escape(message)}$"):
        colours["green"]
    assert colours["red"] == 1
    assert callable(colours["black"])


def test_a_name_that_two_have_is_nobodys(installed: Path) -> None:
    install(installed, "paint", "red = json:dumps", "green = json:dumps")
    install(installed, "varnish", "green = json:loads")
    colours = Registry[object](GROUP, {"red": 1})
    assert list(colours) == ["red", "green"]
    with pytest.raises(
        RegistryError, match=f"^{GROUP}: 'red' is in adahi_ros, paint; must be in one package$"
    ):
        colours["red"]
    with pytest.raises(
        RegistryError, match=f"^{GROUP}: 'green' is in paint, varnish; must be in one package$"
    ):
        colours["green"]


@pytest.mark.parametrize("text", ["x" * 256, "a/" + "é" * 128, "a/" * 2048, "x" * 5000])
def test_a_text_that_may_become_a_path_is_short_enough_for_one(text: str) -> None:
    for row, value in ((Argument("task", "", ""), text), (Argument("robots", ["r1"], ""), ["r2", text])):
        fault = row.fault(value)
        assert fault is not None
        assert fault.startswith(f"{row.name}: ")
        assert fault.endswith("must have at most 255 bytes between slashes, and 4095 in all")
        assert len(fault) < 300
    assert Argument("instruction", "", "", longest=10_000).fault(text) is None
    assert Argument("task", "", "").fault("/".join(["x" * 255] * 15)) is None
