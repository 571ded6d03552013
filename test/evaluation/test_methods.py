from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from adahi_ros.acceptance.rules import ACCEPTANCES
from adahi_ros.acceptance.speculative import rejection_probability
from adahi_ros.evaluation.bench import Bench, Policies
from adahi_ros.evaluation.evaluate import Comparison
from adahi_ros.evaluation.methods import COOL, METHODS, GatedMethod, gated, parse_methods
from adahi_ros.evaluation.recorded import RecordedWorld
from adahi_ros.gates.parameter_file import Calibration
from adahi_ros.gates.scores import GATES, ORACLE
from adahi_ros.policy.distribution import counted, probabilities_of, softmax
from adahi_ros.reporting.style import COLOURS, LINES, MARKERS
from adahi_ros.trajectories import Trajectories

ON_AIR = [name for name, method in METHODS.items() if isinstance(method, GatedMethod)]
MANY = 300
Codes = Callable[..., np.ndarray]


def test_every_method_has_looks_that_tell_it_from_the_others() -> None:
    assert METHODS.keys() == COLOURS.keys() == MARKERS.keys() >= LINES.keys()
    assert len({(COLOURS[name], MARKERS[name]) for name in METHODS}) == len(METHODS)
    assert len({method.label for method in METHODS.values()}) == len(METHODS)


def test_what_a_robot_can_do_has_a_gate_and_a_rule() -> None:
    assert ON_AIR == ["adahi", "hybrid", "draft", "target", "random", "uncertainty", "random_cool"]
    for name in ON_AIR:
        assert gated(name) is METHODS[name]
        assert gated(name).gate in GATES
        assert gated(name).rule in ACCEPTANCES


def test_thresholds_are_the_calibrations(comparison: Comparison, calibration: Calibration) -> None:
    bench = comparison.bench()
    thresholds = {name: method.threshold(bench) for name, method in METHODS.items()}
    assert thresholds["adahi"] == ("deviation", 0.4)
    assert thresholds["random"] == thresholds["random_cool"] == ("random", 0.4)
    assert thresholds["hybrid"] == thresholds["target"] == ("always", 0.0)
    assert thresholds["oracle"] == (ORACLE, calibration.thresholds[ORACLE])
    assert thresholds["chunks_4"] is None
    assert {name: found and found[0] for name, found in thresholds.items()} == {
        name: method.gate for name, method in METHODS.items()
    }


def test_one_method_alone_has_a_draft_temperature_of_its_own(calibration: Calibration) -> None:
    warm = replace(calibration, draft_temperature=0.9)
    assert gated("random_cool").config(warm).draft_temperature == COOL
    assert {gated(name).config(warm).draft_temperature for name in ON_AIR if name != "random_cool"} == {0.9}
    assert gated("random_cool").config(warm).trigger == gated("random").config(warm).trigger


@pytest.fixture
def two_steps() -> RecordedWorld:
    """Many episodes of two steps at places that differ."""
    draw = np.random.default_rng(4)
    return RecordedWorld(
        Trajectories(
            "ball",
            observations=draw.normal(scale=0.3, size=(2 * MANY, 6)).astype(np.float32),
            actions=np.zeros((2 * MANY, 2), np.float32),
            goals=draw.normal(size=(MANY, 2)).astype(np.float32),
            ends=np.arange(2, 2 * MANY + 1, 2),
        )
    )


def test_the_oracle_transmits_exactly_where_the_target_is_likely_to_reject(
    policies: Policies, calibration: Calibration, two_steps: RecordedWorld, codes_of: Codes
) -> None:
    threshold = calibration.thresholds[ORACLE]
    bench = Bench("ball", policies, calibration)
    log = METHODS["oracle"].run(bench, two_steps, 3, range(MANY), lambda step: None)
    # The same drafts again, seen from outside: the first step's, where the past is the same for every gate.
    two_steps.reset(3, range(MANY))
    history = policies.draft.signature.history
    windows = np.repeat(two_steps.observation[:, None], history, axis=1)
    logits = policies.draft.predict(windows, two_steps.goal).logits
    p = probabilities_of(counted(softmax(logits, calibration.draft_temperature)))
    q = softmax(policies.target.predict(windows, two_steps.goal).logits, 1.0)
    codes = codes_of(policies.draft, windows, two_steps.goal, log.draft_action[0][:, None])
    rejection = 1.0 - np.prod(1.0 - rejection_probability(p, q, codes), axis=-1)
    np.testing.assert_allclose(log.score[0], rejection, atol=1e-6)
    np.testing.assert_array_equal(log.transmitted, log.score > threshold)
    assert 0.2 < log.transmitted.mean() < 0.8
    # And it is a probability: that of the verdicts that the target gave.
    rejected = ~log.accepted.all(axis=-1)
    assert abs((rejected - log.score).mean()) < 5 * 0.5 / np.sqrt(rejected.size)
    assert rejected[log.transmitted].mean() > threshold > rejected[~log.transmitted].mean()


def test_methods_are_split_at_commas() -> None:
    assert parse_methods(" adahi, oracle,adahi,") == ["adahi", "oracle"]
    assert parse_methods(" adahi, draft,", on_air=True) == ["adahi", "draft"]


@pytest.mark.parametrize(
    ("text", "named"), [("adahi,telepathy", "telepathy"), ("a,adahi,b", "a, b"), (" ,", " ,")]
)
def test_what_is_no_method_is_named(text: str, named: str) -> None:
    expected = f"methods: {named!r}, must be of {', '.join(METHODS)}"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        parse_methods(text)


@pytest.mark.parametrize("name", sorted(METHODS.keys() - set(ON_AIR)))
def test_what_no_robot_can_do_is_refused_on_air(name: str) -> None:
    expected = f"methods: {name!r}, must be of {', '.join(ON_AIR)}"
    for refuse in (gated, lambda name: parse_methods(f"adahi,{name}", on_air=True)):
        with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
            refuse(name)
