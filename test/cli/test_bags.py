from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

SAYS = {
    ("record",): ("--contract", "--out", "--duration", "--namespace", "--storage", "--use-sim-time"),
    ("dataset", "from-bag"): ("--contract", "--out", "--namespace", "--keep-failures"),
    ("distill",): ("--contract", "--out", "--target", "--recipe", "--held-out", "--seed"),
    ("replay",): ("--contract", "--params", "--profile", "--json", "--figure", "--seed"),
    ("calibrate",): ("--bag", "--contract", "--draft", "--target"),
    ("train",): ("--data",),
    ("report",): ("--namespace", "--json"),
}


@pytest.mark.parametrize("verb", SAYS)
def test_every_verb_that_takes_bags_has_help(verb: tuple[str, ...], run: Callable[..., Result]) -> None:
    result = run(*verb, "--help")
    assert result.exit_code == 0
    for option in SAYS[verb]:
        assert option in re.sub(r"\x1b\[[0-9;]*m", "", result.output)


def test_help_on_bags_loads_nothing_heavy(loaded_by_help: Callable[[str], set[str]]) -> None:
    heavy = {"torch", "onnxruntime", "numpy", "rosbags", "matplotlib", "rclpy"}
    assert heavy.isdisjoint(loaded_by_help("replay"))


def test_what_is_no_bag_is_told(tmp_path: Path, fails: Callable[..., str]) -> None:
    for verb in (("dataset", "from-bag"), ("replay",)):
        out = ("--out", tmp_path / "never") if verb == ("dataset", "from-bag") else ()
        said = fails(*verb, tmp_path / "none", "--contract", tmp_path / "none.yaml", *out)
        assert said.startswith(f"adahi: contract: '{tmp_path / 'none.yaml'}', no such file")
    assert not (tmp_path / "never").exists()
