# SPDX-License-Identifier: Apache-2.0
"""Opens what a proposer acts by instead of the robot's policy, from the checkpoint that its `file` names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.policies.interface import Actor

A = TypeVar("A", bound=Actor)
SIZES = ("observation_dim", "goal_dim", "action_dim")
FILE = "DIRECTORY/NAME of the checkpoint; a relative path is below the package's checkpoints"


def opened(
    policy: Actor, file: str, kind: type[A], load: Callable[[Path], A], sizes: Sequence[str] = SIZES
) -> A:
    """Return what a file has or, without a file, the policy, where that is of the kind.

    Args:
        policy: that the proposer is made from.
        file: its argument, as in `FILE`; empty for none.
        kind: of what the proposer acts by.
        load: from a path.
        sizes: that the file's must have of the policy's.

    Raises:
        ValueError: no file is given, it cannot be loaded, or it has other sizes.
    """
    if not file:
        if isinstance(policy, kind):
            return policy
        raise ValueError(f"proposer.file: '', must name a checkpoint of a {kind.__name__.lower()}")
    try:
        found = load(named(file, CHECKPOINTS))
    except (CheckpointError, OSError) as error:
        raise ValueError(f"proposer.file: {file!r}, cannot be loaded: {error}") from error
    for size in sizes:
        its, wanted = getattr(found.signature, size), getattr(policy.signature, size)
        if its != wanted:
            raise ValueError(
                f"proposer.file: {file!r}, its {size} is {its}, must be {wanted} as in checkpoint"
            )
    return found
