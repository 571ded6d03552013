"""How far what comes back through a gate is from the target's distribution: by every code, not by sampling.

Speculative sampling returns the target's distribution of codes that were drawn from the draft's. A gate
that looks at the drawn codes sends some and keeps others, so those it sends come from another distribution,
and what comes back for them is not the target's. Here both are computed, at the observations of rollouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adahi_ros.acceptance.speculative import rejection_probability, residual
from adahi_ros.acceptance.verifier import TargetVerifier
from adahi_ros.evaluation.bench import Bench
from adahi_ros.evaluation.rollout import rollout
from adahi_ros.gates.config import ControllerConfig
from adahi_ros.gates.context import GateContext
from adahi_ros.gates.deviation import DeviationTracker
from adahi_ros.gates.scores import Gate
from adahi_ros.policy.distribution import UNITS, softmax
from adahi_ros.policy.drafting import Draft
from adahi_ros.policy.interface import Policy
from adahi_ros.robot.controller import Controller
from adahi_ros.tasks import make

LOTS = 10  # evenly spaced, in the place of a drawn one


@dataclass(frozen=True)
class Exactness:
    """Total variations from the target's distribution of codes, at S observations.

    Attributes:
        asked: (S,), the probability that the gate asks.
        returned: (S,), of what comes back when it asks; 0 where it never does.
        executed: (S,), of what is executed, asked or not.
        drafted: (S,), of what is drafted.
        rounded: (S,), from the draft's own distribution: what 16-bit counts change of it.
    """

    asked: np.ndarray
    returned: np.ndarray
    executed: np.ndarray
    drafted: np.ndarray
    rounded: np.ndarray

    def figures(self) -> dict[str, Any]:
        """Return means over observations; of `returned` over questions, with the 95th percentile."""
        order = np.argsort(self.returned)
        share = np.cumsum(self.asked[order]) / max(self.asked.sum(), np.finfo(float).tiny)
        return {
            "observations": len(self.asked),
            "asked": float(self.asked.mean()),
            "returned": float(np.average(self.returned, weights=self.asked)) if self.asked.any() else None,
            "returned_p95": float(self.returned[order][share >= 0.95][0]) if self.asked.any() else None,
            "executed": float(self.executed.mean()),
            "drafted": float(self.drafted.mean()),
            "rounded_largest": float(self.rounded.max()),
        }


def measure_exactness(
    bench: Bench, gate: Gate, config: ControllerConfig, seed: int, episodes: Sequence[int]
) -> Exactness:
    """Compare distributions at every observation of hybrid inference behind a gate.

    Args:
        bench: the task and its policies.
        gate: that decides.
        config: of the controller, but for the gate.
        seed: of the rollouts' draws.
        episodes: their numbers.
    """
    draft, target = bench.policies.draft, bench.policies.target
    seen: list[GateContext] = []

    def watched(evidence: GateContext) -> np.ndarray:
        seen.append(evidence)
        return gate.score(evidence)

    controller = Controller(draft, replace(config, gate=replace(gate, scorer=watched)))
    log = rollout(make(bench.task), controller, TargetVerifier(target), seed, episodes)
    past = DeviationTracker(draft.decoder.action_scale, config.smoothing, config.normalization)
    columns = []
    for evidence, active, action in zip(seen, log.active, log.action, strict=True):
        wanted = softmax(draft.predict(evidence.windows, evidence.goals).logits, config.draft_temperature)
        q = softmax(target.predict(evidence.windows, evidence.goals).logits, 1.0)
        asked = asking(draft, gate, past, evidence)
        drawn, aim = joint(evidence.draft.counts / UNITS), joint(q)
        back = returned(evidence.draft.counts, q, drawn * asked)
        share = back.sum(axis=1)
        answer = back / np.where(share > 0.0, share, 1.0)[:, None]
        column = (
            share,
            np.where(share > 0.0, _apart(answer, aim), 0.0),
            _apart(back + drawn * (1.0 - asked), aim),
            _apart(drawn, aim),
            _apart(drawn, joint(wanted)),
        )
        columns.append([each[active] for each in column])
        past.update(action)
    return Exactness(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _apart(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    distance: np.ndarray = np.abs(one - other).sum(axis=-1) / 2
    return distance


def joint(distributions: np.ndarray) -> np.ndarray:
    """Return the distributions (E, K ** N) float64 of all codes together, of independent ones (E, N, K)."""
    each = distributions.astype(np.float64)
    each /= each.sum(axis=-1, keepdims=True)
    product = each[:, 0]
    for book in range(1, each.shape[1]):
        product = (product[:, :, None] * each[:, book, None]).reshape(len(each), -1)
    return product


def asking(policy: Policy, gate: Gate, past: DeviationTracker, evidence: GateContext) -> np.ndarray:
    """Return how likely a gate asks for each combination of codes that may be drawn.

    Args:
        policy: the draft policy.
        gate: that decides.
        past: the average of what was executed.
        evidence: of E robots, with the codes that were in fact drawn.

    Returns:
        (E, K ** N), in the order of `joint`. Only lots make it anything else than 0 or 1.
    """
    spec, decoder = policy.spec, policy.decoder
    prediction = policy.predict(evidence.windows, evidence.goals)
    robots = len(evidence.windows)
    lots = np.tile((np.arange(LOTS) + 0.5) / LOTS, robots)
    windows, goals, counts = (
        np.repeat(each, LOTS, axis=0) for each in (evidence.windows, evidence.goals, evidence.draft.counts)
    )
    columns = []
    for combination in np.ndindex((spec.codebook_size,) * spec.codebooks):
        codes = np.tile(combination, (robots, 1))
        chunk = decoder.decode(codes) + prediction.offset_at(codes)
        sound, deviation = decoder.sound(chunk), past.deviation(chunk[:, 0])
        several = (np.repeat(each, LOTS, axis=0) for each in (codes, chunk, sound, deviation))
        many_codes, chunks, many_sound, deviations = several
        draft = Draft(many_codes, counts, chunks, many_sound)
        score = gate.score(GateContext(draft, deviations, lots, windows, goals))
        asks = ~(score <= gate.threshold) & many_sound
        columns.append(asks.reshape(robots, LOTS).mean(axis=1))
    return np.stack(columns, axis=1)


def returned(counts: np.ndarray, q: np.ndarray, sent: np.ndarray) -> np.ndarray:
    """Return what the verifier makes of drafts by speculative sampling.

    Args:
        counts: (E, N, K) uint16, the distributions that come with the codes.
        q: (E, N, K), the target's.
        sent: (E, K ** N), how likely each combination of codes is drawn and sent.

    Returns:
        (E, K ** N), how likely each is sent for and comes back; sums to what `sent` sums to.
    """
    p = np.divide(counts, UNITS, dtype=np.float32)  # as the verifier reads them
    robots, books, size = p.shape
    every = (np.full((robots, books), code) for code in range(size))
    rejected = np.stack([rejection_probability(p, q, codes) for codes in every], axis=-1)
    drawn_anew = residual(p, q)
    drawn_anew /= drawn_anew.sum(axis=-1, keepdims=True)
    kernel = rejected[..., None] * drawn_anew[:, :, None, :]  # from code to code
    kernel[..., np.arange(size), np.arange(size)] += 1.0 - rejected
    back = sent.reshape(robots, *(size,) * books)
    for book in range(books):  # each takes the first axis of codes away, and adds it as the last
        back = np.einsum("ea...,eab->e...b", back, kernel[:, book])
    return back.reshape(robots, -1)
