# SPDX-License-Identifier: Apache-2.0
"""`adahi serve openpi` and `adahi serve lerobot`: targets behind a door, without ROS."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from adahi_ros.cli.fields import with_fields
from adahi_ros.cli.terminal import say
from adahi_ros.doors.interface import Door
from adahi_ros.doors.lerobot import LeRobotDoor
from adahi_ros.doors.openpi import OpenPiDoor

WAIT_S = 0.005  # for clients of the batch before: their next observation takes them milliseconds

Targets = Annotated[
    list[str],
    Option(help="Target file, or DIRECTORY/NAME of a checkpoint; several are served by their names."),
]
Device = Annotated[str, Option(help="Where targets compute; '' for what the file has, or the CPU.")]
Batch = Annotated[int, Option(min=1, max=1024, help="Largest number of clients in a batch.")]


@with_fields
def serve_openpi(target: Targets, door: OpenPiDoor, device: Device = "", batch: Batch = 16) -> None:
    """Serve a target to clients of openpi's protocol, many in a batch, until Ctrl-C."""
    _serve(door, "openpi's clients ask at 8000", target, device, batch)


@with_fields
def serve_lerobot(target: Targets, door: LeRobotDoor, device: Device = "", batch: Batch = 16) -> None:
    """Serve a target to lerobot-rollout's remote inference, many robots in a batch, until Ctrl-C."""
    _serve(door, "LeRobot's clients ask at 7447", target, device, batch)


def _serve(door: Door, usual: str, target: list[str], device: str, batch: int) -> None:
    from adahi_ros.doors.alone import loaded, serve_alone
    from adahi_ros.server.schedule import BatchParameters

    if not door.port:
        raise ValueError(f"--port: 0, must be from 1 to 65535; {usual}")
    targets = [loaded(each, {"device": device} if device else {}, say) for each in target]
    serve_alone(door, targets, BatchParameters(size=batch, wait_s=WAIT_S), say)
