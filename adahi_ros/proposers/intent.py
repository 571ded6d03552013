# SPDX-License-Identifier: Apache-2.0
"""Proposers that act by the intent of the target's last reply, long after its plan is over.

What only the target knows is mostly constant over an episode: which task, and where. An intent says it in a
few bytes, so that one request can be enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.observation_buffer import ObservationBuffer
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.registry import argument
from adahi_ros.core.signature import OBSERVATION
from adahi_ros.policies.intent.intent import Intent, load_intent
from adahi_ros.policies.intent.intent_features import RepliesView
from adahi_ros.policies.interface import Actor
from adahi_ros.proposers.interface import Proposer, ProposerContext
from adahi_ros.proposers.opened_file import FILE, opened

NONE = -1  # the step of a request where there is no reply


@dataclass(eq=False)
class IntentProposer(Proposer):
    """Acts by the newest intent: the verifier sends one, or the robot's encoder finds it in the plans.

    Raises:
        ValueError: there is no network for intents in the file, or it is of another robot.
    """

    needs_policy = False
    needs_plan = True

    policy: Actor  # the robot's or, without a file, what acts by intents
    file: str = argument("", f"{FILE}. Its NAME_encoder is beside it, or only at the verifier", optional=True)
    steps: int = argument(200, "Largest age of an intent, in steps", 1, 1_000_000)

    def __post_init__(self) -> None:
        acting = opened(self.policy, self.file, Intent, _loaded, ("observation_dim", "action_dim"))
        self.actor: Intent = acting
        self.held, self.alone = self, acting.at_target
        if self.alone:
            self.wanted_intent = acting.encoder_fingerprint, acting.size
        else:
            self.wanted_horizon = acting.signature.horizon
        self._memory: ObservationBuffer | None = None
        self._intent: np.ndarray | None = None  # before the first step
        self._step = 0

    def forget(self) -> None:
        """See `Held`; a reply for the new task may arrive before the next step."""
        if self._intent is not None:
            self._begin(len(self._intent))

    def _begin(self, batch: int) -> None:
        sizes = self.actor.signature
        replies = 1 if self.actor.encoder is None else self.actor.encoder.sizes.replies
        self._intent = np.zeros((batch, self.actor.size), dtype=np.int8)
        self._former = self._intent.copy()  # (B, N), at the step before
        self._renewed = np.zeros(batch, dtype=bool)  # (B,), since then
        self._requested = np.full((batch, replies), NONE)  # the newest first
        self._observed = np.zeros((batch, replies, sizes.observation_dim), dtype=np.float32)
        self._plans = np.zeros((batch, replies, sizes.horizon, sizes.action_dim), dtype=np.float32)

    @property
    def figures(self) -> Mapping[str, object]:
        """See `Held`; in control steps, at the newest step. The age is inf without an intent."""
        if self._intent is None:
            return {}
        age, left = self.age(self._step)[0], self.left(self._step)[0]
        return {"intent.age": f"{age:.0f}", "intent.left": int(left)}

    def left(self, step: int) -> np.ndarray:
        """See `Held`; the steps until an intent is too old."""
        newest = self._requested[:, 0]
        return np.where(newest == NONE, 0, np.maximum(0, newest + self.steps - step))

    def age(self, step: int) -> np.ndarray:
        """See `Held`; the age of the intent's request."""
        newest = self._requested[:, 0]
        return np.where(newest == NONE, np.inf, step - newest)

    def at(self, step: int) -> np.ndarray:
        """See `Held`."""
        return self._acts(step, self._intent)[0]

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`; one action; NaN without an intent."""
        self._memory, self._step = context.memory, context.step
        batch = len(context.plan.left(context.step))
        if self._intent is None or context.begins or len(self._intent) != batch:
            self._begin(batch)
        actions, expected_error = self._acts(context.step, self._intent)
        change = np.full(batch, np.nan)
        if (renewed := self._renewed).any():
            former, _ = self._acts(context.step, self._former)
            moved = np.square((actions - former) / self.actor.action_scale).mean(axis=-1)
            change[renewed] = np.sqrt(moved[renewed])
        self._former, self._renewed = np.array(self._intent), np.zeros(batch, dtype=bool)
        return Proposal(actions[:, None], expected_error=expected_error, change=change)

    def _acts(self, step: int, intent: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the actions (B, A) and expected errors (B,) by intents; NaN where a robot has none."""
        assert intent is not None
        assert self._memory is not None
        now = np.full(len(intent), step)
        observation, previous = (self._memory.at(OBSERVATION, at) for at in (now, now - 1))
        actions, expected_error = self.actor.act(observation, previous, intent)
        without = self.left(step) == 0
        actions[without], expected_error[without] = np.nan, np.inf
        return actions, expected_error

    def observe_reply(self, requested_at: int, verdict: Verdict, rows: np.ndarray) -> None:
        """See `Proposer`; a reply to an older request than the newest changes nothing."""
        if self._intent is None or self._memory is None:
            return
        newer = requested_at > self._requested[rows, 0]
        rows, verdict = rows[newer], verdict.rows(newer)
        if not len(rows):
            return
        self._renewed[rows] = self._requested[rows, 0] != NONE
        for kept in (self._requested, self._observed, self._plans):
            kept[rows, 1:] = kept[rows, :-1]
        self._requested[rows, 0] = requested_at
        encoder = self.actor.encoder
        if encoder is None or self.actor.at_target:
            if verdict.intent is None:
                raise ValueError("intent: empty, the target must have an encoder of intents")
            self._intent[rows] = verdict.intent
            return
        batch = len(self._intent)
        self._observed[rows, 0] = self._memory.at(OBSERVATION, np.full(batch, requested_at))[rows]
        self._plans[rows, 0] = verdict.actions
        nothing = np.zeros((len(rows), 0), dtype=np.float32)
        view = RepliesView(self._observed[rows], self._plans[rows], self._requested[rows], nothing)
        self._intent[rows] = encoder.encode(view)


def _loaded(path: Path) -> Intent:
    """Load a network for intents, and run it once, because the first run is slow."""
    acting = load_intent(path)
    nothing = np.zeros((1, acting.signature.observation_dim), dtype=np.float32)
    acting.act(nothing, nothing, np.zeros((1, acting.size), dtype=np.int8))
    return acting
