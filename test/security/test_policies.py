"""Policy files: those that are shipped, and what becomes of a robot's name in them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from adahi_ros.core.assets import asset
from adahi_ros.security.policies import OF_ROBOTS, ROLES, SUFFIX, read_policy

FOLDER = asset("config/sros2")
OF_ALL = (*ROLES, *OF_ROBOTS)
GIVEN = {  # of a profile's lists in sros2's schema, 0.2.0
    "topics": {"publish", "subscribe"},
    "services": {"reply", "request"},
    "actions": {"call", "execute"},
}


def names_of(role: str, robot: str) -> set[str]:
    """Return every name in a policy: of its enclave, of namespaces, of topics, services and actions."""
    policy = read_policy(FOLDER, role, robot)
    spaces = {profile.attrib["ns"] for profile in policy.root.iter("profile")}
    return {policy.enclave} | spaces | {each.text or "" for each in policy.root.iter()}


def test_every_file_is_a_roles() -> None:
    assert {path.name.removesuffix(SUFFIX) for path in FOLDER.glob("*.xml")} == set(OF_ALL)


@pytest.mark.parametrize("role", OF_ALL)
def test_a_policy_is_as_sros2_takes_it(role: str) -> None:
    root = read_policy(FOLDER, role).root
    assert (root.tag, root.attrib) == ("policy", {"version": "0.2.0"})
    lists = [each for profile in root.iterfind("enclaves/enclave/profiles/profile") for each in profile]
    assert lists
    for each in lists:
        assert each.keys()
        assert set(each.keys()) <= GIVEN[each.tag]
        assert set(each.attrib.values()) == {"ALLOW"}
        assert {name.tag for name in each} == {each.tag.removesuffix("s")}
        assert all((name.text or "").strip() == name.text for name in each)


def test_a_robot_has_a_policy_of_its_own() -> None:
    names = names_of("robot", "r1")
    assert {"/adahi/r1", "/r1", "/server/r1/verify_draft", "/server/r1/describe_target"} <= names
    assert "/adahi/r1/drivers" in names_of("drivers", "r1")
    for role in OF_ROBOTS:
        assert not any("robot" in name.split("/") for name in names_of(role, "r1"))


def test_a_robots_name_is_unique() -> None:
    for role in ROLES:
        assert not any("robot" in name.split("/") for name in names_of(role, "robot"))


def test_what_is_written_is_what_was_read(tmp_path: Path) -> None:
    policy = read_policy(FOLDER, "robot", "r1")
    policy.write(tmp_path / f"robot{SUFFIX}")
    assert read_policy(tmp_path, "robot").enclave == "/adahi/r1"
    written = ElementTree.parse(tmp_path / f"robot{SUFFIX}").getroot()
    assert [each.text for each in written.iter("service")] == [
        each.text for each in policy.root.iter("service")
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<policy", "no XML"),
        ("<policy><enclaves/></policy>", "0 enclaves, must be 1"),
        ('<policy><enclaves><enclave path="/a"/><enclave path="/b"/></enclaves></policy>', "2 enclaves"),
    ],
)
def test_what_is_no_policy_is_named(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / f"server{SUFFIX}"
    file.write_text(text)
    with pytest.raises(ValueError, match=says) as raised:
        read_policy(tmp_path, "server")
    assert str(file) in str(raised.value)
