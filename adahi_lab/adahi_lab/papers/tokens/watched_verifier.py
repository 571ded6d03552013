# SPDX-License-Identifier: Apache-2.0
"""What verification costs a target of tokens: passes and kept tokens, noted for each robot of each batch.

Policies here decode chunks in other ways than the target itself; each is the target of `adahi evaluate` then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from adahi_lab.evaluation.rollout import Log
from adahi_lab.papers.tokens.parallel_decoding import decode_in_parallel
from adahi_lab.papers.tokens.token_codes import TokenCodec
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Observations
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling
from adahi_ros.server.verifier import TargetVerifier, VerificationRequest

NEVER = -1  # no token


def tokens_of(codec: TokenCodec, codes: np.ndarray) -> np.ndarray:
    """Return how many of tokens (B, n) chunks have, with the one that ends them, (B,)."""
    over = codes == (NEVER if codec.end is None else codec.end)
    lengths: np.ndarray = np.where(over.any(axis=1), over.argmax(axis=1) + 1, codes.shape[1])
    return lengths


@dataclass
class Notes:
    """Of the batches of a rollout, in order.

    Attributes:
        passes: of the target, (M,) int64 for each batch.
        kept: drafted tokens before the first that was not kept, (M,) for each batch with drafts.
        drafted: tokens of a draft, (M,) for each batch with drafts.
    """

    passes: list[np.ndarray] = field(default_factory=list)
    kept: list[np.ndarray] = field(default_factory=list)
    drafted: list[np.ndarray] = field(default_factory=list)

    def verifier(self, policy: Policy, *arguments: Any, **options: Any) -> TargetVerifier:
        """Return a `TargetVerifier` that is noted here."""
        return _Watched(self, policy, *arguments, **options)

    def of_requests(self, noted: list[np.ndarray], log: Log) -> np.ndarray:
        """Return what was noted (R,), for the requests of a log, step by step.

        The evaluation also verifies drafts that were not sent, and those of robots with no steps left.
        """
        sent, batch = log.transmitted, log.active.shape[1]
        steps = np.flatnonzero(sent.any(axis=1))
        if len(noted) == len(sent):
            steps = np.arange(len(sent))
        rows = []
        for step, values in zip(steps, noted, strict=True):
            of_sent = values[sent[step]] if len(values) == batch else values
            rows.append(of_sent[log.active[step][sent[step]]])
        return np.concatenate(rows) if rows else np.zeros(0)


class _Watched(TargetVerifier):
    """Args: `notes`, and those of `TargetVerifier`."""

    def __init__(self, notes: Notes, policy: Policy, *arguments: Any, **options: Any) -> None:
        super().__init__(policy, *arguments, **options)
        self._notes = notes
        if self._judges and isinstance(policy, TokenPolicy):
            self.policy = _Counted(policy, notes.passes.append)

    def verdict(self, request: VerificationRequest, draws: np.ndarray) -> Verdict:
        """See `TargetVerifier`."""
        made = super().verdict(request, draws)
        if made.accepted.shape[1]:
            drafted = np.full(len(made.accepted), made.accepted.shape[1])
            drawn = request.draft.distribution
            if isinstance(self.policy, _Decoder) and drawn is not None:
                drafted = tokens_of(self.policy.target.codec, drawn.codes)
            kept = np.logical_and.accumulate(made.accepted, axis=1).sum(axis=1)
            self._notes.kept.append(np.minimum(kept, drafted))
            self._notes.drafted.append(drafted)
        return made


class _Decoder(Policy):
    """A target that makes its chunks in another way.

    Args:
        target: to decode.
        note: gets the passes, (M,) int64 for each batch.
    """

    def __init__(self, target: TokenPolicy, note: Callable[[np.ndarray], None]) -> None:
        super().__init__(target.signature, target, target.action_scale, target.digest, target.draws)
        self.target = target
        self._note = note


class Sampled(_Decoder):
    """Draws token after token, as the target does, one pass for each."""

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy`."""
        made = self.target.propose(observations, draws, sampling)
        assert made.distribution is not None
        self._note(tokens_of(self.target.codec, made.distribution.codes))
        return made


class Greedy(_Decoder):
    """Takes the likeliest of each token, one pass for each.

    Args:
        target, note: see `_Decoder`.
        tokens: of a chunk that it decodes; actions of the others mean nothing.
    """

    def __init__(self, target: TokenPolicy, note: Callable[[np.ndarray], None], tokens: int) -> None:
        super().__init__(target, note)
        self._tokens = tokens

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy`; nothing is drawn."""
        found, codec = self.target.likeliest(observations, self._tokens), self.target.codec
        codes = np.zeros((len(draws), codec.codebooks), dtype=np.int64)
        codes[:, : self._tokens] = found.codes
        self._note(tokens_of(codec, found.codes))
        return Proposal(np.where(found.finite[:, None, None], codec.decode(codes), np.float32(np.nan)))


class InParallel(_Decoder):
    """Decodes all tokens at once, again and again; see `decode_in_parallel`."""

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy`; the actions that the target makes with the same draws."""
        guess = np.full(draws.shape, self.target.codec.guess)
        found = decode_in_parallel(self.target, observations, draws, guess, sampling)
        self._note(found.passes)
        return Proposal(self.target.codec.decode(found.codes))


class _Counted(_Decoder):
    """Judges as the target does, and counts the passes of each robot."""

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy`."""
        return self.target.propose(observations, draws, sampling)

    def judge(
        self, observations: Observations, codes: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `TokenPolicy`."""
        made = self.target.judge(observations, codes, sampling)
        passes = np.ones(len(codes), dtype=np.int64)
        self._note(passes)
        assert isinstance(made.distribution, TokenDistribution)
        return replace(made, distribution=_counted(made.distribution, passes, np.arange(len(codes))))


def _counted(drawn: TokenDistribution, passes: np.ndarray, robots: np.ndarray) -> TokenDistribution:
    """Return a distribution that adds to the passes of its robots, (M,) by index, where it is resumed."""
    resumed = drawn.resumed
    assert resumed is not None

    def further(tokens: np.ndarray, first: int, rows: np.ndarray) -> TokenDistribution:
        passes[robots[rows]] += 1
        return _counted(resumed(tokens, first, rows), passes, robots[rows])

    return replace(drawn, resumed=further)
