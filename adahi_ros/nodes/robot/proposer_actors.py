# SPDX-License-Identifier: Apache-2.0
"""What a proposer is made of where that is no draft alone: a corrector, or an index of demonstrations."""

from __future__ import annotations

from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.signature import Signature
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.policies import first_actions
from adahi_ros.policies.corrector.corrector import Corrector
from adahi_ros.policies.corrector.corrector_checkpoint import load_corrector
from adahi_ros.policies.corrector.corrector_features import PlanView
from adahi_ros.policies.retrieval import Retrieval, load_retrieval


def corrector_from(name: str, draft: Signature) -> Corrector:
    """Load a corrector of plans, and let it correct once: the first time takes many times as long.

    Args:
        name: DIRECTORY/NAME of its checkpoint; a relative one is below the package's.
        draft: what the robot's own policy reads and does.

    Raises:
        ParameterError: it cannot be loaded, or is of another robot; names the parameter, its value and why.
    """
    if not name:
        raise ParameterError("corrector: '', must name a checkpoint for the proposer corrector")
    try:
        corrector = Corrector(load_corrector(named(name, CHECKPOINTS)))
    except (CheckpointError, OSError) as error:
        raise ParameterError(f"corrector: {name!r}, cannot be loaded: {error}") from error
    _check_sizes("corrector", name, corrector.signature, draft)
    corrector.correct(PlanView.nothing(corrector.signature))
    return corrector


def index_from(name: str, draft: Signature) -> Retrieval:
    """Load an index of demonstrations, and let it retrieve once; arguments and errors as `corrector_from`."""
    if not name:
        raise ParameterError("index: '', must name an index for the proposers retrieval and mixture")
    try:
        index = load_retrieval(named(name, CHECKPOINTS))
    except (CheckpointError, OSError) as error:
        raise ParameterError(f"index: {name!r}, cannot be loaded: {error}") from error
    _check_sizes("index", name, index.signature, draft)
    first_actions(index)
    return index


def _check_sizes(parameter: str, name: str, found: Signature, draft: Signature) -> None:
    for size in ("observation_dim", "goal_dim", "action_dim"):
        its, wanted = getattr(found, size), getattr(draft, size)
        if its != wanted:
            raise ParameterError(
                f"{parameter}: {name!r}, its {size} is {its}, must be {wanted}, that of checkpoint"
            )
