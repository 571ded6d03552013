# SPDX-License-Identifier: Apache-2.0
"""A robot with two verifiers, each across an emulated link; the first link may be worse.

    .venv/bin/python -m adahi_lab.papers.hedged.table compare [--episodes N]

Ball balancing in real time, 20 Hz. With `wait` every draft is sent, and the command waits for the reply for
up to 45 ms. With `ahead`, our recommendation, the robot executes the target's plans and no command waits. The
link of the other verifier is always the paper's. Asserts nothing. Needs what `adahi lab link run` needs.
"""

from __future__ import annotations

import json
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from diagnostic_msgs.msg import DiagnosticArray
from rich.console import Console
from rich.table import Table

from adahi_lab.bench.link_ends import dds_environment, run_at_robot
from adahi_lab.evaluation.run_record import RunRecord
from adahi_lab.link.emulator import emulated_links
from adahi_lab.link.link_profile import profile_named
from adahi_lab.nodes.dds_run import run_over_dds
from adahi_lab.nodes.domain import exclusive_domain, link_environment
from adahi_lab.nodes.observer import Observer
from adahi_lab.reporting.tables import narrow_table, number
from adahi_ros.core.assets import asset
from adahi_ros.core.node_parameters import parameters_for
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.nodes.launching.child_processes import node_processes
from adahi_ros.protocol.records import Reason

GOOD = "wifi_ac"
BACKUP = "/backup"
FIRST: dict[str, dict[str, Any]] = {  # how the link to the first verifier differs
    "alike": {},
    "slow": {"rtt_mean_ms": 30.0, "rtt_jitter_ms": 5.0},
    "lossy": {"loss": 0.05},
    "dead": {"states": [{"for_s": 10.0}, {"for_s": 10.0, "loss": 1.0}]},
}
VERIFIERS = ("single", "off", "late", "at_once")
WAYS = ("wait", "ahead")
DEADLINE_S = 0.045
BEGINNING = 10  # steps of an episode
FOREVER_S = 1e6

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def drive(requested: Path, record: Path) -> None:
    """Run episodes at the robot's end; write their record, and the node's diagnostics of the verifiers."""
    arguments = json.loads(requested.read_text())
    arguments["episodes"] = range(*arguments["episodes"])
    observer = Observer(arguments["domain"], "hedged")
    diagnostics: dict[str, str] = {}

    def listen(message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.endswith(": control"):
                diagnostics.update({each.key: each.value for each in status.values})

    observer.node.create_subscription(DiagnosticArray, "/diagnostics", listen, 10)
    over = threading.Event()
    listener = threading.Thread(target=observer.wait_until, args=(over.is_set, FOREVER_S, "the end"))
    listener.start()
    try:
        run = run_over_dds(**arguments)
    finally:
        over.set()
        listener.join()
        observer.close()
    record.write_text(json.dumps({"run": asdict(run), "diagnostics": diagnostics}))


def parameters_of(way: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return those of the robot and of the verifiers."""
    if way == "wait":
        gate = {"gate.name": "always", "deadline_s": DEADLINE_S}
        return {"checkpoint": "ball/draft", **gate}, {"checkpoint": "ball/target"}
    best = read_yaml(asset("adahi_lab/config/best/ball.yaml"))
    draft, target = (parameters_for(best, f"/{name}") for name in ("draft_policy", "target_verifier"))
    return draft, target


def measure(way: str, first: str, verifiers: str, episodes: int, seed: int, scratch: Path) -> dict[str, Any]:
    """Return the figures of one run."""
    good = profile_named(GOOD)
    profiles = [good.changed(FIRST[first]), good]
    draft, target = parameters_of(way)
    if verifiers != "single":
        draft |= {"verification.backups": [BACKUP], "verification.hedge": verifiers}
    with (
        emulated_links(profiles, seed) as links,
        exclusive_domain() as domain,
        node_processes(
            {**link_environment(domain), "OMP_NUM_THREADS": "1", **dds_environment("wireless")}
        ) as processes,
    ):
        processes.start("target_verifier_node", {"seed": seed, **target}, links[1].server.prefix, BACKUP)
        requested, record = scratch / "settings.json", scratch / "record.json"
        requested.write_text(
            json.dumps(
                {
                    "task": "ball",
                    "draft_parameters": draft,
                    "verifier_parameters": target,
                    "seed": seed,
                    "episodes": [0, episodes],
                    "lockstep": False,
                    "domain": domain,
                }
            )
        )
        run_at_robot(links[0], [__file__, "drive", str(requested), str(record)], dds_environment("wireless"))
    values = json.loads(record.read_text())
    return figures(RunRecord.from_values(values["run"]), values["diagnostics"])


def figures(run: RunRecord, diagnostics: dict[str, str]) -> dict[str, Any]:
    """Return the figures of a run.

    Returns:
        `success`; `rtt_ms`, of replies in time; `alone`, share of the steps without the target's reply or
        plan; `requests`; `hedged`, the share of these also sent to another verifier; `by_backup`, of the
        answers; bytes of requests per step; the node's diagnostics of each verifier. An episode's first
        steps, before any plan is possible, are left out.
    """
    steps = [each for each in run.steps if each.step >= BEGINNING]
    replies = [each.verify_ms for each in steps if each.verified]
    requested = {
        name: sum(int(value) for key, value in diagnostics.items() if key.endswith(f"verify_draft.{name}"))
        for name in ("hedges", "answers")
    }
    backup = f"verifiers.{BACKUP}/verify_draft."
    p50, p95, p99 = np.percentile(replies, (50, 95, 99)) if replies else (float("nan"),) * 3
    wanted = sum(each.transmitted for each in run.steps)
    return {
        "success": float(np.mean([each.success for each in run.episodes])),
        "rtt_ms": {"p50": float(p50), "p95": float(p95), "p99": float(p99)},
        "alone": sum(each.reason is not Reason.NONE for each in steps) / len(steps),
        "requests": wanted,
        "hedged": requested["hedges"] / max(1, wanted),
        "by_backup": int(diagnostics.get(f"{backup}answers", 0)) / max(1, requested["answers"]),
        "bytes_per_step": sum(each.request_bytes for each in steps) / len(steps),
        "verifiers": {key: value for key, value in diagnostics.items() if key.startswith("verifiers.")},
    }


@app.command()
def compare(
    ways: Annotated[str, typer.Option(help="Separated by commas.")] = ",".join(WAYS),
    firsts: Annotated[str, typer.Option("--first", help="Separated by commas.")] = ",".join(FIRST),
    verifiers: Annotated[str, typer.Option(help="Separated by commas.")] = ",".join(VERIFIERS),
    episodes: Annotated[int, typer.Option(min=1, help="Of each run; one takes about 4 s.")] = 15,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random draw.")] = 0,
) -> None:
    """Compare one verifier with two, used in turn, hedged and at once; print a table for each way."""
    found: dict[str, Any] = {}
    console = Console()
    with tempfile.TemporaryDirectory(prefix="adahi_hedged_") as scratch:
        for way in ways.split(","):
            for first in firsts.split(","):
                for each in verifiers.split(","):
                    measured = measure(way, first, each, episodes, seed, Path(scratch))
                    found.setdefault(way, {}).setdefault(first, {})[each] = measured
                    print(way, first, each, json.dumps(measured), flush=True)
            console.print(table(way, found[way]))


def table(way: str, found: dict[str, Any]) -> Table:
    """Return the figures of a way as a table."""
    headings = ["success", "p50\nms", "p95", "p99", "alone", "hedged", "by the\nother", "bytes\na step"]
    made = narrow_table(f"{way}: first verifier and use of two", ["first", "use"], headings)
    for first, by_verifiers in found.items():
        for index, (name, values) in enumerate(by_verifiers.items()):
            made.add_row(
                "" if index else first,
                name,
                number(values["success"], 2),
                *(number(values["rtt_ms"][each], 0) for each in ("p50", "p95", "p99")),
                f"{100 * values['alone']:.1f} %",
                f"{100 * values['hedged']:.0f} %",
                f"{100 * values['by_backup']:.0f} %",
                number(values["bytes_per_step"], 0),
            )
    return made


if __name__ == "__main__":
    app()
