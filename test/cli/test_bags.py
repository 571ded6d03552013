from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from adahi_ros import cli

SAYS = {
    ("record",): ("--contract", "--out", "--duration", "--namespace", "--storage", "--use-sim-time"),
    ("dataset", "from-bag"): ("--contract", "--out", "--namespace", "--keep-failures"),
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


def test_help_on_bags_loads_nothing_heavy() -> None:
    program = (
        "import sys; from adahi_ros.cli import app\n"
        "try: app(['replay', '--help'])\n"
        "except SystemExit: pass\n"
        "loaded = {'torch', 'onnxruntime', 'numpy', 'rosbags', 'matplotlib', 'rclpy'} & sys.modules.keys()\n"
        "sys.exit(f'loaded: {loaded}' if loaded else 0)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(cli.__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


def test_what_is_no_bag_is_told(tmp_path: Path, fails: Callable[..., str]) -> None:
    for verb in (("dataset", "from-bag"), ("replay",)):
        out = ("--out", tmp_path / "never") if verb == ("dataset", "from-bag") else ()
        said = fails(*verb, tmp_path / "none", "--contract", tmp_path / "none.yaml", *out)
        assert said.startswith(f"adahi: contract: '{tmp_path / 'none.yaml'}', no such file")
    assert not (tmp_path / "never").exists()
