"""The linters of ROS, where it is sourced, and what else the packages say. Ruff and mypy check Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("package.xml", "adahi_msgs/package.xml")
OTHERS = ("config", "launch")
LONGEST = 70  # characters
CHANGING_MOST = 15  # attributes of a class that it assigns outside of its constructor
UNSEARCHABLE = {"of", "look", "due"}  # names of functions, also with underscores before them


def test_names_of_tests_are_short() -> None:
    names = [
        node.name
        for file in (ROOT / "test").rglob("test_*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert [name for name in names if len(name) > LONGEST] == []


def definitions(*packages: str) -> Iterator[tuple[str, ast.AST]]:
    for package in packages:
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                yield str(file.relative_to(ROOT)), node


def test_names_of_functions_can_be_searched() -> None:
    found = [
        f"{file}: {node.name}"
        for file, node in definitions("adahi_ros", "adahi_lab/adahi_lab")
        if isinstance(node, ast.FunctionDef) and node.name.lstrip("_") in UNSEARCHABLE
    ]
    assert found == []


def test_no_two_classes_of_the_product_have_the_same_name() -> None:
    places: dict[str, list[str]] = {}
    for file, node in definitions("adahi_ros"):
        if isinstance(node, ast.ClassDef):
            places.setdefault(node.name, []).append(file)
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def changing(made: ast.ClassDef) -> set[str]:
    methods = (each for each in made.body if isinstance(each, ast.FunctionDef))
    return {
        node.attr
        for method in methods
        if method.name not in ("__init__", "__post_init__")
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if isinstance(node.value, ast.Name) and node.value.id == "self"
    }


def test_a_class_has_few_attributes_that_change() -> None:
    counts = {
        f"{file}: {node.name}": len(changing(node))
        for file, node in definitions("adahi_ros", "adahi_lab/adahi_lab")
        if isinstance(node, ast.ClassDef)
    }
    assert {name: count for name, count in counts.items() if count > CHANGING_MOST} == {}


@pytest.mark.parametrize("paths", [PACKAGES, OTHERS])
def test_xml_is_well_formed_and_what_its_schema_says(
    paths: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    lint = pytest.importorskip("ament_xmllint.main", reason="ament_xmllint comes with ROS 2, not from PyPI")
    code = lint.main([*(str(ROOT / path) for path in paths), "--extensions", "xml", "urdf"])
    output = "".join(capfd.readouterr())
    if paths == PACKAGES and "failed to load external entity" in output:
        pytest.skip("the schema of package.xml cannot be reached at download.ros.org")
    assert code == 0, output


def test_the_changelog_of_the_messages_names_their_protocol() -> None:
    version = re.search(r"PROTOCOL_VERSION=(\d+)", (ROOT / "adahi_msgs/srv/VerifyDraft.srv").read_text())
    assert version is not None
    assert f"``PROTOCOL_VERSION`` is {version[1]}" in (ROOT / "adahi_msgs/CHANGELOG.rst").read_text()
