# SPDX-License-Identifier: Apache-2.0
"""Shows robots in the terminal: one row each, or the details of a single one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from adahi_ros.nodes.monitoring.robot_status import Figures

WIDE = 132  # least columns for a robot's details in two columns
ROW_SPARK, DETAIL_SPARK = 12, 60
OLD_S = 1.0
HEALTH_OLD_S = 3.0  # diagnostics arrive once a second
GAP = 2
NOTHING = Text("-", style="dim")
LEVEL_STYLES = {"OK": "green", "WARN": "yellow", "ERROR": "bold red", "STALE": "magenta"}
VERIFIER_STYLES = {"ready": "green", "absent": "yellow", "unresponsive": "bold red", "mismatched": "bold red"}
BLOCKS = " ▁▂▃▄▅▆▇█"


class TopView:
    """Shows robots in the width of the terminal; the least important columns are omitted first.

    Args:
        robots: figures of each, from `SeenRobot.figures` (`nodes/monitoring/robot_status.py`).
        place: namespace and domain, for people.
    """

    def __init__(self, robots: Sequence[Figures], place: str) -> None:
        self._robots = robots
        self._place = place

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self._robots:
            yield Text(f"no robot in {self._place} yet")
        elif len(self._robots) == 1:
            yield detail(self._robots[0], options.max_width)
        else:
            yield Text(f"{len(self._robots)} robots in {self._place}", style="bold")
            yield overview(self._robots, options.max_width)


@dataclass(frozen=True)
class Column:
    """One column of the overview.

    Attributes:
        header: for people.
        cell: makes the cell from a robot's figures.
        rank: columns with the lowest rank are omitted first.
        justify: as in `rich`.
        of_all: always shown; else omitted if all its cells are empty.
    """

    header: str
    cell: Callable[[Figures], Text]
    rank: int
    justify: JustifyMethod = "right"
    of_all: bool = True


def name(robot: Figures) -> str:
    """Return a robot's label: its namespace, and its own name if that differs."""
    space = robot["namespace"]
    own = robot["robot_id"]
    if space == "/" or not own:
        return own or robot["topic"]
    return space if space.strip("/") == own else f"{space} {own}"


def number(value: float | None, digits: str = ".1f", unit: str = "") -> Text:
    return NOTHING if value is None else Text(format(value, digits) + unit)


def percent(value: float | None) -> Text:
    return NOTHING if value is None else Text(f"{100 * value:.0f}%")


def age(seconds: float | None) -> Text:
    """Show the age of the last message; red if it is old."""
    if seconds is None:
        return Text("never", style="bold red")
    return Text(f"{seconds:.1f} s", style="bold red" if seconds > OLD_S else "")


def both(percentiles: Mapping[str, float] | None) -> Text:
    """Show median and 95th percentile."""
    if percentiles is None:
        return NOTHING
    return Text("/".join(format(value, ".1f" if value < 100.0 else ".0f") for value in percentiles.values()))


def health(robot: Figures) -> Text:
    status = robot["diagnostics"]
    if status is None:
        return NOTHING
    if status["age_s"] > HEALTH_OLD_S:
        return Text("silent", style="bold red")
    return Text(status["level"], style=LEVEL_STYLES.get(status["level"], ""))


def health_message(robot: Figures) -> Text:
    return Text("" if robot["diagnostics"] is None else robot["diagnostics"]["message"])


def fallbacks(counts: Mapping[str, int]) -> Text:
    total = sum(counts.values())
    return Text(str(total), style="bold red" if total else "")


def verifier(robot: Figures) -> Text:
    link = robot["link"]
    if link is None:
        return NOTHING
    return Text(link["verifier"], style=VERIFIER_STYLES.get(link["verifier"], ""))


def link_figure(key: str, show: Callable[[float | None], Text]) -> Callable[[Figures], Text]:
    return lambda robot: NOTHING if robot["link"] is None else show(robot["link"][key])


def plan(robot: Figures) -> Text:
    """Show the steps since the plan's request, and the steps left in it."""
    figures = robot["plan"]
    if figures is None:
        return NOTHING
    if figures["age"] is None:
        return Text("none", style="yellow")
    return Text(f"{figures['age']}+{figures['left']}")


def safety(robot: Figures) -> Text:
    """Show whether the safety envelope intervenes now, and how often it has."""
    state = robot["safety"]
    if state is None:
        return NOTHING
    total = str(sum(state["counts"].values()))
    if not state["enabled"]:
        return Text(f"disabled {total}", style="bold red")
    return Text(f"holding {total}", style="bold red") if state["holding"] else Text(total)


def spark(scores: Sequence[float | None], threshold: float | None, width: int, rows: int = 1) -> list[Text]:
    """Draw the newest scores as bars, the last one at the right, with the threshold at half height.

    A score of None, or with a threshold that is not positive, is a dot.

    Args:
        scores: oldest first.
        threshold: of the gate.
        width: largest number of bars.
        rows: height in lines.
    """
    lines = [Text() for _ in range(rows)]
    for score in scores[-width:]:
        if score is None or threshold is None or threshold <= 0.0:
            for line in lines:
                line.append("·" if line is lines[-1] else " ", style="dim")
            continue
        height = min(1.0, max(0.0, score / threshold / 2)) * rows
        style = "yellow" if score > threshold else "cyan"
        for row, line in enumerate(lines):
            filled = min(1.0, max(0.0, height - (rows - 1 - row)))
            bottom = row == rows - 1
            line.append(BLOCKS[max(int(bottom), round(8 * filled))], style=style)
    return lines


COLUMNS = (
    Column("robot", lambda robot: Text(name(robot), style="bold"), 100, "left"),
    Column("health", health, 95, "left"),
    Column("Hz", lambda robot: number(robot["recent"]["rate_hz"]), 90),
    Column("sent", lambda robot: percent(robot["recent"]["transmission_rate"]), 85),
    Column("kept", lambda robot: percent(robot["recent"]["acceptance"]), 80),
    Column("fell back", lambda robot: fallbacks(robot["recent"]["fallbacks"]), 75),
    Column("plan", plan, 72, of_all=False),
    Column("verify ms", lambda robot: both(robot["recent"]["verify_ms"]), 60),
    Column("total ms", lambda robot: both(robot["recent"]["total_ms"]), 50),
    Column(
        "score/threshold",
        lambda robot: spark(robot["recent"]["scores"], robot["threshold"], ROW_SPARK)[0],
        40,
        "left",
    ),
    Column("verifier", verifier, 65, "left"),
    Column("rtt ms", link_figure("rtt_ms", number), 35),
    Column("loss", link_figure("loss", percent), 34),
    Column("misses", link_figure("misses", percent), 33),
    Column("kB/s", link_figure("goodput_bytes_s", lambda value: number(value and value / 1e3)), 32),
    Column("safety", safety, 70),
    Column("age", lambda robot: age(robot["age_s"]), 94),
    Column("message", health_message, 31, "left"),
)


def overview(robots: Sequence[Figures], width: int) -> Table:
    """Return a table with a row per robot, and as many of `COLUMNS` as fit."""
    cells = {column.header: [column.cell(robot) for robot in robots] for column in COLUMNS}
    filled = [column for column in COLUMNS if column.of_all or any(map(_is_filled, cells[column.header]))]
    left = width
    shown = []
    for column in sorted(filled, key=lambda column: -column.rank):
        needed = max(len(column.header), *(cell.cell_len for cell in cells[column.header])) + GAP
        if needed <= left + GAP:  # the last one needs no gap
            shown.append(column)
            left -= needed
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
    chosen = [column for column in COLUMNS if column in shown]
    for column in chosen:
        table.add_column(column.header, justify=column.justify, no_wrap=True)
    for row in zip(*(cells[column.header] for column in chosen), strict=True):
        table.add_row(*row)
    return table


def _is_filled(cell: Text) -> bool:
    return cell is not NOTHING


def detail(robot: Figures, width: int) -> RenderableType:
    """Show all figures of one robot; fits a terminal of 80 by 24, even with four fallback reasons."""
    parts = [_steps(robot), _scores(robot), Group(_link(robot), _safety(robot))]
    if width < WIDE:
        body: RenderableType = Group(*(Padding(part, (1, 0, 0, 0)) for part in parts))
    else:
        body = Table.grid(padding=(1, 6, 0, 0))
        body.add_row(parts[0], Group(*(Padding(part, (0, 0, 1, 0)) for part in parts[1:])))
    return Group(_head(robot), body)


def _labelled(*values: tuple[str, Text | str]) -> Text:
    """Show values on one line, each after its name."""
    line = Text()
    for label, value in values:
        line.append(f"{'   ' if line else ''}{label} ", style="dim").append(value)
    return line


def _head(robot: Figures) -> RenderableType:
    newest = _labelled(("topic", robot["topic"]), ("last message", age(robot["age_s"])))
    first = Text.assemble((name(robot), "bold"), "   ", newest)
    second = Text.assemble(health(robot), " ", health_message(robot))
    if robot["message"] and robot["message"] not in second.plain:
        second.append(f"   {robot['message']}", style="red")
    for line in (first, second):
        line.no_wrap, line.overflow = True, "ellipsis"
    return Group(first, second)


def _steps(robot: Figures) -> Table:
    recent, total = robot["recent"], robot["since_activation"]
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("")
    table.add_column(f"last {recent['window_s']:g} s", justify="right")
    table.add_column("since activation", justify="right")
    table.add_row("steps", str(recent["steps"]), number(total["steps"], "d"))
    table.add_row("control rate, Hz", number(recent["rate_hz"]), "")
    table.add_row(
        "sent to the target", percent(recent["transmission_rate"]), percent(total["transmission_rate"])
    )
    table.add_row("of them kept as drafted", percent(recent["acceptance"]), percent(total["acceptance"]))
    table.add_row("steps that fell back", fallbacks(recent["fallbacks"]), fallbacks(total["fallbacks"]))
    for reason, count in total["fallbacks"].items():
        table.add_row(f"  {reason}", str(recent["fallbacks"].get(reason, 0)), str(count), style="dim")
    if recent["held"]:
        table.add_row("held: no command", str(recent["held"]), "")
    if total["person"]:
        table.add_row("driven by a person", str(recent["person"]), str(total["person"]))
    table.add_row("verification, ms, p50/p95", both(recent["verify_ms"]), "")
    table.add_row("whole step, ms, p50/p95", both(recent["total_ms"]), "")
    return table


def _scores(robot: Figures) -> RenderableType:
    numbers = [(name, number(robot[name], ".2f")) for name in ("deviation", "score", "threshold")]
    bars = spark(robot["recent"]["scores"], robot["threshold"], DETAIL_SPARK, rows=2)
    for bar, side in zip(bars, ("above", "below"), strict=True):
        bar.pad_left(DETAIL_SPARK - len(bar))
        bar.append(f" {side}", style="dim")
    return Group(_labelled(("gate", robot["gate"] or "-"), *numbers), *bars, *_plan(robot))


def _plan(robot: Figures) -> list[Text]:
    """Return two lines on the plan or the intent; none for a robot without either."""
    figures = robot["plan"]
    if figures is None:
        return []
    have = plan(robot) if figures["age"] is None else f"{figures['age']} steps old, {figures['left']} left"
    pending = str(figures["requests_pending"])
    errors = ("expected error", "expected_error"), ("correction", "correction")
    return [
        _labelled(("proposer", figures["proposer"]), ("reply", have), ("requests pending", pending)),
        _labelled(*((label, number(figures[key], ".3g")) for label, key in errors)),
    ]


def _link(robot: Figures) -> Text:
    link = robot["link"]
    if link is None:
        return Text("link: no message", style="dim")
    trip = Text.assemble(number(link["rtt_ms"]), " ± ", number(link["rtt_deviation_ms"], ".1f", " ms"))
    goodput = link["goodput_bytes_s"] and link["goodput_bytes_s"] / 1e3
    return _labelled(
        ("verifier", verifier(robot)),
        ("rtt", trip),
        ("loss", percent(link["loss"])),
        ("misses", percent(link["misses"])),
        ("goodput", number(goodput, ".1f", " kB/s")),
    )


def _safety(robot: Figures) -> Text:
    state = robot["safety"]
    if state is None:
        return Text("safety: no message", style="dim")
    enabled = Text("enabled", "green") if state["enabled"] else Text("disabled", "bold red")
    text = _labelled(("safety", enabled))
    if state["holding"]:
        text.append("   holding", style="bold red")
    for kind, count in state["counts"].items():
        if count:
            text.append(f"   {kind} ", style="dim").append(str(count), style="yellow")
    if state["message"]:
        text.append(f"   {state['message']}", style="bold red" if state["holding"] else "yellow")
    return text
