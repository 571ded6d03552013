from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from adahi_lab.tasks import make
from adahi_lab.tasks.libero.convert import convert
from adahi_lab.tasks.libero.scene_files import load_scene
from adahi_lab.tasks.libero.world import load_world


def test_without_a_converted_scene_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for load in (load_scene, load_world):
        load.cache_clear()
    message = r"must have the converted scene: pip install -r requirements/libero\.txt, then adahi lab libero"
    with pytest.raises(ValueError, match=message):
        make("libero_goal")


def test_converting_without_the_library_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "libero.libero", None)
    with pytest.raises(ValueError, match=r"must be installed .*pip install -r requirements/libero\.txt"):
        convert(tmp_path)


def test_another_version_of_the_library_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("libero", "libero.libero"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules["libero.libero"], "envs", None, raising=False)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.0.9")
    with pytest.raises(ValueError, match=r"0\.0\.9 is installed, must be 0\.1\.1: pip install"):
        convert(tmp_path)
