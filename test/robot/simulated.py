"""A verifier, and a link that loses, doubles, delays and reorders, in simulated time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from adahi_ros.policies.interface import Policy
from adahi_ros.protocol.description import Described, Description
from adahi_ros.protocol.request import OK, Reply, Request, RequestFault, fingerprint_number
from adahi_ros.protocol.window import WHOLE, WireWindow, window_digest
from adahi_ros.robot.outcomes import Check
from adahi_ros.robot.transport import Sent

WEIGHTS = "0123456789abcdef"
DELAY_S = 0.005  # each way


class SimulatedVerifier:
    """Replies to whatever a robot sends, or does not; and says of itself what the test wants.

    What it replies shows which observation it was about: every action is its number / 1024. Of a plan it
    shows the control step, too: see `planned`.
    """

    def __init__(self, policy: Policy, plans: int = 0) -> None:
        signature = policy.signature
        self.description = Description("target", "speculative", signature, policy_fingerprint=WEIGHTS)
        if plans:
            signature = replace(signature, horizon=plans, codes=None)
            self.description = Description("target", "replace", signature, policy_fingerprint=WEIGHTS)
        self._size = signature.horizon * signature.action_dim
        self._plans = plans
        self.replies = True
        self.keeps_windows = True
        self.undescribed = ""
        self.changes: dict[str, Any] = {}
        self._windows: set[int] = set()

    def speak(self, fingerprint: str) -> None:
        """Be one of another tokenizer, or of the same again."""
        codes = self.description.signature.codes
        assert codes is not None
        self.describe_otherwise(codes=replace(codes, fingerprint=fingerprint))

    def describe_intents(self, fingerprint: str, size: int) -> None:
        """Send intents from now on; their numbers are that of the observation."""
        self.description = replace(self.description, intent_fingerprint=fingerprint, intent_size=size)

    def describe_otherwise(self, **changes: Any) -> None:
        signature = replace(self.description.signature, **changes)
        self.description = replace(self.description, signature=signature)

    def load(self, fingerprint: str) -> None:
        """Serve the same policy with other weights from now on; empty for those that nobody knows."""
        self.description = replace(self.description, policy_fingerprint=fingerprint)
        self.restart()

    def restart(self) -> None:
        self._windows.clear()

    def reply(self, sent: int, request: Request, update: WireWindow) -> Reply:
        if self._plans:
            accepted: tuple[bool, ...] = ()
            steps = range(request.step + request.ahead, request.step + self._plans)
            dim = self.description.signature.action_dim
            actions = tuple(planned(number_of(request), step) for step in steps for _ in range(dim))
        else:
            accepted, actions = (True, False), (number_of(request) / 1024.0,) * self._size
        right = Reply(
            OK,
            "",
            request.episode,
            request.step,
            request.first_step,
            accepted,
            actions,
            1.0,
            self.keeps_windows,
            id=sent,
            size_bytes=100 + sent,
        )
        if size := self.description.intent_size:
            fingerprint = fingerprint_number(self.description.intent_fingerprint)
            intent = (int(number_of(request)),) * size
            right = replace(right, intent=intent, intent_fingerprint=fingerprint)
        if request.without_actions:
            right = replace(right, actions=())
        if update.base != WHOLE and update.base not in self._windows:
            return replace(right, status=int(RequestFault.WINDOW_UNKNOWN), message="base_window: unknown")
        changed = replace(right, **self.changes)
        if changed.status == OK and changed.window_kept:
            window = request.window
            self._windows.add(window_digest(window.rows.digests(window.length), window.goal))
        return changed


def number_of(request: Request) -> float:
    """Return the number of the observation that a request is about."""
    return float(np.frombuffer(request.window.rows.numbers, np.float32)[-3])


def planned(number: float, step: int) -> float:
    """Return what the plan that an observation asked for says for a control step."""
    return float(np.float32(number / 1024.0 + step / 2**17))


class SimulatedLink:
    """A `Transport` to one verifier.

    Attributes:
        now_s: the time.
        present, absence: see `Transport`.
        loss, doubling: shares of messages each way.
        delay_s: each way, from the one to the other.
        sent: size of each request, by id.
        open: ids that may still be replied to.
    """

    def __init__(self, verifier: SimulatedVerifier, seed: int) -> None:
        self.now_s = 100.0
        self.present = True
        self.absence = ""
        self.figures: dict[str, object] = {}
        self.loss = self.doubling = 0.0
        self.delay_s = (DELAY_S, DELAY_S)
        self.sent: dict[int, int] = {}
        self.updates: list[tuple[Request, WireWindow]] = []
        self.described = 0
        self.open: set[int] = set()
        self.on_air: list[tuple[float, int, Reply | Described]] = []
        self._verifier = verifier
        self._draw = np.random.default_rng(seed)
        self._ids, self._order = count(), count()

    next_due_s = math.inf

    @property
    def next_arrival_s(self) -> float:
        return self.on_air[0][0] if self.on_air else math.inf

    def accept_only(self, check: Check) -> None:
        """It has one verifier, and leaves it to the session to refuse replies."""

    def submit(self, request: Request, update: WireWindow) -> Sent:
        sent = Sent(next(self._ids), 50 + 4 * len(update.rows.numbers))
        self.sent[sent.id] = sent.size_bytes
        self.updates.append((request, update))
        self.open.add(sent.id)
        self._carry(lambda: self._verifier.reply(sent.id, request, update))
        return sent

    def describe(self) -> int:
        sent = next(self._ids)
        self.described += 1
        self.open.add(sent)
        why = self._verifier.undescribed
        self._carry(lambda: Described(sent, None if why else self._verifier.description, why))
        return sent

    def poll(self) -> Sequence[Reply | Described]:
        arrived: list[Reply | Described] = []
        while self.next_arrival_s <= self.now_s:
            arrived.append(heapq.heappop(self.on_air)[2])
            self.open.discard(arrived[-1].id)
        return arrived

    def cancel(self, sent: int) -> None:
        self.open.discard(sent)

    def _carry(self, reply: Callable[[], Reply | Described]) -> None:
        for there_s in self._crossings():
            if self._verifier.replies and self.present:
                message = reply()
                for back_s in self._crossings():
                    heapq.heappush(self.on_air, (self.now_s + there_s + back_s, next(self._order), message))

    def _crossings(self) -> list[float]:
        if self._draw.random() < self.loss:
            return []
        copies = 2 if self._draw.random() < self.doubling else 1
        return [float(self._draw.uniform(*self.delay_s)) for _ in range(copies)]
