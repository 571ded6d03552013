# SPDX-License-Identifier: Apache-2.0
"""Semantic: a draft that mismatches stands all the same where a learned head says that it does not matter.

After WISV (Liu et al., "Wireless-Informed Semantic Verification", arXiv 2604.17701), of which the abstract
was read: a light decision head on what the target has computed and on the state of the link accepts more than
speculative sampling does. That the head is linear, and only ever adds to what is accepted, is of Judge
Decoding (Bachmann et al., arXiv 2501.19309). What it reads here are the target's logits, for no inner layer
is in the exported networks. The link sets how much risk is taken, see `Semantic`.

Of the draft's distributions the head reads no more than the probability of each code that was drawn. So who
sends these first, and the whole distributions only of codes that are rejected, gets the same verdict.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adahi_ros.acceptance.interface import Acceptance, Verdict
from adahi_ros.acceptance.speculative import Speculative
from adahi_ros.core.checkpoint_files import (
    CheckpointError,
    Shapes,
    read_arrays,
    read_metadata,
    save_arrays,
)
from adahi_ros.core.proposal import CodeDistribution, Proposal, probabilities_at
from adahi_ros.core.signature import CodeSpace, Signature

LEAST = 1e-6  # a probability that counts as none
FURTHEST = 5.0  # standard deviations from the mean that a sign counts
SUREST = 30.0  # of a logit: no probability is 0 or 1
WIDEST = 65536  # signs
TARGET = "target"  # in a file's metadata: of `SemanticHead`


def signs(
    ours: CodeDistribution, theirs: CodeDistribution, kept: np.ndarray, instead: np.ndarray
) -> np.ndarray:
    """Return what the head reads of M mismatches, (M, F).

    Args:
        ours: the draft's codes, and at least their own probabilities.
        theirs: the target's.
        kept: (M, T, A), actions by the drafted codes.
        instead: (M, T, A), what would come in their place.
    """
    logits = np.log(np.maximum(theirs.probabilities, LEAST))
    of_target = probabilities_at(logits, ours.codes)
    of_draft = np.log(np.maximum(probabilities_at(ours.probabilities, ours.codes), LEAST))
    apart = np.abs(kept - instead)[:, 0]
    flat = logits.reshape(len(logits), -1)
    read: np.ndarray = np.concatenate([flat, of_target, of_draft, apart], axis=1, dtype=np.float64)
    return read


def signs_of(codes: CodeSpace, action_dim: int) -> int:
    """Return F, how many `signs` there are for a target's codes and the size of its actions."""
    return codes.codebooks * (codes.codebook_size + 2) + action_dim


@dataclass(frozen=True)
class SemanticHead:
    """Says how likely a mismatch matters.

    Attributes:
        mean, scale: (F,) of the signs that it was fitted to.
        weight, bias: (F,) and (1,) of its one layer.
        target: fingerprint of the policy whose mismatches these were; empty where nobody knows.
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
        CheckpointError: it is missing, damaged, or something else.
    """
    arrays = read_arrays(path, "a semantic head", _sizes)
    target = read_metadata(path).get(TARGET, "")
    if not re.fullmatch("([0-9a-f]{16})?", target):
        fault = f"{TARGET}: {target!r}, must be 16 hexadecimal digits"
        raise CheckpointError(f"{path}: not the weights of a semantic head ({fault})")
    return SemanticHead(**arrays, target=target)


def save_semantic_head(path: Path, head: SemanticHead) -> None:
    """Write a head, whole."""
    arrays = {name: each for name, each in vars(head).items() if name != TARGET}
    save_arrays(path, arrays, {TARGET: head.target} if head.target else None)


class Semantic(Acceptance):
    """Speculative sampling that also keeps rejected drafts whose predicted risk is below a tolerance.

    At tolerance 0 it is speculative sampling, exactly. Where the link is known, the tolerance is the round
    trip that a rejection may cost as a share of `patience_ms`: on a link that costs nothing, none.

    Args:
        file: of the head, `adahi train rule` writes it; empty for none, which a robot needs not.
        tolerance: risk that is taken where the link is not known, from 0 to 1.
        patience_ms: the round trip at which any risk is taken; infinite where the link does not count.

    Raises:
        CheckpointError: it is no such file.
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
        """See `Acceptance`: of another target, the head says nothing, or something that is wrong."""
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
        """Return the risk that is taken, of each of M or of all."""
        if round_trip_ms is None or not self.uses_link:
            return self._tolerance
        return np.where(np.isnan(round_trip_ms), self._tolerance, round_trip_ms / self._patience_ms)
