"""The robot's side of the verifier services: handshake, question, deadline. Waits for nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from adahi_msgs.srv import DescribeTarget, VerifyDraft
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined]
from rclpy.node import Node
from rclpy.serialization import serialize_message
from rclpy.task import Future

from adahi_ros.nodes.messages import from_answer, from_description
from adahi_ros.policy.interface import Policy, misfit
from adahi_ros.speculation.records import Reason
from adahi_ros.speculation.request import RequestError, Verification, check_answer

WATCH_PERIOD_S = 0.05
DESCRIBE_DEADLINE_S = 1.0
DESCRIBE_RETRY_S = 1.0
LONGEST_PAUSE_S = 2.0  # after missed answers; it doubles from DESCRIBE_RETRY_S
MISSES_UNTIL_LOST = 3  # answers missed in a row; DDS itself notices a killed verifier only after 20 s


class Link(Enum):
    """Whether there is a verifier to ask."""

    ABSENT = "no verifier"
    READY = "verifier ready"
    MISMATCHED = "verifier of another kind"


@dataclass(frozen=True)
class Answer:
    """How a question ended.

    Attributes:
        verification: what to execute; None to execute the draft.
        reason: why there is no verification; NONE where there is one.
        message: for people, where there is something to say.
        verify_ms: question sent to answer received; 0 without a verification.
        compute_ms: the verifier's own share of it.
        response_bytes: size of the serialized answer; 0 where none came in time.
    """

    verification: Verification | None
    reason: Reason
    message: str = ""
    verify_ms: float = 0.0
    compute_ms: float = 0.0
    response_bytes: int = 0


class VerifierClient:
    """Asks one question at a time, of a verifier that has proved to fit.

    While started it looks for a verifier, asks it what it expects, and does so again when the
    verifier has gone, refuses the tokenizer, or has missed several deadlines. In the last case it waits
    first, longer each time, until an answer comes in time.

    Attributes:
        link: whether there is a verifier to ask.
        trouble: why not, for people; where it is MISMATCHED, the field that does not fit. Empty while READY.
        doubted: deadlines were missed, and no answer has come in time since.

    Args:
        node: spins the clients and timers.
        policy: the draft policy, which the verifier must fit.
        on_change: called when one of the attributes has changed.
    """

    def __init__(self, node: Node, policy: Policy, on_change: Callable[[], None]) -> None:
        self._node = node
        self._policy = policy
        self._on_change = on_change
        self.doubted = False
        self._forget()
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._describe_client = node.create_client(DescribeTarget, "describe_target")
        self._verify_client = node.create_client(VerifyDraft, "verify_draft")
        self._watch = node.create_timer(WATCH_PERIOD_S, self._look, clock=steady)
        self._deadline = node.create_timer(1.0, self._missed, clock=steady)
        self._watch.cancel()
        self._deadline.cancel()
        self._describing: Future | None = None
        self._asked: Future | None = None

    def start(self) -> None:
        """Look for a verifier from now on."""
        self._forget()
        self._watch.reset()

    def stop(self) -> None:
        """Forget the verifier and whatever was asked."""
        self._watch.cancel()
        self.abandon()
        self._forget_description()
        self._forget()

    def destroy(self) -> None:
        """Stop, and free the clients and timers."""
        self.stop()
        for timer in (self._watch, self._deadline):
            self._node.destroy_timer(timer)
        for client in (self._describe_client, self._verify_client):
            self._node.destroy_client(client)

    def ask(
        self, request: VerifyDraft.Request, deadline_s: float, on_answer: Callable[[Answer], None]
    ) -> None:
        """Send a question; `on_answer` is called once, by the deadline, unless the question is abandoned.

        Only where `link` is READY and the question before has ended.
        """
        self._request = request
        self._on_answer = on_answer
        self._sent = time.perf_counter()
        self._deadline.timer_period_ns = round(deadline_s * 1e9)
        self._deadline.reset()
        self._asked = self._verify_client.call_async(request)
        self._asked.add_done_callback(self._answered)

    def abandon(self) -> None:
        """Give up the question that is out; whatever comes is dropped."""
        self._deadline.cancel()
        if self._asked is not None:
            self._verify_client.remove_pending_request(self._asked)
            self._asked = None

    def _answered(self, future: Future) -> None:
        if future is not self._asked:
            return
        verify_ms = 1e3 * (time.perf_counter() - self._sent)
        self.abandon()
        self._misses = 0
        self._pause_s = DESCRIBE_RETRY_S
        if self.doubted:
            self.doubted = False
            self._on_change()
        answer = self._judge(future.result(), verify_ms)
        self._on_answer(answer)

    def _judge(self, response: VerifyDraft.Response, verify_ms: float) -> Answer:
        size = len(serialize_message(response))
        if response.status == VerifyDraft.Response.STATUS_TOKENIZER_MISMATCH:
            self._lose("the verifier refuses the tokenizer")
        if response.status != VerifyDraft.Response.STATUS_OK:
            message = response.message or f"status {response.status}"
            return Answer(None, Reason.REFUSED, message, response_bytes=size)
        asked = (self._request.episode_id, self._request.step_id)
        answered = (response.episode_id, response.step_id)
        if answered != asked:
            message = f"episode_id, step_id: {answered}, must be {asked}"
            return Answer(None, Reason.BAD_ANSWER, message, response_bytes=size)
        try:
            verification = check_answer(self._policy.spec, *from_answer(response))
        except RequestError as error:
            return Answer(None, Reason.BAD_ANSWER, str(error), response_bytes=size)
        return Answer(verification, Reason.NONE, "", verify_ms, response.compute_time_ms, size)

    def _missed(self) -> None:
        if self._asked is None:
            return
        self.abandon()
        self._misses += 1
        if self._misses >= MISSES_UNTIL_LOST:
            self.doubted = True
            self._lose(f"verifier too slow, or gone: {self._misses} answers in a row not by the deadline")
            self._next_look = time.monotonic() + self._pause_s
            self._pause_s = min(2.0 * self._pause_s, LONGEST_PAUSE_S)
        self._on_answer(Answer(None, Reason.DEADLINE))

    def _look(self) -> None:
        present = self._describe_client.service_is_ready() and self._verify_client.service_is_ready()
        if not present and self.link is not Link.ABSENT:
            self._lose("verifier lost: its services are gone")
        now = time.monotonic()
        if not present or self.link is Link.READY or now < self._next_look:
            return
        if self._describing is not None and self.link is Link.MISMATCHED:
            self._lose("verifier lost: it does not describe itself any more")
        self._forget_description()
        self._next_look = now + DESCRIBE_DEADLINE_S
        self._describing = self._describe_client.call_async(DescribeTarget.Request())
        self._describing.add_done_callback(self._described)

    def _described(self, future: Future) -> None:
        if future is not self._describing:
            return
        self._describing = None
        self._next_look = time.monotonic() + DESCRIBE_RETRY_S
        self._misses = 0
        ours = self._policy.spec, self._policy.decoder.fingerprint
        difference = misfit(*ours, *from_description(future.result()))
        self._change(Link.READY if difference is None else Link.MISMATCHED, difference or "")

    def _forget_description(self) -> None:
        if self._describing is not None:
            self._describe_client.remove_pending_request(self._describing)
            self._describing = None

    def _forget(self) -> None:
        self.link = Link.ABSENT
        self.trouble = "no verifier has described itself"
        self.doubted = False
        self._next_look = 0.0
        self._pause_s = DESCRIBE_RETRY_S
        self._misses = 0

    def _lose(self, trouble: str) -> None:
        self._next_look = 0.0
        self._change(Link.ABSENT, trouble)

    def _change(self, link: Link, trouble: str) -> None:
        if (link, trouble) != (self.link, self.trouble):
            self.link, self.trouble = link, trouble
            self._on_change()
