"""What a verifier answers to robots that ask over the air, one draft at a time."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from adahi_ros.acceptance.verifier import TargetVerifier, verification_uniforms
from adahi_ros.wire.request import Verification, check_request
from adahi_ros.wire.window_updates import (
    MAX_AGE_S,
    ROBOTS_KEPT,
    ImageEncoder,
    WindowCache,
    WindowUpdate,
)

ANSWERS_KEPT = 256  # of all robots together: a question comes again within milliseconds, or never


class Answered(NamedTuple):
    """An answer to one robot.

    Attributes:
        verification: of its draft.
        window_kept: a later update of the robot may continue this window.
    """

    verification: Verification
    window_kept: bool


class Answers:
    """Completes windows, checks drafts and verifies them; a question that is repeated gets the same answer.

    Args:
        verifier: decides.
        seed: of its draws.
        images: makes features of the images that robots send; None where they may send none.
        robots: whose last windows there is room for.
        max_age_s: a robot that was not heard for so long gives its room up.
    """

    def __init__(
        self,
        verifier: TargetVerifier,
        seed: int,
        images: ImageEncoder | None = None,
        robots: int = ROBOTS_KEPT,
        max_age_s: float = MAX_AGE_S,
    ) -> None:
        self._verifier = verifier
        self._seed = seed
        self._spec = verifier.policy.spec
        length, dim = self._spec.window_length, self._spec.observation_dim
        self._windows = WindowCache(length, dim, images, robots, max_age_s)
        self._remembered: OrderedDict[tuple[Any, ...], Verification] = OrderedDict()

    def to(
        self,
        robot_id: str,
        episode: int,
        step: int,
        now_s: float,
        update: WindowUpdate,
        codes: np.ndarray,
        counts: np.ndarray,
    ) -> Answered:
        """Answer one robot about one draft (M = 1).

        Args:
            robot_id: names the robot's windows and draws.
            episode: its number.
            step: its number.
            now_s: of a clock that only goes forward.
            update: of the robot's window, as it was sent.
            codes: flat and unchecked.
            counts: flat and unchecked.

        Raises:
            RequestError: the request is refused.
        """
        window = self._windows.complete(robot_id, update)
        question = robot_id, episode, step, window.digest, codes.tobytes(), counts.tobytes()
        verification = self._remembered.get(question)
        if verification is None:
            checked = check_request(self._spec, window.values, window.goal, codes, counts)
            draws = verification_uniforms(self._seed, robot_id, episode, step, self._spec.codebooks)
            verification = self._verifier.verify(checked, draws)
            self._remember(question, verification)
        return Answered(verification, self._windows.keep(robot_id, window, now_s))

    def _remember(self, question: tuple[Any, ...], verification: Verification) -> None:
        """Keep an answer for when its question is repeated. Draws are addressed: it would be the same."""
        self._remembered[question] = verification
        if len(self._remembered) > ANSWERS_KEPT:
            self._remembered.popitem(last=False)
