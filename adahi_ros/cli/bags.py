"""`adahi record`, `adahi bag`, `adahi dataset` and `adahi replay`: a robot's bags as data."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from adahi_ros.assets import asset
from adahi_ros.cli.options import (
    Backend,
    ContractName,
    Incomplete,
    JsonFile,
    Namespace,
    Seed,
    existing,
    finite,
    picture_file,
    tried,
)
from adahi_ros.cli.terminal import command_line, console, say, write_json

RECORDER = "adahi_ros.nodes.monitoring.bag_recorder_node"

bag_app = typer.Typer(help="A robot's bags.", no_args_is_help=True)
dataset_app = typer.Typer(help="Training data from a robot's bags.", no_args_is_help=True)


@bag_app.callback()
def _bags() -> None:
    """Have Typer keep the verb's name though there is but one."""


def record(
    contract: ContractName,
    out: Annotated[Path, typer.Option(help="The bag to make: a folder that is not there yet.")],
    duration_s: Annotated[
        float,
        typer.Option("--duration", min=0.0, callback=finite, help="How long, s. Default: until Ctrl-C."),
    ] = 0.0,
    namespace: Namespace = "",
    storage: Annotated[str, typer.Option(help="Format of the bag: mcap or sqlite3.")] = "mcap",
    sim_time: Annotated[bool, typer.Option("--use-sim-time", help="Note the time of /clock.")] = False,
) -> None:
    """Record a robot's observations and actions, and what the draft policy says, into a rosbag2."""
    from adahi_ros.bags.definitions import BagError
    from adahi_ros.bags.writer import STORAGES
    from adahi_ros.contract.parsing import load_contract

    if find_spec("rclpy") is None:
        raise ModuleNotFoundError("No module named 'rclpy'", name="rclpy")
    load_contract(contract)
    if storage not in STORAGES:
        raise ValueError(f"storage: {storage!r}, must be one of {', '.join(STORAGES)}")
    if out.exists():
        raise BagError(f"{out}: is there already, expected the name of a new bag")
    parameters = {
        "contract": contract,
        "out": str(out),
        "storage": storage,
        "duration_s": duration_s,
        "use_sim_time": sim_time,
    }
    arguments = [
        part for name, value in parameters.items() for part in ("-p", f"{name}:={json.dumps(value)}")
    ]
    if namespace.strip("/"):
        arguments += ["-r", f"__ns:=/{namespace.strip('/')}"]
    sys.stdout.flush()
    # The node takes this process over: signals, exit status and output are its own.
    os.execv(sys.executable, [sys.executable, "-m", RECORDER, "--ros-args", *arguments])


@bag_app.command("recover")
def recover_bag(
    bag: Annotated[Path, typer.Argument(help="Bag: a folder, or a single .mcap or .db3 file.")],
    out: Annotated[Path, typer.Option(help="The bag to make: a folder that is not there yet.")],
) -> None:
    """Make a whole bag of what can be read of one whose recorder was killed."""
    from adahi_ros.bags.recovery import recover

    with console.status("reading"):
        found = recover(bag, out)
    for fault in found.faults:
        say(f"{bag}: the rest is lost: {fault}")
    say(f"{out}: {sum(found.counts.values())} messages of {len(found.counts)} topics")


@dataset_app.command("from-bag")
def from_bag(
    bags: Annotated[list[Path], typer.Argument(help="Bags: folders, or single .mcap or .db3 files.")],
    contract: ContractName,
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    namespace: Namespace = "",
    keep_failures: Annotated[
        bool, typer.Option("--keep-failures", help="Keep episodes that episode_result says have failed.")
    ] = False,
    incomplete: Incomplete = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the dataset that is in --out already.")
    ] = False,
) -> None:
    """Make observations and actions of bags as the robot's node does, for 'adahi train --data'."""
    from adahi_ros.bags.dataset import PICTURE, TRAJECTORIES, read_dataset
    from adahi_ros.contract.parsing import load_contract
    from adahi_ros.reporting.bag_tables import dataset_table
    from adahi_ros.reporting.dataset_figure import draw_dataset

    read = load_contract(contract)
    if (out / TRAJECTORIES).exists() and not overwrite:
        raise ValueError(f"--out: {out}, has a dataset already; must be another folder, or give --overwrite")
    tried("--out", out / TRAJECTORIES)
    with console.status("reading") as status:
        dataset = read_dataset(
            bags,
            read,
            namespace,
            keep_failures,
            lambda path: status.update(f"reading {path}"),
            say if incomplete else None,
        )
    dataset.save(out, contract, command_line())
    draw_dataset(dataset, out / PICTURE)
    console.print(dataset_table(dataset))
    for fault in dataset.summary["faults"].values():
        say(f"passed over {fault['count']} times, such as: {fault['first']}")
    for bag in dataset.summary["bags"]:
        if not bag["steps"]:
            check = f"adahi contract check {contract} --bag {bag['path']}"
            say(f"{bag['path']}: not one step of it; '{check}' tells more")
    data, picture = dataset.trajectories, out / PICTURE
    say(f"{out}: {len(data)} episodes, {len(data.observations)} steps of {data.task}; picture: {picture}")


def replay(
    bags: Annotated[list[Path], typer.Argument(help="Bags: folders, or single .mcap or .db3 files.")],
    contract: Annotated[
        str | None,
        typer.Option(help="A shipped contract's name, or a YAML file. Default: that of --params."),
    ] = None,
    params: Annotated[
        Path | None,
        typer.Option(help="File of 'adahi calibrate'. Default: config/ROBOT_TYPE.yaml."),
    ] = None,
    draft: Annotated[Path | None, typer.Option(help="Draft policy. Default: that of --params.")] = None,
    target: Annotated[
        Path | None, typer.Option(help="Target policy. Default: the one beside the draft.")
    ] = None,
    methods: Annotated[
        str,
        typer.Option(
            help="Separated by commas; best, plan_K, corrector_K and their like need a target that plans."
        ),
    ] = "adahi,hybrid,draft,target,random,uncertainty",
    plans: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a target that plans and of its corrector. Default: plans, beside the draft."
        ),
    ] = None,
    profile: Annotated[
        str, typer.Option(help="Link that latency is modelled on: a name of 'adahi link list', or a file.")
    ] = "wifi_ac",
    namespace: Namespace = "",
    keep_failures: Annotated[
        bool, typer.Option("--keep-failures", help="Keep episodes that episode_result says have failed.")
    ] = False,
    incomplete: Incomplete = False,
    picture: Annotated[
        Path | None, typer.Option("--figure", help="Picture to write. Default: results/replay-BAG.png.")
    ] = None,
    backend: Backend = "onnxruntime",
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Tell what each method would have done and cost at recorded observations, without a robot."""
    from adahi_ros.bags.dataset import read_dataset
    from adahi_ros.bags.replay import draft_of, goes_by_plans, load_pair, node_settings, with_plans
    from adahi_ros.bags.replay import replay as run
    from adahi_ros.contract.parsing import load_contract
    from adahi_ros.evaluation.bench import check_fits
    from adahi_ros.evaluation.methods import parse_methods
    from adahi_ros.gates.parameter_file import load_calibration
    from adahi_ros.reporting.bag_tables import replay_table
    from adahi_ros.reporting.replay_figure import draw_replay
    from adahi_ros.wireless.link.profile import profile_named

    link, names = profile_named(profile), parse_methods(methods)
    params = existing("--params", params) if params is not None else None
    if contract is None:
        contract = str(node_settings(params).get("contract", "")) if params is not None else ""
        if not contract:
            raise ValueError("contract: none, must be given, or be in the file of --params")
    read = load_contract(contract)
    default = Path("results") / f"replay-{bags[0].stem}.png"
    picture = picture_file("--figure", picture if picture is not None else default)
    params = params if params is not None else asset(f"config/{read.robot_type}.yaml")
    calibration = load_calibration(params)
    draft = draft if draft is not None else draft_of(params)
    policies = load_pair(draft, target, backend)
    if any(map(goes_by_plans, names)):
        policies = with_plans(policies, plans, draft, backend)
    check_fits(calibration, read.robot_type, policies)
    with console.status("reading") as status:
        dataset = read_dataset(bags, read, namespace, keep_failures, on_loss=say if incomplete else None)
        recorded = dataset.trajectories
        found = run(
            recorded,
            policies,
            calibration,
            link,
            seed,
            lambda name: status.update(f"replaying: {name}"),
            names,
        )
    title = f"{', '.join(bag.name for bag in bags)}: {len(recorded)} episodes, link {profile}"
    console.print(replay_table(found, title))
    write_json(
        json_file,
        {
            "bags": list(map(str, bags)),
            "cut_off": [each["cut_off"] for each in dataset.summary["bags"] if "cut_off" in each],
            "robot_type": read.robot_type,
            "episodes": len(recorded),
            "steps": len(recorded.observations),
            "seed": seed,
            "link": profile,
            "latency": "modelled: compute as measured here, and the link's round trips",
            "costs": asdict(found.costs),
            "methods": found.figures,
        },
    )
    draw_replay(found, read.rate_hz, profile, picture)
    say(f"picture: {picture}")
