# SPDX-License-Identifier: Apache-2.0
"""`adahi lab link`: a wireless link between two hosts that live on this machine."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from adahi_ros.cli import options
from adahi_ros.cli.terminal import command_line, console, say, write_json

if TYPE_CHECKING:
    from rich.table import Table

    from adahi_ros.lab.figures import Figures
    from adahi_ros.lab.link.link_profile import LinkProfile

Share = Annotated[float | None, options.number("Share of packets, 0 to 1.", 0.0, 1.0)]


def run(
    command: Annotated[list[str], Argument(help="Runs at the robot's end.", metavar="COMMAND...")],
    profile: options.ProfileName = "wifi_ac",
    server: Annotated[
        str, Option(help="A command, in one word as shells quote it, that runs at the server's end.")
    ] = "",
    seed: options.Seed = 0,
) -> None:
    """Run a command at the robot's end of a link: adahi lab link run --profile wifi_ac -- COMMAND...

    The command finds in ADAHI_SERVER_PREFIX what to put before another command to run that at the
    server's end (10.77.0.2; the robot is 10.77.0.1), and in ADAHI_LINK_CONTROL the socket by which
    'adahi lab link set' changes the link. Its exit status is handed on. When it ends, all at both ends does.
    """
    from adahi_ros.lab.link.emulator import emulated_link
    from adahi_ros.lab.link.link_commands import run_commands

    with emulated_link(_profile(profile), seed) as link:
        status = run_commands(link, command, shlex.split(server))
    raise typer.Exit(status)


def change(
    control: Annotated[
        Path | None, Option(help="Socket of the link. Default: that of ADAHI_LINK_CONTROL.")
    ] = None,
    profile: Annotated[
        str | None, Option(help="Take all of this profile; further options come on top.")
    ] = None,
    rtt_mean_ms: Annotated[float | None, options.number("Mean round-trip time.", 0.0)] = None,
    rtt_jitter_ms: Annotated[float | None, options.number("Its standard deviation.", 0.0)] = None,
    rate_mbit_s: Annotated[float | None, options.number("Rate, each way.", 1e-6)] = None,
    queue_bytes: Annotated[float | None, options.number("What may wait to be sent.", 1.0)] = None,
    loss: Share = None,
    duplicate: Share = None,
    reorder: Share = None,
    cut: Annotated[
        float | None, options.number("Let nothing through for so many seconds; 0 ends that.", 0)
    ] = None,
) -> None:
    """Change a running link; without options, show its state and traffic."""
    from adahi_ros.lab.link.emulator import command_link
    from adahi_ros.lab.link.link_commands import CONTROL

    if control is None and CONTROL not in os.environ:
        raise ValueError(f"control: none given, and no {CONTROL} in the environment")
    given = {"rtt_mean_ms": rtt_mean_ms, "rtt_jitter_ms": rtt_jitter_ms, "rate_mbit_s": rate_mbit_s}
    given |= {"queue_bytes": queue_bytes, "loss": loss, "duplicate": duplicate, "reorder": reorder}
    fields = {name: value for name, value in given.items() if value is not None}
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
    seconds: Annotated[float, options.number("That each of four streams lasts.", 0.1)] = 2.0,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Measure an emulated link with real packets: the profile, and what this machine makes of it."""
    from adahi_ros.lab.link.emulator import emulated_link
    from adahi_ros.lab.link.link_measurement import measure_link

    asked = _profile(profile)
    with emulated_link(asked, seed) as link:
        with console.status("measuring"):
            measured = measure_link(link, asked, pings, seconds)
        real_time = link.real_time
    console.print(_table(profile, asked, measured))
    if asked.states or asked.outages:
        say("asked: outside its states and outages")
    figures = {"command": command_line(), "seed": seed, "real_time": real_time}
    write_json(json_file, {**figures, "asked": asked.values(), "measured": measured})


def listing() -> None:
    """List the shipped link profiles."""
    from rich.table import Table

    from adahi_ros.lab.link.link_profile import profile_named, shipped_profiles

    table = Table("profile", "round trip, ms", "rate, Mbit/s", "loss", "states")
    for name in shipped_profiles():
        found = profile_named(name)
        trip = f"{found.rtt_mean_ms:g} ± {found.rtt_jitter_ms:g}"
        states = str(len(found.states) or "")
        table.add_row(name, trip, f"{found.rate_mbit_s:g}", f"{found.mean_loss():.2%}", states)
    console.print(table)


def _profile(name: str) -> LinkProfile:
    from adahi_ros.lab.link.link_profile import profile_named

    return profile_named(name)


def _table(name: str, asked: LinkProfile, measured: Figures) -> Table:
    from rich.table import Table

    table = Table("", "asked", "measured", title=f"the link {name}, {measured['round_trips']} round trips")

    def row(label: str, wanted: str, value: float | None, digits: str) -> None:
        table.add_row(label, wanted, "-" if value is None else format(value, digits))

    row("round trip, mean, ms", f"{asked.rtt_mean_ms:.3f}", measured["rtt_mean_ms"], ".3f")
    row("round trip, standard deviation, ms", f"{asked.rtt_jitter_ms:.3f}", measured["rtt_jitter_ms"], ".3f")
    for percentile, value in measured["rtt_percentiles_ms"].items():
        row(f"round trip, {percentile}th percentile, ms", "", value, ".3f")
    for way in ("up", "down"):
        row(f"loss {way}", f"{asked.mean_loss():.2%}", measured["loss"][way], ".2%")
        row(
            f"UDP {way}, whole frames, Mbit/s", f"{asked.rate_mbit_s:.1f}", measured["udp_mbit_s"][way], ".1f"
        )
        row(f"TCP {way}, payload, Mbit/s", "", measured["tcp_mbit_s"][way], ".1f")
    return table
