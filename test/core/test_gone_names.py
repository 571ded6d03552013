"""A refused name that existed comes with the release that last had it, and with what to use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

from adahi_lab.methods.methods import parse_methods
from adahi_ros.acceptance.registry import ACCEPTANCES, rule_for
from adahi_ros.core.gone_names import all_gone, gone
from adahi_ros.core.registry import Argument
from adahi_ros.core.schema import Schema, checked, one_of
from adahi_ros.core.signature import OBSERVATION, Feature, Signature
from adahi_ros.gates.gate_config import ThresholdedGate
from adahi_ros.gates.registry import GATES
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.registry import BACKENDS, POLICIES
from adahi_ros.proposers.registry import PROPOSERS

GONE = all_gone()
VERBS_GONE = [name for name in GONE if name.startswith("adahi ")]
NAMES_GONE = [
    name for name in GONE if name.isidentifier() and name not in {*GATES, *PROPOSERS, *ACCEPTANCES, *POLICIES}
]


@dataclass(frozen=True)
class Coloured(Schema):
    colour: Annotated[str, one_of(("red",))]


def said(name: str) -> str:
    return f"{name!r} (gone since 0.4.0; 0.3.0 last had it; use {GONE[name]}), must be one of "


@pytest.mark.parametrize("name", GONE)
def test_every_gone_name_is_refused_with_what_replaces_it(name: str) -> None:
    colour = Argument("colour", "red", "Colour.", choices=("red",))
    assert colour.refusal(name) == f"colour: {said(name)}red"
    assert ACCEPTANCES.refusal("rule", name).startswith(f"rule: {said(name)}")
    with pytest.raises(ValueError, match=r"^colour: ") as refused:
        checked(Coloured, {"colour": name})
    assert str(refused.value) == f"colour: {said(name)}red"


@pytest.mark.parametrize("name", NAMES_GONE)
def test_gates_rules_and_kinds_of_policies_say_so(name: str, tmp_path: Path) -> None:
    (tmp_path / "target.yaml").write_text(f"kind: {name}\n")
    refusals: list[Callable[[], object]] = [
        lambda: ThresholdedGate(name),
        lambda: rule_for(name, Signature(1, 1, 2, (Feature(OBSERVATION, 1),))),
        lambda: load_policy(tmp_path / "target", "onnxruntime"),
    ]
    for refused in refusals:
        with pytest.raises(ValueError, match="gone since") as error:
            refused()
        assert said(name) in str(error.value)


@pytest.mark.parametrize("name", [name for name in GONE if name not in BACKENDS])
def test_a_backend_that_is_gone_says_so(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^backend: ") as refused:
        load_policy(tmp_path / "target", name)
    assert str(refused.value).startswith(f"backend: {said(name)}")


@pytest.mark.parametrize("name", NAMES_GONE)
@pytest.mark.parametrize(
    "method",
    ["{}", "{}:age@1", "{}_8:expected_error@0.4", "plan:{}", "always:{}:file=a/kalman/b", "{}+age@1"],
)
def test_a_method_with_a_gone_part_says_so(name: str, method: str) -> None:
    with pytest.raises(ValueError, match=r"^methods: ") as refused:
        parse_methods(method.format(name))
    assert f": {name}{gone(name)}, must be of " in str(refused.value)


def test_a_file_in_a_methods_name_is_no_part_of_it() -> None:
    with pytest.raises(ValueError, match=r"^methods: ") as refused:
        parse_methods("always:telepathy:file=kalman")
    assert "gone" not in str(refused.value)


@pytest.mark.parametrize("name", VERBS_GONE)
def test_a_gone_verb_says_so(name: str, fails: Callable[..., str]) -> None:
    verb = name.removeprefix("adahi ")
    assert fails(*verb.split(), "ball") == f"adahi: {verb}: unknown{gone(name)}\n"
