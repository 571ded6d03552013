# SPDX-License-Identifier: Apache-2.0
"""Tests which unauthorised participants SROS 2 keeps out.

    python -m adahi_lab.papers.s3ml.table trial [--unchecked FOLDER]

Needs root, to see what is on the wire, `ros2 security`, and a Fast DDS with security, as ROS's packages
have it, and its wheels do not. The keys are those of `adahi keys`, the verifier is the real node, a robot
asks by `adahi_ros.client`; all on the loopback interface, by UDP. docs/research/security.md has the results.

A library checks its own process's permissions, too; --unchecked names a folder with a libfastrtps that does
not, for an unauthorised participant who has changed it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy as np
import rclpy
import typer
from adahi_msgs.msg import DraftStatus
from adahi_msgs.srv import VerifyDraft
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rich.console import Console
from rich.table import Table

from adahi_lab.papers.s3ml.loopback import stage, watched
from adahi_ros.client import VerifierClient, VerifierError
from adahi_ros.core.assets import asset
from adahi_ros.nodes.common.qos import LISTENING, verify_qos
from adahi_ros.nodes.launching.modules import MODULES
from adahi_ros.security.keystores import MACHINES, Keystore

SECONDS = 5.0  # of each attempt
PERIOD_S = 0.05
DEADLINE_S = 0.5
NAMES = ("verify_draft", "describe_target", "assignments")  # of the verifier
LIE = "a false reply"
SEEN = np.float32(0.0123456)  # an observation that would be known again
MARK = np.full(4, SEEN, "<f4").tobytes()
OFF = {"ROS_SECURITY_ENABLE": "false"}
REFUSED = re.compile(
    r"((?:rt|rq|rr)/\S+ topic not found in allow rule)"
)  # what Fast DDS says to its own process
TRIED = ("ask", "answer", "listen")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(width=150)


def keys(machine: Path, enclave: str) -> dict[str, str]:
    """Return the variables of a process that has a machine's keys."""
    return {
        "ROS_SECURITY_ENABLE": "true",
        "ROS_SECURITY_STRATEGY": "Enforce",
        "ROS_SECURITY_KEYSTORE": str(machine),
        "ROS_SECURITY_ENCLAVE_OVERRIDE": enclave,
    }


# What one process does


@app.command(hidden=True)
def be(role: str, robot: str, namespace: str, seconds: float = SECONDS) -> None:
    """Play a part in the domain for so long, and print what came of it."""
    report(PARTS[role](node_of(robot, namespace), robot, seconds))


def node_of(robot: str, namespace: str) -> Node:
    """Return a node that may be there by the policies, and finds a robot's services at the verifier."""
    remapped = [word for name in NAMES for word in ("-r", f"{name}:=/server/{robot}/{name}")]
    rclpy.init(args=["--ros-args", *remapped])
    name = "target_verifier" if namespace == "server" else "draft_policy"
    return Node(name, namespace=f"/{namespace}")


def report(result: Mapping[str, Any]) -> NoReturn:
    """Print what came of a part, and end without a goodbye."""
    print(json.dumps(result), flush=True)
    os._exit(0)


def acts(node: Node, robot: str, seconds: float) -> dict[str, Any]:
    """Ask the robot's verifier, and say what was done, as a robot does."""
    status = node.create_publisher(DraftStatus, "draft_status", 10)
    return _requests(node, robot, seconds, lambda: status.publish(DraftStatus(robot_id=robot)))


def asks(node: Node, robot: str, seconds: float) -> dict[str, Any]:
    """Ask the robot's verifier alone."""
    return _requests(node, robot, seconds, lambda: None)


def _requests(node: Node, robot: str, seconds: float, tell: Callable[[], None]) -> dict[str, Any]:
    client = VerifierClient(node, robot, deadline_s=DEADLINE_S)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    errors: Counter[str] = Counter()
    answers = 0
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        started_s = time.monotonic()
        task = executor.create_task(_ask, client, answers)
        executor.spin_until_future_complete(task)
        error = task.result()
        if error:
            errors[error] += 1
        else:
            answers += 1
        tell()
        time.sleep(max(0.0, started_s + PERIOD_S - time.monotonic()))
    lies = sum(count for error, count in errors.items() if LIE in error)
    return {"asked": answers + errors.total(), "answers": answers, "lies": lies, "errors": dict(errors)}


async def _ask(client: VerifierClient, step: int) -> str:
    try:
        signature = (await client.describe()).signature
        window = np.full((signature.history, sum(each.size for each in signature.features)), SEEN)
        await client.ask(window, np.zeros(sum(each.size for each in signature.conditions)), step=step)
    except VerifierError as error:
        return str(error)
    return ""


def answers(node: Node, robot: str, seconds: float) -> dict[str, Any]:
    """Answer in the verifier's place, and look at what was asked."""
    seen = {"requests": 0, "observations": 0}

    def lie(request: VerifyDraft.Request, response: VerifyDraft.Response) -> VerifyDraft.Response:
        seen["requests"] += 1
        seen["observations"] += MARK in np.array(request.observation_window, "<f4").tobytes()
        response.status = VerifyDraft.Response.STATUS_INTERNAL_ERROR
        response.message = LIE
        response.step_id = request.step_id
        return response

    node.create_service(VerifyDraft, "verify_draft", lie, qos_profile=verify_qos("best_effort"))
    _spin(node, seconds)
    return seen


def listens(node: Node, robot: str, seconds: float) -> dict[str, Any]:
    """Receive what a robot says of itself."""
    robot_ids: list[str] = []

    def note(status: DraftStatus) -> None:
        robot_ids.append(status.robot_id)

    node.create_subscription(DraftStatus, f"/{robot}/draft_status", note, LISTENING)
    _spin(node, seconds)
    return {"heard": len(robot_ids)}


def _spin(node: Node, seconds: float) -> None:
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        executor.spin_once(0.1)


PARTS = {"act": acts, "ask": asks, "answer": answers, "listen": listens}


# All of them together


class Part:
    """A process that plays a part."""

    def __init__(
        self,
        part: str,
        robot: str,
        namespace: str,
        environment: Mapping[str, str],
        *more: str,
        program: str = "adahi_lab.papers.s3ml.table",
    ) -> None:
        command = [sys.executable, "-m", program, "be", part, robot, namespace, *more]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, env={**os.environ, **environment}, stdout=pipe, stderr=pipe, text=True
        )

    def line(self) -> str:
        """Return its next line."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def end(self) -> dict[str, Any]:
        """Return what came of it; of one that could not play its part, what it said."""
        out, err = self._process.communicate()
        if self._process.returncode == 0:
            return json.loads(out.splitlines()[-1])
        refused = REFUSED.search(out + err)
        return {"failed": refused[1] if refused else err.splitlines()[-1]}

    def kill(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


Participant = tuple[str, Mapping[str, str]]
"""The namespace of its node, and its process's variables."""


def alike(environment: Mapping[str, str]) -> dict[str, Participant]:
    """Return r2 as who asks, answers and listens."""
    return dict.fromkeys(TRIED, ("r2", environment))


@contextmanager
def verifier(environment: Mapping[str, str], robot: str) -> Iterator[None]:
    """Have the real node serve a robot."""
    remapped = [word for name in NAMES for word in ("-r", f"{name}:={robot}/{name}")]
    parameters = ["-p", "checkpoint:=ball/plans/target", "-p", "rule.name:=replace"]
    command = [sys.executable, "-m", MODULES["target_verifier_node"], "--ros-args", "-r", "__ns:=/server"]
    process = subprocess.Popen(
        [*command, *remapped, *parameters],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def tried(
    domain: int,
    server: Mapping[str, str],
    robot: Mapping[str, str],
    unauthorised: Mapping[str, Participant],
    named: str = "r1",
) -> dict[str, Any]:
    """Have a robot query its verifier; unauthorised participants query, answer and listen in its place.

    Args:
        domain: of ROS.
        server: variables of the verifier's process.
        robot: of the robot's.
        unauthorised: unauthorised participants by their part.
        named: the robot.
    """
    with watched(domain, MARK) as wire, verifier(server, named):
        time.sleep(3.0)
        asking = Part("act", named, named, robot, "--seconds", str(SECONDS + 3.0))
        time.sleep(2.0)
        parts = {part: Part(part, named, *participant) for part, participant in unauthorised.items()}
        found = {part: each.end() for part, each in parts.items()}
        own = asking.end()
    return {"robot": own, "stranger": found, "wire": {"packets": wire.packets, "plain": wire.marked}}


def make_keys(folder: Path, robots: list[str]) -> tuple[Keystore, Path]:
    """Return a keystore and its machines' folder."""
    keystore = Keystore(folder, asset("config/sros2"))
    keystore.make(robots)
    return keystore, folder / MACHINES


@app.command()
def trial(
    unchecked: Annotated[
        Path | None, typer.Option(help="Folder of a libfastrtps that does not check its own process.")
    ] = None,
) -> None:
    """Let unauthorised participants request, reply and listen, with and without security."""
    with stage() as (domain, folder):
        keystore, machines = make_keys(folder / "ours", ["r1", "r2"])
        _, others = make_keys(folder / "others", ["r1", "r2"])
        server = keys(machines / "server", "/adahi/server")
        first, second = (keys(machines / name, f"/adahi/{name}") for name in ("r1", "r2"))
        of_others = {
            "ask": ("r1", keys(others / "r1", "/adahi/r1")),
            "answer": ("server", keys(others / "server", "/adahi/server")),
            "listen": ("r1", keys(others / "r1", "/adahi/r1/drivers")),
        }
        found = {
            "no security at all": tried(domain, OFF, OFF, alike(OFF)),
            "nobody": tried(domain, server, first, {}),
            "one without keys": tried(domain, server, first, alike(OFF)),
            "keys of another authority": tried(domain, server, first, of_others),
            "r2 with its own keys": tried(domain, server, first, alike(second)),
        }
        if unchecked is not None:
            path = f"{unchecked}{os.pathsep}{os.environ.get('LD_LIBRARY_PATH', '')}"
            found["r2, its library changed"] = tried(
                domain, server, first, alike({**second, "LD_LIBRARY_PATH": path})
            )
        stolen = folder / "stolen"
        shutil.copytree(machines / "r2", stolen)
        thief = keys(stolen, "/adahi/r2")
        found["r2's keys, stolen: asks as r2"] = tried(domain, server, thief, {}, "r2")
        keystore.revoke(["r2"])
        keystore.make([])
        found["the same, once they were revoked"] = tried(domain, server, thief, {}, "r2")
        keystore.make(["r2"])
        found["r2 with new keys"] = tried(domain, server, second, {}, "r2")
    _show(found)


def _show(found: Mapping[str, Mapping[str, Any]]) -> None:
    table = Table("participant", "robot's replies", "false replies to it", "participant's replies")
    for name in ("requests read", "status received", "plain on the wire"):
        table.add_column(name)
    for name, each in found.items():
        own, ask, answer, listen = each["robot"], *(each["stranger"].get(part, {}) for part in TRIED)
        figures = [
            f"{own['answers']} of {own['asked']}",
            own["lies"],
            _figure(ask, "answers"),
            _figure(answer, "observations"),
        ]
        table.add_row(name, *map(str, [*figures, _figure(listen, "heard"), each["wire"]["plain"]]))
    console.print(table)
    for name, each in found.items():
        for part, result in {"robot": each["robot"], **each["stranger"]}.items():
            if failure := result.get("failed"):
                console.print(f"{name}, {part}: {failure}", highlight=False, soft_wrap=True)


def _figure(result: Mapping[str, Any], name: str) -> Any:
    return "refused" if "failed" in result else result.get(name, "-")


if __name__ == "__main__":
    app()
