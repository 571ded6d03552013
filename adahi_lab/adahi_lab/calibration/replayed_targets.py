# SPDX-License-Identifier: Apache-2.0
"""Prepares bags and policies for runs of methods, also for targets that read more than a dataset keeps.

Recorded trajectories have no images, instructions or features by name, and requests to a server are slow.
So `adahi train corrector` requests each step once, and this target replays the replies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from adahi_lab.calibration.bag_plans import plan_bags
from adahi_lab.calibration.target_inputs import Query, mean_request_bytes, verifiers_encoder
from adahi_lab.calibration.target_plans import RecordedTarget, numbered
from adahi_lab.datasets.bag_dataset import BagDataset, read_dataset
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.loaded_policies import INTENTS, PlanFiles, Policies, with_plans
from adahi_lab.evaluation.step_latency import Costs, target_ms_of
from adahi_ros.bags.bag_reader import OnLoss
from adahi_ros.contract.contract import Contract
from adahi_ros.core.signature import GOAL, IMAGE_FEATURES, OBSERVATION, Signature
from adahi_ros.policies.backends import description_of
from adahi_ros.policies.intent.intent import at_target
from adahi_ros.policies.interface import Policy

NO_PLANS = PlanFiles()
KEPT = (OBSERVATION, GOAL, IMAGE_FEATURES)


def reads_more(signature: Signature) -> bool:
    """Whether a target reads inputs that recorded trajectories do not keep."""
    named = {each.name for each in (*signature.features, *signature.conditions)}
    return bool(signature.images) or signature.instruction or not named <= set(KEPT)


def queried_once(target: Path, signature: Signature) -> bool:
    """Whether a target is asked once, and its answers replayed.

    A target described by a YAML file may be remote or slow. A target with codes must verify the codes.
    """
    described = description_of(target).is_file() and signature.codes is None
    return described or reads_more(signature)


def why_no_encoder(signature: Signature) -> str:
    """Return why no encoder of intents beside a target can be trained on recordings; empty if one can."""
    named = [each.name for each in (*signature.features, *signature.conditions)]
    if unkept := [name for name in named if name not in KEPT]:
        return f"the target reads {unkept[0]}, which recordings do not keep by this name"
    return "" if len(named) > 1 else "the target reads nothing that the robot does not"


def instruction_for(instruction: str, signature: Signature) -> str | None:
    """Return the target's instruction until a bag has another; None if it takes none.

    Raises:
        ValueError: an instruction is given to a target that takes none.
    """
    if signature.instruction:
        return instruction
    if instruction:
        raise ValueError(f"--instruction: {instruction!r}, must be left out: the target takes no instruction")
    return None


def query_of(
    bags: Sequence[Path],
    contract: Contract,
    defined_in: Path,
    namespace: str,
    target: Path,
    policy: Policy,
    backend: str,
    **how: Any,
) -> Query:
    """Return how a target is asked at the steps of bags.

    The plans depend on the target's YAML file, which its digest may not cover.

    Args:
        bags: of the robot.
        contract: defines its observations.
        defined_in: file of the contract.
        namespace: of the robot.
        target: where the policy is described.
        policy: the target.
        backend: that it runs on.
        **how: other fields of `Query`.
    """
    described = description_of(target)
    origin = {
        "contract": _digest(defined_in),
        "target": policy.digest,
        "described": _digest(described) if described.is_file() else "",
        "backend": backend,
    }
    return Query(bags, contract, namespace, str(target), origin, **how)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


class Observed(NamedTuple):
    """Bags, and the policies to run on them.

    Attributes:
        recorded: the steps.
        policies: the target may replay the replies of another one.
        bags: the dataset's summary of each.
        costs_of: corrects the measured costs of a step with these policies.
    """

    recorded: Trajectories
    policies: Policies
    bags: list[dict[str, Any]]
    costs_of: Callable[[Costs], Costs] = lambda costs: costs


def observed(
    pair: Policies,
    query: Query,
    instruction: str,
    folder: Path,
    once: bool,
    plans: PlanFiles = NO_PLANS,
    keep_failures: bool = False,
    on_loss: OnLoss | None = None,
    on_steps: Callable[[int], None] = lambda steps: None,
) -> Observed:
    """Read bags; request the target's plans at their steps where needed.

    Args:
        pair: draft and target.
        query: how the target is asked.
        instruction: of the target until a bag has another.
        folder: keeps its answers, below `planned`.
        once: see `queried_once`; the target then also plans.
        plans: a target that plans, and what acts by its replies, where given.
        keep_failures: see `read_dataset`.
        on_loss: likewise.
        on_steps: called with the number of steps that have just been planned.

    Raises:
        BagError: a bag cannot be used.
        TargetUnavailableError: the target is not available now.
        ValueError: parts do not match; names them.
    """
    target, backend = pair.target, query.origin["backend"]
    words = instruction_for(instruction, target.signature)
    dataset = read_dataset(
        query.bags, query.contract, query.namespace, keep_failures, on_loss=on_loss, instruction=words
    )
    bags = dataset.summary["bags"]
    if not once:
        return Observed(dataset.trajectories, with_plans(pair, plans, backend), bags)
    _check_encoders(plans, query.name)
    planned = plan_bags(target, dataset, query, folder, on_steps)
    replayed = RecordedTarget(planned, target.digest)
    policies = with_plans(Policies(pair.draft, replayed, replayed), plans._replace(plans=None), backend)
    return Observed(numbered(planned), policies, bags, _costs(pair, query, dataset))


def _check_encoders(plans: PlanFiles, target: str) -> None:
    """Raise a ValueError where an intent's encoder is beside a target with stored plans."""
    for name in INTENTS:
        path = getattr(plans, name)
        if path is not None and at_target(path):
            raise ValueError(
                f"{name}: {path}, its encoder is beside the target, but the plans of {target} are stored; "
                "must have its encoder on the robot, such as intent_of_plan"
            )


def _costs(pair: Policies, query: Query, dataset: BagDataset) -> Callable[[Costs], Costs]:
    """Return a function that adds the measured cost of a request to the target, where wanted."""

    def costs_of(costs: Costs) -> Costs:
        return replace(costs, target_ms=target_ms(), request_bytes=request_bytes())

    signature = pair.target.signature
    encoder = verifiers_encoder(query.contract, signature)
    target_ms = cache(lambda: target_ms_of(pair.target))
    request_bytes = cache(lambda: mean_request_bytes(query, dataset, signature, encoder))
    return costs_of
