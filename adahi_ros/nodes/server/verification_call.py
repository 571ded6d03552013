"""A verification without DDS: the bytes that would cross, and everything before and after them, by a call.

For measurements of what is sent. Asks and answers as `VerifierSession` and `TargetVerifierNode` do where
nothing is lost.
"""

from __future__ import annotations

from adahi_msgs.srv import VerifyDraft
from rclpy.serialization import deserialize_message, serialize_message

from adahi_ros.acceptance.verifier import TargetVerifier
from adahi_ros.nodes.common.messages import (
    fill_reply,
    fingerprint_number,
    from_reply,
    from_request,
    to_request,
)
from adahi_ros.server.engine import Answers
from adahi_ros.wire.request import Verification, VerificationRequest, check_answer
from adahi_ros.wire.window import WireWindow
from adahi_ros.wire.window_updates import ImageEncoder, SentWindows

SESSION = 0  # nobody else has the robot's name


class CalledVerifier:
    """Answers one robot.

    Args:
        verifier: decides.
        seed: of its draws.
        images: makes features of the images that the robot sends; None where it sends none.
    """

    def __init__(self, verifier: TargetVerifier, seed: int, images: ImageEncoder | None = None) -> None:
        self.policy = verifier.policy
        self._answers = Answers(verifier, seed, images)

    def answer(self, question: bytes) -> bytes:
        """Return the serialized response to a serialized request.

        Raises:
            RequestError: the request is refused.
        """
        request = deserialize_message(question, VerifyDraft.Request)
        episode, step = request.episode_id, request.step_id
        response = VerifyDraft.Response(episode_id=episode, step_id=step)
        now_s = 0.0  # nobody else is heard meanwhile
        fill_reply(response, self._answers.to(request.robot_id, episode, step, now_s, *from_request(request)))
        serialized: bytes = serialize_message(response)
        return serialized


class VerificationCalls:
    """Asks for one robot.

    Attributes:
        request_bytes: size of each question, serialized.
        response_bytes: size of each answer.

    Args:
        verifier: that has answered nobody yet.
        robot_id: names the robot's stream of draws.
    """

    def __init__(self, verifier: CalledVerifier, robot_id: str = "robot") -> None:
        self.request_bytes: list[int] = []
        self.response_bytes: list[int] = []
        self._verifier = verifier
        self._robot_id = robot_id
        self._fingerprint = fingerprint_number(verifier.policy.decoder.fingerprint)
        self._sent = SentWindows()

    def ask(self, request: VerificationRequest, window: WireWindow, episode: int, step: int) -> Verification:
        """Return the answer about one draft (M = 1), of whose window only this is sent.

        Raises:
            RequestError: the request is refused.
        """
        update = self._sent.update(window)
        message = to_request(request, update, self._robot_id, SESSION, episode, step, self._fingerprint)
        question = serialize_message(message)
        answer = self._verifier.answer(question)
        response = deserialize_message(answer, VerifyDraft.Response)
        self._sent.answered(window, response.window_kept)
        self.request_bytes.append(len(question))
        self.response_bytes.append(len(answer))
        return check_answer(self._verifier.policy.spec, *from_reply(response))
