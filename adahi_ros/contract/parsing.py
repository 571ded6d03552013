# SPDX-License-Identifier: Apache-2.0
"""Reads a robot's contract from a YAML file, checks and completes it.

The format is that of Rosetta's contracts (iblnkn/rosetta) where both have a key. Hybrid inference adds:
the pacing topic of the control steps, a goal, the numbers of episode and step, an encoder for images.
See docs/reference/contract.md.
"""

from __future__ import annotations

from pathlib import Path

from adahi_ros.contract.contract import Channel, Contract
from adahi_ros.contract.contract_file import ContractFile
from adahi_ros.core.assets import asset, asset_files
from adahi_ros.core.schema import checked
from adahi_ros.core.texts import abridged
from adahi_ros.core.yaml_files import read_yaml

SHIPPED = "config/contracts"


class ContractError(ValueError):
    """A contract that cannot be used; names file, field, value and what was allowed, shortened."""

    def __init__(self, message: str) -> None:
        super().__init__(abridged(message))


def contract_path(name: str) -> Path:
    """Return the file of a contract: one that exists, or a shipped one by its name.

    Raises:
        ContractError: there is no such contract.
    """
    path = Path(name)
    try:
        if path.suffix not in (".yaml", ".yml"):
            return asset(f"{SHIPPED}/{name}.yaml")
        path = path.expanduser()
        if path.is_file():
            return path
        raise ContractError(f"contract: {name!r}, no such file")
    except (OSError, RuntimeError):  # such as a name that is too long for a file, or an unknown user's home
        known = ", ".join(path.stem for path in asset_files(SHIPPED))
        raise ContractError(f"contract: {name!r}, must be a YAML file or one of {known}") from None


def load_contract(name: str) -> Contract:
    """Read a contract.

    Args:
        name: of a shipped one, or the path of a YAML file.

    Raises:
        ContractError: there is no such contract, or an entry is missing, unknown or wrong.
    """
    path = contract_path(name)
    try:
        return parse_contract(read_yaml(path))
    except OSError as error:
        raise ContractError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ContractError(f"{path}: {error}") from None


def parse_contract(values: object) -> Contract:
    """Make a contract from the content of a YAML file.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """
    file: ContractFile = checked(ContractFile, values)
    contract = file.made()
    _check_whole(contract)
    return contract


def _check_whole(contract: Contract) -> None:
    observed = {source.channel.topic for source in contract.observed}
    if contract.paced_by not in observed:
        raise ValueError(f"paced_by: {contract.paced_by!r}, must be one of {', '.join(sorted(observed))}")
    sizes = {(camera.rows, camera.columns) for camera in contract.cameras}
    if len(sizes) > 1 and contract.encoder:
        raise ValueError(
            f"observations: images resized to {sorted(sizes)}, must be of one size, the encoder's"
        )
    channels: dict[str, Channel] = {}
    for each in contract.observed:
        first = channels.setdefault(each.channel.topic, each.channel)
        if first.kind != each.channel.kind:
            raise ValueError(f"{each.key}.channel.type: {first.topic} has two types, must have one")
        if first != each.channel:
            raise ValueError(
                f"{each.key}.channel.qos: {first.topic} has two, must have one for all its sources"
            )
    if contract.episode is not None:
        if contract.episode.channel.topic != contract.paced_by:
            raise ValueError(
                f"episode.channel.topic: {contract.episode.channel.topic!r}, must be the one that paces the "
                f"steps (paced_by), {contract.paced_by!r}"
            )
        if contract.episode.size != 2:
            raise ValueError(
                f"episode.select: {list(contract.episode.select)}, must be two: episode and step"
            )
