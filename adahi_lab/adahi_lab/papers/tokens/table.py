# SPDX-License-Identifier: Apache-2.0
"""Every method of a paper on a pair of token policies, in one table.

    adahi data simulate TASK --episodes 400 --action-noise 0 --out demos.safetensors
    adahi lab index TASK --demos demos.safetensors --out FOLDER          # for HeiSD
    adahi lab index TASK_given --demos demos.safetensors --out FOLDER/given
    .venv/bin/python -m adahi_lab.papers.tokens.table TASK FOLDER OUT [--episodes 200]

FOLDER has the pair and, below it in `given`, a draft that reads the goal, too. OUT keeps what is measured, so
a run that was stopped goes on where it was, and the drafts of CoSine, which are trained there first, in two
minutes. Episodes run as in `adahi evaluate`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from adahi_lab.cli.output import job_bar
from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.metrics import mcnemar, wilson_interval
from adahi_lab.methods.methods import for_task
from adahi_lab.papers.tokens.observed_chunks import load_token_policy
from adahi_lab.papers.tokens.token_pair import (
    DRAFT_S,
    GROUPS,
    PACKED,
    Chunks,
    Group,
    Line,
    Played,
    Simulated,
    files_of,
    given,
    kilobytes,
    play,
    simulated,
)
from adahi_lab.reporting.tables import narrow_table, number
from adahi_ros.core.assets import asset
from adahi_ros.core.written_files import replacing
from adahi_ros.policies.backends import is_policy

ROWS, CLOCK = "rows.json", "clock.json"
HEADS = ("time", "x target", "x spec.", "length", "passes", "rounds", "robot kB", "server kB")
LEGEND = (
    f"Time: for an action, where a pass of the target takes 1 and a drafted token {DRAFT_S:g}, without "
    "network; with several machines by a test clock. X target, x spec.: speed-up, against the target alone "
    "and the first speculative decoding with the same requests and draft. Length: drafted tokens of a "
    "request, with several machines of a pass, before the first that is not kept. Goal read: by the draft, "
    "too, as on one machine. Passes: of the target for an action, also void ones. Rounds: requests of an "
    "episode. kB: files of networks, heads and indices on each side. "
    "Success: with its Wilson interval of 95 %; on several machines always the target's, because each chunk "
    "is. McNemar: episodes that only this, only the target alone with the same "
    "requests solves; p. DyQ-VLA changes the duration of a pass, not the number"
)


class Kept:
    """What is measured, by key, in a file that is complete at any time.

    Args:
        path: of the file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def measured_once(self, about: Sequence[object], measure: Callable[[], Any]) -> Any:
        """Return what a key has, measured if it is missing."""
        key = " ".join(map(str, about))
        if key not in self._known:
            self._known[key] = measure()
            with replacing(self._path) as file:
                file.write_text(json.dumps(self._known))
        return self._known[key]


def at_clock(chunks: Chunks, reads: bool) -> dict[str, Simulated]:
    """Return the ways on several machines, of drafts that read the goal or of those that do not."""
    about = chunks.draft.digest, chunks.target.digest, chunks.episodes, chunks.seed

    def measure() -> dict[str, Any]:
        return {name: asdict(each) for name, each in simulated(chunks, reads).items()}

    kept = Kept(chunks.out / CLOCK).measured_once(about, measure)
    return {name: Simulated(**each) for name, each in kept.items()}


def played(
    task: str, folder: Path, wanted: Sequence[Line], episodes: int, seed: int, rows: Path
) -> dict[Line, Played]:
    """Return the episodes of lines; those in the file of rows are not run again."""
    kept, found = Kept(rows), dict[Line, Played]()
    codes = load_token_policy(folder / "target").signature.codes
    numbers = evaluation_episodes(episodes)
    with job_bar(f"{task}: methods", len(wanted)) as update:
        for line in wanted:
            update(advance=1, note=line.name)
            if not line.method:
                continue
            say = partial(_say, update, line.name, count())
            try:
                of_line, where = given(task, folder) if line.given else (task, folder)
                if line.checkpoints:
                    where = asset(for_task(line.checkpoints, task, folder))
                comparison = Comparison.of_folder(of_line, where, seed)
                method, target = for_task(line.method, task, where), comparison.files.load().target
                if target.signature.codes != codes:
                    raise ValueError(f"{where}: its target must emit the tokens of {folder}")
                content = blake2b(digest_size=8)
                for path in files_of((*line.robot, *line.server), where):
                    content.update(path.read_bytes())
                about = line.method, line.decodes, line.decides, episodes, seed, target.digest
                key = *about, line.checkpoints, content.hexdigest()
                made = kept.measured_once(key, lambda: asdict(play(line, method, comparison, numbers, say)))  # noqa: B023
            except (ValueError, FileNotFoundError) as error:
                print(f"{line.name} is left out: {error}")
                continue
            found[line] = Played(**made)
    return found


def _say(update: Callable[..., None], name: str, steps: Iterator[int]) -> None:
    update(note=f"{name}, step {next(steps)}")


def add_rows(
    table: Table,
    group: Group,
    found: Mapping[Line, Played],
    clocks: Mapping[bool, Mapping[str, Simulated]],
    sizes: Mapping[Line, tuple[float, float]],
) -> None:
    """Add the lines of a group to the table, if its target alone was measured."""
    alone, *others = group.lines
    plain = {line.given: line for line in reversed(others) if line.name.startswith("speculative decoding")}
    if alone not in found:
        return
    own = found[alone]

    def time(line: Line) -> float:
        each = found.get(line, own)
        return clocks[line.given][line.way].time if line.way else each.passes + DRAFT_S * each.drafted

    for line in group.lines:
        if (line.method and line not in found) or (line.way and line.given not in clocks):
            continue
        each, at = found.get(line, own), clocks.get(line.given, {}).get(line.way)
        length, passes, rounds = each.kept, each.passes, each.requests
        if at is not None:
            length, passes, rounds = at.kept, at.passes, rounds * at.runs
        pair = mcnemar(np.array(each.success), np.array(own.success))
        low, high = wilson_interval(sum(each.success), len(each.success))
        timed = PACKED not in line.server
        table.add_row(
            group.name,
            line.name,
            line.paper,
            number(time(line), 2) if timed else "",
            number(time(alone) / time(line), 2) if timed and line is not alone else "",
            ""
            if line.given not in plain or not timed or line in (alone, plain[line.given])
            else number(time(plain[line.given]) / time(line), 2),
            number(length, 2),
            number(passes, 2),
            number(rounds, 1),
            *(f"{size:.0f}" for size in sizes[line]),
            f"{np.mean(each.success):.2f} ({low:.2f}-{high:.2f})",
            "" if line is alone else str(pair),
        )


def main(
    task: str,
    folder: Path,
    out: Path,
    episodes: Annotated[int, typer.Option(min=1, help="Of each method")] = 200,
    clocked: Annotated[int, typer.Option(min=0, help="Episodes of the test clock; 0 for none")] = 8,
    seed: int = 11,
) -> None:
    """Print the table."""
    out.mkdir(parents=True, exist_ok=True)
    if clocked and load_token_policy(folder / "target").codec.end is not None:
        print("several machines are left out: chunks must have the same number of tokens")
        clocked = 0
    groups = [group for group in GROUPS if clocked or not any(line.way for line in group.lines)]
    every = [line for group in groups for line in group.lines]
    found = played(task, folder, every, episodes, seed, out / ROWS)
    places = {False: (task, folder, out), True: (*given(task, folder), out / "given")}
    clocks = {
        reads: at_clock(Chunks(*place, clocked, seed), reads)
        for reads, place in places.items()
        if clocked and is_policy(place[1] / "draft")
    }
    sizes = {}
    for line in every:
        if line.method and line not in found:
            continue
        packed = 0
        if PACKED in line.server:
            where = asset(for_task(line.checkpoints, task, folder))
            packed = vars(load_token_policy(where / "target"))["packed_bytes"]
        where = places[line.given][1]
        sizes[line] = kilobytes(line.robot, where, packed), kilobytes(line.server, where, packed)
    title = f"{task}: methods of papers on a pair of token policies, {episodes} episodes, seed {seed}"
    names = ["a request is for", "method", "its paper"]
    table = narrow_table(title, names, [*HEADS, "success", "McNemar"], LEGEND)
    for group in groups:
        add_rows(table, group, found, clocks, sizes)
    Console(width=240).print(table)


if __name__ == "__main__":
    typer.run(main)
