# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from setuptools import find_packages, setup

NAME = "adahi_ros"
PACKAGE = ElementTree.parse(Path(__file__).resolve().with_name("package.xml")).getroot()
MAINTAINER = PACKAGE.find("maintainer")


def shared(folder: str) -> list[tuple[str, list[str]]]:
    """Every file under the folder, for the same place in share/adahi_ros."""
    files: dict[str, list[str]] = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            files.setdefault(f"share/{NAME}/{path.parent.as_posix()}", []).append(path.as_posix())
    return list(files.items())


def required(name: str) -> list[str]:
    """What a file of requirements/ lists."""
    lines = Path(__file__).resolve().with_name("requirements").joinpath(name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


setup(
    name=NAME,
    version="0.3.0",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        *shared("launch"),
        *shared("config"),
        *shared("adahi_msgs/msg"),  # to read bags where no ROS is installed
    ],
    python_requires=">=3.10",
    install_requires=["setuptools"],
    extras_require={
        **{name: required(f"{name}.txt") for name in ("metrics", "ray", "rerun")},
        "tests": ["pytest"],  # colcon test looks for it
    },
    zip_safe=True,
    maintainer=MAINTAINER.text,
    maintainer_email=MAINTAINER.get("email"),
    description=" ".join(PACKAGE.findtext("description").split()),
    license=PACKAGE.findtext("license"),
    entry_points={
        "console_scripts": [
            "adahi = adahi_ros.start:adahi",
            "draft_policy_node = adahi_ros.start:draft_policy_node",
            "policy_runner_node = adahi_ros.start:policy_runner_node",
            "target_verifier_node = adahi_ros.start:target_verifier_node",
            "bag_recorder_node = adahi_ros.start:bag_recorder_node",
            "path_markers_node = adahi_ros.start:path_markers_node",
            "scene_checker_node = adahi_ros.start:scene_checker_node",
        ],
    },
)
