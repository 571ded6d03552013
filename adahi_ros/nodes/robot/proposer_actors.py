# SPDX-License-Identifier: Apache-2.0
"""Loads what proposers need besides the draft: a corrector, a network for intents, or an index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.signature import Signature
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.policies import first_actions
from adahi_ros.nodes.robot.draft_policy_parameters import INTENTS, DraftPolicyParameters
from adahi_ros.policies.corrector.corrector import Corrector
from adahi_ros.policies.corrector.corrector_checkpoint import load_corrector
from adahi_ros.policies.corrector.corrector_features import PlanView
from adahi_ros.policies.interface import Actor, Policy
from adahi_ros.policies.retrieval import load_retrieval
from adahi_ros.proposers.retrieval import DraftAndRetrieval

A = TypeVar("A", bound=Actor)
SIZES = ("observation_dim", "goal_dim", "action_dim")


def actor_of(values: DraftPolicyParameters, policy: Policy) -> Actor:
    """Load the actor of a proposer, and run it once, because the first run is slow.

    Args:
        values: of the node, with a proposer that has an actor of its own.
        policy: the robot's own.

    Raises:
        ParameterError: it cannot be loaded, or is for another robot; names the parameter, its value and why.
    """
    if values.proposer == "corrector":
        corrector = _loaded("corrector", values.corrector, _corrector, policy.signature)
        corrector.correct(PlanView.nothing(corrector.signature))
        return corrector
    if values.proposer in INTENTS:
        return _intent(values.intent, policy.signature)
    index = _loaded("index", values.index, load_retrieval, policy.signature)
    first_actions(index)
    return DraftAndRetrieval(policy, index) if values.proposer == "tool_path" else index


def _intent(name: str, draft: Signature) -> Actor:
    from adahi_ros.policies.intent.intent import load_intent

    intent = _loaded("intent", name, load_intent, draft, ("observation_dim", "action_dim"))
    nothing = np.zeros((1, draft.observation_dim), dtype=np.float32)
    intent.act(nothing, nothing, np.zeros((1, intent.size), dtype=np.int8))
    return intent


def _corrector(path: Path) -> Corrector:
    return Corrector(load_corrector(path))


def _loaded(
    parameter: str, name: str, load: Callable[[Path], A], draft: Signature, sizes: Sequence[str] = SIZES
) -> A:
    """Load what a parameter names as DIRECTORY/NAME; a relative path is below the package's checkpoints.

    Args:
        parameter: of the node.
        name: its value.
        load: from a path.
        draft: of the robot's own policy.
        sizes: that must be those of the draft.

    Raises:
        ParameterError: it cannot be loaded, or has other sizes.
    """
    if not name:
        raise ParameterError(f"{parameter}: '', must name a checkpoint for this proposer")
    try:
        found = load(named(name, CHECKPOINTS))
    except (CheckpointError, OSError) as error:
        raise ParameterError(f"{parameter}: {name!r}, cannot be loaded: {error}") from error
    for size in sizes:
        its, wanted = getattr(found.signature, size), getattr(draft, size)
        if its != wanted:
            raise ParameterError(
                f"{parameter}: {name!r}, its {size} is {its}, must be {wanted} as in checkpoint"
            )
    return found
