"""A paper is removed with its room: nothing else imports it, and only its own entries go."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from configparser import ConfigParser
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import yaml

import adahi_lab
from adahi_lab.papers.rooms import ROOMS

LAB = Path(adahi_lab.__file__).parent
ROOT = LAB.parents[1]
FOLDERS = ("adahi_ros", "adahi_lab/adahi_lab", "adahi_lab/launch", "launch", "benchmarks", "tools")
SHARED = {"tokens"}  # a base of other rooms
REMOVABLE = sorted({path.parent.name for path in ROOMS.glob("*/__init__.py")} - SHARED)
WHOLE = "no room"  # is removed
LOADS = """
import importlib, json, os, pkgutil, sys, traceback
from contextlib import suppress
from pathlib import Path


def loaded(folder):
    sys.path.insert(0, str(folder))
    import adahi_lab

    assert Path(adahi_lab.__file__).parent == folder / "adahi_lab"
    for module in pkgutil.walk_packages(adahi_lab.__path__, "adahi_lab."):
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            if "adahi_" in str(error):  # others are optional, such as Ray
                raise
    from adahi_lab.methods.method_names import ALIASES
    from adahi_lab.methods.methods import for_task, parse_methods
    from adahi_lab.papers.literature import LITERATURE, lines
    from adahi_lab.papers.tokens.token_pair import GROUPS
    from adahi_ros.core.registry import Registry
    from adahi_ros.nodes.server.target_verifier_parameters import ENGINES  # whatever room is there

    registered = {}
    for module in [each for name, each in list(sys.modules.items()) if name.startswith("adahi_")]:
        for made in list(vars(module).values()):
            if isinstance(made, Registry):
                registered[made.group] = list(made)
                list(made.values())  # imports each
    methods = [line.method for line in (*lines(), *(each for group in GROUPS for each in group.lines))]
    for method in filter(None, methods):
        parse_methods(for_task(method, "ball", folder))
    papers, others = [each.name for each in LITERATURE], [name for name in sys.modules if "adahi" not in name]
    return {"registered": registered, "aliases": list(ALIASES), "papers": papers, "others": others}


for folder in map(Path, sys.argv[1:]):
    reading, writing = os.pipe()
    if not os.fork():
        try:
            found = loaded(folder)
        except BaseException:
            found = {"error": traceback.format_exc()}
        with os.fdopen(writing, "w") as output:
            json.dump(found, output)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as output:
        found = json.load(output)
    os.wait()
    for name in found.pop("others", []):  # once for all that come after
        with suppress(Exception):
            importlib.import_module(name)
    print(json.dumps([folder.name, found]))
"""
"""Imports all of the lab from each folder, in a process of its own, and prints what is there."""


def without(room: str, folder: Path) -> str:
    """Return a folder with the lab and its entry points, but those of a room; files are links."""
    there = folder / "adahi_lab/papers"
    about = folder / "adahi_lab-1.0.dist-info"
    there.mkdir(parents=True)
    about.mkdir()
    for name in ("package.xml", "config"):
        (folder / name).symlink_to(LAB.parent / name)
    for path in LAB.iterdir():
        if path != ROOMS:
            (folder / "adahi_lab" / path.name).symlink_to(path)
    for path in ROOMS.iterdir():
        if path.name != room:
            (there / path.name).symlink_to(path)
    ours = [entry for entry in distribution("adahi_lab").entry_points if ".papers." not in entry.value]
    lines = [f"[{entry.group}]\n{entry.name} = {entry.value}\n" for entry in ours]
    lines += [path.read_text() for path in there.glob("*/entry_points.ini")]
    (about / "entry_points.txt").write_text("".join(lines))
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: adahi_lab\nVersion: 1.0\n")
    return str(folder)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is there without each room."""
    above = tmp_path_factory.mktemp("rooms")
    folders = [without(room, above / room) for room in (WHOLE, *REMOVABLE)]
    done = subprocess.run(
        [sys.executable, "-c", LOADS, *folders],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
    )
    return dict(map(json.loads, done.stdout.splitlines()))


def listed(room: str, file: str) -> list[str]:
    """Return the names in a file of a room."""
    path = ROOMS / room / file
    content = yaml.safe_load(path.read_text()) if path.exists() else {}
    return [each["name"] for each in content["methods"]] if "methods" in content else list(content)


@pytest.mark.parametrize("room", [WHOLE, *REMOVABLE])
def test_without_a_room_only_its_own_entries_are_gone(found: dict[str, Any], room: str) -> None:
    here, whole = found[room], found[WHOLE]
    assert "error" not in here, here["error"]
    for kind, file in (("papers", "literature.yaml"), ("aliases", "aliases.yaml")):
        own = listed(room, file)
        assert here[kind] == [name for name in whole[kind] if name not in own]
    own_entries = ConfigParser(delimiters=("=",))
    own_entries.read(ROOMS / room / "entry_points.ini")
    for group, names in whole["registered"].items():
        own = list(own_entries[group]) if own_entries.has_section(group) else []
        assert here["registered"][group] == [name for name in names if name not in own]


@pytest.mark.parametrize("room", REMOVABLE)
def test_nothing_else_names_a_room(room: str) -> None:
    named = re.compile(rf"\bpapers[./]{room}\b")
    files = [
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".yaml", ".ini")
    ]
    others = [path for path in files if (ROOMS / room) not in path.parents]
    assert len(others) > 500
    assert [str(path) for path in others if named.search(path.read_text())] == []


@pytest.mark.parametrize("room", REMOVABLE)
def test_a_room_says_what_it_is_and_lists_its_methods(room: str) -> None:
    assert listed(room, "literature.yaml")
    links = re.findall(r"\]\(([^)#]+)", (ROOMS / room / "README.md").read_text())
    assert links
    assert all((ROOMS / room / link).is_file() for link in links)
