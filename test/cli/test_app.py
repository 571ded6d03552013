from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from adahi_lab.methods.methods import METHODS
from adahi_lab.tasks import names
from adahi_ros import __version__
from adahi_ros.cli.verbs import PANELS, VERBS
from test.cli.conftest import Fails, Run

ROOT = Path(__file__).parents[2]
OF_TRAINING = ("--seed", "--json", "--workers")
SAYS = {
    "data simulate": OF_TRAINING,
    "train policy": (*OF_TRAINING, "--data"),
    "thresholds": (*OF_TRAINING, "--bag", "--contract", "--draft", "--target"),
    "evaluate": OF_TRAINING,
    "demo": ("--seed", "--json"),
    "export": ("--checkpoints",),
    "lab table": ("--seed", "--out", "--quick", "--workers"),
    "lab figures": ("--seed", "--out", "--quick"),
    "report": ("--out", "--namespace", "--json"),
    "record": ("--contract", "--out", "--duration", "--namespace", "--storage", "--use-sim-time"),
    "data from-bag": ("--contract", "--out", "--namespace", "--keep-failures"),
    "train corrector": ("--contract", "--out", "--target", "--recipe", "--held-out", "--seed"),
    "bag evaluate": ("--contract", "--params", "--profile", "--json", "--figure", "--seed"),
}
OF_A_TASK = ("data simulate", "train policy", "thresholds", "export", "evaluate", "demo")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_in_its_group(verb: str, run: Run) -> None:
    *group, name = verb.split()
    assert name in run(*group, "--help").output
    shown = re.sub(r"\x1b\[[0-9;]*m", "", run(*group, name, "--help").output)
    for option in SAYS.get(verb, ()):
        assert option in shown


@pytest.mark.parametrize("verb", ["evaluate", "lab figures", "bag evaluate", "serve openpi"])
def test_help_loads_nothing_heavy(verb: str, loaded_by_help: Callable[[str], set[str]]) -> None:
    heavy = {"torch", "onnxruntime", "numpy", "scipy", "matplotlib", "jinja2", "rclpy", "rosbags"}
    assert heavy.isdisjoint(loaded_by_help(verb))


def test_the_version_is_reported_and_is_that_of_the_package(run: Run) -> None:
    assert run("--version").stdout == f"adahi {__version__}\n"
    root = ROOT
    assert f"<version>{__version__}</version>" in (root / "package.xml").read_text()
    assert f'version="{__version__}"' in (root / "setup.py").read_text()


def test_the_package_is_the_command_too() -> None:
    outputs = [
        subprocess.run([sys.executable, *program, "--version"], capture_output=True, text=True, check=True)
        for program in (["-m", "adahi_ros"], ["-c", "from adahi_ros.cli.app import main; main()"])
    ]
    assert outputs[0].stdout == outputs[1].stdout == f"adahi {__version__}\n"


def test_an_error_in_a_real_process_is_one_line() -> None:
    ended = subprocess.run(
        [
            sys.executable,
            "-c",
            "from adahi_ros.cli.app import main; main()",
            "evaluate",
            "ball",
            "--methods",
            "telepathy",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "COLUMNS": "40"},
    )
    assert ended.returncode == 2
    output = f"adahi: methods: 'telepathy', must be of {', '.join(METHODS)}, or "
    assert ended.stderr.startswith(output)
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", [*OF_A_TASK, "lab table", "lab figures"])
def test_an_unknown_task_is_named_with_those_there_are(verb: str, fails: Fails) -> None:
    options = ("--out", "never") if verb == "data simulate" else ()
    output = fails(*verb.split(), *(("chess",) if verb in OF_A_TASK else ("--tasks", "ball,chess")), *options)
    assert output.startswith(f"adahi: task: 'chess', expected one of {', '.join(names())}")
    assert {"ball", "kitchen", "swarm"} <= set(names())


def test_the_help_names_every_verb_and_group_of_a_panel(run: Run) -> None:
    shown = set(re.findall(r"^│ ([a-z-]+) ", run("--help").output.partition("─ Start ─")[2], re.MULTILINE))
    assert shown == {name for names in PANELS.values() for name in names}


@pytest.mark.parametrize("given", [("--bag=~/none",), ("--bag", "~/none")], ids=" ".join)
def test_the_home_folder_is_found_in_any_word(
    given: tuple[str, ...], fails: Fails, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert fails("contract", "check", "so101", *given) == f"adahi: {tmp_path}/none: no such bag\n"


def test_a_wrong_name_of_a_method_or_task_suggests_the_nearest(fails: Fails) -> None:
    assert fails("evaluate", "ball", "--methods", "bset").startswith(
        "adahi: methods: 'bset' (did you mean 'best'?), must be of"
    )
    assert fails("evaluate", "bal").startswith("adahi: task: 'bal' (did you mean 'ball'?), expected one of")


def test_train_and_a_task_is_train_policy(run: Run) -> None:
    assert "train policy" in run("train", "ball", "--help").output
    assert "encoder" in run("train", "encoder", "--help").output


@pytest.mark.parametrize("name", ["x" * 5000, "y" * 300])
def test_a_name_that_no_file_can_have_is_one_short_line(name: str, fails: Fails) -> None:
    for words in (
        ("evaluate", name),
        ("evaluate", f"{name}.yaml"),
        ("contract", "check", f"{name}.yaml"),
        ("report", name),
    ):
        fault = fails(*words)
        assert "Errno" not in fault
        assert len(fault) < 2500
