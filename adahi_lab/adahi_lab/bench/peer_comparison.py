# SPDX-License-Identifier: Apache-2.0
"""Compares ways to query a remote policy for every action: one link, one model, the same drafts.

They are the programs in `lab/peers`, each with its own packages, and ours over DDS. All get the same
requests and compute the same replies (`lab/peers/driving.py`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adahi_lab.bench.call_figures import call_figures, outage_figures
from adahi_lab.bench.link_ends import cores_of_ends, dds_environment, run_at_robot, serving
from adahi_lab.figures import Figures
from adahi_lab.link.emulator import EmulatedLink, emulated_link
from adahi_lab.link.link_measurement import round_trips_ms
from adahi_lab.link.link_profile import LinkProfile
from adahi_lab.peers import environments
from adahi_lab.peers.observations import write_observations
from adahi_ros.core.assets import asset

OURS = "adahi_dds"
PEERS = (OURS, "openpi_websocket", "lerobot_grpc", "flask_waitress", "flask_json")
PORT = 9123
WARM_UP = 20  # calls
PERIOD_S = 0.05
TIMEOUT_S = 10.0  # long enough to see how long a lost packet takes
IMPATIENT_S = 0.2  # through an outage: as a control loop would
OUTAGE_S = 0.5
PINGS = 200
TURNS = 3  # except of the outage; other load on the machine then affects all peers alike


@dataclass(frozen=True)
class Trial:
    """One condition of the link.

    Attributes:
        name: of the condition in the figures.
        loss: share of packets.
        cut_at: call before which the link is cut, or -1.
        timeout_s: when a call is given up.
    """

    name: str
    loss: float = 0.0
    cut_at: int = -1
    timeout_s: float = TIMEOUT_S


def program(name: str) -> list[str]:
    """Return the interpreter's arguments to run a peer."""
    room = "nodes" if name == OURS else "peers"
    return ["-m", f"adahi_lab.{room}.{name}"]


def compare_peers(
    profile: LinkProfile,
    task: str,
    target: Path,
    calls: int,
    seed: int = 0,
    on_trial: Callable[[str], None] = lambda what: None,
    on_skip: Callable[[str, str], None] = lambda name, why: None,
) -> Figures:
    """Measure every peer on an emulated link.

    Args:
        profile: of the link.
        task: its observations and the drafts of its draft policy are sent.
        target: the target policy that all serve, as DIRECTORY/NAME.
        calls: per peer and condition.
        seed: of the link's draws.
        on_trial: called with a description of each measurement before it starts.
        on_skip: called with each peer that cannot run here, and why.

    Returns:
        `link_rtt_ms`, of small packets in the same run, and `peers`: for each its calls on the clean link
        (`call_figures`, and `beyond_ms`: p50 less the link's time and the server's compute, also by turn),
        with 1 % loss (`loss_1pct`), both in `TURNS`, and through an outage (`outage`).
    """
    found: dict[str, Mapping[str, str]] = {}
    for name in PEERS:
        try:
            packages = {} if name == OURS else environments.variables(environments.environment(name))
            found[name] = packages
        except environments.EnvironmentMissingError as error:
            on_skip(name, str(error))
    cores = cores_of_ends()
    with (
        tempfile.TemporaryDirectory(prefix="adahi_peers_") as scratch,
        emulated_link(profile, seed, cores[1]) as link,
    ):
        observations = Path(scratch) / "observations.safetensors"
        write_observations(task, calls, observations, seed)
        trips = round_trips_ms(link, profile, PINGS)
        trials = (
            *TURNS * [Trial("clean"), Trial("loss_1pct", loss=0.01)],
            Trial("outage", cut_at=calls // 2, timeout_s=IMPATIENT_S),
        )
        records: dict[str, dict[str, list[Figures]]] = {name: {} for name in found}
        for trial in trials:
            link.change(loss=trial.loss)
            for name, variables in found.items():
                turn = 1 + len(records[name].get(trial.name, []))
                on_trial(f"{trial.name}, turn {turn} of {trials.count(trial)}: {name}")
                record = _measure(link, name, variables, task, target, observations, calls, trial, cores)
                records[name].setdefault(trial.name, []).append(record)
    link_ms = float(np.median(trips))
    return {
        "link_rtt_ms": {"mean": float(trips.mean()), "p50": link_ms},
        "peers": {name: _figures(made, link_ms) for name, made in records.items()},
    }


def _figures(records: Mapping[str, Sequence[Figures]], link_ms: float) -> Figures:
    turns = [_beyond_ms(record, link_ms) for record in records["clean"]]
    together = [beyond for turn in turns for beyond in turn]
    return {
        **call_figures(records["clean"], WARM_UP),
        "beyond_ms": float(np.median(together)) if together else None,
        "beyond_by_turn_ms": [float(np.median(turn)) if turn else None for turn in turns],
        "loss_1pct": call_figures(records["loss_1pct"]),
        "outage": outage_figures(records["outage"][0], OUTAGE_S),
    }


def _beyond_ms(record: Figures, link_ms: float) -> list[float]:
    """Return each call's time less the link's time and the server's compute."""
    calls = record["calls"][WARM_UP:]
    return [call["ms"] - call["compute_ms"] - link_ms for call in calls if call["ok"]]


def _measure(
    link: EmulatedLink,
    name: str,
    variables: Mapping[str, str],
    task: str,
    target: Path,
    observations: Path,
    calls: int,
    trial: Trial,
    cores: tuple[set[int], set[int]],
) -> Figures:
    out = observations.with_name(f"{name}.json")
    extra = {**variables, **(dds_environment("wireless") if name == OURS else {})}
    at_robot, at_server = cores
    with _server(link, name, target, extra, at_server):
        command = [*program(name), "drive", "--address", link.server.address]
        command += ["--port", str(PORT), "--checkpoint", str(asset(f"checkpoints/{task}") / "draft")]
        command += ["--observations", str(observations), "--calls", str(calls), "--out", str(out)]
        command += ["--period_s", str(PERIOD_S), "--timeout_s", str(trial.timeout_s)]
        command += ["--cut_at", str(trial.cut_at), "--cut_s", str(OUTAGE_S)]
        run_at_robot(link, command, extra, at_robot)
    record: Figures = json.loads(out.read_text())
    return record


def _server(
    link: EmulatedLink, name: str, target: Path, extra: Mapping[str, str], cores: set[int]
) -> AbstractContextManager[None]:
    if name == OURS:
        node = [
            "-m",
            "adahi_ros.nodes.server.target_verifier_node",
            "--ros-args",
            "-p",
            f"checkpoint:={target}",
        ]
        return serving(link, node, extra, "target policy of", cores)
    command = [*program(name), "serve", "--address", link.server.address]
    return serving(link, [*command, "--port", str(PORT), "--checkpoint", str(target)], extra, "ready", cores)
