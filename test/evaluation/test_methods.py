from __future__ import annotations

import re

import pytest

from adahi_ros.evaluation.methods import METHODS, parse_methods
from adahi_ros.evaluation.style import COLOURS, MARKERS
from adahi_ros.speculation.gates import GATES
from adahi_ros.speculation.verifier import RULES


def test_every_method_has_a_gate_a_rule_and_its_looks() -> None:
    assert {method.gate for method in METHODS.values()} <= GATES.keys()
    assert {method.rule for method in METHODS.values()} <= RULES.keys()
    assert METHODS.keys() == COLOURS.keys() == MARKERS.keys()
    assert len(set(COLOURS.values())) == len(set(MARKERS.values())) == len(METHODS)


def test_methods_are_split_at_commas() -> None:
    assert parse_methods(" adahi, draft,") == ["adahi", "draft"]


@pytest.mark.parametrize(("text", "named"), [("adahi,oracle", "oracle"), (" ,", " ,")])
def test_what_is_no_method_is_named(text: str, named: str) -> None:
    expected = f"methods: {named!r}, must be of {', '.join(METHODS)}"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        parse_methods(text)
