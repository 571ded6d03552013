# SPDX-License-Identifier: Apache-2.0
"""`adahi contract mock`: an arm's topics without the arm."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from adahi_ros.cli import options
from adahi_ros.start import become

MOCK = "adahi_ros.nodes.robot.mock_arm"


def mock(
    contract: Annotated[str, Argument(help="A shipped contract's name, or a YAML file.")],
    namespace: options.Namespace = "",
) -> None:
    """Play an arm and its cameras by a contract, until Ctrl-C: joints that obey at once, grey images."""
    from adahi_ros.contract.parsing import load_contract

    load_contract(contract)
    named = str(Path(contract).absolute()) if Path(contract).is_file() else contract
    become(MOCK, "--ros-args", "-p", f"contract:={named}", namespace=namespace)
