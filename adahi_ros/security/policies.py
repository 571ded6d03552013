# SPDX-License-Identifier: Apache-2.0
"""EnclavePolicy files of SROS 2, one per role, as `ros2 security create_permission` takes them.

The files in `config/sros2` are for a verifier in the namespace /server and a robot in /robot. In each
robot's policy, every part `robot` of a name is replaced by that robot's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementInclude, ElementTree

ROBOT = "robot"  # in the files: stands for each robot
SERVER = "server"
ROLES = (SERVER, "monitor", "operator")  # one machine each
OF_ROBOTS = (ROBOT, "drivers")
SUFFIX = ".policy.xml"
NAMED = ("topic", "service", "action")


@dataclass(frozen=True)
class EnclavePolicy:
    """The permissions of one enclave.

    Attributes:
        enclave: its name, such as /adahi/r1.
        root: the XML, with all includes resolved.
    """

    enclave: str
    root: ElementTree.Element

    def write(self, path: Path) -> None:
        """Write it to a file."""
        tree = ElementTree.ElementTree(self.root)
        ElementTree.indent(tree)
        tree.write(path, encoding="UTF-8", xml_declaration=True)


def read_policy(folder: Path, role: str, robot: str = ROBOT) -> EnclavePolicy:
    """Read a role's policy, for a robot of this name.

    Args:
        folder: of policy files.
        role: of `ROLES` or `OF_ROBOTS`.
        robot: its name.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is not the policy of a single enclave; names the file.
    """
    path = folder / f"{role}{SUFFIX}"
    try:
        root = ElementTree.parse(path).getroot()
        ElementInclude.include(root, base_url=str(path))
    except ElementTree.ParseError as error:
        raise ValueError(f"{path}: no XML, {error}") from None
    enclaves = root.findall("enclaves/enclave")
    if len(enclaves) != 1:
        raise ValueError(f"{path}: {len(enclaves)} enclaves, must be 1")
    for element in root.iter():
        for attribute in {"path", "ns"}.intersection(element.keys()):
            element.set(attribute, _renamed(element.attrib[attribute], robot))
        if element.tag in NAMED and element.text:
            element.text = _renamed(element.text, robot)
    return EnclavePolicy(enclaves[0].attrib["path"], root)


def _renamed(name: str, robot: str) -> str:
    return "/".join(robot if part == ROBOT else part for part in name.split("/"))
