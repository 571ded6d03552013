"""The DDS profiles that are shipped: sound XML, installed, and every setting explained."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from adahi_ros.nodes.launching.middleware import ROUTER_FILE, middleware_environment, router_override

ROOT = Path(__file__).resolve().parents[1]
FAST, FAST_3, CYCLONE = (
    ROOT / f"config/dds/{name}_wireless.xml" for name in ("fastdds", "fastdds_3", "cyclonedds")
)
ROUTER = ROOT / "config/dds" / ROUTER_FILE
FAST_SPACE = {"": "http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles"}


def local_name(element: ElementTree.Element) -> str:
    return element.tag.split("}")[-1]


def test_both_of_fast_dds_have_the_same_settings() -> None:
    """Fast DDS 3 renamed elements: each lower-case name is the other one without underscores."""
    found = [
        [(local_name(each).replace("_", "").lower(), (each.text or "").strip()) for each in root.iter()]
        for root in (ElementTree.parse(file).getroot() for file in (FAST, FAST_3))
    ]
    assert found[0] == found[1]


def test_every_profile_of_fast_dds_is_a_default() -> None:
    """Nothing else reaches a node: rmw_fastrtps asks for no profile by name."""
    profiles = ElementTree.parse(FAST).getroot().find("profiles", FAST_SPACE)
    assert profiles is not None
    named = [element for element in profiles if "profile_name" in element.attrib]
    assert [local_name(element) for element in named] == ["participant", "data_writer", "data_reader"]
    assert all(element.attrib["is_default_profile"] == "true" for element in named)


def test_the_participant_uses_the_transport_and_no_other() -> None:
    root = ElementTree.parse(FAST).getroot()
    described = [
        element.text for element in root.iterfind(".//transport_descriptor/transport_id", FAST_SPACE)
    ]
    used = [element.text for element in root.iterfind(".//userTransports/transport_id", FAST_SPACE)]
    assert len(described) == 1
    assert used == described
    assert root.findtext(".//useBuiltinTransports", namespaces=FAST_SPACE) == "false"


def test_both_keep_a_datagram_within_a_frame() -> None:
    root = ElementTree.parse(FAST).getroot()
    assert root.findtext(".//property/name", namespaces=FAST_SPACE) == "fastdds.max_message_size"
    largest = root.findtext(".//property/value", namespaces=FAST_SPACE) or ""
    assert ElementTree.parse(CYCLONE).getroot().findtext(".//{*}MaxMessageSize") == f"{largest}B"
    assert int(largest) + 28 <= 1500  # headers of IPv4 and UDP; the payload of an Ethernet frame


def test_each_line_of_zenohs_router_is_one_setting() -> None:
    for line in ROUTER.read_text().splitlines():
        _, equals, value = line.partition("=")
        assert line.startswith("#") or (equals and ";" not in value)  # it separates settings


@pytest.mark.parametrize(
    ("rmw", "expected"),
    [
        ("rmw_fastrtps_cpp", {"FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE"}),
        ("rmw_fastrtps_dynamic_cpp", {"FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE"}),
        ("rmw_cyclonedds_cpp", {"CYCLONEDDS_URI"}),
        ("rmw_connextdds", set()),
        ("rmw_zenoh_cpp", set()),
    ],
)
def test_a_middleware_gets_its_own_settings_alone(rmw: str, expected: set[str]) -> None:
    variables, remarks = middleware_environment(rmw, "wireless", "", FAST.parent)
    assert variables.keys() == expected
    assert bool(remarks) != bool(expected)
    assert all(rmw in remark for remark in remarks)
    assert middleware_environment(rmw, "default", "", FAST.parent) == ({}, [])


def test_where_no_middleware_is_named_each_finds_its_own() -> None:
    variables, remarks = middleware_environment("", "wireless", "10.0.0.2", FAST.parent)
    assert variables["FASTRTPS_DEFAULT_PROFILES_FILE"] == str(FAST)
    assert variables["FASTDDS_DEFAULT_PROFILES_FILE"] == str(FAST_3)
    assert variables["CYCLONEDDS_URI"] == CYCLONE.as_uri()
    assert variables["ROS_STATIC_PEERS"] == "10.0.0.2"
    assert remarks == []


def test_a_file_of_ones_own_goes_to_the_middleware_that_runs(tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.touch()
    for rmw, name, value in (
        ("rmw_cyclonedds_cpp", "CYCLONEDDS_URI", file.as_uri()),
        ("rmw_zenoh_cpp", "ZENOH_SESSION_CONFIG_URI", str(file)),
    ):
        assert middleware_environment(rmw, str(file), "", FAST.parent) == ({name: value}, [])


def test_what_the_user_sets_for_the_router_comes_last() -> None:
    value = router_override("10.0.0.2; 10.0.0.3", FAST.parent, 'mode="router"')
    assert value.endswith(';connect/endpoints=["tcp/10.0.0.2:7447", "tcp/10.0.0.3:7447"];mode="router"')
    assert "#" not in value
    assert "connect" not in router_override("", FAST.parent)
