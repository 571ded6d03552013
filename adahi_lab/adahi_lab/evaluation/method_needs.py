# SPDX-License-Identifier: Apache-2.0
"""Requirements of a method: policies, weights on the robot, bytes sent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_lab.evaluation.loaded_policies import DRAFT_CODES, INTENTS, PLANS, Bench
from adahi_lab.evaluation.rollout import Log
from adahi_lab.methods.actors import ALONE, DRAFT, TARGET
from adahi_lab.methods.method import Method
from adahi_lab.methods.oracles import ORACLES
from adahi_lab.tasks.task_interface import TaskSpec
from adahi_ros.core.signature import Signature
from adahi_ros.policies.intent.intent import Intent
from adahi_ros.proposers.draft import CODES
from adahi_ros.protocol.window import reply_bytes, request_bytes

NAMES = {PLANS: "target that plans"}
"""Display names of fields of `Policies`; the others have the field's name."""


@dataclass(frozen=True)
class Demands:
    """What a method demands.

    Attributes:
        needs: policies and other inputs, as text.
        weights: of the policies on the robot; None where unknown.
        target: what the requested policy reads and proposes; None where none is requested, or unknown.
        codes: whether requests hold codes of the draft.
        decoded: whether replies have codes instead of actions.
        late: control steps until a reply arrives; requests hold the actions executed before that.
        intent: numbers of the intent that a reply has instead of a plan; 0 for replies with plans.
    """

    needs: tuple[str, ...] = ()
    weights: int | None = None
    target: Signature | None = None
    codes: bool = False
    decoded: bool = False
    late: int = 0
    intent: int = 0


def demands(method: Method, bench: Bench) -> Demands:
    """Return the requirements of a method that can run on a bench."""
    method, policies = method.on(bench.task), bench.policies
    needs = method.needs
    asked = () if method.proposer in ALONE else (TARGET, PLANS)
    wanted = next((kind for kind in asked if kind in needs), None)
    on_robot = [kind for kind in needs if kind not in asked]
    names = [NAMES.get(kind, kind) for kind in needs]
    names += ["what no robot knows"] * (method.gate in ORACLES) + ["your own file"] * bool(method.own)
    acting: Intent | None = getattr(policies, method.proposer) if method.proposer in INTENTS else None
    return Demands(
        tuple(names),
        None
        if method.own_proposer is not None
        else sum(getattr(policies, kind).signature.parameters for kind in on_robot),
        # How many drafted actions a request holds is unknown.
        None if wanted is None or method.horizon is not None else getattr(policies, wanted).signature,
        wanted == TARGET and not {DRAFT, DRAFT_CODES}.isdisjoint(needs) and policies.share_codes,
        method.reply == CODES,
        method.delay if acting is None else 0,  # its requests hold no actions
        acting.size if acting is not None and acting.at_target else 0,
    )


def traffic(log: Log, needed: Demands, spec: TaskSpec) -> tuple[float, float] | None:
    """Return the mean bytes of an episode's requests and of their replies; None where unknown.

    Serialized messages of one robot, as its node sends them: new parts of the window, a camera's features.
    DDS, UDP and the link add to each; nothing is lost or sent again. With images, sizes are unknown, because
    the size of a JPEG depends on its content; and neither is the size of the distributions of tokens known.
    """
    sent = log.transmitted & log.active
    episodes = sent.shape[1]
    if not sent.any():
        return 0.0, 0.0
    if needed.target is None or spec.images_for_target:
        return None
    if needed.codes and needed.target.codes is not None and needed.target.codes.sequential:
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
    short = needed.intent or needed.decoded
    actions = 0 if short else target.horizon * target.action_dim - committed
    decoded = 0 if target.codes is None or needed.intent else target.codes.codebooks
    down = int(sent.sum()) * reply_bytes(actions, codes, intent=needed.intent, codes=decoded)
    return up / episodes, down / episodes
