"""The target's side: accept or resample each code of a draft."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adahi_ros.acceptance.speculative import speculative_sample
from adahi_ros.policy.distribution import sample, softmax
from adahi_ros.policy.interface import Policy
from adahi_ros.randomness import EpisodeStreams, step_uniforms
from adahi_ros.wire.request import RequestError, RequestFault, Verification, VerificationRequest

Rule = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def target_sample(
    p: np.ndarray, q: np.ndarray, codes: np.ndarray, uniforms: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sample from q whatever was drafted: the target policy alone. Arguments as `speculative_sample`."""
    sampled = sample(q, uniforms[..., 1])
    return sampled, sampled == codes


RULES: dict[str, Rule] = {"speculative": speculative_sample, "target": target_sample}


class TargetVerifier:
    """Verifies drafts by a target policy.

    What it returns is distributed as the target's own samples where it gets every draft, or a share of them
    that does not depend on the codes drawn; see `gates.BLIND`.

    Args:
        policy: the target.
        rule: a key of `RULES`.
        temperature: of the target's code distributions, above zero.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """

    def __init__(self, policy: Policy, rule: str = "speculative", temperature: float = 1.0) -> None:
        if rule not in RULES:
            raise ValueError(f"rule: {rule!r}, must be one of {', '.join(sorted(RULES))}")
        if not 0.0 < temperature < np.inf:
            raise ValueError(f"temperature: {temperature}, must be above 0 and finite")
        self.policy = policy
        self._rule = RULES[rule]
        self._temperature = temperature

    def verify(self, request: VerificationRequest, uniforms: np.ndarray) -> Verification:
        """Verify M drafts with uniform draws (M, N, 2).

        Raises:
            RequestError: the target makes nothing finite of an observation window.
        """
        verification = self.verify_each(request, uniforms)
        if not np.isfinite(verification.offset).all():
            raise RequestError(
                RequestFault.NOT_FINITE,
                "observation_window: so far from the task's that the target's prediction is not finite",
            )
        return verification

    def verify_each(self, request: VerificationRequest, uniforms: np.ndarray) -> Verification:
        """Verify M drafts; an offset is not a number where the target makes nothing finite of a window."""
        prediction = self.policy.predict(request.windows, request.goals).where_finite()
        q = softmax(prediction.logits, self._temperature)
        codes, accepted = self._rule(request.probabilities, q, request.codes, uniforms)
        return Verification(codes, accepted, prediction.offset_at(codes))


def verification_stream(robot_id: str) -> str:
    """Name the stream of a robot's verification draws."""
    return f"verify/{robot_id}"


def verification_uniforms(seed: int, robot_id: str, episode: int, step: int, codebooks: int) -> np.ndarray:
    """Return the draws (1, N, 2) of one robot's step, so that a question asked again gets the same answer."""
    draws = step_uniforms(seed, verification_stream(robot_id), episode, step, 2 * codebooks)
    return draws.reshape(1, codebooks, 2)


class VerificationDraws:
    """`verification_uniforms` for E episodes side by side, steps in order."""

    def __init__(self, seed: int, robot_id: str, episodes: list[int], codebooks: int) -> None:
        self._streams = EpisodeStreams(seed, verification_stream(robot_id), episodes, 2 * codebooks)
        self._codebooks = codebooks

    def next(self) -> np.ndarray:
        """Return the next step's draws (E, N, 2)."""
        draws = self._streams.next()
        return draws.reshape(len(draws), self._codebooks, 2)
