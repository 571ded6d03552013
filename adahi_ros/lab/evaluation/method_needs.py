# SPDX-License-Identifier: Apache-2.0
"""What a method demands: policies, weights on the robot, bytes on the air."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_ros.core.signature import Signature
from adahi_ros.lab.evaluation.loaded_policies import Bench, Policies
from adahi_ros.lab.evaluation.rollout import Log
from adahi_ros.lab.methods.file_methods import FileMethod
from adahi_ros.lab.methods.harm_oracle import HarmOracleMethod
from adahi_ros.lab.methods.methods import DistilledMethod, GatedMethod, Method, OracleMethod
from adahi_ros.lab.methods.plan_methods import CORRECTOR, DRAFT_CHECKS_PLAN, PlanMethod
from adahi_ros.lab.methods.proposer_methods import FILTERS, MIXTURE, ProposerMethod
from adahi_ros.lab.methods.recommended import BestMethod
from adahi_ros.lab.tasks.task_interface import TaskSpec
from adahi_ros.protocol.sizes import reply_bytes, request_bytes

DRAFT, TARGET, PLANS, DISTILLED = "draft", "target", "target that plans", "distilled"
DEMONSTRATIONS = "demonstrations"
OWN = "a file of one's own"


@dataclass(frozen=True)
class Demands:
    """What a method demands.

    Attributes:
        needs: policies and the like, for people.
        weights: of what runs on the robot; None where nobody knows.
        target: what the policy that is asked reads and proposes; None where nobody is, or nobody knows.
        codes: what is sent of a draft; none where this is 0.
        late: control steps after which a reply is there; what is done before that is sent.
    """

    needs: tuple[str, ...] = ()
    weights: int | None = None
    target: Signature | None = None
    codes: bool = False
    late: int = 0


def on_task(method: Method, task: str) -> Method:
    """Return a method as it is on a task; raises as `BestMethod.on`."""
    return method.on(task) if isinstance(method, BestMethod) else method


def demands(method: Method, bench: Bench) -> Demands:
    """Return what a method demands that can run on a bench; nothing where it is of an unknown kind."""
    method, policies = on_task(method, bench.task), bench.policies
    if isinstance(method, PlanMethod):
        return _by_plans(method.proposer, policies, method.late)
    if isinstance(method, DistilledMethod):
        assert policies.distilled is not None
        return Demands((DISTILLED,), policies.distilled.signature.parameters)
    if isinstance(method, OracleMethod | HarmOracleMethod):
        plans = isinstance(method, HarmOracleMethod) and not method.drafts
        proposer = method.proposer if isinstance(method, HarmOracleMethod) else DRAFT
        told = _by_plans(proposer, policies, late=0) if plans else _drafting(policies, asks=True)
        return Demands((*told.needs, "what no robot knows"), told.weights, told.target, told.codes)
    if isinstance(method, GatedMethod):
        if method.gate == "always" and method.rule == "replace":  # what was drafted changes nothing
            return Demands((TARGET,), 0, policies.target.signature)
        return _drafting(policies, asks=method.gate != "never")
    if isinstance(method, ProposerMethod):
        return _proposing(method, policies)
    if isinstance(method, FileMethod):
        kind = method.told()
        late = int(kind.wait_policy == "ahead")
        told = (
            _by_plans("plan" if kind.proposes else kind.proposer, policies, late)
            if kind.by_plans
            else _drafting(policies, asks=kind.gate != "never")
        )
        weights = None if kind.proposes else told.weights
        return Demands((*told.needs, OWN), weights, told.target, told.codes, told.late)
    return Demands()


def _drafting(policies: Policies, asks: bool) -> Demands:
    draft = policies.draft.signature
    if not asks:
        return Demands((DRAFT,), draft.parameters)
    return Demands((DRAFT, TARGET), draft.parameters, policies.target.signature, policies.share_codes)


def _proposing(method: ProposerMethod, policies: Policies) -> Demands:
    if method.proposer in FILTERS:
        return _drafting(policies, asks=True)
    asked = TARGET if method.horizon is None else PLANS
    if method.proposer == MIXTURE:  # of what is retrieved, actions are sent, and nobody knows how many
        return Demands((asked, DRAFT, DEMONSTRATIONS), policies.draft.signature.parameters)
    return Demands((asked, DEMONSTRATIONS), 0)


def _by_plans(proposer: str, policies: Policies, late: int) -> Demands:
    assert policies.plans is not None
    target = policies.plans.signature
    if proposer == CORRECTOR:
        assert policies.corrector is not None
        return Demands((PLANS, CORRECTOR), policies.corrector.signature.parameters, target, late=late)
    if proposer == DRAFT_CHECKS_PLAN:
        return Demands((PLANS, DRAFT), policies.draft.signature.parameters, target, late=late)
    return Demands((PLANS,), 0, target, late=late)


def traffic(log: Log, needed: Demands, spec: TaskSpec) -> tuple[float, float] | None:
    """Return the mean bytes of an episode's requests, and of their replies; None where nobody knows.

    Serialized messages of one robot, as its node sends them: of the window what the verifier has not seen, of
    a camera its features. DDS, UDP and the link add to each; nothing is lost and nothing is sent again. Where
    images are sent, nobody knows: how long a JPEG is depends on what it shows.
    """
    sent = log.transmitted & log.active
    episodes = sent.shape[1]
    if not sent.any():
        return 0.0, 0.0
    if needed.target is None or spec.images_for_target:
        return None
    target = needed.target
    numbers = len(spec.joint_names) + len(spec.state_names)
    committed = needed.late * target.action_dim
    codes = target.codes.codebooks if needed.codes and target.codes is not None else 0
    size = target.codes.codebook_size if needed.codes and target.codes is not None else 0

    def request(rows: int) -> int:
        whole = rows >= target.history
        rows = min(rows, target.history)
        return request_bytes(
            rows * numbers,
            rows * (target.observation_dim - numbers),
            target.goal_dim if whole else 0,
            committed,
            codes,
            codes * size,
        )

    up = 0
    for column in sent.T:
        gaps = np.diff(np.flatnonzero(column), prepend=-target.history)
        up += sum(request(int(rows)) for rows in gaps)
    down = int(sent.sum()) * reply_bytes(target.horizon * target.action_dim - committed, codes)
    return up / episodes, down / episodes
