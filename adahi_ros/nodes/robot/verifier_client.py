"""The robot's side of the verifier services: handshake, question, deadline, breaker. Waits for nothing."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from adahi_msgs.msg import LinkState
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined]
from rclpy.node import Node
from rclpy.serialization import serialize_message
from rclpy.task import Future

from adahi_ros.gates.context import LinkEstimate
from adahi_ros.nodes.common.bounds import shortened
from adahi_ros.nodes.common.messages import (
    fingerprint_number,
    from_description,
    to_request,
    verify_qos,
)
from adahi_ros.nodes.common.timers import call_in
from adahi_ros.nodes.common.urgent_executor import Urgent
from adahi_ros.nodes.robot.question import Answer, Question, judged
from adahi_ros.policy.interface import Policy, misfit
from adahi_ros.robot.breaker import Breaker
from adahi_ros.robot.link_estimate import LinkEstimator
from adahi_ros.robot.retransmission import Patience
from adahi_ros.wire.records import Reason
from adahi_ros.wire.window_updates import SentWindows

WATCH_PERIOD_S = 0.05
DESCRIBE_RETRY_S = 1.0
SESSION_BITS = 32
PROBES_OUT = 4  # a probe that is late still tells that the link is back


class Link(IntEnum):
    """Whether there is a verifier to ask. The numbers are those of `LinkState.msg`."""

    ABSENT = LinkState.VERIFIER_ABSENT
    READY = LinkState.VERIFIER_READY
    MISMATCHED = LinkState.VERIFIER_MISMATCHED
    DOUBTED = LinkState.VERIFIER_DOUBTED

    @property
    def label(self) -> str:
        """For people."""
        return {
            Link.ABSENT: "no verifier",
            Link.READY: "verifier ready",
            Link.MISMATCHED: "verifier of another kind",
            Link.DOUBTED: "verifier too slow, or gone",
        }[self]


@dataclass(frozen=True)
class _Unsettled:
    """An answer in time that nothing was learnt of yet."""

    question: Question
    asked: list[Future]
    answer: Answer
    response: VerifyDraft.Response
    verify_ms: float


class VerifierClient:
    """Asks one question at a time, of a verifier that has proved to fit.

    While started it looks for a verifier, asks it what it expects, and does so again when the
    verifier has gone or refuses the tokenizer. A verifier that misses several deadlines in a row is left
    alone but for probes, the same question of what it expects, until it answers one (`Breaker`).

    Attributes:
        link: whether there is a verifier to ask.
        trouble: why not, for people; where it is MISMATCHED, the field that does not fit. Empty while READY.
        request_bytes: serialized size of the last question, with the whole window where that was asked for.
        windows_resent: how often it was.

    Args:
        node: spins the clients and timers.
        policy: the draft policy, which the verifier must fit.
        robot_id: names the robot's stream of draws at the verifier.
        reliability: of the question and the answer, a key of `RELIABILITIES`.
        on_change: called when link or trouble has changed.
        encoder_fingerprint: of the encoder that the verifier must have; None where no images are sent.
    """

    def __init__(
        self,
        node: Node,
        policy: Policy,
        robot_id: str,
        reliability: str,
        on_change: Callable[[], None],
        encoder_fingerprint: str | None = None,
    ) -> None:
        self._node = node
        self._policy = policy
        self._fingerprint = fingerprint_number(policy.decoder.fingerprint)
        self._robot_id = robot_id
        # No draw of an experiment, which would be repeated: it must differ from that of every other start.
        self._session = secrets.randbits(SESSION_BITS)
        self._on_change = on_change
        self._encoder_fingerprint = encoder_fingerprint
        self._breaker = Breaker()
        self._sent_windows = SentWindows()
        self._repeats = reliability == "best_effort"
        self._asked: list[Future] = []
        self._unsettled: _Unsettled | None = None
        self._probes: list[Future] = []
        self._next_look = 0.0
        self._forget()
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._describe_client = node.create_client(DescribeTarget, "describe_target")
        qos = verify_qos(reliability)
        self._verify_client = node.create_client(VerifyDraft, "verify_draft", qos_profile=qos)
        self._watch = node.create_timer(WATCH_PERIOD_S, self._look, clock=steady)
        self._deadline = node.create_timer(1.0, self._missed, clock=steady)
        self._repeat = node.create_timer(1.0, self._ask_again, clock=steady)
        for timer in (self._watch, self._deadline, self._repeat):
            timer.cancel()

    def start(self) -> None:
        """Look for a verifier from now on."""
        self._forget()
        self._watch.reset()

    def stop(self) -> None:
        """Forget the verifier and whatever was asked."""
        self._watch.cancel()
        self.settle()
        self.abandon()
        self._forget_probes(0)
        self._forget()

    def destroy(self) -> None:
        """Stop, and free the clients and timers."""
        self.stop()
        for timer in (self._watch, self._deadline, self._repeat):
            self._node.destroy_timer(timer)
        for client in (self._describe_client, self._verify_client):
            self._node.destroy_client(client)

    @property
    def urgent(self) -> Urgent:
        """What is waited for while a question is out."""
        return Urgent(timers=[self._deadline, self._repeat], clients=[self._verify_client])

    def estimate(self) -> LinkEstimate:
        """Return how the way to the verifier is."""
        self.settle()
        return self._estimator.estimate(time.monotonic())

    def ask(self, question: Question, deadline_s: float, on_answer: Callable[[Answer], None]) -> None:
        """Send a question; `on_answer` is called once, by the deadline, unless the question is abandoned.

        Only where `link` is READY and the question before has ended.
        """
        self.settle()
        self._question = question
        self._on_answer = on_answer
        self._started = time.perf_counter()
        self.request_bytes = 0
        self._repetitions = 0
        self._put()
        call_in(self._deadline, deadline_s)
        self._wait_for_repetition()

    def abandon(self) -> None:
        """Give up the question that is out; whatever comes is dropped."""
        self._stop_waiting(self._asked)

    def _stop_waiting(self, asked: list[Future]) -> None:
        self._deadline.cancel()
        self._repeat.cancel()
        self._drop(asked)

    def _put(self) -> None:
        """Make the message of the question, and send it."""
        self._message = self._message_of(self._question)
        self._send()

    def _message_of(self, question: Question) -> VerifyDraft.Request:
        return to_request(
            question.request,
            self._sent_windows.update(question.window),
            self._robot_id,
            self._session,
            question.episode,
            question.step,
            self._fingerprint,
        )

    def _send(self) -> None:
        future = self._verify_client.call_async(self._message)
        self._asked.append(future)
        future.add_done_callback(self._answered)
        self.request_bytes += len(serialize_message(self._message))  # it is on its way, and there is time

    def _wait_for_repetition(self) -> None:
        call_in(self._repeat, self._patience.wait_s(self._repetitions) if self._repeats else None)

    def _ask_again(self) -> None:
        if not self._asked:
            return
        self._repetitions += 1
        self._send()
        self._wait_for_repetition()

    def _drop(self, asked: list[Future]) -> None:
        while asked:
            self._verify_client.remove_pending_request(asked.pop())

    def _answered(self, future: Future) -> None:
        if future not in self._asked:
            return
        response = future.result()
        if response.status == VerifyDraft.Response.STATUS_WINDOW_UNKNOWN and self._message.base_window:
            self._ask_whole()
            return
        verify_ms = 1e3 * (time.perf_counter() - self._started)
        asked, self._asked = self._asked, []
        answer = judged(self._policy.spec, self._question, response, verify_ms)
        self._unsettled = _Unsettled(self._question, asked, answer, response, verify_ms)
        self._on_answer(answer)

    def _ask_whole(self) -> None:
        """Ask with the whole window; the deadline stays."""
        self._drop(self._asked)
        self._sent_windows.forget()
        self.windows_resent += 1
        self._repetitions = 1  # of asking at all; the whole window itself may be lost, too
        self._put()
        self._wait_for_repetition()

    def settle(self) -> None:
        """Take note of what the last answer in time tells of link and verifier.

        For whoever asked to call once the robot has its command, which need not wait for this; else it is
        done before the next question.
        """
        if self._unsettled is None:
            return
        done, self._unsettled = self._unsettled, None
        self._stop_waiting(done.asked)
        answer, verify_ms = done.answer, done.verify_ms
        rtt_ms = max(0.0, verify_ms - answer.compute_ms)
        size_bytes = self.request_bytes + answer.response_bytes
        self._estimator.answered(time.monotonic(), rtt_ms, size_bytes, repeated=self._repetitions > 0)
        self._patience.answered(1e-3 * verify_ms)
        if answer.verification is not None:
            self._sent_windows.answered(done.question.window, done.response.window_kept)
        on_trial = self._breaker.on_trial
        self._breaker.answered()
        if done.response.status == VerifyDraft.Response.STATUS_TOKENIZER_MISMATCH:
            self._lose("the verifier refuses the tokenizer")
        elif on_trial and self.link is Link.READY:
            self._on_change()

    def _missed(self) -> None:
        if not self._asked:
            return
        self.abandon()
        self._on_answer(Answer(None, Reason.DEADLINE))
        self.count_miss()

    def count_miss(self) -> None:
        """Take note that a question was given up; for whoever abandons one because it took too long."""
        self._estimator.missed()
        self._breaker.missed(time.monotonic())
        if self._breaker.open:
            self._change(Link.DOUBTED, f"{Link.DOUBTED.label}: several answers not by the deadline")

    @property
    def on_trial(self) -> bool:
        """READY again after missed deadlines, but no answer has come in time since."""
        return self._breaker.on_trial

    def _look(self) -> None:
        present = self._describe_client.service_is_ready() and self._verify_client.service_is_ready()
        if not present and self.link is not Link.ABSENT:
            self._lose("verifier lost: its services are gone")
        now = time.monotonic()
        if not present or self.link is Link.READY:
            return
        if self.link is Link.DOUBTED:
            if self._breaker.probe_due(now):
                self._breaker.probed(now)
                self._probe()
        elif now >= self._next_look:
            if self._probes and self.link is Link.MISMATCHED:
                self._lose("verifier lost: it does not describe itself any more")
            self._forget_probes(0)
            self._next_look = now + DESCRIBE_RETRY_S
            self._probe()

    def _probe(self) -> None:
        self._forget_probes(PROBES_OUT - 1)
        self._probes.append(self._describe_client.call_async(DescribeTarget.Request()))
        self._probes[-1].add_done_callback(self._described)

    def _described(self, future: Future) -> None:
        if future not in self._probes:
            return
        self._forget_probes(0)
        self._next_look = time.monotonic() + DESCRIBE_RETRY_S
        self._breaker.probe_answered()
        self._sent_windows.forget()
        difference = self._difference(future.result())
        self._change(Link.READY if difference is None else Link.MISMATCHED, difference or "")

    def _difference(self, description: DescribeTarget.Response) -> str | None:
        """Name the first field of a description that does not fit; None where all do."""
        ours = self._policy.spec, self._policy.decoder.fingerprint
        difference = misfit(*ours, *from_description(description))
        encoder, its = self._encoder_fingerprint, description.encoder_fingerprint
        if difference is None and encoder not in (None, its):
            return f"encoder_fingerprint: the draft's is {encoder}, the target's {its!r}; must be the same"
        return difference

    def _forget_probes(self, kept: int) -> None:
        while len(self._probes) > kept:
            self._describe_client.remove_pending_request(self._probes.pop(0))

    def _forget(self) -> None:
        self.link = Link.ABSENT
        self.trouble = "no verifier has described itself"
        self.request_bytes = 0
        self.windows_resent = 0
        self._next_look = 0.0
        self._breaker.reset()
        self._sent_windows.forget()
        self._estimator = LinkEstimator()
        self._patience = Patience()
        self._repetitions = 0
        self._unsettled = None

    def _lose(self, trouble: str) -> None:
        self._next_look = 0.0
        self._breaker.reset()
        self._forget_probes(0)
        self._change(Link.ABSENT, trouble)

    def _change(self, link: Link, trouble: str) -> None:
        trouble = shortened(trouble)  # it may name what a stranger describes itself as
        if (link, trouble) != (self.link, self.trouble):
            self.link, self.trouble = link, trouble
            self._on_change()
