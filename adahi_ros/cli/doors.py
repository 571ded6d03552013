# SPDX-License-Identifier: Apache-2.0
"""`adahi serve openpi`: a target behind a door, without ROS."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from adahi_ros.cli.fields import with_fields
from adahi_ros.cli.terminal import say
from adahi_ros.doors.openpi import OpenPiDoor

WAIT_S = 0.005  # for clients of the batch before: their next observation takes them milliseconds


@with_fields
def serve_openpi(
    target: Annotated[
        list[str],
        Option(help="Target file, or DIRECTORY/NAME of a checkpoint; several are served by their names."),
    ],
    door: OpenPiDoor,
    device: Annotated[str, Option(help="Where targets compute; '' for what the file has, or the CPU.")] = "",
    batch: Annotated[int, Option(min=1, max=1024, help="Largest number of clients in a batch.")] = 16,
) -> None:
    """Serve a target to clients of openpi's protocol, many in a batch, until Ctrl-C."""
    from adahi_ros.doors.alone import loaded, serve_alone
    from adahi_ros.server.schedule import BatchParameters

    if not door.port:
        raise ValueError("--port: 0, must be from 1 to 65535; openpi's clients ask at 8000")
    targets = [loaded(each, {"device": device} if device else {}, say) for each in target]
    serve_alone(door, targets, BatchParameters(size=batch, wait_s=WAIT_S), say)
