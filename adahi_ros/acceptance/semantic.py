# SPDX-License-Identifier: Apache-2.0
"""Semantic: a mismatching draft is kept where a learned head predicts that the mismatch does not matter.

For codes of single actions; `hidden_states` is WISV for tokens. The linear head, which only adds to the
accepted drafts, is from Judge Decoding (Bachmann et al., arXiv 2501.19309). Here it reads the target's
logits, since these networks export no inner layers. The link sets the accepted risk, see `Semantic`.

Of the draft's distributions the head reads only the probability of each drawn code. So a robot that sends
these first, and whole distributions only for rejected codes, gets the same verdict.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adahi_ros.acceptance.interface import Acceptance, Verdict
from adahi_ros.acceptance.speculative import Speculative
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.proposal import CodeDistribution, Proposal, probabilities_at
from adahi_ros.core.signature import CodeSpace, Signature
from adahi_ros.core.tensor_files import Shapes, read_arrays, read_metadata, save_arrays

LEAST = 1e-6  # a probability that counts as zero
FURTHEST = 5.0  # standard deviations from the mean at which signs are clipped
SUREST = 30.0  # of a logit: no probability is 0 or 1
WIDEST = 65536  # signs
TARGET = "target"  # in a file's metadata: of `SemanticHead`


def signs(
    ours: CodeDistribution, theirs: CodeDistribution, kept: np.ndarray, instead: np.ndarray
) -> np.ndarray:
    """Return the head's inputs for M mismatches, (M, F).

    Args:
        ours: the draft's codes, and at least their own probabilities.
        theirs: the target's.
        kept: (M, T, A), actions by the drafted codes.
        instead: (M, T, A), the actions that would replace them.
    """
    logits = np.log(np.maximum(theirs.probabilities, LEAST))
    of_target = probabilities_at(logits, ours.codes)
    of_draft = np.log(np.maximum(probabilities_at(ours.probabilities, ours.codes), LEAST))
    apart = np.abs(kept - instead)[:, 0]
    flat = logits.reshape(len(logits), -1)
    read: np.ndarray = np.concatenate([flat, of_target, of_draft, apart], axis=1, dtype=np.float64)
    return read


def signs_of(codes: CodeSpace, action_dim: int) -> int:
    """Return F, the number of `signs` for a target's codes and the size of its actions."""
    return codes.codebooks * (codes.codebook_size + 2) + action_dim


@dataclass(frozen=True)
class SemanticHead:
    """Predicts how likely a mismatch matters.

    Attributes:
        mean, scale: (F,) of the signs in its training.
        weight, bias: (F,) and (1,) of its one layer.
        target: fingerprint of the policy in its training; empty if unknown.
    """

    mean: np.ndarray
    scale: np.ndarray
    weight: np.ndarray
    bias: np.ndarray
    target: str = ""

    def standardised(self, read: np.ndarray) -> np.ndarray:
        """Return signs (M, F) in standard deviations."""
        return np.clip((read - self.mean) / self.scale, -FURTHEST, FURTHEST)

    def risk(self, read: np.ndarray) -> np.ndarray:
        """Return the probability that it matters, (M,), above 0 and below 1."""
        logit = self.standardised(read) @ self.weight + self.bias[0]
        return 1.0 / (1.0 + np.exp(-np.clip(logit, -SUREST, SUREST)))


def _sizes(shapes: Shapes) -> Shapes:
    count = shapes.get("weight", (0,))[0]
    if not 0 < count <= WIDEST:
        raise ValueError(f"weight: of {count}, must be from 1 to {WIDEST}")
    return {"mean": (count,), "scale": (count,), "weight": (count,), "bias": (1,)}


def load_semantic_head(path: Path) -> SemanticHead:
    """Read a file of `save_semantic_head`.

    Raises:
        CheckpointError: it is missing, damaged, or another kind of file.
    """
    arrays = read_arrays(path, "a semantic head", _sizes)
    target = read_metadata(path).get(TARGET, "")
    if not re.fullmatch("([0-9a-f]{16})?", target):
        fault = f"{TARGET}: {target!r}, must be 16 hexadecimal digits"
        raise CheckpointError(f"{path}: not the weights of a semantic head ({fault})")
    return SemanticHead(**arrays, target=target)


def save_semantic_head(path: Path, head: SemanticHead) -> None:
    """Write a head atomically."""
    arrays = {name: each for name, each in vars(head).items() if name != TARGET}
    save_arrays(path, arrays, {TARGET: head.target} if head.target else None)


class Semantic(Acceptance):
    """Speculative sampling that also keeps rejected drafts with a predicted risk below a tolerance.

    At tolerance 0 it is exactly speculative sampling. Where the link is known, the tolerance is the round
    trip of a rejection as a share of `patience_ms`: without latency it is 0.

    Args:
        file: of the head, written by `adahi train rule`; empty for none, as on a robot.
        tolerance: accepted risk where the link is unknown, from 0 to 1.
        patience_ms: the round trip at which any risk is accepted; infinite ignores the link.

    Raises:
        CheckpointError: the file has no head.
        ValueError: names the argument, the value and what was allowed.
    """

    needs_codes = True

    def __init__(self, file: str = "", tolerance: float = 0.0, patience_ms: float = np.inf) -> None:
        if not 0.0 <= tolerance <= 1.0:
            raise ValueError(f"tolerance: {tolerance}, must be 0 to 1")
        if not patience_ms > 0.0:
            raise ValueError(f"patience_ms: {patience_ms}, must be above 0")
        if not file and (tolerance or np.isfinite(patience_ms)):
            raise ValueError("file: empty, must be a head's where a risk is to be taken")
        self._head = load_semantic_head(Path(file).expanduser()) if file else None
        self._tolerance = tolerance
        self._patience_ms = patience_ms
        self.uses_link = bool(np.isfinite(patience_ms))

    def check_target(self, target: Signature, fingerprint: str) -> None:
        """See `Acceptance`: for another target the head's predictions are meaningless."""
        if self._head is None or target.codes is None:
            return
        count, wanted = len(self._head.weight), signs_of(target.codes, target.action_dim)
        if count != wanted:
            raise ValueError(f"file: a head that reads {count} signs, must be one of {wanted}, the target's")
        if fingerprint and self._head.target not in ("", fingerprint):
            raise ValueError(
                f"file: a head for the target {self._head.target}, must be one for {fingerprint}; "
                "'adahi train rule' makes one"
            )

    def verify(
        self,
        draft: Proposal,
        target: Proposal,
        draws: np.ndarray,
        round_trip_ms: np.ndarray | None = None,
    ) -> Verdict:
        """See `Acceptance`."""
        verdict = Speculative().verify(draft, target, draws)
        if self._head is None:
            return verdict
        ours, theirs = draft.distribution, target.distribution
        assert ours is not None
        assert theirs is not None
        kept = theirs.actions_of(ours.codes)
        read = signs(ours, theirs, kept, verdict.actions)
        stands = self._head.risk(read) < self._tolerated(round_trip_ms)
        actions = np.where(stands[:, None, None], kept, verdict.actions)
        return Verdict(actions, verdict.accepted | stands[:, None])

    def _tolerated(self, round_trip_ms: np.ndarray | None) -> np.ndarray | float:
        """Return the accepted risk, of each of M or of all."""
        if round_trip_ms is None or not self.uses_link:
            return self._tolerance
        return np.where(np.isnan(round_trip_ms), self._tolerance, round_trip_ms / self._patience_ms)
