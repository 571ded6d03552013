from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.calibration.recorded_world import RecordedWorld
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.loaded_policies import Bench, Policies
from adahi_lab.evaluation.rollout import rollout
from adahi_lab.papers.adahi import exactness as table
from adahi_lab.papers.adahi.exactness import Exactness, asking, joint, measure_exactness, returned
from adahi_ros.acceptance.speculative import speculative_sample
from adahi_ros.core.signature import GOAL, OBSERVATION, Observations
from adahi_ros.gates.gate_config import ControllerConfig, DeviationTracker, ThresholdedGate
from adahi_ros.gates.interface import GateContext
from adahi_ros.policies.interface import Sampling
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

MANY = 6000
ROUNDING = 1e-6


@pytest.fixture(scope="module")
def bench(policies: Policies, calibration: Calibration) -> Bench:
    return Bench("ball", policies, calibration)


def p_value(seen: np.ndarray, distribution: np.ndarray) -> float:
    """Return that of a chi-square test of counts; what is rarer than five is pooled."""
    expected = distribution / distribution.sum() * seen.sum()
    common = expected >= 5
    counts, wanted = (np.append(each[common], each[~common].sum()) for each in (seen, expected))
    keep = wanted > 0.0
    assert counts[~keep].sum() == 0
    return float(stats.chisquare(counts[keep], wanted[keep]).pvalue)


def behind(bench: Bench, gate: ThresholdedGate) -> Exactness:
    return measure_exactness(bench, gate, ControllerConfig(gate), 3, range(4))


@pytest.mark.parametrize(
    "gate", [ThresholdedGate("always"), ThresholdedGate("random", 0.4), ThresholdedGate("random", 0.9)]
)
def test_behind_a_gate_that_is_blind_what_comes_back_is_the_targets(
    bench: Bench, gate: ThresholdedGate
) -> None:
    assert gate.gate.blind
    found = behind(bench, gate)
    assert found.rate == pytest.approx(1.0 - gate.threshold)
    assert found.returned.max() < ROUNDING
    assert found.drafted.min() > 0.1
    # What is not asked for is executed as drafted.
    np.testing.assert_allclose(found.executed, (1.0 - found.rate) * found.drafted, atol=ROUNDING)


@pytest.mark.parametrize(("name", "apart"), [("deviation", 0.05), ("uncertainty", 0.05)])
def test_behind_a_gate_that_looks_at_the_draw_it_is_not(bench: Bench, name: str, apart: float) -> None:
    trigger = bench.calibration.controller(name).trigger
    assert not trigger.gate.blind
    found = behind(bench, trigger)
    assert 0.1 < found.rate.mean() < 0.9
    figures = found.figures()
    assert figures["returned"] > apart
    assert found.returned.max() >= figures["returned_p95"] >= figures["returned"]
    # One that lets nothing pass is exact all the same: what counts is whether it selects.
    assert behind(bench, ThresholdedGate(name, -1.0)).returned.max() < ROUNDING


@pytest.mark.parametrize("books", [1, 2, 3])
def test_what_is_sent_comes_back_as_speculative_sampling_returns_it(books: int) -> None:
    draw = np.random.default_rng(books)
    size, draws = 4, 40_000
    counts = draw.multinomial(65535, draw.dirichlet(np.ones(size), size=books)).astype(np.uint16)[None]
    q = draw.dirichlet(np.ones(size), size=(1, books)).astype(np.float32)
    asks = (np.arange(size**books) % 3 == 0)[None]
    drawn = joint(counts / 65535)
    back = returned(counts, q, drawn * asks)
    assert back.sum() == pytest.approx((drawn * asks).sum())
    np.testing.assert_allclose(returned(counts, q, drawn), joint(q), atol=ROUNDING)
    # And by sampling, in the order of the codes.
    index = draw.choice(size**books, size=draws, p=drawn[0])
    sent = np.stack(np.unravel_index(index[asks[0, index]], (size,) * books), axis=1)
    rows = (len(sent), books, size)
    p = np.broadcast_to(np.divide(counts, 65535, dtype=np.float32), rows)
    codes, _ = speculative_sample(p, np.broadcast_to(q, rows), sent, draw.random((len(sent), books, 2)))
    seen = np.bincount(np.ravel_multi_index(tuple(codes.T), (size,) * books), minlength=size**books)
    assert p_value(seen, back[0]) > 1e-4
    assert p_value(seen, joint(q)[0]) < 1e-9


def test_what_a_rollout_gets_back_through_a_gate_is_what_was_computed(
    policies: Policies, codes_of: Callable[..., np.ndarray]
) -> None:
    place = np.linspace(-0.2, 0.2, 6, dtype=np.float32)
    world = RecordedWorld(
        Trajectories(
            "ball",
            observations=np.tile(place, (MANY, 1)),
            actions=np.zeros((MANY, 2), np.float32),
            goals=np.full((MANY, 2), 0.1, np.float32),
            ends=np.arange(1, MANY + 1),
        )
    )
    gate = ThresholdedGate("uncertainty", 0.984)
    log = rollout(
        world,
        Controller(policies.draft, ControllerConfig(gate)),
        TargetVerifier(policies.target),
        2,
        range(MANY),
    )
    sent = log.transmitted[0]
    assert 0.1 < sent.mean() < 0.9
    windows, goals = np.tile(place, (MANY, policies.target.signature.history, 1)), world.goal
    codes = codes_of(policies.target, windows[sent], goals[sent], log.action[0][sent][:, None])

    one = Observations({OBSERVATION: windows[:1]}, {GOAL: goals[:1]})
    draft = policies.draft.propose(one, np.zeros((1, 2)), Sampling(sendable=True))
    observed = {OBSERVATION: place[None], GOAL: goals[:1]}
    known = GateContext(0, observed, one, draft, np.full(1, np.inf), np.zeros(1), np.zeros(1))
    past = DeviationTracker(policies.draft.action_scale, 0.5, "std")
    rate = asking(policies.draft, gate, past, known)
    assert set(np.unique(rate)) == {0.0, 1.0}
    drafted = draft.distribution
    aim = policies.target.propose(one, np.zeros((1, 2))).distribution
    assert drafted is not None
    assert drafted.counts is not None
    assert aim is not None
    assert policies.target.signature.codes is not None
    q, size = aim.probabilities, policies.target.signature.codes.codebook_size
    back = returned(drafted.counts, q, joint(drafted.counts) * rate)
    seen = np.bincount(size * codes[:, 0] + codes[:, 1], minlength=size**2)
    assert abs(sent.mean() - back.sum()) < 5 * 0.5 / np.sqrt(MANY)
    assert p_value(seen, back[0]) > 1e-4
    assert p_value(seen, joint(q)[0]) < 1e-9


def test_the_benchmark_tells_every_gate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def found(bench: Bench, gate: ThresholdedGate, *others: object) -> Exactness:
        rate, apart = float(gate.name != "never"), 1e-8 if gate.gate.blind else 0.25
        return Exactness(*(np.array([value] * 2) for value in (rate, apart * rate, 0.5, 0.75, 1e-4)))

    monkeypatch.setattr(table, "measure_exactness", found)
    table.main("ball", 2, 0)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["always", "no", "1.000", "1e-08", "1e-08", "0.500", "0.750"] in rows
    assert ["deviation", "yes", "1.000", "0.250", "0.250", "0.500", "0.750"] in rows
    assert ["never", "no", "0.000", "0.500", "0.750"] in rows
