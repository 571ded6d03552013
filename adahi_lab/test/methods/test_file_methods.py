"""Methods of one's own, in files."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from test.toys import assert_same, played

from adahi_lab.calibration.calibrate import searched_gates
from adahi_lab.evaluation.evaluate import Comparison, evaluate_methods, play_all
from adahi_lab.evaluation.rollout import Log
from adahi_lab.methods.file_methods import CheckedGate, file_method
from adahi_lab.methods.methods import METHODS, gates_of_methods, parse_methods
from adahi_ros.gates.gate_config import ThresholdedGate
from adahi_ros.gates.online import OnlineGate
from adahi_ros.gates.plans import AgeGate

Written = Callable[[str], str]
HEAD = """
from __future__ import annotations
import numpy as np
from adahi_ros.core.proposal import Proposal
from adahi_ros.policies.interface import Sampling
"""


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """From the lines of a class to the name of the method."""

    def write(text: str) -> str:
        path = tmp_path / "own.py"
        path.write_text(HEAD + text)
        found = re.search(r"class (\w+)", text)
        assert found is not None
        return f"{path}:{found[1]}"

    return write


def run(comparison: Comparison, name: str) -> Log:
    return played(comparison.bench(), name)


DEVIATION = """
class Deviation:
    '''Asks where the action deviates.'''
    threshold = 0.4
    def score(self, context):
        return context.deviation
"""


def test_a_gate_in_a_file_does_what_the_shipped_one_does(comparison: Comparison, written: Written) -> None:
    name = written(DEVIATION)
    assert parse_methods(f"adahi,{name}", own=True) == ["adahi", name]
    assert METHODS[name].threshold(comparison.bench()) == ("Deviation", 0.4)
    assert (METHODS[name].label, METHODS[name].on().about) == ("Deviation", "Asks where the action deviates.")
    assert_same(run(comparison, name), run(comparison, "adahi"))
    assert METHODS[f"{name}@0.7"].label == "Deviation@0.7"
    assert METHODS[f"{name}@0.7"].threshold(comparison.bench()) == ("Deviation", 0.7)
    assert run(comparison, f"{name}@0.7").transmitted.sum() < run(comparison, name).transmitted.sum()


def test_it_is_run_by_workers_too(comparison: Comparison, written: Written) -> None:
    name = written(DEVIATION)
    outcomes = play_all(comparison, [name, "adahi"], range(2), 2)
    assert_same(outcomes[name].log, outcomes["adahi"].log)


def test_a_gate_in_a_file_may_go_by_plans_and_have_replies_late(
    comparison: Comparison, written: Written
) -> None:
    age = """
class Age:
    proposer, threshold = "plan", 3
    def score(self, context):
        return context.age
"""
    name = written(age)
    assert METHODS[name].by_plans
    assert_same(run(comparison, name), run(comparison, "plan_4"))
    name = written(age + "    wait_policy = 'ahead'\n")
    assert_same(run(comparison, name), run(comparison, "plan_4+1"))


def test_a_proposer_in_a_file_does_what_the_shipped_one_does(
    comparison: Comparison, written: Written
) -> None:
    name = written("""
class Blind:
    needs_plan, gate, threshold = True, "age", 3.0
    def __init__(self, actor):
        pass
    def propose(self, context):
        return None
""")
    assert METHODS[name].threshold(comparison.bench()) == ("age", 3.0)
    assert_same(run(comparison, name), run(comparison, "plan_4"))
    name = written("""
class Draft:
    gate, threshold, rule = "deviation", 0.4, "speculative"
    def __init__(self, policy):
        self.policy = policy
    def propose(self, context):
        return self.policy.propose(context.observations, context.draws, Sampling(context.temperature, True))
""")
    assert not METHODS[name].by_plans
    assert_same(run(comparison, name), run(comparison, "adahi"))


def test_a_gate_without_a_threshold_is_searched(comparison: Comparison, written: Written) -> None:
    name = written(DEVIATION.replace("threshold = 0.4", ""))
    assert gates_of_methods([name]) == searched_gates([name]) == {name: name}
    with pytest.raises(ValueError, match=f"^{re.escape(f'thresholds.{name}: missing')}"):
        METHODS[name].threshold(comparison.bench())
    thresholds = {**comparison.calibration.thresholds, name: 0.4}
    calibrated = replace(comparison, calibration=replace(comparison.calibration, thresholds=thresholds))
    assert_same(run(calibrated, name), run(comparison, "adahi"))
    always = written("class Always:\n    def __init__(self, a): pass\n    def propose(self, context): ...\n")
    assert gates_of_methods([always]) == {}


def test_a_file_is_not_run_as_its_name_is_read(written: Written) -> None:
    name = written("raise SystemError('run')\nclass Gate: ...\n")
    assert name in METHODS
    assert METHODS[name].label == "Gate"
    with pytest.raises(ValueError, match=r"own\.py: cannot be run \(SystemError: run\)$"):
        parse_methods(name, own=True)


def test_a_file_that_was_changed_is_read_again(
    written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a second and as long as before, too; nothing is left beside it."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for number in range(3):
        name = written(DEVIATION.replace("0.4", f"0.{number}"))
        assert METHODS[name].on().at == number / 10
    assert [each.name for each in tmp_path.iterdir()] == ["own.py"]


def test_a_file_that_changes_meanwhile_is_refused(comparison: Comparison, written: Written) -> None:
    name = written(DEVIATION)
    method = METHODS[name]
    method.threshold(comparison.bench())
    written(DEVIATION.replace("0.4", "0.5"))
    with pytest.raises(ValueError, match=r"own\.py: was changed meanwhile, must stay as it was"):
        method.threshold(comparison.bench())
    name = written("""
class Rewrites:
    threshold = 1.0
    def score(self, context):
        with open(__file__, "a") as file:
            file.write("#")
        return context.age
""")
    with pytest.raises(ValueError, match=r"own\.py: was changed meanwhile, must stay as it was"):
        evaluate_methods(comparison, [name], range(1))


@pytest.mark.parametrize("name", ["own.py", "own.py:", "own.py:2", "own.py:Gate@high", "own:Gate"])
def test_what_is_no_class_in_a_file_is_no_method(name: str) -> None:
    assert file_method(name) is None
    with pytest.raises(ValueError, match=re.escape(f"methods: {name!r}, must be of ")) as refused:
        parse_methods(name, own=True)
    assert "or FILE.py:CLASS of a gate or a proposer of your own" in str(refused.value)


def test_files_are_taken_only_where_they_are_allowed(written: Written) -> None:
    name = written(DEVIATION)
    for on_air in (False, True):
        with pytest.raises(ValueError, match=r"^methods: .*: a class in a file runs only in process; to run"):
            parse_methods(name, on_air=on_air)


SCORES = "    def score(self, context): return context.age\n"
PROPOSES = "    def propose(self, context): return None\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("class Gate: ...\n", "has neither of score and propose; must have one"),
        ("class Gate:\n" + SCORES + PROPOSES, "has both of score and propose; must have one"),
        (f"class Gate:\n    proposer = 'telepath'\n{SCORES}", "proposer: 'telepath', must be one of draft,"),
        (f"class Gate:\n    gate = 'no'\n{PROPOSES}", "gate: 'no', must be one of deviation,"),
        (f"class Gate:\n    rule = 'no'\n{SCORES}", "rule: 'no', must be one of "),
        (f"class Gate:\n    proposer, rule = 'plan', 'speculative'\n{SCORES}", "must be one of replace"),
        (f"class Gate:\n    wait_policy = 'ahead'\n{SCORES}", "wait_policy: 'ahead', must be one of wait"),
        (f"class Gate:\n    threshold = 'low'\n{SCORES}", "threshold: 'low', must be a finite number"),
        (f"class Gate:\n    threshold = np.nan\n{SCORES}", "threshold: nan, must be a finite number"),
        (f"class Gate:\n    threshold = True\n{SCORES}", "threshold: True, must be a finite number"),
    ],
)
def test_what_a_class_says_and_cannot_be_is_named(text: str, fault: str, written: Written) -> None:
    name = written(text)
    with pytest.raises(ValueError, match=re.escape(fault)) as refused:
        parse_methods(name, own=True)
    assert str(refused.value).startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("right", "wrong"), [("threshold", "treshold"), ("score", "scor"), ("wait_policy", "waitpolicy")]
)
def test_a_misspelt_name_of_a_class_is_refused_with_the_right_one(
    right: str, wrong: str, written: Written
) -> None:
    text = DEVIATION.replace("threshold", "wait_policy = 'ahead'; proposer = 'plan'; threshold")
    name = written(text.replace(right, wrong))
    fault = f"{name}: {wrong}: has no meaning here (did you mean {right!r}?)"
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}"):
        parse_methods(name, own=True)
    name = written(text.replace("threshold", "weights = scores = start = 1; threshold"))
    assert parse_methods(name, own=True) == [name]  # names of its own


def test_a_file_or_a_class_that_is_not_there_is_named(tmp_path: Path, written: Written) -> None:
    missing = tmp_path / "nowhere.py"
    with pytest.raises(ValueError, match=f"^{re.escape(str(missing))}: no such file$"):
        parse_methods(f"{missing}:Gate", own=True)
    name = written(DEVIATION)
    with pytest.raises(ValueError, match=r"own\.py: has no class Gate, but Deviation$"):
        parse_methods(name.replace("Deviation", "Gate"), own=True)


def test_who_cannot_be_made_is_named(comparison: Comparison, written: Written) -> None:
    gate = written(f"class Gate:\n    threshold = 1.0\n    def __init__(self, weights): ...\n{SCORES}")
    with pytest.raises(ValueError, match=r"Gate: missing a required .* 'weights'; must be made of no arg"):
        METHODS[gate].threshold(comparison.bench())
    alone = written("class Alone:\n    def propose(self, context): return None\n")
    with pytest.raises(ValueError, match=r"Alone: too many positional .*; must be made of the policy alone$"):
        METHODS[alone].threshold(comparison.bench())


SCORING = "class Own:\n    threshold = 1.0\n    def score(self, context): return {}\n"
PROPOSING = """
class Own:
    rule = "speculative"
    def __init__(self, policy): ...
    def propose(self, context): return {}
"""


@pytest.mark.parametrize(
    ("text", "returned", "fault"),
    [
        (SCORING, "context.deviation[:, None]", "float64 of shape (3, 1), must be a number for each of the"),
        (SCORING, "context.deviation.mean()", "float64 of shape (), must be a number for each of the robots"),
        (SCORING, "None", "object of shape (), must be"),
        (
            SCORING,
            "np.where(context.uniforms < 9, np.nan, 1.0)",
            "NaN for robot 0 at step 0, must be a number",
        ),
        (PROPOSING, "None", "NoneType, must be a Proposal"),
        (PROPOSING, "np.zeros((3, 1, 2))", "ndarray, must be a Proposal"),
        (PROPOSING, "Proposal(np.zeros((3, 2)))", "actions of shape (3, 2), must be (3, T, 2)"),
        (PROPOSING, "Proposal(np.zeros((2, 1, 2)))", "actions of shape (2, 1, 2), must be (3, T, 2)"),
        (PROPOSING, "Proposal(np.zeros((3, 0, 2)))", "actions of shape (3, 0, 2), must be (3, T, 2)"),
        (PROPOSING, "Proposal(np.full((3, 1, 2), None))", "actions of object, must be numbers"),
        (PROPOSING, "Proposal(np.full((3, 1, 2), 'a'))", "actions of <U1, must be numbers"),
        (PROPOSING, "Proposal(np.zeros((3, 1, 2)))", "no distribution, which the rule speculative needs"),
    ],
)
def test_what_is_returned_and_is_no_score_or_proposal_is_named(
    text: str, returned: str, fault: str, comparison: Comparison, written: Written
) -> None:
    name, called = written(text.format(returned)), "score" if text == SCORING else "propose"
    with pytest.raises(ValueError, match=f"^{re.escape(f'{name}: {called}: {fault}')}"):
        run(comparison, name)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("    def score(self, context): return context.nothing\n", "score: AttributeError: .*nothing"),
        ("    def score(self, context): raise KeyError('mine')\n", "score: KeyError: 'mine'"),
        (f"    def __init__(self): raise RuntimeError('no')\n{SCORES}", "__init__: RuntimeError: no"),
        ("    def score(self, context): return [[1], [1, 2]]\n", "score: ValueError: .*inhomogeneous"),
        ("    def __init__(self, p): ...\n    def propose(self, c): return p\n", "propose: NameError: .*'p'"),
    ],
)
def test_a_class_that_raises_is_named(
    text: str, fault: str, comparison: Comparison, written: Written
) -> None:
    name = written(f"class Own:\n{'    threshold = 1.0' * ('propose' not in text)}\n{text}")
    with pytest.raises(ValueError, match=f"^{re.escape(name)}: {fault}") as refused:
        run(comparison, name)
    assert "inhomogeneous" in fault or re.search(r" \(own\.py, line \d+\)$", str(refused.value))


@pytest.mark.parametrize(
    "written_to",
    [
        "uniforms",
        "observed['observation']",
        "observations.features['observation']",
        "proposal.actions",
        "proposal.distribution.codes",
        "course.intended",
    ],
)
def test_a_gate_cannot_change_what_the_robot_goes_on_with(
    written_to: str, comparison: Comparison, written: Written
) -> None:
    name = written(f"""
class Gate:
    threshold = 1.0
    def score(self, context):
        context.{written_to}[:] = 0
        return context.age
""")
    with pytest.raises(ValueError, match=f"^{re.escape(name)}: score: ValueError: .*read-only.*line 10"):
        run(comparison, name)


def test_a_rule_that_does_not_fit_the_policies_is_named(comparison: Comparison, written: Written) -> None:
    bench = comparison.bench()
    target = replace(bench.policies.target.signature, codes=None)

    class Codeless:
        signature = target

    name = written(DEVIATION)
    policies = type(bench.policies)(bench.policies.draft, Codeless())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=re.escape(f"{name}: speculative: codes: ")):
        METHODS[name].threshold(replace(bench, policies=policies))


def test_a_gate_that_learns_still_does() -> None:
    checked = CheckedGate(OnlineGate("age", rate=0.2), "own.py:Gate")
    assert ThresholdedGate("own", gate=checked).gate.learns
    assert not CheckedGate(AgeGate(), "own.py:Gate").learns
