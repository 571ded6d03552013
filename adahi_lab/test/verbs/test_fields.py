from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer import Argument, Option
from typer.testing import CliRunner

from adahi_ros.cli.fields import with_fields
from adahi_ros.core.registry import argument


@dataclass(frozen=True)
class Load:
    robots: int = argument(64, "Number of robots.", 1, 100)
    rate_hz: Annotated[float, "--rate"] = argument(20.0, "Of their control, Hz.", 0.1, 1000.0)
    wait_s: float = argument(0.0, "Before it begins.")
    kill: str = argument("", "Part that is killed.", optional=True)


@dataclass(frozen=True)
class Place:
    out: Annotated[Path, Option(help="Folder to write.")]
    quick: Annotated[bool, Option("--quick", help="A tenth of it.")] = False


MADE: list[tuple[str, Load, Place, int]] = []


@with_fields
def measure(
    task: Annotated[str, Argument(help="The task.")],
    load: Load,
    place: Place,
    seed: Annotated[int, Option(min=0, help="Of all draws.")] = 0,
) -> None:
    """Measure something."""
    MADE.append((task, load, place, seed))


@pytest.fixture
def run() -> typer.Typer:
    MADE.clear()
    app = typer.Typer()
    app.command()(measure)
    return app


def test_the_verb_gets_its_dataclasses_filled(run: typer.Typer) -> None:
    given = ["ball", "--out", "here", "--rate", "5", "--quick", "--seed", "3"]
    assert CliRunner().invoke(run, given).exit_code == 0
    assert [("ball", Load(rate_hz=5.0), Place(Path("here"), quick=True), 3)] == MADE


def test_the_help_has_options_in_the_order_of_the_fields(run: typer.Typer) -> None:
    shown = CliRunner().invoke(run, ["--help"]).output
    names = ["Measure something", "--robots", "--rate", "--kill", "--out", "--quick", "--seed"]
    assert [shown.find(name) for name in names] == sorted(shown.find(name) for name in names)
    assert "1<=x<=100" in shown
    assert "Of their control, Hz." in shown
    assert "default: 64" in shown


def test_a_value_out_of_bounds_is_refused(run: typer.Typer) -> None:
    found = CliRunner().invoke(run, ["ball", "--out", "here", "--robots", "0"])
    assert found.exit_code == 2
    assert "--robots" in found.output
    found = CliRunner().invoke(run, ["ball", "--out", "here", "--wait-s", "nan"])
    assert str(found.exception) == "wait_s: nan, must be finite"
    assert not MADE


def test_a_field_without_default_is_required(run: typer.Typer) -> None:
    assert "Missing option '--out'" in CliRunner().invoke(run, ["ball"]).output
