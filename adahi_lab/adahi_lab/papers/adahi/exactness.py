# SPDX-License-Identifier: Apache-2.0
"""The distance of the verifier's replies from the target's distribution, behind each gate.

    .venv/bin/python -m adahi_lab.papers.adahi.exactness [TASK] [--episodes N]

Computes total variations from the target's distribution of codes at every observation of hybrid inference
behind a gate, over all combinations of codes, without sampling. It has them for replies (the mean and the
95th percentile over requests), for executed actions, with or without a request, and for drafts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.loaded_policies import Bench, PolicyFiles
from adahi_lab.evaluation.rollout import rollout
from adahi_lab.history import History
from adahi_lab.methods.oracles import rejection_probability
from adahi_lab.reporting.tables import narrow_table, number
from adahi_lab.tasks import make
from adahi_ros.core.assets import asset
from adahi_ros.core.proposal import UNITS, CodeDistribution, Proposal, residual
from adahi_ros.core.signature import Observations
from adahi_ros.gates.gate_config import ControllerConfig, DeviationTracker, ThresholdedGate
from adahi_ros.gates.interface import Gate, GateContext
from adahi_ros.policies.interface import Policy, Sampling
from adahi_ros.protocol.request import sent_codes
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

UNIFORMS = 10  # evenly spaced, instead of a drawn one


@dataclass(frozen=True)
class Exactness:
    """Total variations from the target's distribution of codes, at S observations.

    Attributes:
        rate: (S,), the probability of a request.
        returned: (S,), of replies; 0 where there is never a request.
        executed: (S,), of executed actions, with or without a request.
        drafted: (S,), of drafts.
        rounded: (S,), the change of the draft's own distribution by 16-bit counts.
    """

    rate: np.ndarray
    returned: np.ndarray
    executed: np.ndarray
    drafted: np.ndarray
    rounded: np.ndarray

    def figures(self) -> dict[str, Any]:
        """Return means over observations; of `returned` over requests, with the 95th percentile."""
        order = np.argsort(self.returned)
        share = np.cumsum(self.rate[order]) / max(self.rate.sum(), np.finfo(float).tiny)
        return {
            "observations": len(self.rate),
            "asked": float(self.rate.mean()),
            "returned": float(np.average(self.returned, weights=self.rate)) if self.rate.any() else None,
            "returned_p95": float(self.returned[order][share >= 0.95][0]) if self.rate.any() else None,
            "executed": float(self.executed.mean()),
            "drafted": float(self.drafted.mean()),
            "rounded_largest": float(self.rounded.max()),
        }


class _Watched(Gate):
    """A gate that records its inputs."""

    def __init__(self, trigger: ThresholdedGate) -> None:
        self.seen: list[GateContext] = []
        self.blind = trigger.gate.blind
        self._gate = trigger.gate

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        self.seen.append(context)
        return self._gate.score(context)


def measure_exactness(
    bench: Bench, trigger: ThresholdedGate, config: ControllerConfig, seed: int, episodes: Sequence[int]
) -> Exactness:
    """Compare distributions at every observation of hybrid inference behind a gate.

    Args:
        bench: the task and its policies.
        trigger: the gate that decides, and its threshold.
        config: of the controller, except the trigger.
        seed: of the rollouts' draws.
        episodes: their numbers.
    """
    draft, target = bench.policies.draft, bench.policies.target
    watched = _Watched(trigger)
    controller = Controller(draft, replace(config, trigger=replace(trigger, gate=watched)))
    log = rollout(make(bench.task), controller, TargetVerifier(target), seed, episodes)
    past = DeviationTracker(draft.action_scale, config.smoothing, config.normalization)
    at_target = History(target.signature, len(episodes))
    columns = []
    for known, active, action in zip(watched.seen, log.active, log.action, strict=True):
        wanted = _distribution(draft, known.observations, config.draft_temperature).probabilities
        q = _distribution(target, at_target.push(known.observed)).probabilities
        rate = asking(draft, trigger, past, known)
        counts = _counts(known)
        drawn, aim = joint(counts / UNITS), joint(q)
        back = returned(counts, q, drawn * rate)
        share = back.sum(axis=1)
        reply = back / np.where(share > 0.0, share, 1.0)[:, None]
        column = (
            share,
            np.where(share > 0.0, _apart(reply, aim), 0.0),
            _apart(back + drawn * (1.0 - rate), aim),
            _apart(drawn, aim),
            _apart(drawn, joint(wanted)),
        )
        columns.append([each[active] for each in column])
        past.update(action)
    return Exactness(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _distribution(policy: Policy, observations: Observations, temperature: float = 1.0) -> CodeDistribution:
    """Return the distribution of a policy's codes; the drawn codes have no effect."""
    robots = len(next(iter(observations.features.values())))
    proposal = policy.propose(observations, np.zeros((robots, policy.draws)), Sampling(temperature))
    assert proposal.distribution is not None
    return proposal.distribution


def _counts(known: GateContext) -> np.ndarray:
    """Return the distributions (E, N, K) of drafts, as they are sent."""
    assert known.proposal is not None
    assert known.proposal.distribution is not None
    assert known.proposal.distribution.counts is not None
    return known.proposal.distribution.counts


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


def asking(
    policy: Policy, trigger: ThresholdedGate, past: DeviationTracker, known: GateContext
) -> np.ndarray:
    """Return the probability of a request for each combination of codes.

    Args:
        policy: the draft policy.
        trigger: that decides.
        past: the average of executed actions.
        known: of E robots, with the drawn codes.

    Returns:
        (E, K ** N), in the order of `joint`. 0 or 1, except with a gate's own draws.
    """
    counts = _counts(known)
    robots, books, size = counts.shape
    actions_of = _distribution(policy, known.observations).actions_of
    uniforms = np.tile((np.arange(UNIFORMS) + 0.5) / UNIFORMS, robots)
    each = np.repeat(np.arange(robots), UNIFORMS)  # robot by robot, as often as there are uniforms
    columns = []
    for combination in np.ndindex((size,) * books):
        codes = np.tile(combination, (robots, 1))
        actions = actions_of(codes)
        sound = policy.sound(actions)
        drawn = sent_codes(codes[each], counts[each])
        several = replace(
            known,
            observed={name: values[each] for name, values in known.observed.items()},
            observations=known.observations.rows(each),
            proposal=Proposal(actions[each], drawn),
            deviation=past.deviation(actions[:, 0])[each],
            age=known.age[each],
            uniforms=uniforms,
        )
        asks = ~(trigger.gate.score(several) <= trigger.threshold) & sound[each]
        columns.append(asks.reshape(robots, UNIFORMS).mean(axis=1))
    return np.stack(columns, axis=1)


def returned(counts: np.ndarray, q: np.ndarray, sent: np.ndarray) -> np.ndarray:
    """Return the distribution of the verifier's replies by speculative sampling.

    Args:
        counts: (E, N, K) uint16, the distributions that come with the codes.
        q: (E, N, K), the target's.
        sent: (E, K ** N), the probability that each combination of codes is drawn and sent.

    Returns:
        (E, K ** N), the probability of each combination in a reply; has the sum of `sent`.
    """
    p = np.divide(counts, UNITS, dtype=np.float32)  # as the verifier reads them
    robots, books, size = p.shape
    every = (np.full((robots, books), code) for code in range(size))
    rejected = np.stack([rejection_probability(p, q, codes) for codes in every], axis=-1)
    drawn_again = residual(p, q)
    drawn_again /= drawn_again.sum(axis=-1, keepdims=True)
    kernel = rejected[..., None] * drawn_again[:, :, None, :]  # from code to code
    kernel[..., np.arange(size), np.arange(size)] += 1.0 - rejected
    back = sent.reshape(robots, *(size,) * books)
    for book in range(books):  # each takes the first axis of codes away, and adds it as the last
        back = np.einsum("ea...,eab->e...b", back, kernel[:, book])
    return back.reshape(robots, -1)


COMPARED = ("always", "random", "deviation", "uncertainty", "never")
ROUNDING = 1e-6  # smaller values are shown as a power of ten


def shown(distance: float | None) -> str:
    """Format a distance; one of rounding must not look like 0."""
    return f"{distance:.0e}" if distance is not None and 0.0 < distance < ROUNDING else number(distance)


def main(
    task: Annotated[str, typer.Argument(help="One with shipped policies.")] = "ball",
    episodes: Annotated[int, typer.Option(min=1, help="Behind each gate.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random draw.")] = 0,
) -> None:
    """Print how exact hybrid inference is behind each gate, at the calibrated thresholds."""
    calibration = load_calibration(asset(f"config/{task}.yaml"))
    bench = Bench(task, PolicyFiles(asset(f"checkpoints/{task}"), "onnxruntime").load(), calibration)
    figures = {}
    for name in COMPARED:
        config = calibration.controller(name)
        found = measure_exactness(bench, config.trigger, config, seed, evaluation_episodes(episodes))
        figures[name] = {"looks_at_the_draw": not config.trigger.gate.blind, **found.figures()}
    rounded = max(each["rounded_largest"] for each in figures.values())
    table = narrow_table(
        f"{task}, {episodes} episodes: total variation from the target",
        ("gate", "looks at\nthe draw"),
        ("asks", "returned", "p95", "executed", "drafted"),
        caption=f"16-bit counts change a draft's distribution by {rounded:.0e} at most",
    )
    for name, each in figures.items():
        distances = (each[what] for what in ("returned", "returned_p95", "executed", "drafted"))
        looks = "yes" if each["looks_at_the_draw"] else "no"
        table.add_row(name, looks, number(each["asked"]), *map(shown, distances))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
