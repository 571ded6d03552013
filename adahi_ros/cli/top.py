# SPDX-License-Identifier: Apache-2.0
"""`adahi watch`."""

from __future__ import annotations

import json
import os
import signal
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from typer import Option

from adahi_ros.cli import options
from adahi_ros.cli.terminal import console, errors, say
from adahi_ros.core.domains import held_domains
from adahi_ros.core.signals import leaving_on

if TYPE_CHECKING:
    from adahi_ros.nodes.monitoring.top import Watcher

REFRESH_S = 0.25
LINE_S = 1.0
DISCOVERY_S = 5.0  # with --once: time to discover the robots


def top(
    namespace: Annotated[
        str, Option(help="Only the robots in this namespace; a single one is shown in detail.")
    ] = "",
    domain: Annotated[
        int | None,
        Option(
            min=0,
            max=232,
            help="ROS domain. Default: ROS_DOMAIN_ID, else that of a demo on this machine, else 0.",
        ),
    ] = None,
    once: Annotated[bool, Option("--once", help="Show the last --seconds once, and exit.")] = False,
    seconds: Annotated[float, options.number("Time window of the current figures, s.", 1.0)] = 5.0,
    as_json: Annotated[
        bool, Option("--json", help="Print the figures as JSON, a line every second.")
    ] = False,
    rerun: Annotated[
        str, Option(help="Record topics for Rerun into this file, .rrd; 'viewer' opens Rerun.")
    ] = "",
    port: Annotated[
        int, Option("--serve", min=0, max=65535, help="Serve the figures to Prometheus at this port.")
    ] = 0,
    host: Annotated[str, Option(help="Address where --serve listens.")] = "127.0.0.1",
) -> None:
    """Watch running robots: rate, requests, fallbacks, latency, link, safety. Ctrl-C ends it.

    Without a terminal it behaves as with --once; the exit status is 1 if there is no robot.
    """
    from adahi_ros.nodes.monitoring.top import Watcher

    if domain is None and "ROS_DOMAIN_ID" not in os.environ:
        domain = next(iter(held_domains()), None)
    try:
        with leaving_on(signal.SIGINT, signal.SIGTERM), Watcher(namespace, domain, seconds) as watcher:
            if port:
                _serve(watcher, host, port)
            elif rerun:
                _record(watcher, namespace, rerun)
            elif once or not (as_json or console.is_terminal):
                _show_once(watcher, seconds, as_json)
            elif as_json:
                _print_lines(watcher)
            else:
                _show(watcher)
    except (KeyboardInterrupt, SystemExit):  # how one leaves
        pass


def _show(watcher: Watcher) -> None:
    from rich.live import Live

    from adahi_ros.nodes.monitoring.top_view import TopView

    place = f"domain {watcher.domain}"
    live = Live(TopView([], place), console=console, screen=True, auto_refresh=False)
    try:  # not `with`: Ctrl-C may arrive while it starts
        live.start(refresh=True)
        while True:
            watcher.listen(REFRESH_S)
            live.update(TopView(watcher.figures(), place), refresh=True)
    finally:
        live.stop()


def _show_once(watcher: Watcher, seconds: float, as_json: bool) -> None:
    from adahi_ros.nodes.monitoring.top_view import TopView

    wait_s = max(seconds, DISCOVERY_S)
    if not watcher.find(wait_s):
        others = f"; elsewhere there are {', '.join(sorted(watcher.elsewhere))}" if watcher.elsewhere else ""
        fault = f"no robot: no draft_status received in domain {watcher.domain} for {wait_s:g} s"
        errors.print(f"[bold red]adahi:[/] {escape(fault + others)}", highlight=False, soft_wrap=True)
        raise typer.Exit(1)
    watcher.listen(seconds)
    robots = watcher.figures()
    if as_json:
        say(json.dumps(robots))
    else:
        console.print(TopView(robots, f"domain {watcher.domain}"))


def _serve(watcher: Watcher, host: str, port: int) -> None:
    from adahi_ros.nodes.common.metrics_server import MetricsServer
    from adahi_ros.nodes.monitoring.robot_metrics import RobotMetrics

    metrics = RobotMetrics()
    with closing(MetricsServer("--serve", host, port, metrics.collect)):
        say(f"serves http://{host}:{port}/metrics; Ctrl-C ends it")
        while True:
            watcher.listen(LINE_S)
            metrics.robots = watcher.figures()


def _record(watcher: Watcher, namespace: str, out: str) -> None:
    from adahi_ros.bags.rerun_recording import RerunRecording

    say("records; Ctrl-C ends it")
    with closing(RerunRecording(out, namespace)) as recording:
        while True:
            watcher.record(recording)
            watcher.listen(LINE_S)


def _print_lines(watcher: Watcher) -> None:
    while True:
        watcher.listen(LINE_S)
        say(json.dumps(watcher.figures()))
