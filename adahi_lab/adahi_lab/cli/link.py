# SPDX-License-Identifier: Apache-2.0
"""`adahi lab link`: a wireless link between two hosts that live on this machine."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from adahi_lab.cli import options
from adahi_lab.cli.output import write_json
from adahi_ros.cli.fields import with_fields
from adahi_ros.cli.options import number
from adahi_ros.cli.terminal import command_line, console, say

if TYPE_CHECKING:
    from rich.table import Table

    from adahi_lab.figures import Figures
    from adahi_lab.link.link_profile import LinkProfile

Share = Annotated[float | None, number("Share of packets, 0 to 1.", 0.0, 1.0)]


def run(
    command: Annotated[list[str], Argument(help="Runs at the robot's end.", metavar="COMMAND...")],
    profile: options.ProfileName = "wifi_ac",
    server: Annotated[str, Option(help="Quoted command to run at the server's end.")] = "",
    seed: options.Seed = 0,
) -> None:
    """Run a command at the robot's end of a link: adahi lab link run --profile wifi_ac -- COMMAND...

    The variable ADAHI_SERVER_PREFIX holds the prefix that runs a command at the server's end.
    The server is 10.77.0.2, the robot 10.77.0.1. ADAHI_LINK_CONTROL names the socket that
    'adahi lab link set' uses. The exit status is that of COMMAND; both ends stop with it.
    """
    from adahi_lab.link.emulator import emulated_link
    from adahi_lab.link.link_commands import run_commands

    with emulated_link(_profile(profile), seed) as link:
        status = run_commands(link, command, shlex.split(server))
    raise typer.Exit(status)


@dataclass(frozen=True)
class Changes:
    """New values of a link's profile, by field; None for no change."""

    rtt_mean_ms: Annotated[float | None, number("Mean round-trip time.", 0.0)] = None
    rtt_jitter_ms: Annotated[float | None, number("Its standard deviation.", 0.0)] = None
    rate_mbit_s: Annotated[float | None, number("Rate, each way.", 1e-6)] = None
    queue_bytes: Annotated[float | None, number("Size of the send queue.", 1.0)] = None
    loss: Share = None
    duplicate: Share = None
    reorder: Share = None


@with_fields
def change(
    control: Annotated[
        Path | None, Option(help="Socket of the link. Default: that of ADAHI_LINK_CONTROL.")
    ] = None,
    profile: Annotated[str | None, Option(help="Use this profile; further options override it.")] = None,
    *,
    changes: Changes,
    cut: Annotated[float | None, number("Outage of this many seconds; 0 ends it.", 0)] = None,
) -> None:
    """Change a running link; without options, show its state and traffic."""
    from adahi_lab.link.emulator import command_link
    from adahi_lab.link.link_commands import CONTROL

    if control is None and CONTROL not in os.environ:
        raise ValueError(f"control: none given, and no {CONTROL} in the environment")
    fields = {name: value for name, value in asdict(changes).items() if value is not None}
    if profile is not None:
        fields = {**_profile(profile).values(), **fields}
    command: dict[str, object] = {"change": fields}
    if cut is not None:
        command["cut_s"] = cut
    reply = command_link(control or Path(os.environ[CONTROL]), command)
    for name, value in reply["profile"].items():
        say(f"{name}: {value}")
    for way in ("up", "down"):
        say(f"{way}: {', '.join(f'{value} {name}' for name, value in reply[way].items())}")


def check(
    profile: options.ProfileName = "wifi_ac",
    pings: Annotated[int, Option(min=1, help="Round trips to measure.")] = 300,
    seconds: Annotated[float, number("Duration of each of four streams.", 0.1)] = 2.0,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Measure an emulated link with real packets: the profile, and what this machine makes of it."""
    from adahi_lab.link.emulator import emulated_link
    from adahi_lab.link.link_measurement import measure_link

    requested = _profile(profile)
    with emulated_link(requested, seed) as link:
        with console.status("measuring"):
            measured = measure_link(link, requested, pings, seconds)
        real_time = link.real_time
    console.print(_table(profile, requested, measured))
    if requested.states or requested.outages:
        say("asked: outside its states and outages")
    figures = {"command": command_line(), "seed": seed, "real_time": real_time}
    write_json(json_file, {**figures, "asked": requested.values(), "measured": measured})


def listing() -> None:
    """List the shipped link profiles."""
    from rich.table import Table

    from adahi_lab.link.link_profile import profile_named, shipped_profiles

    table = Table("profile", "round trip, ms", "rate, Mbit/s", "loss", "states")
    for name in shipped_profiles():
        found = profile_named(name)
        trip = f"{found.rtt_mean_ms:g} ± {found.rtt_jitter_ms:g}"
        states = str(len(found.states) or "")
        table.add_row(name, trip, f"{found.rate_mbit_s:g}", f"{found.mean_loss():.2%}", states)
    console.print(table)


def _profile(name: str) -> LinkProfile:
    from adahi_lab.link.link_profile import profile_named

    return profile_named(name)


def _table(name: str, requested: LinkProfile, measured: Figures) -> Table:
    from rich.table import Table

    table = Table("", "asked", "measured", title=f"the link {name}, {measured['round_trips']} round trips")

    def row(label: str, wanted: str, value: float | None, digits: str) -> None:
        table.add_row(label, wanted, "-" if value is None else format(value, digits))

    row("round trip, mean, ms", f"{requested.rtt_mean_ms:.3f}", measured["rtt_mean_ms"], ".3f")
    row(
        "round trip, standard deviation, ms",
        f"{requested.rtt_jitter_ms:.3f}",
        measured["rtt_jitter_ms"],
        ".3f",
    )
    for percentile, value in measured["rtt_percentiles_ms"].items():
        row(f"round trip, {percentile}th percentile, ms", "", value, ".3f")
    for way in ("up", "down"):
        row(f"loss {way}", f"{requested.mean_loss():.2%}", measured["loss"][way], ".2%")
        row(
            f"UDP {way}, whole frames, Mbit/s",
            f"{requested.rate_mbit_s:.1f}",
            measured["udp_mbit_s"][way],
            ".1f",
        )
        row(f"TCP {way}, payload, Mbit/s", "", measured["tcp_mbit_s"][way], ".1f")
    return table
