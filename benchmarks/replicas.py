# SPDX-License-Identifier: Apache-2.0
"""What replicas on Ray Serve verify together, against one of them: batches that are always under way.

    .venv/bin/python benchmarks/replicas.py [--replicas 1,2] [--width 1024] [--seconds 10] [--json FILE]

On this machine, without robots and DDS. The target is a flow policy of the kitchen's sizes and that width,
its weights random, on torch with one thread for each replica; or, with --added-compute, the shipped one that
takes longer by this time, as on a separate GPU: then no core is busy. Prints robots per second; asserts
nothing.
"""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import torch
import typer
from rich.console import Console

from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.core.proposal import Proposal
from adahi_ros.policies.flow.flow_checkpoint import load_flow
from adahi_ros.policies.flow.flow_network import FlowNetwork
from adahi_ros.policies.flow.flow_torch import load_network, save_flow
from adahi_ros.server.ray.fleet_file import FleetPolicy, Replicas
from adahi_ros.server.ray.ray_head import ENVIRONMENT, RayHead
from adahi_ros.server.ray.ray_policies import RayPolicies, RayVerifier
from adahi_ros.server.verifier import VerificationRequest

SHIPPED = "kitchen/plans/target"
WARM_S = 2.0
console = Console()


def large(folder: Path, width: int) -> Path:
    """Write a policy of that width, of the shipped one's sizes, its weights random; return its path."""
    shipped = load_network(load_flow(named(SHIPPED, CHECKPOINTS)))
    config = replace(shipped.config, width=width, head_width=2 * width, layers=4, head_layers=4)
    torch.manual_seed(0)
    action = (shipped.action_mean, shipped.action_scale, shipped.action_low, shipped.action_high)
    save_flow(folder, "large", FlowNetwork(config, shipped.moments, *action), {})
    return folder / "large"


def request(verifier: RayVerifier, robots: int) -> tuple[VerificationRequest, np.ndarray]:
    """Return drafts of so many robots, and draws."""
    signature, draw = verifier.terms.signature, np.random.default_rng(0)
    seen = draw.normal(size=(robots, signature.history, signature.observation_dim)).astype(np.float32)
    observations = signature.observations(seen, np.zeros((robots, signature.goal_dim), np.float32))
    draft = Proposal(np.zeros((robots, 0, signature.action_dim), np.float32))
    return VerificationRequest(observations, draft), draw.random((robots, verifier.terms.draws, 2))


def robots_per_s(verifier: RayVerifier, batch: int, seconds: float) -> float:
    """Keep as many batches under way as a verifier's node does; return what comes back."""
    requested = request(verifier, batch)
    started_s = time.monotonic()
    until_s, end_s = started_s + 600.0, started_s + WARM_S + seconds
    under_way: set[Future[Any]] = {verifier.submit(*requested, until_s) for _ in range(verifier.at_once)}
    served = 0
    while (now_s := time.monotonic()) < end_s:
        done, under_way = wait(under_way, timeout=end_s - now_s, return_when=FIRST_COMPLETED)
        for each in done:
            if isinstance(fault := each.result()[0], Exception):
                raise fault
            served += batch * (time.monotonic() >= started_s + WARM_S)
            under_way.add(verifier.submit(*requested, until_s))
    wait(under_way)
    return served / seconds


def main(
    replicas: Annotated[str, typer.Option(help="How many, separated by commas.")] = "1,2",
    width: Annotated[int, typer.Option(help="Of the large policy.")] = 1024,
    batch: Annotated[int, typer.Option(help="Robots of one batch.")] = 16,
    added_compute_s: Annotated[float, typer.Option("--added-compute", help="See above.")] = 0.0,
    seconds: Annotated[float, typer.Option(help="That are measured, of each number of replicas.")] = 10.0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures there.")] = None,
) -> None:
    """Measure one number of replicas after the other."""
    os.environ.update(ENVIRONMENT)
    found: dict[int, float] = {}
    counts = [int(each) for each in replicas.split(",")]
    with TemporaryDirectory(prefix="ray_", dir="/tmp", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        target = SHIPPED if added_compute_s else str(large(folder, width))
        for count in counts:
            policy = FleetPolicy(
                "target",
                target,
                backend="onnxruntime" if added_compute_s else "torch",
                rule="replace",
                added_compute_s=added_compute_s,
                batch=batch,
                replicas=Replicas(count, count),
                num_cpus=min(1.0, (os.cpu_count() or 1) / count),
            )
            head = RayHead(os.cpu_count() or 1, folder)
            policies = RayPolicies([policy], head.address, console.print)
            try:
                (verifier,) = policies.open()
                found[count] = robots_per_s(verifier, batch, seconds)
            finally:
                policies.close()
                head.end()
            linear = found[count] / (found[counts[0]] * count / counts[0])
            load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
            console.print(
                f"{count} replicas: {found[count]:.1f} robots/s, {linear:.2f} of linear; load {load}"
            )
    if json_file is not None:
        json_file.write_text(json.dumps({"policy": asdict(policy), "robots_per_s": found}, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)
