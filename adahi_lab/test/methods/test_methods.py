from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test.toys import assert_same, code_policy, played

from adahi_lab.calibration.parameter_file import ORACLE, Calibration
from adahi_lab.calibration.recorded_world import RecordedWorld
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.loaded_policies import Bench, Policies
from adahi_lab.methods.actors import actor_of
from adahi_lab.methods.dds_method import node_parameters
from adahi_lab.methods.method_names import GRAMMAR
from adahi_lab.methods.methods import (
    METHODS,
    gated,
    parse_methods,
    runs_on_robot,
)
from adahi_lab.methods.oracles import rejection_probability
from adahi_lab.methods.recommended import default_methods
from adahi_lab.reporting.style import COLOURS, LINES, MARKERS
from adahi_ros.core.proposal import counted, probabilities_of, softmax

ON_AIR = [name for name, method in METHODS.items() if runs_on_robot(method) and not method.by_plans]
MANY = 300
Codes = Callable[..., np.ndarray]


def test_every_method_has_looks_that_tell_it_from_the_others() -> None:
    assert METHODS.keys() == COLOURS.keys() == MARKERS.keys() >= LINES.keys()
    assert len({(COLOURS[name], MARKERS[name]) for name in METHODS}) == len(METHODS)
    assert len({method.label for method in METHODS.values()}) == len(METHODS)


def test_a_method_without_looks_gets_some_always_the_same() -> None:
    names = [f"gate_{number}:replace" for number in range(20)]
    assert {COLOURS[name] for name in names}.isdisjoint(COLOURS.values())
    assert {MARKERS[name] for name in names}.isdisjoint(MARKERS.values())
    assert len({COLOURS[name] for name in names}) > 1
    assert COLOURS["gate_1:replace"] == COLOURS["gate_1:replace"]


def test_thresholds_are_the_calibrations(comparison: Comparison, calibration: Calibration) -> None:
    bench = comparison.bench()
    others = {"best", "distilled"}  # of what not every task has
    thresholds = {name: method.threshold(bench) for name, method in METHODS.items() if name not in others}
    expected = {"adahi": ("deviation", 0.4), "oracle": (ORACLE, calibration.thresholds[ORACLE])}
    expected |= dict.fromkeys(("random", "random_cool"), ("random", 0.4))
    expected |= {"hybrid": ("always", 0.0), "target": ("always", 0.0), "plan_4": ("age", 3)}
    assert expected.items() <= thresholds.items()
    for name in thresholds:
        assert METHODS[name].calibrated in (None, thresholds[name][0])


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
    log = METHODS["oracle"].run(bench, two_steps, 3, range(MANY))
    # The same drafts again, seen from outside: the first step's, where the past is the same for every gate.
    two_steps.reset(3, range(MANY))
    draft, target = code_policy(policies.draft), code_policy(policies.target)
    history = draft.signature.history
    windows = np.repeat(two_steps.observation[:, None], history, axis=1)
    logits = draft.predict(windows, two_steps.goal).logits
    p = probabilities_of(counted(softmax(logits, calibration.draft_temperature)))
    q = softmax(target.predict(windows, two_steps.goal).logits, 1.0)
    codes = codes_of(draft, windows, two_steps.goal, log.draft_action[0][:, None])
    rejection = 1.0 - np.prod(1.0 - rejection_probability(p, q, codes), axis=-1)
    np.testing.assert_allclose(log.score[0], rejection, atol=1e-6)
    np.testing.assert_array_equal(log.transmitted, log.score > threshold)
    assert 0.2 < log.transmitted.mean() < 0.8
    # And it is a probability: that of the verdicts that the target gave.
    rejected = np.logical_not(log.accepted.all(axis=-1))
    assert abs((rejected - log.score).mean()) < 5 * 0.5 / np.sqrt(rejected.size)
    assert rejected[log.transmitted].mean() > threshold > rejected[~log.transmitted].mean()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("plan_2", r"there is no target that plans .*ball-plans\.yaml$"),
        ("corrector_4", "there is no corrector"),
        ("distilled", "no checkpoint .distilled. .* 'adahi train policy TASK "),
        ("plan_9", "the target plans only 8 actions$"),
    ],
)
def test_what_a_method_lacks_is_named(comparison: Comparison, name: str, message: str) -> None:
    bench = comparison.bench()
    policies = replace(bench.policies, plans=None) if name == "plan_2" else bench.policies
    with pytest.raises(ValueError, match=f"^{name}: {message}"):
        METHODS[name].threshold(replace(bench, policies=policies))


def test_replies_may_be_late_and_the_target_agree(comparison: Comparison) -> None:
    bench = comparison.bench()
    logs = [played(bench, name) for name in ("plan_2", "plan_2+1", "plan_2+1:choose")]
    prompt, late, agreeing = (log.action[:20] for log in logs)
    assert not np.array_equal(prompt, late)
    assert not np.array_equal(late, agreeing)


def test_a_draft_and_blended_plans_are_evaluated(comparison: Comparison) -> None:
    bench, logs = comparison.bench(), {}
    always, hardly = (f"draft_checks_plan:expected_error@{far}" for far in (0, 999))
    for name in ("plan_2", "crossfade_2", always, hardly):
        assert METHODS[name].threshold(bench) is not None
        logs[name] = played(bench, name, range(2))
    assert logs[always].transmitted[logs[always].active].all()
    requested = np.flatnonzero(logs[hardly].transmitted[:, 0])
    assert set(np.diff(requested)) == {8}  # a plan to its end
    first = slice(0, 2)  # the same plan; then two plans overlap
    np.testing.assert_array_equal(logs["crossfade_2"].action[first], logs["plan_2"].action[first])
    assert not np.array_equal(logs["crossfade_2"].action[2], logs["plan_2"].action[2])


def test_a_gate_with_a_rule_does_what_the_method_of_these_does(comparison: Comparison) -> None:
    bench = comparison.bench()
    assert_same(played(bench, "adahi"), played(bench, "deviation:speculative"))


@pytest.mark.parametrize("name", ["oracle", "plan:oracle@0.5", "distilled", "nothing"])
def test_what_no_robot_can_do_is_refused_on_air(name: str) -> None:
    allowed = [each for each in METHODS if each not in ("oracle", "distilled")]
    for refuse in (gated, lambda name: parse_methods(f"adahi,{name}", on_air=True)):
        expected = f"methods: {name!r}, must be of {', '.join(allowed)}, or {GRAMMAR}"
        with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
            refuse(name)


def test_what_goes_by_plans_has_no_draft() -> None:
    assert parse_methods("best,plan_8,corrector_12", on_air=True) == ["best", "plan_8", "corrector_12"]
    with pytest.raises(ValueError, match=r"^methods: plan_8, must be one that drafts$"):
        gated("plan_8")


def test_what_is_recommended_is_shown_first_where_there_are_plans(tmp_path: Path) -> None:
    (tmp_path / "plans").mkdir()
    assert parse_methods(default_methods("ball", tmp_path), on_air=True)[0] == "best"
    assert "best" not in default_methods("ball", tmp_path / "elsewhere")  # a draft and a target alone
    assert "best" not in default_methods("inverted_pendulum", tmp_path)  # nothing is recommended


def test_a_verifier_receives_the_file_of_its_rule(comparison: Comparison, calibration: Calibration) -> None:
    name = "always:hidden_states:file=weights/head.safetensors"
    _, target = node_parameters(name, "ball", comparison.files, calibration, 1.0)
    assert target["rule.file"] == str(Path.cwd() / "weights/head.safetensors")


def test_what_was_distilled_acts_alone_and_asks_no_one(comparison: Comparison) -> None:
    bench = comparison.bench()
    with_one = replace(bench, policies=replace(bench.policies, distilled=bench.policies.draft))
    assert METHODS["distilled"].threshold(with_one) == ("never", 0.0)
    log = played(with_one, "distilled")
    assert not log.transmitted.any()
    np.testing.assert_array_equal(log.action, played(bench, "draft").action)
    assert not runs_on_robot(METHODS["distilled"])


def test_a_corrector_of_plans_receives_no_more_than_the_draft(comparison: Comparison) -> None:
    policies = comparison.bench().policies
    assert actor_of(policies, "plan") is policies.plans
    untold: Any = SimpleNamespace(signature=replace(policies.draft.signature, conditions=()))
    assert actor_of(replace(policies, draft=untold), "plan") is untold


def test_arguments_of_a_rule_are_of_the_method_and_of_the_verifiers_node(comparison: Comparison) -> None:
    name = "never:hidden_states:tolerance=1:channel=0"
    method = gated(name)
    assert (method.gate, method.acceptance, method.proposer, method.acceptance_arguments) == (
        *("never", "hidden_states", "draft"),
        {"tolerance": 1, "channel": 0},
    )
    _, target = node_parameters(name, "ball", comparison.files, comparison.calibration, 1.0)
    assert target["rule.tolerance"] == 1.0
    assert type(target["rule.tolerance"]) is float  # ROS takes no integer for it
    assert type(target["rule.channel"]) is int
    assert runs_on_robot(METHODS["always:distance:within=1"])
    with pytest.raises(ValueError, match=r"rule hidden_states: .*bold.*; its arguments are: file, channel"):
        METHODS["always:hidden_states:bold=1"].threshold(comparison.bench())
    with pytest.raises(ValueError, match="must not name an argument twice"):
        METHODS["always:hidden_states:tolerance=0:tolerance=1"]
