from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from adahi_lab.link.link_profile import (
    Burst,
    LinkProfile,
    load_profile,
    profile_named,
    profile_path,
    shipped_profiles,
)
from adahi_ros.core.assets import asset
from adahi_ros.core.schema import checked

VALUES = {"rtt_mean_ms": 12.0, "rtt_jitter_ms": 0.3, "rate_mbit_s": 55.4}
UNKNOWN = (
    "unknown, must be one of rtt_mean_ms, rtt_jitter_ms, rate_mbit_s, loss, burst, duplicate, "
    "reorder, queue_bytes, outages, states"
)
BURST = {"to_bad": 0.1, "to_good": 0.3, "loss_in_bad": 0.5}
SHIPPED = sorted(path.name for path in asset("config/links").glob("*.yaml"))


def written(folder: Path, values: Any) -> Path:
    path = folder / "link.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_shipped_is_a_link(name: str) -> None:
    link = load_profile(asset(f"config/links/{name}"))
    assert 0 <= link.rtt_jitter_ms <= link.rtt_mean_ms


def test_the_papers_link_is_shipped() -> None:
    assert "wifi_ac.yaml" in SHIPPED
    assert load_profile(asset("config/links/wifi_ac.yaml")) == LinkProfile(12.054, 0.302, 55.4)


def test_of_several_faults_one_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, {5: 0.1, "rtt_mean_ms": 12.0})
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: .*: (missing|unknown)"):
        load_profile(path)


def test_no_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_profile(tmp_path / "nowhere.yaml")


def test_a_shipped_profile_has_a_name_and_any_other_a_path(tmp_path: Path) -> None:
    assert [f"{name}.yaml" for name in shipped_profiles()] == SHIPPED
    assert profile_path("wifi_ac") == asset("config/links/wifi_ac.yaml")
    other = written(tmp_path, VALUES)
    assert profile_path(str(other)) == other
    with pytest.raises(ValueError, match=r"^link: 'tin_cans', must be one of .*wifi_ac, .* or a YAML file$"):
        profile_path("tin_cans")


def test_a_profile_may_be_like_another_but_for_some_fields(tmp_path: Path) -> None:
    base = profile_named("wifi_ac")
    lossy = load_profile(written(tmp_path, {"like": "wifi_ac", "loss": 0.2}))
    assert lossy == base.changed({"loss": 0.2}) != base


def test_what_a_profile_is_like_is_checked_too(tmp_path: Path) -> None:
    path = tmp_path / "link.yaml"
    for like, fault in (
        (str(path), "like: .* must not lead back to itself"),
        ("tin", "link: 'tin', must be"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: {fault}"):
            load_profile(written(tmp_path, {"like": like}))


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("losses", 0.1, f"losses: {UNKNOWN}"),
        (5, 0.1, f"5: {UNKNOWN}"),
        ("rate_mbit_s", 0.0, "rate_mbit_s: 0.0, must be a number above 0"),
        ("loss", 1.01, "loss: 1.01, must be a number from 0 to 1"),
        ("queue_bytes", 0, "queue_bytes: 0, must be a number above 0"),
        ("burst", 0.5, "burst: 0.5, must be a mapping"),
        ("burst", {**BURST, "to_bad": 2}, "burst.to_bad: 2, must be a number from 0 to 1"),
        ("burst", {"to_bad": 0.1, "to_good": 0.3}, "burst.loss_in_bad: missing"),
        ("outages", 3, "outages: 3, must be a list"),
        ("outages", [{"at_s": 1, "for_s": 0}], "outages[0].for_s: 0, must be a number above 0"),
        ("outages", [{"at_s": -1, "for_s": 1}], "outages[0].at_s: -1, must be a number from 0"),
        ("states", [{"for_s": 1}, {"loss": 0.5}], "states[1].for_s: missing"),
        ("states", [{"for_s": 1, "loss": 3}], "states[0].loss: 3, must be a number from 0 to 1"),
        ("states", [{"for_s": 1, "states": []}], "states[0].states: unknown, must be for_s or a field"),
    ],
)
def test_a_wrong_or_unknown_field_is_named(tmp_path: Path, name: Any, value: Any, fault: str) -> None:
    path = written(tmp_path, {**VALUES, name: value})
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {fault}')}"):
        load_profile(path)


def test_states_follow_each_other_for_ever() -> None:
    states = ({"for_s": 5.0, "loss": 0.1}, {"for_s": 1.0, "rate_mbit_s": 1.0})
    link = LinkProfile(12.0, 0.3, 55.4, loss=0.01, states=states)
    for round_s in (0.0, 6.0, 600.0):
        first, until_s = link.state_at(round_s + 1.0)
        assert (first.loss, first.rate_mbit_s) == (0.1, 55.4)
        assert until_s == pytest.approx(round_s + 5.0)
        second, until_s = link.state_at(round_s + 5.5)
        assert (second.loss, second.rate_mbit_s) == (0.01, 1.0)
        assert until_s == pytest.approx(round_s + 6.0)


def test_a_profile_survives_the_way_through_json() -> None:
    for name in shipped_profiles():
        link = profile_named(name)
        assert checked(LinkProfile, json.loads(json.dumps(link.values()))) == link


def test_changes_are_checked() -> None:
    link = LinkProfile(12.0, 0.3, 55.4)
    assert link.changed({"loss": 0.5}).loss == 0.5
    with pytest.raises(ValueError, match=r"^looss: unknown, must be one of .*loss"):
        link.changed({"looss": 0.5})
    with pytest.raises(ValueError, match=r"^loss: 2, must be"):
        link.changed({"loss": 2})


def test_losses_alone_and_in_bursts_add_up() -> None:
    assert LinkProfile(12.0, 0.3, 55.4, loss=0.1).mean_loss() == pytest.approx(0.1)
    assert LinkProfile(12.0, 0.3, 55.4, burst=Burst(**BURST)).mean_loss() == pytest.approx(0.25 * 0.5)
    both = LinkProfile(12.0, 0.3, 55.4, loss=0.1, burst=Burst(**BURST))
    assert both.mean_loss() == pytest.approx(1 - 0.9 * 0.875)
    never = Burst(to_bad=0.0, to_good=0.0, loss_in_bad=1.0)
    assert LinkProfile(12.0, 0.3, 55.4, burst=never).mean_loss() == 0.0


def test_lost_messages_are_sent_again_after_a_round_trip() -> None:
    link = LinkProfile(rtt_mean_ms=10.0, rtt_jitter_ms=0.0, rate_mbit_s=8.0, loss=0.5)
    assert link.waiting_ms(3, 2000) == pytest.approx(3 * 10.0 * 4 + 2.0)
    assert link.waiting_ms(0, 0) == 0.0
