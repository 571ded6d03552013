"""A verification without DDS: the bytes that would cross, and everything before and after them, by a call.

For measurements of what is sent. Asks and replies as `VerifierSession` and `TargetVerifierNode` do where
nothing is lost.
"""

from __future__ import annotations

from adahi_msgs.srv import VerifyDraft
from rclpy.serialization import deserialize_message, serialize_message

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.nodes.common.messages import (
    fingerprint_number,
    from_reply,
    to_request,
)
from adahi_ros.nodes.server.serving import serve
from adahi_ros.policy.proposal import Proposal
from adahi_ros.robot.sent_windows import SentWindows
from adahi_ros.server.engine import Engine
from adahi_ros.server.service import VerificationService
from adahi_ros.server.verifier import TargetVerifier
from adahi_ros.server.window_cache import ImageEncoder
from adahi_ros.wire.request import check_reply
from adahi_ros.wire.sent_request import NO_FINGERPRINT, SentRequest
from adahi_ros.wire.window import WireWindow

SESSION = 0  # nobody else has the robot's name


class CalledVerifier:
    """Replies to one robot.

    Args:
        verifier: decides.
        seed: of its draws.
        images: makes features of the images that the robot sends; None where it sends none.
    """

    def __init__(self, verifier: TargetVerifier, seed: int, images: ImageEncoder | None = None) -> None:
        self.signature = verifier.policy.signature
        self._service = VerificationService(Engine(verifier, seed, images))

    def reply(self, request: bytes) -> bytes:
        """Return the serialized response to a serialized request.

        Raises:
            RequestError: the request is refused.
        """
        now_s = 0.0  # nobody else is heard meanwhile
        response, _ = serve(self._service, deserialize_message(request, VerifyDraft.Request), now_s)
        serialized: bytes = serialize_message(response)
        return serialized


class VerificationCalls:
    """Asks for one robot, whose codes mean the same to draft and target.

    Attributes:
        request_bytes: size of each request, serialized.
        response_bytes: size of each reply.

    Args:
        verifier: that has replied to nobody yet.
        robot_id: names the robot's stream of draws.
    """

    def __init__(self, verifier: CalledVerifier, robot_id: str = "robot") -> None:
        self.request_bytes: list[int] = []
        self.response_bytes: list[int] = []
        self._verifier = verifier
        self._robot_id = robot_id
        codes = verifier.signature.codes
        self._fingerprint = NO_FINGERPRINT if codes is None else fingerprint_number(codes.fingerprint)
        self._sent = SentWindows()

    def ask(self, draft: Proposal, window: WireWindow, episode: int, step: int) -> Verdict:
        """Return the verdict on one draft (M = 1), of whose observations only this window is sent.

        Raises:
            RequestError: the request is refused.
        """
        update, drawn = self._sent.update(window), draft.distribution
        sent = Proposal(draft.actions[:, :0], drawn)
        message = to_request(
            SentRequest.of(sent, update, self._robot_id, episode, step, self._fingerprint), SESSION
        )
        request = serialize_message(message)
        reply = self._verifier.reply(request)
        response = deserialize_message(reply, VerifyDraft.Response)
        self._sent.answered(window, response.window_kept)
        self.request_bytes.append(len(request))
        self.response_bytes.append(len(reply))
        drafted = 0 if drawn is None else drawn.codes.size
        return check_reply(self._verifier.signature, 0, drafted, *from_reply(response))
