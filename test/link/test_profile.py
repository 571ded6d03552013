from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from adahi_ros.assets import asset
from adahi_ros.link.profile import LinkProfile, load_profile

VALUES = {"rtt_mean_ms": 12.0, "rtt_jitter_ms": 0.3, "rate_mbit_s": 55.4}
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


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert load_profile(written(tmp_path, VALUES)) == LinkProfile(12.0, 0.3, 55.4)
    whole = {"rtt_mean_ms": 0, "rtt_jitter_ms": 0, "rate_mbit_s": 1}
    assert load_profile(written(tmp_path, whole)) == LinkProfile(0, 0, 1)


def test_bytes_take_their_time() -> None:
    link = LinkProfile(0.0, 0.0, 8.0)  # a megabyte per second
    assert link.transfer_ms(1000) == pytest.approx(1.0)
    assert link.transfer_ms(0) == 0.0


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize(
    ("value", "allowed"),
    [
        ("fast", "must be a finite number"),
        (None, "must be a finite number"),
        (True, "must be a finite number"),
        ([1.0], "must be a finite number"),
        (float("nan"), "must be a finite number"),
        (float("inf"), "must be a finite number"),
        (-0.1, "must be "),
    ],
)
def test_a_value_that_is_none_is_named_with_file_and_field(
    tmp_path: Path, name: str, value: Any, allowed: str
) -> None:
    path = written(tmp_path, {**VALUES, name: value})
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {name}: {value!r}, {allowed}')}"):
        load_profile(path)


def test_only_the_rate_must_be_above_zero(tmp_path: Path) -> None:
    assert load_profile(written(tmp_path, {**VALUES, "rtt_mean_ms": 0.0})).rtt_mean_ms == 0.0
    with pytest.raises(ValueError, match=re.escape("rate_mbit_s: 0.0, must be above 0")):
        load_profile(written(tmp_path, {**VALUES, "rate_mbit_s": 0.0}))


@pytest.mark.parametrize("name", VALUES)
def test_a_missing_field_is_named(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, {key: value for key, value in VALUES.items() if key != name})
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {name}: missing')}$"):
        load_profile(path)


@pytest.mark.parametrize("name", ["loss", 5])
def test_an_unknown_field_is_named_with_those_there_are(tmp_path: Path, name: Any) -> None:
    path = written(tmp_path, {**VALUES, name: 0.1})
    expected = f"{path}: {name}: unknown, must be one of rate_mbit_s, rtt_jitter_ms, rtt_mean_ms"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        load_profile(path)


def test_of_several_faults_one_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, {5: 0.1, "rtt_mean_ms": 12.0})
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: .*: (missing|unknown)"):
        load_profile(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "None, must be a mapping of rate_mbit_s, rtt_jitter_ms, rtt_mean_ms"),
        ("- 12.0\n", "[12.0], must be a mapping of "),
        ("rtt_mean_ms: [1", "not YAML: "),
    ],
)
def test_what_is_no_profile_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "link.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {message}')}"):
        load_profile(path)


def test_no_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_profile(tmp_path / "nowhere.yaml")
