# SPDX-License-Identifier: Apache-2.0
"""Compares openpi's client, LeRobot's and ours with the same policy, each in a world in real time.

    .venv/bin/python benchmarks/clients.py [TASK] [--clients A,B] [--conditions A,B] [--episodes N]

The target's plans are served at one end of an emulated link of the paper's figures; at the other a simulated
robot moves at its control rate, with or without a command. A client is one of

    openpi:H         openpi's `Runtime` with `ActionChunkBroker`: asks after every H actions, and waits
    lerobot:T:F      LeRobot's `RobotClient`: asks where a share T of the chunk is left, aggregates by F
    ours:METHOD      robot's and verifier's nodes over DDS, by a method that asks ahead: best, plan_7

with the packages of the first two in folders of their own (`adahi_lab/peers/environments.py`). All run the
same episodes, in turns; each run begins with an episode that does not count. With `--runs FOLDER` each run is
kept there, and a second call goes on.

With `--judged` the world is LIBERO's own, and vla-eval steps it by the clock (`peers/vla_eval_judge.py`):

    .venv/bin/python benchmarks/clients.py libero_goal --judged --episodes 20

There all episodes count, and run in the judge's order.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import numpy as np
import typer
import yaml
from rich.console import Console
from rich.table import Table

from adahi_lab.bench.link_ends import dds_environment, run_at_robot, serving
from adahi_lab.bench.loop_latency import in_rounds
from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.cli.output import progress, write_json
from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.loaded_policies import PLANS, PolicyFiles
from adahi_lab.evaluation.metrics import wilson_interval
from adahi_lab.link.emulator import EmulatedLink, emulated_link
from adahi_lab.link.link_profile import profile_named
from adahi_lab.methods.dds_method import goes_ahead, node_parameters
from adahi_lab.peers import environments
from adahi_lab.peers.closed_loop import Drive, EpisodeLog, load_logs
from adahi_lab.peers.driving import BACKEND
from adahi_lab.reporting.tables import narrow_table, number
from adahi_lab.tasks import make
from adahi_ros.cli.terminal import say
from adahi_ros.core.assets import asset


def jerk(joints: Sequence[np.ndarray], rate_hz: float) -> float | None:
    """Return the root mean square of the jerk of all joints at all times, in units of the joints per s^3.

    It is the third difference of positions (Flash and Hogan, 1985, minimise its square).

    Args:
        joints: of each episode, positions (n, J), one a control period.
        rate_hz: of these.

    Returns:
        None where no episode has joints and four periods.
    """
    thirds = [np.diff(positions, 3, axis=0).ravel() for positions in joints if len(positions) > 3]
    together = np.concatenate(thirds) if thirds else np.zeros(0)
    return float(np.sqrt((together**2).mean()) * rate_hz**3) if together.size else None


def longest_gap(moved: Sequence[bool]) -> int:
    """Return of how many periods in a row none had a new command."""
    return max((len(list(run)) for fresh, run in groupby(moved) if not fresh), default=0)


def loop_figures(logs: Sequence[EpisodeLog], rate_hz: float) -> dict[str, Any]:
    """Return the figures of one client under one condition.

    Returns:
        `missed` is the share of control periods without a new command, `still` of those in which the robot
        was held still. `waiting_s` is how much of an episode, from its beginning, was without a new command,
        on average; `start_s` of that what went by before the first. `longest_gap_most_s` is the
        longest time. `asked_speed` and `asked_acceleration` are the means of the largest that commands asked
        of a trajectory controller in an episode, `asked_acceleration_most` is the largest of all.
    """
    steps = sum(len(log.moved) for log in logs)
    successes = sum(log.success for log in logs)
    missed = sum(not fresh for log in logs for fresh in log.moved)
    gaps = [longest_gap(log.moved) / rate_hz for log in logs]
    start_s = float(np.mean([log.start_s for log in logs]))
    return {
        "episodes": len(logs),
        "steps": steps,
        "success_rate": successes / len(logs),
        "success_ci95": list(wilson_interval(successes, len(logs))),
        "calls_per_step": sum(log.calls for log in logs) / steps,
        "calls_per_episode": sum(log.calls for log in logs) / len(logs),
        "missed": missed / steps,
        "still": sum(log.still for log in logs) / steps,
        "waiting_s": start_s + missed / rate_hz / len(logs),
        "start_s": start_s,
        "longest_gap_most_s": max(gaps),
        "jerk": jerk([np.array(log.joints) for log in logs], rate_hz),
        "asked_speed": float(np.mean([log.asked_speed for log in logs])),
        "asked_acceleration": float(np.mean([log.asked_acceleration for log in logs])),
        "asked_acceleration_most": max(log.asked_acceleration for log in logs),
        "bytes_up_per_step": sum(log.bytes_up for log in logs) / steps,
        "bytes_down_per_step": sum(log.bytes_down for log in logs) / steps,
        "lasted_s": sum(log.lasted_s for log in logs),
    }


PORT = 9123
PROFILE = "wifi_ac"
WIDTH = 132
CLIENTS = "openpi:8,openpi:4,lerobot:0.75:latest_only,ours:plan_4,ours:crossfade_4,ours:best"
JUDGE = "vla_eval_judge"
PEERS = {"openpi": "openpi_websocket", "lerobot": "lerobot_grpc"}  # the packages of each


@dataclass(frozen=True)
class Condition:
    """Properties of the link and the target.

    Attributes:
        loss: share of packets.
        outage_s: duration of one cut of the link per episode.
        added_compute_s: added to the time of every plan.
        restart: the server is killed instead, and the next one starts after `outage_s`.
    """

    loss: float = 0.0
    outage_s: float = 0.0
    added_compute_s: float = 0.0
    restart: bool = False


CONDITIONS = {
    "clean": Condition(),
    "loss_5": Condition(loss=0.05),
    "outage": Condition(outage_s=1.0),
    "cut": Condition(outage_s=3.0),
    "restart": Condition(outage_s=4.0, restart=True),
    "late": Condition(added_compute_s=0.5),
}
DEFAULT = "clean,loss_5,cut,restart,late"
SHOWN = {
    "clean": "no loss",
    "loss_5": "5 % loss",
    "outage": "cut for 1 s",
    "cut": "cut for 3 s",
    "restart": "server back after 4 s",
    "late": "plans 0.5 s slower",
}


@dataclass(frozen=True)
class Client:
    """A way to drive the robot.

    Attributes:
        name: on the command line.
        kind: openpi, lerobot or ours.
        settings: of a peer, or the method of ours.
    """

    name: str
    kind: str
    settings: dict[str, Any]

    @classmethod
    def parse(cls, name: str, task: str) -> Client:
        """Parse the name of a client.

        Raises:
            ValueError: there is no such client.
        """
        kind, _, rest = name.partition(":")
        try:
            if kind == "openpi":
                return cls(name, kind, {"action_horizon": int(rest)})
            if kind == "lerobot":
                threshold, _, aggregate = rest.partition(":")
                options = {"chunk_size_threshold": float(threshold), "aggregate_fn_name": aggregate}
                return cls(name, kind, {**options, "fps": make(task).spec.control_rate_hz})
        except ValueError:
            pass
        if kind == "ours" and goes_ahead(rest, task):
            return cls(name, kind, {"method": rest})
        raise ValueError(f"clients: {name!r}, must be openpi:H, lerobot:T:F or ours:METHOD that asks ahead")


def run(
    link: EmulatedLink, client: Client, wanted: Drive, condition: Condition, scratch: Path
) -> list[EpisodeLog]:
    """Let a client drive the robot through episodes; return the logs of all but the first.

    Raises:
        RuntimeError: a program at either end failed.
    """
    link.change(loss=condition.loss)
    start = _ours if client.kind == "ours" else _peer
    drive_file, out, control = (scratch / name for name in ("settings.json", "logs.json", "control"))
    control.unlink(missing_ok=True)
    wanted = replace(wanted, restart=str(control) if condition.restart else "")
    server, program, variables = start(link, client, wanted, condition, drive_file)
    with server:
        run_at_robot(link, [*program, str(drive_file), str(out)], variables)
    return load_logs(out)[not wanted.judged :]


Started = tuple[AbstractContextManager[None], list[str], dict[str, str]]


def _command(wanted: Drive, command: list[str]) -> list[str]:
    """Return a server's command after the interpreter, with a supervisor where it is killed."""
    supervisor = ["-m", "adahi_lab.link.restarted_server", wanted.restart]
    return [*supervisor, *command[1:]] if wanted.restart else command


def _peer(
    link: EmulatedLink, client: Client, wanted: Drive, condition: Condition, drive_file: Path
) -> Started:
    names = [PEERS[client.kind], *([JUDGE] if wanted.judged else [])]
    variables = environments.variables(*map(environments.environment, names))
    module = ["-m", f"adahi_lab.peers.{client.kind}_loop"]
    settings = {**client.settings, "added_compute_s": condition.added_compute_s}
    replace(wanted, settings=settings, address=link.server.address, port=PORT).save(drive_file)
    server = serving(link, _command(wanted, [*module, "serve", str(drive_file)]), variables, "ready")
    return server, [*module, "drive"], dict(variables)


def _ours(
    link: EmulatedLink, client: Client, wanted: Drive, condition: Condition, drive_file: Path
) -> Started:
    spec = make(wanted.task).spec
    files = PolicyFiles(asset(f"checkpoints/{spec.name}"), BACKEND)
    calibration = load_calibration(asset(f"config/{spec.name}.yaml"))
    method, period_s = client.settings["method"], 1.0 / spec.control_rate_hz
    draft, target = node_parameters(method, wanted.task, files, calibration, period_s)
    alone = {"fallback": "hold", "fallback_limit": 0}  # the others have no trained draft to fall back to
    replace(wanted, settings={"draft": {**alone, **draft}}).save(drive_file)
    parameters = drive_file.with_suffix(".yaml")
    values = {**target, "seed": wanted.seed, "added_compute_s": condition.added_compute_s}
    parameters.write_text(yaml.safe_dump({"/**": {"ros__parameters": values}}))
    verifier = ["-m", "adahi_ros.nodes.server.target_verifier_node"]
    variables = dds_environment("wireless")
    node = [*verifier, "--ros-args", "--params-file", str(parameters)]
    server = serving(link, _command(wanted, node), variables, "target policy of")
    if wanted.judged:
        variables = variables | environments.variables(environments.environment(JUDGE))
    return server, ["-m", "adahi_lab.nodes.adahi_loop"], variables


def compare(
    task: str,
    clients: Sequence[Client],
    conditions: Sequence[str],
    episodes: int,
    rounds: int,
    seed: int,
    on_run: Callable[[str, str, int], None],
    judged: bool = False,
    runs: Path | None = None,
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the figures by condition and client, with `load`, the machine's as each run began.

    Runs that lie in the folder `runs` are read, others are written there.
    """
    target = str((asset(f"checkpoints/{make(task).spec.name}") / PLANS / "target").resolve())
    rate_hz = make(task).spec.control_rate_hz
    logs: dict[tuple[str, str], list[EpisodeLog]] = {}
    loads: dict[tuple[str, str], list[float]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="adahi_clients_") as scratch,
        emulated_link(profile_named(PROFILE), seed) as link,
    ):
        for numbers in in_rounds(evaluation_episodes(episodes), min(rounds, episodes)):
            for name in conditions:
                condition = CONDITIONS[name]
                begin, count = (0, len(numbers)) if judged else (numbers.start - 1, len(numbers) + 1)
                wanted = Drive(task, target, seed, begin, count, condition.outage_s, judged=judged)
                for client in clients:
                    key, load = (name, client.name), round(os.getloadavg()[0], 2)
                    drawn = f"{task}-{seed}-{begin}-{count}-{name}-{client.name}".replace(":", "_")
                    kept = None if runs is None else runs / f"{drawn}.json"
                    if kept is not None and kept.exists():
                        load, done = json.loads(kept.read_text())
                        made = [EpisodeLog(**each) for each in done]
                    else:
                        made = run(link, client, wanted, condition, Path(scratch))
                        if kept is not None:
                            kept.parent.mkdir(parents=True, exist_ok=True)
                            kept.write_text(json.dumps([load, [asdict(each) for each in made]]))
                    loads.setdefault(key, []).append(load)
                    logs.setdefault(key, []).extend(made)
                    on_run(name, client.name, len(numbers))
    return {
        name: {
            client.name: {
                **loop_figures(logs[name, client.name], rate_hz),
                "load": loads[name, client.name],
                "success": {log.episode: log.success for log in logs[name, client.name]},
            }
            for client in clients
        }
        for name in conditions
    }


def table(task: str, found: dict[str, dict[str, dict[str, Any]]]) -> Table:
    """Return the figures of `compare` as a table."""
    episodes = next(iter(next(iter(found.values())).values()))["episodes"]
    headings = [
        "success",
        "95 %",
        "calls\na step",
        "calls",
        "missed",
        "waits\ns",
        "longest\ns",
        "jerk",
        "speed",
        "accel.",
    ]
    headings += ["bytes\nup", "down"]
    title = f"{task} by the clock across {PROFILE}, {episodes} episodes"
    loads = [load for each in found.values() for values in each.values() for load in values["load"]]
    caption = "calls and waits an episode, bytes a step; missed: periods without a new command; "
    caption += "speed, accel.: largest asked of a trajectory controller, mean of episodes; load of the "
    caption += f"machine as runs began {min(loads):.1f} to {max(loads):.1f}, median {median(loads):.1f}"
    every = [values for each in found.values() for values in each.values()]
    if lasted_s := sum(values["lasted_s"] for values in every):
        steps = sum(values["steps"] for values in every)
        caption += f"; the judge made {steps / lasted_s:.1f} steps a second"
    made = narrow_table(title, ["link", "client"], headings, caption)
    for name, clients in found.items():
        for index, (client, values) in enumerate(clients.items()):
            low, high = values["success_ci95"]
            made.add_row(
                "" if index else SHOWN[name],
                client,
                number(values["success_rate"], 2),
                f"{low:.2f}-{high:.2f}",
                number(values["calls_per_step"], 3),
                number(values["calls_per_episode"], 1),
                f"{100 * values['missed']:.1f} %",
                number(values["waiting_s"], 2),
                number(values["longest_gap_most_s"], 2),
                number(values["jerk"], 0),
                number(values["asked_speed"], 2),
                number(values["asked_acceleration"], 0),
                number(values["bytes_up_per_step"], 0),
                number(values["bytes_down_per_step"], 0),
            )
    return made


def main(
    task: Annotated[str, typer.Argument(help="A world with a target that plans.")] = "ball_instructed",
    clients: Annotated[str, typer.Option(help="Separated by commas.")] = CLIENTS,
    conditions: Annotated[str, typer.Option(help="Separated by commas.")] = DEFAULT,
    episodes: Annotated[int, typer.Option(min=1, help="Of each client under each condition.")] = 20,
    rounds: Annotated[int, typer.Option(min=1, help="In which all take turns.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random draw.")] = 0,
    judged: Annotated[bool, typer.Option("--judged", help="vla-eval steps LIBERO's own world.")] = False,
    runs: Annotated[Path | None, typer.Option(help="Folder that keeps each run.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="File to write.")] = None,
) -> None:
    """Compare clients; print a table."""
    names = conditions.split(",")
    for name in names:
        if name not in CONDITIONS:
            raise typer.BadParameter(f"conditions: {name!r}, must be some of {', '.join(CONDITIONS)}")
    if judged and task != "libero_goal":
        raise typer.BadParameter(f"task: {task!r}, must be libero_goal with --judged")
    try:
        chosen = [Client.parse(name, task) for name in clients.split(",")]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    with progress() as bar:
        job = bar.add_task("episodes", total=len(names) * len(chosen) * episodes, note="")

        def on_run(condition: str, client: str, count: int) -> None:
            bar.update(job, advance=count, note=f"{condition}, {client}")
            say(f"{condition}: {client}, {count} episodes, load {os.getloadavg()[0]:.1f}")

        found = compare(task, chosen, names, episodes, 1 if judged else rounds, seed, on_run, judged, runs)
    Console(width=WIDTH).print(table(task, found))
    described = {name: asdict(CONDITIONS[name]) for name in names}
    command = " ".join(["benchmarks/clients.py", *sys.argv[1:]])
    write_json(json_file, {"command": command, "task": task, "conditions": described, "figures": found})


if __name__ == "__main__":
    typer.run(main)
