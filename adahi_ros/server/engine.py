# SPDX-License-Identifier: Apache-2.0
"""What a verifier replies to robots that ask one policy over the air: the drafts of many at once."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.request import (
    OK,
    Reply,
    Request,
    RequestError,
    RequestFault,
    check_round_trip,
    fingerprint_number,
)
from adahi_ros.server.verification_request import (
    VerificationRequest,
    check_request,
    joined,
    kind_of,
)
from adahi_ros.server.verifier import Verifier, verification_uniforms
from adahi_ros.server.window_cache import MAX_AGE_S, ROBOTS_KEPT, ImageEncoder, KnownWindow, WindowCache

A = TypeVar("A")
B = TypeVar("B")

TARGETS_MOST = 64
"""Of one verifier, as in `DescribeTarget.srv`."""
REPLIES_KEPT = 256  # of all robots together: a request comes again within milliseconds, or never


class _Asked(NamedTuple):
    """A request with its window.

    Attributes:
        key: the same of one that is repeated, and of no other.
        request: as it was sent.
        window: the whole of it.
    """

    key: Hashable
    request: Request
    window: KnownWindow


class _Checked(NamedTuple):
    """A request that can be verified.

    Attributes:
        key: see `_Asked`.
        request: checked.
        draws: (1, N, 2).
        ahead: how many control steps after its own the reply begins.
    """

    key: Hashable
    request: VerificationRequest
    draws: np.ndarray
    ahead: int


@dataclass(eq=False)
class BatchInFlight:
    """Requests that are being verified.

    Attributes:
        asked: of each, the request with its window, or what is wrong with it.
        verdicts: those that are known so far, by the keys of requests.
        awaited: the others, those together that are asked about at once, and what will be said of each.
    """

    asked: list[_Asked | Exception]
    verdicts: dict[Hashable, Verdict | Exception]
    awaited: list[tuple[list[_Checked], Future[list[Verdict | Exception]]]]

    @property
    def done(self) -> bool:
        """Whether all is said."""
        return all(told.done() for _, told in self.awaited)

    def when_done(self, call: Callable[[], object]) -> None:
        """Have a function called, by whatever thread, each time that something more has been said."""
        for _, told in self.awaited:
            if not told.done():
                told.add_done_callback(lambda _: call())


class Engine:
    """Completes windows, checks drafts and verifies them; a request that is repeated gets the same reply.

    Attributes:
        at_once: so many batches are verified side by side.

    Args:
        verifier: decides.
        seed: of its draws.
        images: makes features of the images that robots send; None where they may send none.
        robots: whose last windows there is room for.
        max_age_s: a robot that was not heard for so long gives its room up.
    """

    def __init__(
        self,
        verifier: Verifier,
        seed: int,
        images: ImageEncoder | None = None,
        robots: int = ROBOTS_KEPT,
        max_age_s: float = MAX_AGE_S,
    ) -> None:
        self._verifier = verifier
        self.at_once = verifier.at_once
        self._seed = seed
        self._signature = signature = verifier.signature
        self._uses_link = verifier.acceptance.uses_link
        self._fingerprint = signature.codes and fingerprint_number(signature.codes.fingerprint)
        length, dim, seen = signature.history, signature.observation_dim, len(signature.images)
        self._windows = WindowCache(length, dim, images, robots, max_age_s, seen)
        self._remembered: OrderedDict[Hashable, Verdict] = OrderedDict()

    def verify(self, request: Request, now_s: float) -> Reply:
        """Return what one robot is to do (M = 1), from its `first_step` on.

        Args:
            request: unchecked.
            now_s: of a clock that only goes forward.

        Raises:
            RequestError: the request is refused.
            TargetUnavailableError: the policy proposes nothing now.
        """
        (replied,) = self.verify_all([request], now_s)
        if isinstance(replied, Exception):
            raise replied
        return replied

    def verify_all(self, requests: Sequence[Request], now_s: float) -> list[Reply | Exception]:
        """Return what robots are to do, or what keeps one of them from being told; raises nothing.

        Those that are alike in what they send are asked about at once. What becomes of one does not depend on
        the others, but for the rounding of the policy's arithmetic.

        Args:
            requests: unchecked.
            now_s: of a clock that only goes forward.
        """
        return self.finish(self.begin(requests), now_s)

    def begin(self, requests: Sequence[Request], until_s: float = math.inf) -> BatchInFlight:
        """Complete and check requests, and have the verifier asked about them; raises nothing.

        Args:
            requests: unchecked.
            until_s: when their replies are of no use any more, by the clock of the verifier.
        """
        asked = [_result_or_error(self._complete, request) for request in requests]
        verdicts: dict[Hashable, Verdict | Exception] = {}
        fresh: dict[Hashable, _Checked] = {}
        for each in asked:
            if isinstance(each, Exception) or each.key in verdicts or each.key in fresh:
                continue
            if each.key in self._remembered:
                verdicts[each.key] = self._remembered[each.key]
                continue
            checked = _result_or_error(self._checked, each)
            if isinstance(checked, Exception):
                verdicts[each.key] = checked
            else:
                fresh[each.key] = checked
        alike: dict[Hashable, list[_Checked]] = {}
        for good in fresh.values():
            alike.setdefault(kind_of(good.request), []).append(good)
        awaited = [(checked, self._told(checked, until_s)) for checked in alike.values()]
        return BatchInFlight(asked, verdicts, awaited)

    def finish(self, begun: BatchInFlight, now_s: float) -> list[Reply | Exception]:
        """Return what becomes of requests that have been verified, or waits until they are; raises nothing.

        Args:
            begun: by `begin`, once.
            now_s: of a clock that only goes forward.
        """
        verdicts = begun.verdicts
        for checked, told in begun.awaited:
            verdicts |= self._settled(checked, _each_of(told, len(checked)))
        return [
            each if isinstance(each, Exception) else self._replied(each, verdicts[each.key], now_s)
            for each in begun.asked
        ]

    def _told(self, checked: Sequence[_Checked], until_s: float) -> Future[list[Verdict | Exception]]:
        """Ask about drafts that can be asked about at once."""
        request = joined([each.request for each in checked])
        return self._verifier.submit(request, np.concatenate([each.draws for each in checked]), until_s)

    def _settled(
        self, checked: Sequence[_Checked], each_verdict: Sequence[Verdict | Exception]
    ) -> dict[Hashable, Verdict | Exception]:
        """Return what comes of drafts, and remember it."""
        verdicts: dict[Hashable, Verdict | Exception] = {}
        for each, verdict in zip(checked, each_verdict, strict=True):
            if isinstance(verdict, Verdict):
                told = each.request.draft.actions.shape[1] if self._stands(verdict) else 0
                verdict = Verdict(verdict.actions[:, max(each.ahead, told) :], verdict.accepted)
                self._remember(each.key, verdict)
            verdicts[each.key] = verdict
        return verdicts

    def _replied(self, asked: _Asked, verdict: Verdict | Exception, now_s: float) -> Reply | Exception:
        if isinstance(verdict, Exception):
            return verdict
        request = asked.request
        kept = self._windows.keep(request.robot_id, asked.window, now_s)
        accepted = tuple(map(bool, verdict.accepted[0]))
        about = request.episode, request.step, request.first_step
        return Reply(OK, "", *about, accepted, verdict.actions.ravel(), window_kept=kept)

    def _complete(self, request: Request) -> _Asked:
        self._check(request)
        window = self._windows.complete(request.robot_id, request.window)
        flat = request.codes, request.counts, request.actions
        key = (
            *(request.robot_id, request.episode, request.step, request.first_step, request.instruction),
            *(window.digest, *(each.tobytes() for each in flat)),
            request.round_trip_ms if self._uses_link else None,
        )
        return _Asked(key, request, window)

    def _checked(self, asked: _Asked) -> _Checked:
        request, window = asked.request, asked.window
        ahead = request.first_step - request.step
        images: dict[str, np.ndarray] = {}
        if self._signature.images:
            from adahi_ros.server.received_images import pictures

            images = pictures(self._signature.images, window.images)
        checked = check_request(
            self._signature,
            self._verifier.acceptance,
            window.values,
            window.goal,
            request.codes,
            request.counts,
            request.actions,
            request.instruction,
            ahead,
            images,
            request.round_trip_ms,
        )
        count = self._verifier.draws
        draws = verification_uniforms(self._seed, request.robot_id, request.episode, request.step, count)
        return _Checked(asked.key, checked, draws, ahead)

    def _remember(self, key: Hashable, verdict: Verdict) -> None:
        """Keep a reply for when its request is repeated. Draws are addressed: it would be the same."""
        self._remembered[key] = verdict
        if len(self._remembered) > REPLIES_KEPT:
            self._remembered.popitem(last=False)

    def _stands(self, verdict: Verdict) -> bool:
        """Whether the robot executes its own draft, which it need not be told."""
        return self._verifier.acceptance.keeps_drafts and bool(verdict.accepted.all())

    def _check(self, request: Request) -> None:
        """Check what a request is about."""
        if request.fault is not None:
            raise request.fault
        horizon, ours = self._signature.horizon, self._fingerprint
        check_round_trip(request.round_trip_ms)
        if request.codes.size and request.fingerprint != ours:
            allowed = "none: the target has no tokenizer" if ours is None else f"{ours:016x}"
            raise RequestError(
                RequestFault.TOKENIZER_MISMATCH,
                f"tokenizer_fingerprint: {request.fingerprint:016x}, must be {allowed}",
            )
        if not 0 <= request.first_step - request.step < horizon:
            last = request.step + horizon - 1
            raise RequestError(
                RequestFault.WRONG_SHAPE,
                f"first_step: {request.first_step}, must be from {request.step} to {last}",
            )


@dataclass(frozen=True, eq=False)
class ServedTarget:
    """A policy that robots may ask.

    Attributes:
        engine: replies.
        description: says what it is, and by which name.
        device: where it computes.
    """

    engine: Engine
    description: Description
    device: str = "cpu"


class ServedTargets:
    """By name; the first is asked where a request names none.

    Args:
        first: there is always one.
    """

    def __init__(self, first: ServedTarget) -> None:
        self._by_name = {first.description.target: first}

    @property
    def names(self) -> tuple[str, ...]:
        """Of all, the first one first."""
        return tuple(self._by_name)

    def named(self, name: str) -> ServedTarget:
        """Return the one that a request names.

        Raises:
            RequestError: none is called so.
        """
        if not name:
            return next(iter(self._by_name.values()))
        found = self._by_name.get(name)
        if found is None:
            there_are = ", ".join(map(repr, self._by_name))
            raise RequestError(RequestFault.UNKNOWN_TARGET, f"target: {name!r}, must be one of {there_are}")
        return found

    def check_fits(self, target: ServedTarget) -> None:
        """Check that a target can be served, beside the others or in the place of the one of its name.

        Robots that have been told what that one is are not told again: another must be alike.

        Raises:
            ValueError: it reads or proposes something else than the one of its name, or there are too many.
        """
        name = target.description.target
        before = self._by_name.get(name)
        if before is None:
            if len(self._by_name) >= TARGETS_MOST:
                raise ValueError(f"target: {name!r}, must be one of the {TARGETS_MOST} that are served")
            return
        if before.description.without_weights != target.description.without_weights:
            raise ValueError(
                f"target: {name!r}, is served and reads or proposes something else; must be another name"
            )

    def put(self, target: ServedTarget) -> None:
        """Serve a target from now on, in the place of the one of its name where there is one.

        Raises:
            ValueError: see `check_fits`.
        """
        self.check_fits(target)
        self._by_name[target.description.target] = target

    def remove(self, name: str) -> None:
        """Serve a target no more.

        Raises:
            ValueError: none is called so, or it is the first: a robot that names none has been told what that
                is, and would go on by the plans of another.
        """
        if name not in self._by_name:
            raise ValueError(f"target: {name!r}, must be one of {', '.join(map(repr, self._by_name))}")
        if name == self.names[0]:
            raise ValueError(f"target: {name!r}, is what robots get that name none, and stays")
        del self._by_name[name]


def _each_of(told: Future[list[Verdict | Exception]], count: int) -> list[Verdict | Exception]:
    """Return what was said of each of so many drafts, also by a verifier that breaks its word."""
    try:
        each = told.result()
        if len(each) != count:
            raise ValueError(f"verdicts: {len(each)}, must be {count}")
    except Exception as error:  # noqa: BLE001  robots wait for a reply, whatever it was
        return [error.with_traceback(None)] * count
    return each


def _result_or_error(read: Callable[[A], B], what: A) -> B | Exception:
    """Return what is made of one request, or what is wrong with it, which is nothing to the others."""
    try:
        return read(what)
    except Exception as error:  # noqa: BLE001
        return error.with_traceback(None)  # which would keep the request in memory
