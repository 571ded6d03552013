from __future__ import annotations

import itertools
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import rclpy
import yaml
from rclpy.context import Context
from rclpy.node import Node

from adahi_lab.calibration.robot_file import DEFAULTS
from adahi_lab.nodes.domain import exclusive_domain
from adahi_ros.core.node_parameters import parameters_for
from adahi_ros.core.parameter_sections import is_for, nested, section_names
from adahi_ros.core.registry import arguments_of
from adahi_ros.nodes.common.parameter_files import parameter_files, unheeded
from adahi_ros.nodes.common.parameters import filled
from adahi_ros.nodes.robot.draft_policy_parameters import DraftPolicyParameters
from adahi_ros.proposers.intent import IntentProposer

SECTIONS: tuple[Any, ...] = (
    {"/**": ...},
    {"**": ...},
    {"node": ...},
    {"/node": ...},
    {"/space/node": ...},
    {"space/node": ...},
    {"space": {"node": ...}},
    {"space": {"**": ...}},
    {"/*/node": ...},
    {"/**/node": ...},
    {"/*": ...},
    {"/space/*": ...},
    {"/space/**": ...},
    {"/other/node": ...},
    {"nod": ...},
    {"node_1": ...},
)


def written(section: Any) -> str:
    """Return a parameter file of one section."""
    (name, inside), *_ = section.items()
    indented = "ros__parameters: {found: true}" if inside is ... else written(inside).strip()
    return f'"{name}":\n' + "".join(f"  {line}\n" for line in indented.splitlines())


def test_a_section_is_for_a_node_where_ros_takes_it_to_be(tmp_path: Path) -> None:
    file = tmp_path / "some.yaml"
    with exclusive_domain() as domain:
        for section in SECTIONS:
            file.write_text(written(section))
            for space in ("", "/space", "/space/room"):
                arguments = ["node", "--ros-args", "--params-file", str(file)]
                context = Context()
                rclpy.init(args=arguments, context=context, domain_id=domain)
                node = Node(
                    "node",
                    context=context,
                    namespace=space,
                    enable_rosout=False,
                    start_parameter_services=False,
                )
                taken, name = bool(node._parameter_overrides), node.get_fully_qualified_name()
                node.destroy_node()
                context.destroy()
                assert (list(unheeded(arguments, name)) == []) == taken, (section, name)


def test_what_several_sections_say_is_taken_as_ros_takes_it(tmp_path: Path) -> None:
    file, names = tmp_path / "some.yaml", ("/node", "/**", "/**/node", "/*", "/other")
    with exclusive_domain() as domain:
        for order in itertools.permutations(names, 3):
            given = {name: {"ros__parameters": {"a": {name[-1]: 1, "b": name}}} for name in order}
            file.write_text(yaml.safe_dump(given, sort_keys=False))
            context = Context()
            rclpy.init(
                args=["node", "--ros-args", "--params-file", str(file)], context=context, domain_id=domain
            )
            node = Node("node", context=context, enable_rosout=False, start_parameter_services=False)
            taken = {name: each.value for name, each in node._parameter_overrides.items()}
            node.destroy_node()
            context.destroy()
            assert parameters_for(given, "/node") == taken, order


def test_what_a_replay_takes_for_the_nodes_defaults_are_these() -> None:
    node, defaults = filled(DraftPolicyParameters, {}), dict(DEFAULTS)
    assert defaults.pop("proposer.file") == arguments_of(IntentProposer)["file"].default
    assert defaults == {name: attrgetter(name)(node) for name in defaults}


def test_parameters_by_their_names_are_those_of_the_groups_that_they_make() -> None:
    named = {"checkpoint": "a", "gate.name": "age", "gate.threshold": 1.0, "a.b.c": [1], "a.b.d": ""}
    tree = nested(named)
    assert tree["a"] == {"b": {"c": [1], "d": ""}}
    assert parameters_for({"/**": {"ros__parameters": tree}}, "/node") == named


def test_the_names_of_sections_say_their_namespaces() -> None:
    content = {
        "/**": {"ros__parameters": {"a": {"b": 1}}},
        "space": {"node": {"ros__parameters": {}}, "room": {"other": {"ros__parameters": None}}},
    }
    assert list(section_names(content)) == ["/**", "/space/node", "/space/room/other"]
    assert list(section_names(None)) == []
    assert list(section_names("text")) == []


def test_a_name_that_is_a_pattern_elsewhere_is_none_here() -> None:
    assert is_for("/a.b", "/a.b")
    assert not is_for("/a.b", "/axb")


def test_files_are_named_after_ros_args() -> None:
    given = [
        "node",
        "--params-file",
        "no",
        "--ros-args",
        "-p",
        "a:=1",
        "--params-file",
        "one",
        "--",
        "--params-file",
    ]
    assert list(parameter_files([*given, "no", "--ros-args", "--params-file", "two"])) == [
        Path("one"),
        Path("two"),
    ]


@pytest.mark.parametrize(
    ("content", "says"), [("", "it has no section"), ("a: {ros__parameters: {}}", "for /a;")]
)
def test_what_a_file_has_instead_is_reported(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "some.yaml"
    file.write_text(content)
    (warning,) = unheeded(["--ros-args", "--params-file", str(file)], "/node")
    assert warning.startswith(f"{file}: nothing in it is for this node, ignored; ")
    assert says in warning
    assert "must be for /node, or /**" in warning


def test_a_file_that_cannot_be_read_is_for_others_to_tell(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("a: [")
    for path in (file, tmp_path / "none.yaml"):
        assert list(unheeded(["--ros-args", "--params-file", str(path)], "/node")) == []
