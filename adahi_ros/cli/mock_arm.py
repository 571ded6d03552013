# SPDX-License-Identifier: Apache-2.0
"""`adahi contract mock`: an arm's topics without the arm."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from adahi_ros.cli import options
from adahi_ros.start import become

MOCK = "adahi_ros.nodes.robot.mock_arm"


def mock(
    contract: Annotated[str, Argument(help="A shipped contract's name, or a YAML file.")],
    limits: Annotated[
        str, Option(help="Its limits, as of the robot: where they exclude 0, a joint begins in their middle.")
    ] = "",
    namespace: options.Namespace = "",
) -> None:
    """Play an arm and its cameras by a contract, until Ctrl-C: joints that obey at once, one picture."""
    from adahi_ros.contract.parsing import load_contract

    load_contract(contract)
    given = {"contract": contract, "limits": limits}
    files = {
        name: str(Path(each).absolute()) if Path(each).is_file() else each for name, each in given.items()
    }
    words = [word for name, each in files.items() if each for word in ("-p", f"{name}:={each}")]
    become(MOCK, "--ros-args", *words, namespace=namespace)
