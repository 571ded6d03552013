# SPDX-License-Identifier: Apache-2.0
"""The command `adahi`: all verbs in one."""

from __future__ import annotations

import os
import re
import signal
import sys
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperGroup

from adahi_ros import __version__
from adahi_ros.cli.terminal import console, errors, warn
from adahi_ros.cli.verbs import DEFAULTS, GROUPS, PANELS, SETTINGS, VERBS
from adahi_ros.core.gone_names import gone
from adahi_ros.core.registry import RegistryError
from adahi_ros.core.signals import leaving_on
from adahi_ros.core.texts import abridged, nearest

ROS = ("rclpy", "adahi_msgs", "lifecycle_msgs", "trajectory_msgs", "diagnostic_msgs", "sensor_msgs")
RUNTIME = ("torch", "gymnasium", "gymnasium_robotics", "mujoco", "minari", "onnx", "onnxscript", "pyarrow")
NEEDED = {
    **dict.fromkeys(ROS, "a sourced ROS 2 with adahi_msgs built, or 'make setup'"),
    "rerun": "pip install -r requirements/rerun.txt",
    **dict.fromkeys(RUNTIME, "'make setup', or pip install -r requirements/runtime.txt"),
}
AT_HOME = re.compile(r"(--[\w-]+=)?(~(?:/.*)?)")  # a shell leaves --option=~/file as it is
STOPPED = 130  # what shells expect after Ctrl-C
MORE = "other packages bring more verbs: see adahi --help, and docs/how_to/install.md"

__all__ = ["app", "main"]


def _print_version(wanted: bool) -> None:
    if wanted:
        console.print(f"adahi {__version__}", highlight=False)
        raise typer.Exit


def _any_verb(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


class _Verbs(TyperGroup):
    """Says of an unknown verb that another package may have it."""

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        if args[0] not in self.commands and not ctx.resilient_parsing:
            raise ValueError(f"{args[0]}: no such command{nearest(args[0], self.commands)}; {MORE}")
        return super().resolve_command(ctx, args)


class _InOrder(_Verbs):
    """Commands in the order of `PANELS`, then those of other packages; names verbs that are gone."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        found = [AT_HOME.fullmatch(word) for word in args]
        args = [
            word if home is None else (home[1] or "") + os.path.expanduser(home[2])
            for word, home in zip(args, found, strict=True)
        ]
        for words in (args[:1], args[:2]):
            verb = " ".join(words)
            if (use := gone(f"adahi {verb}")) and verb not in {*VERBS, *self.commands}:
                raise ValueError(f"{verb}: unknown{use}")
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        ordered = [name for names in PANELS.values() for name in names]
        return sorted(self.commands, key=lambda name: (*ordered, name).index(name))


class _Group(_Verbs):
    """Takes a word that is no verb for the argument of the group's default verb, if it has one."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        named = next((word for word in args if not word.startswith("-")), None)
        default = DEFAULTS.get(self.name or "")
        if default is not None and named is not None and named not in self.commands:
            args = [default, *args]
        return super().parse_args(ctx, args)


def _typer() -> typer.Typer:
    """Return the command with all verbs, except those of packages that cannot be imported."""
    made = typer.Typer(
        name="adahi",
        help="Run a large robot policy on a server, without the robot waiting for it.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        cls=_InOrder,
    )
    made.callback()(_any_verb)
    groups: dict[str, typer.Typer] = {"": made}
    panel_of = {name: panel for panel, names in PANELS.items() for name in names}

    def group(name: str) -> typer.Typer:
        if name not in groups:
            above, _, last = name.rpartition(" ")
            groups[name] = typer.Typer(no_args_is_help=True, cls=_Group)
            groups[name].callback()(lambda: None)  # a group's only verb keeps its name
            group(above).add_typer(
                groups[name],
                name=last,
                help=GROUPS.get(name),
                hidden=name not in GROUPS,
                rich_help_panel=panel_of.get(name),
            )
        return groups[name]

    for name in VERBS:
        within, _, last = name.rpartition(" ")
        try:
            group(within).command(
                last,
                context_settings=dict(SETTINGS.get(name, {})),
                rich_help_panel=None if within else panel_of.get(name, "Of other packages"),
            )(VERBS[name])
        except RegistryError as error:
            warn(str(error))
    return made


app = _typer()


def main() -> None:
    """Run the command; errors that a user can fix are one line, not a traceback."""
    try:
        with leaving_on(signal.SIGINT, signal.SIGTERM):
            app()
    except KeyboardInterrupt:  # a second Ctrl-C, during the shutdown after the first
        sys.exit(STOPPED)
    except SystemExit as leaving:
        if leaving.code == STOPPED:
            errors.print("adahi: stopped", highlight=False)
        raise
    except ImportError as error:
        needed = NEEDED.get(error.name or "") if isinstance(error, ModuleNotFoundError) else None
        _complain(f"{error.name}: not installed; this needs {needed}" if needed else str(error))
    except OSError as error:
        named = error.strerror and error.filename is not None
        _complain(f"{abridged(str(error.filename))}: {error.strerror}" if named else str(error))
    except (ValueError, RuntimeError) as error:
        _complain(str(error))


def _complain(fault: str) -> None:
    errors.print(f"[bold red]adahi:[/] {escape(fault)}", emoji=False, highlight=False, soft_wrap=True)
    sys.exit(2)
