"""Garbage requests to a verifier's node that runs, amid good ones that must be answered."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from sensor_msgs.msg import CompressedImage

from adahi_ros.nodes.common.messages import fingerprint_number
from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.policy.distribution import UNITS
from adahi_ros.vision.images import to_jpeg
from adahi_ros.wire.texts import TEXT_LENGTH

from .messages import LARGEST_FLOAT32, mutated
from .outcome import Outcome
from .scene import Stage, stage
from .values import Garbage

CALL_S = 20.0
EVERY = 10  # inputs, a good request
ENDS = (LARGEST_FLOAT32, -LARGEST_FLOAT32, 1e-45, -1e-45, -0.0, float("nan"), float("inf"), float("-inf"))
NUMBERS = 2  # of a row that has an image beside it


class Asked:
    """A verifier's node, and what a good request to it is.

    Args:
        here: where.
        camera: whether robots send it images.
    """

    def __init__(self, here: Stage, camera: bool) -> None:
        self._observer, self._camera = here.observer, camera
        self._process = here.processes.start(
            "target_verifier_node",
            {
                "checkpoint": "ball_camera/target" if camera else "ball/target",
                "verification.reliability": "reliable",
                **({"encoder": "ball"} if camera else {}),
            },
        )
        node = here.observer.node
        qos = verify_qos("reliable")
        self._client = node.create_client(VerifyDraft, "verify_draft", qos_profile=qos)
        describing = node.create_client(DescribeTarget, "describe_target")
        self._its = here.observer.call(describing, DescribeTarget.Request(), 60.0, self.check)
        self._pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)

    def check(self) -> None:
        if self._process.exit_code is not None:
            raise self._process.fault(f"ended with code {self._process.exit_code}")

    def good(self, step: int) -> VerifyDraft.Request:
        its = self._its
        width = NUMBERS if self._camera else sum(its.feature_sizes)
        images = [CompressedImage(format="jpeg", data=to_jpeg(self._pixels, 60))] * its.history
        return VerifyDraft.Request(
            protocol=its.protocol,
            robot_id="robot",
            episode_id=1,
            step_id=step,
            first_step=step,
            tokenizer_fingerprint=fingerprint_number(its.tokenizer_fingerprint),
            observation_window=array("f", bytes(4 * its.history * width)),
            images=images if self._camera else [],
            goal=array("f", bytes(4 * sum(its.condition_sizes))),
            codes=array("H", bytes(2 * its.codebooks)),
            draft_probabilities=array("H", [UNITS, *[0] * (its.codebook_size - 1)] * its.codebooks),
        )

    def ask(self, request: VerifyDraft.Request) -> VerifyDraft.Response:
        return self._observer.call(self._client, request, CALL_S, self.check)

    def bad(self, garbage: Garbage) -> VerifyDraft.Request:
        request = self.good(garbage.number % 2**32)
        if request.images and garbage.chance(0.5):
            data = bytes(request.images[0].data)
            torn = CompressedImage(format="jpeg", data=garbage.damaged(data))
            request.images = [torn, *request.images[1:]]
            return request
        if garbage.chance(0.4):
            return self._strange(request, garbage)
        return mutated(request, garbage)

    def _strange(self, request: VerifyDraft.Request, garbage: Garbage) -> VerifyDraft.Request:
        """Make a request that has the right sizes, but for its name."""
        how = garbage.count(0, 4)
        if how == 0:  # a name of up to megabytes, never the same
            request.robot_id = f"{garbage.number:08d}" * 2 ** garbage.count(0, 19)
        elif how == 1:  # one of a flood of names
            request.robot_id = f"{garbage.text()[:40]}{garbage.number}"
        elif how == 2:  # a code that cannot have been drafted
            request.codes[garbage.count(0, len(request.codes) - 1)] = garbage.count(
                1, self._its.codebook_size
            )
        elif how == 3:  # another robot of the same name
            request.session_id = garbage.pick((0, 1, 2**32 - 1))
        else:  # as it should be, with every number at the end of what there is
            for field in ("episode_id", "step_id"):
                setattr(request, field, garbage.integer(0, 2**32 - 1))
            request.observation_window = array("f", [garbage.pick(ENDS)] * len(request.observation_window))
        return request


def requests(numbers: Sequence[int], seed: int) -> Outcome:
    """Ask a verifier of features, and then one of images."""
    outcome = Outcome("requests")
    for camera in (False, True):
        chosen = [number for number in numbers if (number // 100 % 3 == 0) == camera]
        if chosen:
            _ask_all(outcome, chosen, seed, camera)
    return outcome


def _ask_all(outcome: Outcome, numbers: Sequence[int], seed: int, camera: bool) -> None:
    number = numbers[0]
    with stage() as here:
        try:
            asked = Asked(here, camera)
            for index, number in enumerate(numbers):
                outcome.inputs += 1
                response = asked.ask(asked.bad(Garbage(seed, number)))
                outcome.named += bool(response.message)
                fault = _fault(response)
                if fault:
                    outcome.crashes.append(f"{number}: {fault}")
                if index % EVERY == 0 or number == numbers[-1]:
                    again = asked.ask(asked.good(index))
                    if again.status != VerifyDraft.Response.STATUS_OK:
                        outcome.crashes.append(f"{number}: then a good request got {again.message}")
        except (RuntimeError, TimeoutError) as error:  # the node has ended, or answers no more
            outcome.crashes.append(f"{number}: {error}")
        outcome.crashes += [f"{number}: {fault}" for fault in here.close()]


def _fault(response: Any) -> str:
    if response.status == VerifyDraft.Response.STATUS_INTERNAL_ERROR:
        return f"internal error, {response.message}"
    if len(response.message) > TEXT_LENGTH:
        return f"a message of {len(response.message)} characters"
    if response.status == VerifyDraft.Response.STATUS_OK:
        return "" if np.isfinite(response.actions).all() else "actions that are not finite"
    return "" if response.message else f"status {response.status} without a reason"
