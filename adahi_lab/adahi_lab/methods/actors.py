# SPDX-License-Identifier: Apache-2.0
"""Which policies a proposer needs, on the robot and as the target."""

from __future__ import annotations

from typing import Any

from adahi_lab.evaluation.loaded_policies import DRAFT_CODES, GOAL_ONCE, INTENTS, PLANS, Policies
from adahi_ros.policies.interface import Actor, Policy
from adahi_ros.proposers.interface import Proposer
from adahi_ros.proposers.registry import PROPOSERS

DRAFT, TARGET, DISTILLED = "draft", "target", "distilled"
STORED, TARGET_ON_ROBOT = "stored", "target_on_robot"
PLAN, CORRECTOR, DRAFT_CHECKS_PLAN = "plan", "corrector", "draft_checks_plan"

ALONE: dict[str, str] = {
    DISTILLED: DISTILLED,
    GOAL_ONCE: GOAL_ONCE,
    STORED: INTENTS[0],
    TARGET_ON_ROBOT: PLANS,
}
"""What acts on the robot without a server, in place of a proposer, and the field of `Policies` it needs."""

ON_ROBOT: dict[str, tuple[str, ...]] = {
    PLAN: (),
    CORRECTOR: (CORRECTOR,),
    **{name: (name,) for name in INTENTS},
    **{name: (needed,) for name, needed in ALONE.items()},
}
"""Fields of `Policies` that a proposer uses on the robot. All other proposers use the draft."""

MISSING = {
    PLANS: "there is no target that plans beside these policies; train one with a recipe such as "
    "adahi_lab/config/recipes/ball-plans.yaml",
    CORRECTOR: "there is no corrector beside these policies; 'adahi train policy' makes one by a recipe such "
    "as adahi_lab/config/recipes/ball-plans.yaml",
    **{
        name: f"no checkpoint '{name}' beside these policies' plans; 'adahi train policy TASK --only {name}' "
        "makes one by a recipe such as adahi_lab/config/recipes/metaworld-plans.yaml"
        for name in INTENTS
    },
    DRAFT_CODES: f"no checkpoint '{DRAFT_CODES}' beside these policies; 'adahi train offsets TASK' makes one",
    **{
        name: f"no checkpoint '{name}' beside these policies' plans; 'adahi train policy TASK --only {name}' "
        f"makes one by a recipe such as adahi_lab/config/recipes/{recipe}-plans.yaml"
        for name, recipe in ((DISTILLED, "ball"), (GOAL_ONCE, "ball_instructed"))
    },
}


def follows_plan(proposer: str) -> bool:
    """Return whether a proposer executes plans of the target, and proposes nothing for it to verify."""
    made = _class_of(proposer)
    return made is not None and made.needs_plan and not made.drafts_plans


def drafts_plans(proposer: str) -> bool:
    """Return whether a proposer drafts a plan where it has none, whatever the gate."""
    made = _class_of(proposer)
    return made is not None and made.drafts_plans


def _class_of(proposer: str) -> type[Proposer] | None:
    made = None if proposer in ALONE else PROPOSERS[proposer]  # that of drafts is no class
    return made if isinstance(made, type) and issubclass(made, Proposer) else None


def policy_of(policies: Policies, kind: str, method: str) -> Any:
    """Return one of the policies, by the name of its field.

    Raises:
        ValueError: it is missing; names the method that needs it.
    """
    found = getattr(policies, kind)
    if found is None:
        raise ValueError(f"{method}: {MISSING[kind]}")
    return found


def target_of(policies: Policies, method: str) -> Policy:
    """Return the target that plans; raises as `policy_of`."""
    target: Policy = policy_of(policies, PLANS, method)
    return target


def actor_of(policies: Policies, proposer: str, method: str | None = None) -> Actor:
    """Return the policy that a proposer is made from; raises as `policy_of`."""
    method = proposer if method is None else method
    if proposer == PLAN:
        # As in the robot's node: a robot that follows plans knows and sees no more than its draft does.
        target = target_of(policies, method)
        ours, theirs = policies.draft.signature, target.signature
        knows_more = theirs.goal_dim > ours.goal_dim or theirs.image_dim > 0
        return policies.draft if knows_more else target
    (kind,) = ON_ROBOT.get(proposer, (DRAFT,))
    actor: Actor = policy_of(policies, kind, method)
    return actor
