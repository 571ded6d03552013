"""What a verifier replies to robots that ask over the air, one draft at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.server.received_images import pictures
from adahi_ros.server.verifier import TargetVerifier, verification_uniforms
from adahi_ros.server.window_cache import MAX_AGE_S, ROBOTS_KEPT, ImageEncoder, WindowCache
from adahi_ros.wire.fingerprints import fingerprint_number
from adahi_ros.wire.request import RequestError, RequestFault, check_request
from adahi_ros.wire.sent_request import SentRequest

REPLIES_KEPT = 256  # of all robots together: a request comes again within milliseconds, or never


class Replied(NamedTuple):
    """A reply to one robot.

    Attributes:
        verdict: on its draft.
        window_kept: a later update of the robot may continue this window.
    """

    verdict: Verdict
    window_kept: bool


class Engine:
    """Completes windows, checks drafts and verifies them; a request that is repeated gets the same reply.

    Args:
        verifier: decides.
        seed: of its draws.
        images: makes features of the images that robots send; None where they may send none.
        target: name of the policy.
        robots: whose last windows there is room for.
        max_age_s: a robot that was not heard for so long gives its room up.
    """

    def __init__(
        self,
        verifier: TargetVerifier,
        seed: int,
        images: ImageEncoder | None = None,
        target: str = "",
        robots: int = ROBOTS_KEPT,
        max_age_s: float = MAX_AGE_S,
    ) -> None:
        self._verifier = verifier
        self._seed = seed
        self._target = target
        self._signature = signature = verifier.policy.signature
        self._fingerprint = signature.codes and fingerprint_number(signature.codes.fingerprint)
        length, dim, seen = signature.history, signature.observation_dim, len(signature.images)
        self._windows = WindowCache(length, dim, images, robots, max_age_s, seen)
        self._remembered: OrderedDict[Hashable, Verdict] = OrderedDict()

    def verify(self, request: SentRequest, now_s: float) -> Replied:
        """Return what one robot is to do (M = 1), from its `first_step` on.

        Args:
            request: unchecked.
            now_s: of a clock that only goes forward.

        Raises:
            RequestError: the request is refused.
        """
        self._check(request)
        window = self._windows.complete(request.robot_id, request.update)
        flat = request.codes, request.counts, request.actions
        asked = (
            *(request.robot_id, request.episode, request.step, request.first_step, request.instruction),
            *(window.digest, *(each.tobytes() for each in flat)),
        )
        verdict = self._remembered.get(asked)
        if verdict is None:
            ahead = request.first_step - request.step
            checked = check_request(
                self._signature,
                self._verifier.acceptance,
                window.values,
                window.goal,
                *flat,
                request.instruction,
                ahead,
                pictures(self._signature.images, window.images),
            )
            count = self._verifier.policy.draws
            draws = verification_uniforms(self._seed, request.robot_id, request.episode, request.step, count)
            verdict = self._verifier.verify(checked, draws)
            told = checked.draft.actions.shape[1] if self._stands(verdict) else 0
            verdict = Verdict(verdict.actions[:, max(ahead, told) :], verdict.accepted)
            self._remember(asked, verdict)
        return Replied(verdict, self._windows.keep(request.robot_id, window, now_s))

    def _stands(self, verdict: Verdict) -> bool:
        """Whether the robot executes its own draft, which it need not be told."""
        return self._verifier.keeps_drafts and bool(verdict.accepted.all())

    def _check(self, request: SentRequest) -> None:
        """Check what a request is about."""
        name, horizon, ours = self._target, self._signature.horizon, self._fingerprint
        if request.target not in ("", name):
            raise RequestError(RequestFault.UNKNOWN_TARGET, f"target: {request.target!r}, must be {name!r}")
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

    def _remember(self, asked: Hashable, verdict: Verdict) -> None:
        """Keep a reply for when its request is repeated. Draws are addressed: it would be the same."""
        self._remembered[asked] = verdict
        if len(self._remembered) > REPLIES_KEPT:
            self._remembered.popitem(last=False)
