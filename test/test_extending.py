"""docs/how_to/extend.md works from outside of the package: its files, its lines, its commands."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/how_to/extend.md").read_text()
SECTIONS = (
    "A task",
    "A draft",
    "A target",
    "A remote target",
    "An acceptance rule",
    "An acceptance rule with weights",
    "A gate",
    "A proposer",
    "A paper's method",
    "A command sink",
    "A limit",
    "A verb",
)

NODES = """
import os
from types import SimpleNamespace
import rclpy
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from adahi_lab.nodes.domain import exclusive_domain, loopback_environment

with exclusive_domain() as domain:
    os.environ.update(loopback_environment(domain))
    rclpy.init()
    from adahi_ros.nodes.robot.draft_policy_node import DraftPolicyNode
    from adahi_ros.nodes.server.target_verifier_node import TargetVerifierNode

    def with_(**values):
        return [Parameter(name.replace("__", "."), value=value) for name, value in values.items()]

    folder = os.path.abspath("policies")
    verifier = TargetVerifierNode(parameter_overrides=with_(checkpoint=f"{folder}/target", rule__name="near"))
    assert verifier.trigger_configure() == TransitionCallbackReturn.SUCCESS
    robot = DraftPolicyNode(
        parameter_overrides=with_(
            checkpoint=f"{folder}/draft",
            gate__name="link",
            gate__slope=2.0,
            contract=os.path.abspath("corridor.yaml"),
            safety__limits="none",
        )
    )
    assert robot.trigger_configure() == TransitionCallbackReturn.SUCCESS
    trigger = robot._loop.controller.config.trigger
    assert (trigger.name, trigger.gate.slope) == ("link", 2.0)

    alone = DraftPolicyNode(
        parameter_overrides=with_(
            contract="so101",
            safety__limits="so101",
            proposer__name="shifted",
            proposer__file=os.path.abspath("shifted.txt"),
            proposer__scale=2.0,
            wait_policy="ahead",
        )
    )
    assert alone.trigger_configure() == TransitionCallbackReturn.SUCCESS
    assert alone._loop.controller.policy.digest == "shifted"
    assert alone._session._wants.horizon == 8
    elsewhere = TargetVerifierNode(
        parameter_overrides=with_(
            checkpoint=f"{folder}/target", rule__name="near", engine__name="elsewhere", engine__region="far"
        )
    )
    assert elsewhere.trigger_configure() == TransitionCallbackReturn.SUCCESS
    former = DraftPolicyNode(parameter_overrides=with_(proposer="shifted", shifted__file="shifted.txt"))
    assert former.trigger_configure() == TransitionCallbackReturn.FAILURE
    tolerant = TargetVerifierNode(
        parameter_overrides=with_(
            checkpoint=f"{folder}/target",
            rule__name="tolerant",
            rule__file=os.path.abspath("tolerant.safetensors"),
        )
    )
    assert tolerant.trigger_configure() == TransitionCallbackReturn.SUCCESS

    robot.set_parameters(with_(gate__name="torn"))  # cannot be imported, which is only seen then
    robot._loop.step = robot._compare = lambda observation: None
    robot._observe(SimpleNamespace(stamp_ns=0))
    assert robot._loop.controller.config.trigger == trigger
    robot.trigger_cleanup()
    assert robot.trigger_configure() == TransitionCallbackReturn.FAILURE
"""
SHIFTED = """
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.registry import argument
from adahi_ros.policies.interface import Actor
from adahi_ros.proposers.interface import Proposer


@dataclass(eq=False)
class ShiftedProposer(Proposer):
    needs_policy = False
    needs_plan = True

    policy: Actor
    file: str = argument("", "File with the shift of all plans of 8 actions, in action units")
    scale: float = argument(1.0, "Factor of the shift", 0.0, 10.0)

    def __post_init__(self):
        self.shift = self.scale * float(Path(self.file).read_text())
        self.actor = Actor(self.policy.signature, self.policy, np.ones(6), "shifted")
        self.wanted_horizon = 8

    def propose(self, context):
        return Proposal(context.plan.at(context.step)[:, None] + self.shift)
"""
ELSEWHERE = """
from dataclasses import dataclass

from adahi_ros.core.registry import argument
from adahi_ros.nodes.server.target_verifier_parameters import EngineSource


@dataclass
class Elsewhere(EngineSource):
    region: str = argument("near", "Where the policies compute")

    def open(self, values, warn, away):
        warn(f"computes {self.region} from here")
        return super().open(values, warn, away)
"""
REMOTE = """
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
from adahi_ros.core.signature import GOAL, OBSERVATION
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import TargetUnavailableError


class Planning(BaseHTTPRequestHandler):
    def do_POST(self):
        state = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        ahead = np.array(state["goal"]) - np.array(state["observation"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(np.repeat(ahead, 4, axis=1).tolist()).encode())


server = HTTPServer(("127.0.0.1", 0), Planning)
threading.Thread(target=server.serve_forever, daemon=True).start()
text = Path("policies/away.yaml").read_text()
assert ":8123" in text
Path("policies/here.yaml").write_text(text.replace("8123", str(server.server_port)))
policy = load_policy(Path("policies/here"), "torch")
seen = policy.signature.observations(np.full((2, 1, 1), 0.25, np.float32), np.ones((2, 1), np.float32))
actions = policy.propose(seen, np.zeros((2, policy.draws))).actions
np.testing.assert_array_equal(actions, np.full((2, 4, 1), 0.75, np.float32))
server.shutdown()
server.server_close()
try:
    policy.propose(seen, np.zeros((2, policy.draws)))
except TargetUnavailableError as error:
    print(error)
"""
OTHER = [
    ("adahi_ros.proposers", "shifted = shifting:ShiftedProposer"),
    ("adahi_ros.engines", "elsewhere = elsewhere:Elsewhere"),
]
FORMER_NAMES = ("proposer", "name"), ("shifted.file", "file")
ONE = ("--workers", "1")
TORN = [
    ("adahi_ros.gates", "torn = no_such_module:Gate"),
    ("adahi_ros.verb_help", "torn = no_such_module:HELP"),
    ("adahi_ros.verb_help", "number = math:pi"),
    ("adahi_ros.assets", "torn = no_such_module.inside:FILES"),
]


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def lines(text: str) -> list[tuple[str, str]]:
    """Return groups and lines of entry points that a text tells."""
    return re.findall(r"Entry point, in `(adahi_(?:ros|lab)\.\w+)`: `([^`]+)`", text)


def commands(text: str) -> list[str]:
    return re.findall(r"^    (adahi .+)$", text, re.MULTILINE)


def weights(text: str) -> list[str]:
    """Return the programs that write weights."""
    return re.findall(r'^    python -c "(.+)"$', text, re.MULTILINE)


def write_package(folder: Path, name: str, points: list[tuple[str, str]]) -> None:
    """Make a package that is installed in a folder, as far as Python can tell."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups = sorted({group for group, _ in points})
    text = "\n".join(
        f"[{group}]\n" + "\n".join(line for each, line in points if each == group) for group in groups
    )
    (info / "entry_points.txt").write_text(text + "\n")


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all files of the sections, and their lines installed."""
    folder = tmp_path_factory.mktemp("outside")
    text = "".join(map(section, SECTIONS))
    written = re.findall(r"`([\w/]+\.(?:py|yaml))`:\n\n```(?:python|yaml)\n(.*?)```", text, re.DOTALL)
    for path, block in written:
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(block)
    assert len(written) == text.count("```") / 2 == len(SECTIONS) + 5
    write_package(folder, "my_robot", lines(text))
    for program in weights(text):
        run(folder, sys.executable, "-c", program)
    return folder


def environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(folder), str(ROOT), os.environ.get("PYTHONPATH"))))
    return os.environ | {"PYTHONPATH": path}


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def adahi(folder: Path, command: str, *more: str) -> str:
    program = "from adahi_ros.cli.app import main; main()"
    return run(folder, sys.executable, "-c", program, *shlex.split(command)[1:], *more)


def test_the_world_is_there_with_its_expert(outside: Path) -> None:
    (command,) = commands(section("A task"))
    adahi(outside, command, "--json", "demos.json", *ONE)
    assert json.loads((outside / "demos.json").read_text())["kept"] == 20  # the expert succeeds


def figures_of(outside: Path, title: str) -> dict[str, dict[str, Any]]:
    command = commands(section(title))[0]
    adahi(outside, command, "--json", "figures.json", *ONE)
    figures: dict[str, dict[str, Any]] = json.loads((outside / "figures.json").read_text())["methods"]
    return figures


def test_draft_and_target_act_in_it(outside: Path) -> None:
    figures = figures_of(outside, "A target")
    alone, target = figures["never:replace"], figures["always:replace"]
    assert (alone["transmission_rate"], target["transmission_rate"]) == (0.0, 1.0)
    assert alone["success_rate"] + 0.2 < target["success_rate"] > 0.9


def test_the_acceptance_rule_keeps_some_and_not_others(outside: Path) -> None:
    (figures,) = figures_of(outside, "An acceptance rule").values()
    (rejected,) = figures["rejection_rate"]
    assert 0.1 < rejected < 0.9
    assert figures["success_rate"] > 0.9


def test_the_weights_of_a_rule_decide_as_the_same_rule_without_weights(outside: Path) -> None:
    (weighted,) = figures_of(outside, "An acceptance rule with weights").values()
    (plain,) = figures_of(outside, "An acceptance rule").values()
    assert weighted["rejection_rate"] == plain["rejection_rate"]
    assert weighted["success_rate"] == plain["success_rate"]


def test_the_remote_target_is_queried_and_its_absence_is_reported(outside: Path) -> None:
    assert "not reachable" in run(outside, sys.executable, "-c", REMOTE)


def test_the_gate_gets_a_threshold_for_the_rate(outside: Path) -> None:
    figures = figures_of(outside, "A gate")
    assert figures["link:near"]["gate"] == "link"
    for method in figures.values():
        assert method["transmission_rate"] == pytest.approx(0.3, abs=0.1)


def test_the_proposer_acts_in_the_place_of_the_draft(outside: Path) -> None:
    figures = figures_of(outside, "A proposer")
    slow, draft = figures["slow+never/near"], figures["draft+never/near"]
    assert (slow["transmission_rate"], draft["transmission_rate"]) == (0.0, 0.0)
    assert slow["success_rate"] != draft["success_rate"]


def test_a_papers_method_is_listed_with_its_lines(outside: Path) -> None:
    (command,) = commands(section("A paper's method"))
    listed = " ".join(adahi(outside, command, "--json", "methods.json").split())
    assert "Patience Doe, an example" in listed
    assert "(my_robot/link.py)" in listed
    patience = json.loads((outside / "methods.json").read_text())["methods"][-1]
    assert [line["method"] for line in patience["lines"]] == ["link:near"]


def test_a_verb_of_another_package_is_one_of_adahi(outside: Path) -> None:
    (command,) = commands(section("A verb"))
    assert adahi(outside, command) == "2 m\n"


def test_a_calibration_has_its_threshold(outside: Path) -> None:
    command = "adahi thresholds corridor --checkpoints policies --rate 0.4 --episodes 20 --out corridor.yaml"
    adahi(outside, command, *ONE)
    found = yaml.safe_load((outside / "corridor.yaml").read_text())["/**"]["ros__parameters"]
    assert found["calibration"]["thresholds"].keys() >= {"deviation", "link", "random"}


def test_a_contract_names_the_command_sink_by_its_type(outside: Path) -> None:
    (command,) = commands(section("A command sink"))
    assert "action hand/move: my_msgs/action/MoveHand" in adahi(outside, command)
    contract = (outside / "hand.yaml").read_text()
    (outside / "fast.yaml").write_text(contract.replace("speed: 0.3", "speed: 3.0"))
    program = "from adahi_ros.contract.parsing import load_contract; load_contract('fast.yaml')"
    failed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=outside, env=environment(outside)
    )
    assert "action.speed: 3.0, must be from 0.01 to 1" in failed.stderr


LIMITS = """
import numpy as np
from adahi_ros.contract.commanded import Commanded
from adahi_ros.contract.contract import MeasuredPositions
from adahi_ros.safety.named_limits import named_command_limits, named_limits

names = ("wrist_1_joint", "wrist_2_joint")
what = Commanded.alike(names, "positions")
limits = named_limits("limits.yaml", True, what, MeasuredPositions(names, (0, 1)))
assert limits.velocity.tolist() == [1.0, 1.0]
admits = named_command_limits("limits.yaml", what)["wrist_sum"]
near, far = np.array([1.0, 1.0]), np.array([1.5, 1.5])
assert admits(near, near) and admits(far, near) and not admits(near, far)
named_command_limits("wide.yaml", what)
"""


def test_a_file_of_limits_names_the_limit_by_its_key(outside: Path) -> None:
    limits = (outside / "limits.yaml").read_text()
    (outside / "wide.yaml").write_text(limits.replace("largest: 2.5", "largest: 99.0"))
    failed = subprocess.run(
        [sys.executable, "-c", LIMITS], capture_output=True, text=True, cwd=outside, env=environment(outside)
    )
    assert "wrist_sum: largest: 99.0, must be a number from 0 to 10" in failed.stderr


def test_they_work_together_as_three_nodes(outside: Path) -> None:
    command = commands(section("An acceptance rule"))[1]
    adahi(outside, command, "--picture", "demo.png", "--json", "demo.json", *ONE)
    figures = json.loads((outside / "demo.json").read_text())["methods"]["always:near"]
    assert figures["transmitted"] == figures["steps"] > 5
    assert figures["fallbacks"] == 0
    assert 0 < figures["acceptance_rate"] < 1


def test_the_nodes_take_them_and_refuse_what_is_broken(outside: Path) -> None:
    write_package(outside, "torn", TORN)
    write_package(outside, "other", OTHER)
    (outside / "shifting.py").write_text(SHIFTED)
    (outside / "elsewhere.py").write_text(ELSEWHERE)
    (outside / "shifted.txt").write_text("0.5")
    try:
        adahi(outside, "adahi lab contract corridor --out corridor.yaml")
        output = run(outside, sys.executable, "-c", NODES)
    finally:
        for name in ("torn", "other"):  # of the folder that all tests here share
            shutil.rmtree(outside / f"{name}-1.0.dist-info")
    message = "adahi_ros.gates: 'torn' of torn: no_such_module:Gate cannot be imported"
    assert re.search(rf"\[ERROR\].*: {message} .*; keeps the former gate", output)
    assert re.search(rf"\[ERROR\].*: cannot be configured: {message}", output)
    assert "computes far from here" in output
    gone = (f"{was}: gone since 0.4.0, must be proposer.{now}" for was, now in FORMER_NAMES)
    assert f"cannot be configured: {'; '.join(gone)}" in output


def test_a_broken_help_or_folder_of_a_package_leaves_the_other_verbs(outside: Path) -> None:
    write_package(outside, "torn", TORN)
    try:
        output = run(outside, sys.executable, "-m", "adahi_ros", "contract", "check", "so101")
    finally:
        shutil.rmtree(outside / "torn-1.0.dist-info")
    assert "observation: 6 numbers" in output
    assert "adahi_ros.verb_help: 'torn' of torn: no_such_module:HELP cannot be imported" in output
    assert "adahi_ros.verb_help: 'number' is float, must be a VerbHelp" in output


def test_every_line_that_the_page_begins_with_is_that_of_a_section() -> None:
    ((group, line),) = lines(section("A gate"))
    assert f'entry_points={{"{group}": ["{line}"]}}' in PAGE
    name, _, value = line.partition(" = ")
    assert f'[project.entry-points."{group}"]\n{name} = "{value}"\n' in PAGE
