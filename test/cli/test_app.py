from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from adahi_ros import __version__, cli
from adahi_ros.lab.methods.methods import METHODS
from adahi_ros.lab.tasks import names
from test.cli.conftest import Fails, Run

OF_TRAINING = ("--seed", "--json", "--workers")
SAYS = {
    "demos": OF_TRAINING,
    "train": (*OF_TRAINING, "--data"),
    "calibrate": (*OF_TRAINING, "--bag", "--contract", "--draft", "--target"),
    "evaluate": OF_TRAINING,
    "demo": ("--seed", "--json"),
    "export": ("--checkpoints",),
    "table": ("--seed", "--out", "--quick", "--workers"),
    "figures": ("--seed", "--out", "--quick", "--link"),
    "report": ("--out", "--namespace", "--json"),
    "record": ("--contract", "--out", "--duration", "--namespace", "--storage", "--use-sim-time"),
    "dataset from-bag": ("--contract", "--out", "--namespace", "--keep-failures"),
    "distill": ("--contract", "--out", "--target", "--recipe", "--held-out", "--seed"),
    "replay": ("--contract", "--params", "--profile", "--json", "--figure", "--seed"),
}
OF_A_TASK = ("demos", "train", "calibrate", "export", "evaluate", "demo")


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_has_help_in_its_group(verb: str, run: Run) -> None:
    *group, name = verb.split()
    assert name in run(*group, "--help").output
    shown = re.sub(r"\x1b\[[0-9;]*m", "", run(*group, name, "--help").output)
    for option in SAYS.get(verb, ()):
        assert option in shown


@pytest.mark.parametrize("verb", OF_A_TASK)
def test_help_names_every_task(verb: str, run: Run) -> None:
    assert set(names()) <= set(re.findall(r"\w+", run(verb, "--help").stdout))


@pytest.mark.parametrize("verb", ["evaluate", "figures", "replay"])
def test_help_loads_nothing_heavy(verb: str, loaded_by_help: Callable[[str], set[str]]) -> None:
    heavy = {"torch", "onnxruntime", "numpy", "scipy", "matplotlib", "jinja2", "rclpy", "rosbags"}
    assert heavy.isdisjoint(loaded_by_help(verb))


def test_the_version_is_told_and_is_that_of_the_package(run: Run) -> None:
    assert run("--version").stdout == f"adahi {__version__}\n"
    root = Path(cli.__file__).parents[2]
    assert f"<version>{__version__}</version>" in (root / "package.xml").read_text()
    assert f'version="{__version__}"' in (root / "setup.py").read_text()


def test_the_package_is_the_command_too() -> None:
    told = [
        subprocess.run([sys.executable, *program, "--version"], capture_output=True, text=True, check=True)
        for program in (["-m", "adahi_ros"], ["-c", "from adahi_ros.cli import main; main()"])
    ]
    assert told[0].stdout == told[1].stdout == f"adahi {__version__}\n"


def test_an_error_in_a_real_process_is_one_line() -> None:
    ended = subprocess.run(
        [
            sys.executable,
            "-c",
            "from adahi_ros.cli import main; main()",
            "evaluate",
            "ball",
            "--methods",
            "telepathy",
        ],
        cwd=Path(cli.__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "COLUMNS": "40"},
    )
    assert ended.returncode == 2
    said = f"adahi: methods: 'telepathy', must be of {', '.join(METHODS)}, or "
    assert ended.stderr.startswith(said)
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", [*OF_A_TASK, "table", "figures"])
def test_an_unknown_task_is_named_with_those_there_are(verb: str, fails: Fails) -> None:
    options = ("--out", "never") if verb == "demos" else ()
    said = fails(verb, *(("chess",) if verb in OF_A_TASK else ("--tasks", "ball,chess")), *options)
    assert said.startswith(f"adahi: task: 'chess', expected one of {', '.join(names())}")
    assert {"ball", "kitchen", "swarm"} <= set(names())
