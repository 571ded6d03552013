# SPDX-License-Identifier: Apache-2.0
"""Checks the requests to one policy, verifies them in batches, and makes the replies."""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from adahi_ros.acceptance.interface import Acceptance, DataRule, Verdict
from adahi_ros.core.proposal import UNITS, CodeDistribution, Proposal
from adahi_ros.core.signature import Signature
from adahi_ros.protocol.distributions import unpacked
from adahi_ros.protocol.request import (
    NOTHING,
    OK,
    Reply,
    Request,
    RequestError,
    RequestFault,
    check_finite,
    check_size,
    fingerprint_number,
    sent_codes,
)
from adahi_ros.server.verifier import (
    Verdicts,
    VerificationRequest,
    Verifier,
    joined,
    kind_of,
    verification_uniforms,
)
from adahi_ros.server.window_cache import MAX_AGE_S, ROBOTS_KEPT, ImageEncoder, KnownWindow, WindowCache

A = TypeVar("A")
B = TypeVar("B")

NO_IMAGES: Mapping[str, np.ndarray] = {}
REPLIES_KEPT = 256  # of all robots: a request is repeated within milliseconds, or never


class _Received(NamedTuple):
    """A request with its window.

    Attributes:
        key: identical only for copies of one request.
        request: as it was sent.
        window: the completed window.
        ahead: how many control steps after the request's step the reply begins.
    """

    key: Hashable
    request: Request
    window: KnownWindow
    ahead: int


class _Checked(NamedTuple):
    """A request that can be verified.

    Attributes:
        received: as it arrived.
        request: checked.
        draws: (1, N, 2).
    """

    received: _Received
    request: VerificationRequest
    draws: np.ndarray


@dataclass(eq=False)
class Batch:
    """Requests to one target that are being verified.

    Attributes:
        engine: verifies them.
        requests: of the batch.
        received: for each, the request with its window, or its error.
        verdicts: known so far, by the keys of requests.
        awaited: the other requests, grouped as they are verified, with their futures.
    """

    engine: Engine
    requests: Sequence[Request]
    received: list[_Received | Exception]
    verdicts: dict[Hashable, Verdict | Exception]
    awaited: list[tuple[list[_Checked], Future[Verdicts]]]

    @property
    def done(self) -> bool:
        """Whether all verdicts are known."""
        return all(verdicts.done() for _, verdicts in self.awaited)

    def when_done(self, call: Callable[[], object]) -> None:
        """Call a function, in any thread, whenever more verdicts are known."""
        for _, verdicts in self.awaited:
            if not verdicts.done():
                verdicts.add_done_callback(lambda _: call())


class Engine:
    """Completes windows, checks drafts and verifies them; a repeated request gets the same reply.

    Attributes:
        at_once, alone: see `Verifier`.

    Args:
        verifier: of the drafts.
        seed: of its draws.
        images: makes features of the images that robots send; None if they may not send any.
        robots: number of robots with cached windows.
        max_age_s: a robot without a request for this time leaves the cache.
    """

    def __init__(
        self,
        verifier: Verifier,
        seed: int,
        images: ImageEncoder | None = None,
        robots: int = ROBOTS_KEPT,
        max_age_s: float = MAX_AGE_S,
    ) -> None:
        self._verifier, self._terms, self._seed = verifier, verifier.terms, seed
        self.at_once, self.alone = verifier.at_once, verifier.alone
        self._signature = signature = verifier.terms.signature
        self._fingerprint = signature.codes and fingerprint_number(signature.codes.fingerprint)
        self._intent_fingerprint = fingerprint_number(verifier.terms.intent_fingerprint)
        length, dim, seen = signature.history, signature.observation_dim, len(signature.images)
        self._windows = WindowCache(length, dim, images, robots, max_age_s, seen)
        self._remembered: OrderedDict[Hashable, Verdict] = OrderedDict()

    def verify(self, request: Request, now_s: float) -> Reply:
        """Return the reply to one robot.

        Args:
            request: unchecked.
            now_s: monotonic time.

        Raises:
            RequestError: the request is refused.
            TargetUnavailableError: the policy proposes nothing now.
        """
        (replied,) = self.finish(self.begin([request]), now_s)
        if isinstance(replied, Exception):
            raise replied
        return replied

    def begin(self, requests: Sequence[Request], until_s: float = math.inf) -> Batch:
        """Complete and check requests, and start verifying them; raises nothing.

        Requests with the same parts are verified together. Each result is independent of the others, except
        for rounding.

        Args:
            requests: unchecked.
            until_s: when their replies become useless, by the verifier's clock.
        """
        received = [_result_or_error(self._complete, request) for request in requests]
        verdicts: dict[Hashable, Verdict | Exception] = {}
        alike: defaultdict[Hashable, list[_Checked]] = defaultdict(list)
        for each in {each.key: each for each in received if isinstance(each, _Received)}.values():
            known: Verdict | _Checked | Exception | None = self._remembered.get(each.key)
            if known is None:
                known = _result_or_error(self._checked, each)
            if isinstance(known, _Checked):
                alike[kind_of(known.request)].append(known)
            else:
                verdicts[each.key] = known
        awaited = []
        for some in alike.values():
            draws = np.concatenate([each.draws for each in some])
            together = joined([each.request for each in some])
            awaited.append((some, self._verifier.submit(together, draws, until_s)))
        return Batch(self, requests, received, verdicts, awaited)

    def finish(self, batch: Batch, now_s: float) -> list[Reply | Exception]:
        """Wait for a batch; return the reply or the error of each request. Raises nothing.

        Args:
            batch: from `begin`, once.
            now_s: monotonic time.
        """
        for checked, verdicts in batch.awaited:
            for each, verdict in zip(checked, _each_of(verdicts, len(checked)), strict=True):
                new = self._remember(each, verdict) if isinstance(verdict, Verdict) else verdict
                batch.verdicts[each.received.key] = new
        return [
            each if isinstance(each, Exception) else self._replied(each, batch.verdicts[each.key], now_s)
            for each in batch.received
        ]

    def _remember(self, checked: _Checked, verdict: Verdict) -> Verdict:
        """Return the part of a verdict that goes into the reply, and keep it for copies of the request.

        A reply leaves out the actions that the robot knows: those before the reply begins, and those of a
        completely accepted draft. A reply with an intent only has no actions.
        """
        received = checked.received
        skipped = self._signature.horizon if received.request.without_actions else received.ahead
        if self._terms.acceptance.keeps_drafts and verdict.accepted.all():
            skipped = max(skipped, checked.request.draft.actions.shape[1])
        if any(verdict.asks):
            skipped = self._signature.horizon
            verdict = replace(verdict, accepted=verdict.accepted[:, :0], codes=None)
        verdict = replace(verdict, actions=verdict.actions[:, skipped:])
        self._remembered[received.key] = verdict
        if len(self._remembered) > REPLIES_KEPT:
            self._remembered.popitem(last=False)
        return verdict

    def _replied(self, received: _Received, verdict: Verdict | Exception, now_s: float) -> Reply | Exception:
        if isinstance(verdict, Exception):
            return verdict
        request = received.request
        kept = self._windows.keep(request.robot_id, received.window, now_s)
        accepted = tuple(map(bool, verdict.accepted[0]))
        about = request.episode, request.step, request.first_step
        no_codes = request.without_actions and not request.codes.size  # an intent is enough
        return Reply(
            *(OK, "", *about, accepted, verdict.actions.ravel()),
            window_kept=kept,
            intent=() if verdict.intent is None else verdict.intent[0],
            intent_fingerprint=self._intent_fingerprint,
            codes=() if verdict.codes is None or no_codes else verdict.codes[0],
            rule_data=b"".join(verdict.asks),
            assignment=request.assignment,
        )

    def _complete(self, request: Request) -> _Received:
        """Check a request's sizes, and complete its window."""
        if request.fault is not None:
            raise request.fault
        if request.codes.size and request.fingerprint != self._fingerprint:
            ours = self._fingerprint
            allowed = "none: the target has no tokenizer" if ours is None else f"{ours:016x}"
            raise RequestError(
                RequestFault.TOKENIZER_MISMATCH,
                f"tokenizer_fingerprint: {request.fingerprint:016x}, must be {allowed}",
            )
        ahead = request.first_step - request.step
        if not 0 <= ahead < self._signature.horizon:
            allowed = f"from {request.step} to {request.step + self._signature.horizon - 1}"
            what = f"first_step: {request.first_step}, must be {allowed}"
            raise RequestError(RequestFault.WRONG_SHAPE, what)
        decodes = request.codes.size and self._terms.acceptance.gives_codes
        if request.without_actions and not (decodes or self._terms.intent_size):
            what = "without_actions: true, must be false: a reply has neither codes nor an intent"
            raise RequestError(RequestFault.WRONG_SHAPE, what)
        window = self._windows.complete(request.robot_id, request.window)
        key = (
            *(request.robot_id, request.episode, request.step, request.first_step, request.instruction),
            *(request.without_actions, window.digest),
            None if request.assigned_goal is None else request.assigned_goal.tobytes(),
            *(each.tobytes() for each in (request.codes, request.counts, request.actions)),
            request.rule_data if isinstance(self._terms.acceptance, DataRule) else b"",
        )
        return _Received(key, request, window, ahead)

    def _checked(self, received: _Received) -> _Checked:
        request, window = received.request, received.window
        images = NO_IMAGES
        if self._signature.images:
            from adahi_ros.server.received_images import pictures

            images = pictures(self._signature.images, window.images)
        checked = check_request(
            self._signature,
            self._terms.acceptance,
            window.values,
            window.goal if request.assigned_goal is None else request.assigned_goal,
            request.codes,
            request.counts,
            request.actions,
            request.instruction,
            received.ahead,
            images,
            request.rule_data,
        )
        episode = request.robot_id, request.session, request.episode
        checked = replace(checked, observations=replace(checked.observations, episodes=(episode,)))
        where = request.robot_id, request.episode, request.step
        return _Checked(received, checked, verification_uniforms(self._seed, *where, self._terms.draws))


def _each_of(verdicts: Future[Verdicts], count: int) -> Verdicts:
    """Return `count` verdicts, or errors if the verifier fails."""
    try:
        each = verdicts.result()
        if len(each) != count:
            raise ValueError(f"verdicts: {len(each)}, must be {count}")
    except Exception as error:  # noqa: BLE001  robots wait for a reply, whatever the error is
        return [error.with_traceback(None)] * count
    return each


def _result_or_error(read: Callable[[A], B], what: A) -> B | Exception:
    """Call a function with one request; return its result or its error, so that the others continue."""
    try:
        return read(what)
    except Exception as error:  # noqa: BLE001
        return error.with_traceback(None)  # a traceback would keep the request in memory


def check_request(
    signature: Signature,
    rule: Acceptance,
    window: np.ndarray,
    goal: np.ndarray,
    codes: np.ndarray,
    counts: np.ndarray,
    actions: np.ndarray = NOTHING,
    instruction: str = "",
    ahead: int = 0,
    images: Mapping[str, np.ndarray] = NO_IMAGES,
    rule_data: bytes = b"",
) -> VerificationRequest:
    """Make one robot's request from a window and flat arrays, or refuse it.

    Args:
        signature: the target's.
        rule: of acceptance.
        window: (H, O) float32, finite, from `WindowCache.complete`.
        goal: (G,), the conditions.
        codes: (N,) integers; may be empty.
        counts: (N * K,) integers, the draft's probabilities as `distribution.counted` rounds them; empty
            without codes.
        actions: (T * A,) of the draft; may be empty.
        instruction: a sentence.
        ahead: how many control steps after the request's step the reply begins; the robot has committed to
            the draft's actions for these steps.
        images: by name, (H, rows, columns, 3) uint8, that the target reads as raw images.
        rule_data: of the draft, for the rule; ignored where it reads none.

    Raises:
        RequestError: wrong size, not finite, a code out of range or never drafted, or not distributions.
    """
    draft = _checked_draft(signature, rule, codes, counts, actions, rule_data)
    check_size("goal", goal.size, (signature.goal_dim,))
    check_finite("goal", goal)
    observations = signature.observations(window[None], goal[None].astype(np.float32))
    if signature.instruction:
        if not instruction.strip():
            what = "instruction: empty, must say what to do: the target reads an instruction"
            raise RequestError(RequestFault.NO_INSTRUCTION, what)
        observations = replace(observations, instructions=(instruction,))
    if signature.images:
        shown = {each.name: images[each.name][None] for each in signature.images}
        observations = replace(observations, images=shown)
    committed = draft.actions[:, :ahead] if ahead and draft.actions.size else None
    return VerificationRequest(observations, draft, committed)


def _certain_codes(codes: np.ndarray, entries: int) -> CodeDistribution:
    """Return one robot's drafted codes (N,), each certain among K entries."""
    drafted = codes[None].astype(np.int64, copy=False)
    return sent_codes(drafted, np.eye(entries, dtype=np.uint16)[drafted] * np.uint16(UNITS))


def _checked_draft(
    signature: Signature,
    rule: Acceptance,
    codes: np.ndarray,
    counts: np.ndarray,
    actions: np.ndarray,
    rule_data: bytes,
) -> Proposal:
    """Return a draft from flat arrays: actions (1, T, A) float32; T is 0 without actions."""
    size = signature.action_dim
    if actions.size % size:
        what = f"draft_actions: {actions.size} values, must be a multiple of {size}"
        raise RequestError(RequestFault.WRONG_SHAPE, what)
    check_finite("draft_actions", actions)
    drafted = actions.astype(np.float32, copy=False).reshape(1, -1, size)
    if not (rule.needs_codes or codes.size or counts.size):
        return Proposal(drafted)
    space = signature.codes
    books, entries = (0, 0) if space is None else (space.codebooks, space.codebook_size)
    if space is None or not (space.sequential and 0 < codes.size < books):  # then a draft may be shorter
        check_size("codes", codes.size, (books,))
    books = codes.size
    for index, code in enumerate(codes.tolist()):
        if not 0 <= code < entries:
            what = f"codes[{index}]: {code}, must be at least 0 and below {entries}"
            raise RequestError(RequestFault.CODE_OUT_OF_RANGE, what)
    if isinstance(rule, DataRule):
        try:
            data = rule.unpack(rule_data, codes)
        except ValueError as error:
            raise RequestError(RequestFault.WRONG_SHAPE, f"rule_data: {error}") from error
        return Proposal(drafted, _certain_codes(codes, entries), data=data)
    counts = counts.reshape(books, -1) if counts.size == books * entries else unpacked(counts, books, entries)
    sums = counts.sum(axis=-1, dtype=np.int64)
    if counts.min() < 0 or (sums != UNITS).any():
        raise RequestError(
            RequestFault.NOT_A_DISTRIBUTION,
            f"draft_probabilities: rows sum to {sums.tolist()} with smallest entry "
            f"{counts.min()}, must sum to {UNITS} and not be negative",
        )
    impossible = np.flatnonzero(counts[np.arange(books), codes] == 0)
    if impossible.size:
        index = impossible[0]
        raise RequestError(
            RequestFault.CODE_OUT_OF_RANGE,
            f"codes[{index}]: {codes[index]}, drafted with probability 0, must be one that "
            "draft_probabilities has more than 0 for",
        )
    drawn = sent_codes(codes[None].astype(np.int64, copy=False), counts[None].astype(np.uint16))
    return Proposal(drafted, drawn)
