"""The ball's contract with other values, as a file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml

from adahi_lab.evaluation.task_contract import contract_values
from adahi_lab.tasks import make

FOLDER = tempfile.TemporaryDirectory(prefix="adahi-contracts-")  # as long as the tests


def ball_contract(tolerance_ms: float = 0.0, **changes: object) -> str:
    """Return the path of a new file.

    Args:
        tolerance_ms: largest difference of stamps between observations.
        changes: of the contract's other values.
    """
    values = {**contract_values(make("ball")), **changes}
    for part in values["observations"].values():
        part["align"]["tolerance_ms"] = tolerance_ms
    with tempfile.NamedTemporaryFile("w", dir=FOLDER.name, suffix=".yaml", delete=False) as file:
        yaml.safe_dump(values, file, sort_keys=False)
    return str(Path(file.name))
