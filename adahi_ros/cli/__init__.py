# SPDX-License-Identifier: Apache-2.0
"""The command `adahi`: one verb per job, one file per kind of job."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from adahi_ros import __version__
from adahi_ros.core.registry import Registry, RegistryError
from adahi_ros.core.signals import leaving_on

ROS = ("rclpy", "adahi_msgs", "lifecycle_msgs", "trajectory_msgs", "diagnostic_msgs", "sensor_msgs")
RUNTIME = ("torch", "gymnasium", "gymnasium_robotics", "mujoco", "minari", "onnx", "onnxscript", "pyarrow")
NEEDED = {
    **dict.fromkeys(ROS, "a sourced ROS 2 with adahi_msgs built, or 'make setup'"),
    **dict.fromkeys(RUNTIME, "'make setup', or pip install -r requirements/runtime.txt"),
}
STOPPED = 130  # what shells expect after Ctrl-C

__all__ = ["app", "main"]

# In the order of the help: verbs by themselves, then those of a group, GROUP VERB.
VERBS: Registry[Callable[..., None]] = Registry(
    "adahi_ros.verbs",
    {
        "demos": "adahi_ros.cli.lab.dataset:demos",
        "train": "adahi_ros.cli.lab.training:train",
        "learn": "adahi_ros.cli.lab.learning:learn",
        "committee": "adahi_ros.cli.lab.committee:committee",
        "tune": "adahi_ros.cli.lab.tuning:tune",
        "calibrate": "adahi_ros.cli.lab.calibration:calibrate",
        "distill": "adahi_ros.cli.lab.distill:distill",
        "index": "adahi_ros.cli.lab.dataset:index",
        "export": "adahi_ros.cli.lab.training:export",
        "evaluate": "adahi_ros.cli.lab.comparison:evaluate",
        "compare": "adahi_ros.cli.lab.comparison:compare",
        "curve": "adahi_ros.cli.lab.comparison:curve",
        "methods": "adahi_ros.cli.lab.methods:methods",
        "table": "adahi_ros.cli.lab.paper:table",
        "figures": "adahi_ros.cli.lab.paper:figures",
        "report": "adahi_ros.cli.lab.run_report:report",
        "demo": "adahi_ros.cli.lab.over_dds:demo",
        "record": "adahi_ros.cli.robot.bags:record",
        "replay": "adahi_ros.cli.lab.replay:replay",
        "secure": "adahi_ros.cli.robot.security:secure",
        "top": "adahi_ros.cli.robot.top:top",
        "acceptance train": "adahi_ros.cli.lab.trained_parts:train_acceptance",
        "bag recover": "adahi_ros.cli.robot.bags:recover_bag",
        "contract check": "adahi_ros.cli.robot.contracts:check",
        "contract write": "adahi_ros.cli.lab.task_contract:write",
        "dataset from-bag": "adahi_ros.cli.lab.dataset:from_bag",
        "encoder train": "adahi_ros.cli.lab.trained_parts:train_encoder",
        "fleet up": "adahi_ros.cli.robot.fleet_up:up",
        "gate train": "adahi_ros.cli.lab.trained_parts:train_gate",
        "lerobot policy": "adahi_ros.cli.lab.lerobot:policy",
        "lerobot dataset": "adahi_ros.cli.lab.lerobot:dataset",
        "lerobot export": "adahi_ros.cli.lab.lerobot:export",
        "link run": "adahi_ros.cli.lab.link:run",
        "link set": "adahi_ros.cli.lab.link:change",
        "link check": "adahi_ros.cli.lab.link:check",
        "link list": "adahi_ros.cli.lab.link:listing",
        "bench latency": "adahi_ros.cli.lab.bench:latency",
        "bench plans": "adahi_ros.cli.lab.bench:plans",
        "bench peers": "adahi_ros.cli.lab.bench:peers",
        "bench dds": "adahi_ros.cli.lab.bench:dds",
        "bench cameras": "adahi_ros.cli.lab.bench:cameras",
        "bench soak": "adahi_ros.cli.lab.bench:soak",
        "bench compute": "adahi_ros.cli.lab.bench:compute",
        "bench fleet": "adahi_ros.cli.lab.bench:fleet",
    },
)
GROUPS = {
    "acceptance": "Train a rule that decides what of a draft stands.",
    "bag": "A robot's bags.",
    "contract": "Contracts: what a robot's observation and action are made of.",
    "dataset": "Training data from a robot's bags.",
    "encoder": "Train the encoder that a camera's frames go through.",
    "fleet": "The verifier of a fleet, its policies on Ray Serve.",
    "gate": "Train a gate that decides when to ask.",
    "lerobot": "LeRobot's policies and datasets, made ours.",
    "link": "Emulate a wireless link between a robot and a server on this machine.",
    "bench": "Measure, mostly across an emulated wireless link.",
}
SETTINGS = {"link run": {"allow_interspersed_args": False}}  # what follows COMMAND is the command's


def _print_version(wanted: bool) -> None:
    if wanted:
        Console().print(f"adahi {__version__}", highlight=False)
        raise typer.Exit


def _any_verb(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def _typer() -> typer.Typer:
    """Return the command with all verbs; one of another package that cannot be imported is left out."""
    made = typer.Typer(
        name="adahi",
        help="Hybrid inference for robots: draft on the robot, verify on a server, only when it must.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    made.callback()(_any_verb)
    groups = {name: typer.Typer(help=about, no_args_is_help=True) for name, about in GROUPS.items()}
    for name, group in groups.items():
        group.callback()(lambda: None)  # a group's only verb keeps its name
        made.add_typer(group, name=name)
    for name in VERBS:
        within, _, verb = name.rpartition(" ")
        try:
            groups.get(within, made).command(verb, context_settings=SETTINGS.get(name))(VERBS[name])
        except RegistryError as error:
            Console(stderr=True).print(f"adahi: {error}", highlight=False, markup=False, soft_wrap=True)
    return made


app = _typer()


def main() -> None:
    """Run the command; errors that a user can mend are one line, not a traceback."""
    try:
        with leaving_on(signal.SIGINT, signal.SIGTERM):
            app()
    except KeyboardInterrupt:  # a second Ctrl-C, while the first was being obeyed
        sys.exit(STOPPED)
    except SystemExit as leaving:
        if leaving.code == STOPPED:
            Console(stderr=True).print("adahi: stopped", highlight=False)
        raise
    except ImportError as error:
        needed = NEEDED.get(error.name or "") if isinstance(error, ModuleNotFoundError) else None
        _complain(f"{error.name}: not installed; this needs {needed}" if needed else str(error))
    except (ValueError, OSError, RuntimeError) as error:
        _complain(str(error))


def _complain(fault: str) -> None:
    Console(stderr=True).print(f"[bold red]adahi:[/] {escape(fault)}", highlight=False, soft_wrap=True)
    sys.exit(2)
