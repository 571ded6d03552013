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
from adahi_ros.cli.lab.acceptance import app as acceptance
from adahi_ros.cli.lab.bench import app as bench
from adahi_ros.cli.lab.calibration import calibrate
from adahi_ros.cli.lab.committee import committee
from adahi_ros.cli.lab.comparison import compare, evaluate
from adahi_ros.cli.lab.curve import curve
from adahi_ros.cli.lab.dataset import dataset_app, demos, index
from adahi_ros.cli.lab.distill import distill
from adahi_ros.cli.lab.encoder import app as encoder
from adahi_ros.cli.lab.fleet import fleet
from adahi_ros.cli.lab.gate import app as gate
from adahi_ros.cli.lab.learning import learn
from adahi_ros.cli.lab.lerobot import app as lerobot
from adahi_ros.cli.lab.link import app as link
from adahi_ros.cli.lab.methods import methods
from adahi_ros.cli.lab.over_dds import demo
from adahi_ros.cli.lab.paper import figures, report, table
from adahi_ros.cli.lab.replay import replay
from adahi_ros.cli.lab.task_contract import write
from adahi_ros.cli.lab.training import export, train
from adahi_ros.cli.lab.tuning import tune
from adahi_ros.cli.robot.bags import bag_app, record
from adahi_ros.cli.robot.contracts import contract_app
from adahi_ros.cli.robot.fleet_up import app as fleet_app
from adahi_ros.cli.robot.security import secure
from adahi_ros.cli.robot.top import top
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

app = typer.Typer(
    name="adahi",
    help="Hybrid inference for robots: draft on the robot, verify on a server, only when it must.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        Console().print(f"adahi {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _any_verb(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


for verb in (
    demos,
    train,
    learn,
    committee,
    tune,
    calibrate,
    distill,
    index,
    export,
    evaluate,
    compare,
    curve,
    methods,
    table,
    figures,
    report,
    demo,
    record,
    replay,
    secure,
    top,
):
    app.command()(verb)
app.add_typer(acceptance, name="acceptance")
app.add_typer(bag_app, name="bag")
contract_app.command()(write)
app.add_typer(contract_app, name="contract")
app.add_typer(dataset_app, name="dataset")
app.add_typer(encoder, name="encoder")
app.add_typer(fleet_app, name="fleet")
app.add_typer(gate, name="gate")
app.add_typer(lerobot, name="lerobot")
app.add_typer(link, name="link")
bench.command("fleet")(fleet)
app.add_typer(bench, name="bench")

VERBS: Registry[Callable[..., None]] = Registry("adahi_ros.verbs", {})
"""Verbs of other packages."""
for name in VERBS:
    try:
        app.command(name)(VERBS[name])
    except RegistryError as error:  # the other verbs still work
        Console(stderr=True).print(f"adahi: {error}", highlight=False, markup=False, soft_wrap=True)


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
