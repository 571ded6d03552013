"""What a verifier answers to robots that ask over the air, one draft at a time."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from adahi_ros.speculation.request import Verification, check_request
from adahi_ros.speculation.verifier import TargetVerifier, verification_uniforms
from adahi_ros.speculation.window_updates import ImageEncoder, WindowCache, WindowUpdate

ANSWERS_KEPT = 256  # of all robots together: a question comes again within milliseconds, or never


class Answers:
    """Completes windows, checks drafts and verifies them; a question that is repeated gets the same answer.

    Args:
        verifier: decides.
        seed: of its draws.
        images: makes features of the images that robots send; None where they may send none.
    """

    def __init__(self, verifier: TargetVerifier, seed: int, images: ImageEncoder | None = None) -> None:
        self._verifier = verifier
        self._seed = seed
        self._spec = verifier.policy.spec
        self._windows = WindowCache(self._spec.window_length, self._spec.observation_dim, images)
        self._remembered: OrderedDict[tuple[Any, ...], Verification] = OrderedDict()

    def to(
        self,
        robot_id: str,
        episode: int,
        step: int,
        update: WindowUpdate,
        codes: np.ndarray,
        counts: np.ndarray,
    ) -> Verification:
        """Answer one robot about one draft (M = 1).

        Args:
            robot_id: names the robot's windows and draws.
            episode: its number.
            step: its number.
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
        self._windows.keep(robot_id, window)
        return verification

    def _remember(self, question: tuple[Any, ...], verification: Verification) -> None:
        """Keep an answer for when its question is repeated. Draws are addressed: it would be the same."""
        self._remembered[question] = verification
        if len(self._remembered) > ANSWERS_KEPT:
            self._remembered.popitem(last=False)
