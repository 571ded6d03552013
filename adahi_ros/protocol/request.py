# SPDX-License-Identifier: Apache-2.0
"""The request of a robot and the reply of the verifier, as both ends represent them."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import CodeDistribution, Proposal, probabilities_of
from adahi_ros.core.signature import CodeSpace, Signature
from adahi_ros.protocol.window import NO_WINDOW, WireWindow

PROTOCOL_VERSION = 8
"""Version of the messages. Another version may give the same bytes another meaning."""
NOTHING = np.empty(0, dtype=np.float32)
NO_CODES = np.empty(0, dtype=np.int64)
NO_FINGERPRINT = 0
"""In messages without a fingerprint."""
NO_ASSIGNMENT = 0
"""In replies to unchanged requests."""
OK = 0  # as a status, besides the numbers of `RequestFault`
SESSION_BITS = 32
INTERNAL_ERROR = 6  # likewise
PARTS_MOST = 64
"""Largest number of a draft's parts that a reply judges, as in `VerifyDraft.srv`."""
INTENT_LIMIT = 127
"""An intent's entries are from -127 to 127."""


class RequestFault(IntEnum):
    """Reason why a request is refused. The numbers are those of `VerifyDraft.srv`."""

    TOKENIZER_MISMATCH = 1
    WRONG_SHAPE = 2
    NOT_FINITE = 3
    CODE_OUT_OF_RANGE = 4
    NOT_A_DISTRIBUTION = 5
    WINDOW_UNKNOWN = 7
    PROTOCOL_MISMATCH = 8
    UNKNOWN_TARGET = 9
    SUPERSEDED = 10
    TARGET_UNAVAILABLE = 11
    NO_INSTRUCTION = 12
    BUSY = 13
    UNKNOWN_ROBOT = 14


class RequestError(ValueError):
    """A request that cannot be verified; the message names the field, the value and what was allowed."""

    def __init__(self, fault: RequestFault, message: str) -> None:
        super().__init__(message)
        self.fault = fault

    def __reduce__(self) -> tuple[type[RequestError], tuple[RequestFault, str]]:
        """See `object`; between the processes of one verifier, errors are values."""
        return RequestError, (self.fault, str(self))


STATUS_NAMES = {
    OK: "ok",
    INTERNAL_ERROR: "internal_error",
    **{int(fault): fault.name.lower() for fault in RequestFault},
}


@dataclass(frozen=True)
class Sender:
    """The common fields of all requests of one start of a robot.

    Attributes:
        robot_id: names the robot's stream of draws at the verifier.
        session: distinguishes this start from others.
        target: name of the policy; empty takes the verifier's first.
        fingerprint: of the draft's tokenizer; None where it has none.
    """

    robot_id: str
    session: int
    target: str
    fingerprint: str | None

    @classmethod
    def of_new_start(cls, robot_id: str, target: str, fingerprint: str | None) -> Sender:
        """Return the sender of a robot that starts now."""
        # Not an experiment's draw, which repeats: it must differ at every start.
        return cls(robot_id, secrets.randbits(SESSION_BITS), target, fingerprint)

    @cached_property
    def fingerprint_number(self) -> int:
        """The fingerprint as messages have it."""
        return fingerprint_number(self.fingerprint or "")


class SentParts(NamedTuple):
    """The parts of its drafts that a robot sends to one target.

    Attributes:
        actions: all actions; else only those that the robot executes with any reply.
        codes: the codes, with their distributions.
        data: the rule's own data instead of the distributions.
    """

    actions: bool
    codes: bool
    data: bool = False

    def select(self, draft: Proposal, ahead: int = 0) -> Proposal:
        """Return these parts of a draft.

        Args:
            draft: of the robot.
            ahead: number of its actions that the robot executes with any reply. Every target gets them:
                they are few, and a target that cannot continue from them ignores them.
        """
        actions = draft.actions if self.actions else draft.actions[:, :ahead]
        drawn = draft.distribution if self.codes else None
        return Proposal(actions, drawn, data=draft.data if drawn is not None and self.data else {})


@dataclass(frozen=True, eq=False)
class Request:
    """A robot's request to the verifier for one control step.

    The robot sets the content, its transport adds the name of the sender. At the verifier
    it is unchecked: `Engine` checks it.

    Attributes:
        episode, step: of the draft.
        first_step: control step at which the reply begins.
        window: of observations and conditions: whole on the robot, as received at the verifier.
        actions: (T * A,) float32, from `step` on; the robot executes those before `first_step`
            whatever the reply is. Empty where they are not sent.
        codes: (N,) integers; empty where the draft has none.
        counts: (N * K,) integers, the distributions of the codes; at the verifier as they were sent, see
            `unpacked`; empty without codes, or with data.
        rule_data: what the rule reads besides, see `DataRule.pack`; on a robot it is added when the request
            is sent.
        instruction: for the target, in a sentence; empty without one.
        needed_in_s: how soon the robot needs the reply, from when it makes the request; 0 where unknown.
        without_actions: the codes of a reply or, without codes in the request, its intent are enough.
        data: on a robot, its draft's data for the rule.
        robot_id: names the robot's windows and draws at the verifier.
        session: distinguishes this start of the robot from others.
        target: name of the policy; empty takes the verifier's first.
        fingerprint: of the tokenizer of the codes; `NO_FINGERPRINT` without codes.
        fault: why the verifier refuses it immediately; then the content is missing.
        assigned_goal: (G,) float32, replaces the window's goal at the verifier; None for none.
        assignment: revision of the assignment that changed it at the verifier; `NO_ASSIGNMENT` for none.
    """

    episode: int
    step: int
    first_step: int
    window: WireWindow = NO_WINDOW
    actions: np.ndarray = field(default_factory=lambda: NOTHING)
    codes: np.ndarray = field(default_factory=lambda: NO_CODES)
    counts: np.ndarray = field(default_factory=lambda: NO_CODES)
    instruction: str = ""
    needed_in_s: float = 0.0
    without_actions: bool = False
    data: Mapping[str, np.ndarray] = field(default_factory=dict)
    rule_data: bytes = b""
    robot_id: str = ""
    session: int = 0
    target: str = ""
    fingerprint: int = NO_FINGERPRINT
    fault: Exception | None = None
    assigned_goal: np.ndarray | None = None
    assignment: int = NO_ASSIGNMENT

    @classmethod
    def from_draft(
        cls,
        draft: Proposal,
        episode: int,
        step: int,
        window: WireWindow,
        ahead: int = 0,
        instruction: str = "",
        needed_in_s: float = 0.0,
        without_actions: bool = False,
    ) -> Request:
        """Return the request about one robot's draft (M = 1).

        Args:
            draft: only the parts to send.
            episode: see the class.
            step: see the class.
            window: see the class.
            ahead: number of the draft's actions that the robot executes with any reply.
            instruction: see the class.
            needed_in_s: see the class.
            without_actions: see the class.
        """
        drawn = draft.distribution
        codes = counts = NO_CODES
        if drawn is not None and drawn.counts is not None:
            codes = drawn.codes[0]
            counts = NO_CODES if draft.data else drawn.counts[0].ravel()
        content = codes, counts, instruction, needed_in_s, without_actions, draft.data
        return cls(episode, step, step + ahead, window, draft.actions[0].ravel(), *content)

    @property
    def ahead(self) -> int:
        """Number of control steps from its own to the start of the reply."""
        return self.first_step - self.step

    @property
    def about(self) -> tuple[int, int, int]:
        """Identifies the request in a reply."""
        return self.episode, self.step, self.first_step


@dataclass(frozen=True, eq=False)
class Reply:
    """The verifier's reply to one robot's request. On the robot it is unchecked: see `judged`.

    Attributes:
        status: a key of `STATUS_NAMES`.
        message: human-readable; empty where the status is `OK`.
        episode, step, first_step: those of the request.
        accepted: N; empty unless `OK`.
        actions: ((T - (first_step - step)) * A,) float32, from `first_step` on; empty where the request wants
            none, and unless `OK`.
        compute_ms: the verifier's own share of the round trip.
        window_kept: a later request may name this window as its base.
        retry_after_s: when to ask again, where the verifier is busy; else 0.
        intent: Z, from -127 to 127; empty without an encoder of intents.
        intent_fingerprint: of that encoder; `NO_FINGERPRINT` without an intent.
        codes: N, of these actions; empty where they have none, and where an intent is enough.
        rule_data: with which the rule asks for more, see `DataRule.answered`; then there are no actions.
        id: of the answered message on the robot.
        size_bytes: of the serialized reply.
        fault: why the robot cannot read it; then the other fields are meaningless.
        assignment: revision of the assignment that changed the request; `NO_ASSIGNMENT` for none.
    """

    status: int
    message: str
    episode: int
    step: int
    first_step: int
    accepted: Sequence[bool] = ()
    actions: Sequence[float] | np.ndarray = ()
    compute_ms: float = 0.0
    window_kept: bool = False
    retry_after_s: float = 0.0
    intent: Sequence[int] | np.ndarray = ()
    intent_fingerprint: int = NO_FINGERPRINT
    codes: Sequence[int] | np.ndarray = ()
    rule_data: bytes = b""
    id: int = 0
    size_bytes: int = 0
    fault: str = ""
    assignment: int = NO_ASSIGNMENT


def fingerprint_number(fingerprint: str) -> int:
    """Return a fingerprint of 16 hexadecimal digits as a number, `NO_FINGERPRINT` for an empty one."""
    return int(fingerprint, 16) if fingerprint else NO_FINGERPRINT


def fingerprint_text(number: int) -> str:
    """Return the text of a fingerprint's number, empty for `NO_FINGERPRINT`."""
    return "" if number == NO_FINGERPRINT else f"{number:016x}"


def check_finite(field: str, values: np.ndarray) -> None:
    """Check float16 or float32 values.

    Raises:
        RequestError: one is not finite.
    """
    # The sum is quicker: finite float32 values, at these counts, never add up to infinity.
    if not math.isfinite(values.sum(dtype=np.float64)):
        index = int(np.flatnonzero(~np.isfinite(values.ravel()))[0])
        raise RequestError(
            RequestFault.NOT_FINITE, f"{field}[{index}]: {values.ravel()[index]}, must be finite"
        )


def check_size(field: str, size: int, shape: tuple[int, ...]) -> None:
    """Check the number of values for a shape.

    Raises:
        RequestError: too few or too many.
    """
    expected = math.prod(shape)
    if size != expected:
        raise RequestError(
            RequestFault.WRONG_SHAPE, f"{field}: {size} values, expected {expected} for shape {shape}"
        )


def sent_codes(codes: np.ndarray, counts: np.ndarray) -> CodeDistribution:
    """Return drafted codes (M, N) with their distributions (M, N, K), as the verifier has them."""
    return CodeDistribution(probabilities_of(counts), codes, _unknown_actions, counts)


def _unknown_actions(codes: np.ndarray) -> np.ndarray:
    raise ValueError("actions: of a draft's codes, are known to the draft alone")


def check_reply(
    target: Signature,
    ahead: int,
    parts: int | None,
    accepted: Sequence[bool],
    actions: Sequence[float] | np.ndarray,
    codes: Sequence[int] | np.ndarray = (),
) -> Verdict:
    """Convert a reply's values to one robot's verdict, or refuse them.

    Args:
        target: the target's signature.
        ahead: number of control steps, from the request's on, that the reply leaves out.
        parts: N, the judged parts of the draft; None where the rule determines it.
        accepted: N.
        actions: (T - ahead) * A.
        codes: N, of the target's tokenizer; empty where the reply has none.

    Raises:
        RequestError: wrong size, not finite, or out of range.
    """
    # Without arrays until all checks pass: the robot waits, and for few values arrays are slower.
    if parts is not None:
        check_size("accepted", len(accepted), (parts,))
    shape = (target.horizon - ahead, target.action_dim)
    check_size("actions", len(actions), shape)
    if not math.isfinite(sum(actions)):  # no sum of finite float32 values is infinite as a double
        index, value = next(each for each in enumerate(actions) if not math.isfinite(each[1]))
        raise RequestError(RequestFault.NOT_FINITE, f"actions[{index}]: {value}, must be finite")
    return Verdict(
        np.array(actions, dtype=np.float32).reshape(1, *shape),
        np.array(accepted, dtype=bool).reshape(1, len(accepted)),
        codes=_checked_codes(codes, target.codes),
    )


def _checked_codes(codes: Sequence[int] | np.ndarray, space: CodeSpace | None) -> np.ndarray | None:
    """Return a reply's codes (1, N) int64, or refuse them; None without codes."""
    if not len(codes):
        return None
    books, entries = (0, 0) if space is None else (space.codebooks, space.codebook_size)
    check_size("codes", len(codes), (books,))
    for index, code in enumerate(codes):
        if not 0 <= code < entries:
            what = f"codes[{index}]: {code}, must be from 0 to {entries - 1}"
            raise RequestError(RequestFault.CODE_OUT_OF_RANGE, what)
    return np.array(codes, dtype=np.int64).reshape(1, books)


def check_intent(
    intent: Sequence[int] | np.ndarray, fingerprint: int, size: int, wanted: int
) -> np.ndarray | None:
    """Convert a reply's intent to one robot's (1, Z) int8, or refuse it; None without one.

    Args:
        intent: of the reply.
        fingerprint: of its encoder, as the reply has it.
        size: Z, as described.
        wanted: fingerprint of the encoder, as described.

    Raises:
        RequestError: another encoder or size than the described one, or out of range.
    """
    if fingerprint != wanted:
        found, allowed = fingerprint_text(fingerprint) or "none", fingerprint_text(wanted) or "none"
        raise RequestError(
            RequestFault.WRONG_SHAPE, f"intent_fingerprint: {found}, must be {allowed}, as described"
        )
    check_size("intent", len(intent), (size,))
    for index, entry in enumerate(intent):
        if not -INTENT_LIMIT <= entry <= INTENT_LIMIT:
            allowed = f"from {-INTENT_LIMIT} to {INTENT_LIMIT}"
            raise RequestError(RequestFault.WRONG_SHAPE, f"intent[{index}]: {entry}, must be {allowed}")
    return np.array(intent, dtype=np.int8).reshape(1, size) if size else None
