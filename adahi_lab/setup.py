# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from configparser import ConfigParser
from pathlib import Path
from xml.etree import ElementTree

from setuptools import find_packages, setup

NAME = "adahi_lab"
PACKAGE = ElementTree.parse(Path(__file__).resolve().with_name("package.xml")).getroot()
MAINTAINER = PACKAGE.find("maintainer")
PAPERS = Path(__file__).resolve().with_name(NAME) / "papers"
VERBS = {  # of the command `adahi`, with the function in adahi_lab/cli that is each
    "demo": "over_dds:demo",
    "report": "run_report:report",
    "bag evaluate": "replay:replay",
    "data from-bag": "dataset:from_bag",
    "data from-lerobot": "lerobot:dataset",
    "data to-lerobot": "lerobot:export",
    "data simulate": "dataset:demos",
    "train policy": "training:train",
    "train corrector": "distill:distill",
    "train encoder": "trained_parts:train_encoder",
    "thresholds": "calibration:calibrate",
    "import vqbet": "lerobot:policy",
    "export": "training:export",
    "evaluate": "comparison:evaluate",
    "choose": "choosing:choose",
    "methods": "methods:methods",
    "lab contract": "task_contract:write",
    "lab table": "paper:table",
    "lab figures": "paper:figures",
    "lab compare": "comparison:compare",
    "lab curve": "comparison:curve",
    "lab tune": "tuning:tune",
    "lab bench latency": "bench:latency",
    "lab bench peers": "bench:peers",
    "lab bench dds": "bench:dds",
    "lab bench cameras": "bench:cameras",
    "lab bench soak": "bench:soak",
    "lab bench compute": "bench:compute",
    "lab bench fleet": "bench:fleet",
    "lab libero convert": "libero:convert",
    "lab link run": "link:run",
    "lab link set": "link:change",
    "lab link check": "link:check",
    "lab link list": "link:listing",
}


def shared(folder: str) -> list[tuple[str, list[str]]]:
    """Every file under the folder, for the same place in share/adahi_lab."""
    files: dict[str, list[str]] = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            files.setdefault(f"share/{NAME}/{path.parent.as_posix()}", []).append(path.as_posix())
    return list(files.items())


def entry_points() -> dict[str, list[str]]:
    """Return the lab's entry points, and those of each paper's room, which has them in a file of its own."""
    found = {
        "console_scripts": ["robot_simulator_node = adahi_lab.start:robot_simulator_node"],
        "adahi_ros.assets": [f"{NAME} = {NAME}"],
        "adahi_ros.checkpoints": [
            f"{kind}_flow = {NAME}.training.searched_flow:{kind.upper()}"
            for kind in ("searched", "unsearched")
        ],
        "adahi_ros.policies": [f"lerobot_vqbet = {NAME}.lerobot.lerobot_vqbet:imported"],
        "adahi_ros.verbs": [f"{verb} = {NAME}.cli.{function}" for verb, function in VERBS.items()],
        "adahi_ros.verb_help": [f"{NAME} = {NAME}.cli.verbs:HELP"],
        "adahi_ros.gone_names": [f"{NAME} = {NAME}.gone_names:GONE"],
    }
    for file in sorted(PAPERS.glob("*/entry_points.ini")):
        room = ConfigParser(delimiters=("=",))
        room.optionxform = str  # names as they are
        room.read(file)
        for group in room.sections():
            found.setdefault(group, []).extend(f"{name} = {value}" for name, value in room.items(group))
    return found


setup(
    name=NAME,
    version="0.3.0",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={
        NAME: ["reporting/*.j2", "reporting/*.js", "*/*.yaml", "papers/*/*.ini", "papers/*/*.yaml"]
    },
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        *shared("launch"),
        *shared("config"),
    ],
    python_requires=">=3.10",
    install_requires=["setuptools"],
    extras_require={"tests": ["pytest"]},  # colcon test looks for it
    zip_safe=True,
    maintainer=MAINTAINER.text,
    maintainer_email=MAINTAINER.get("email"),
    description=" ".join(PACKAGE.findtext("description").split()),
    license=PACKAGE.findtext("license"),
    entry_points=entry_points(),
)
