# SPDX-License-Identifier: Apache-2.0
"""`adahi record` and `adahi bag`: bags of a robot."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from adahi_ros.cli import options
from adahi_ros.cli.terminal import console, say
from adahi_ros.start import become

RECORDER = "adahi_ros.nodes.monitoring.bag_recorder_node"


def record(
    contract: options.ContractName,
    out: Annotated[Path, Option(help="Bag to write: a new folder. With --episodes: a folder for bags.")],
    episodes: Annotated[
        bool, Option("--episodes", help="Write a bag for each episode that you start and save.")
    ] = False,
    instruction: Annotated[
        str, Option(help="Sentence that the bags carry, until the topic instruction has another.")
    ] = "",
    duration_s: Annotated[
        float,
        options.number(
            "How long, s. Default: until Ctrl-C. With --episodes: longest episode, then it is saved.",
            0.0,
            name="--duration",
        ),
    ] = 0.0,
    namespace: options.Namespace = "",
    verifier_namespace: Annotated[
        str, Option(help="Namespace of the verifier's topic assignments. Default: that of the robot.")
    ] = "",
    storage: Annotated[str, Option(help="Format of the bag: mcap or sqlite3.")] = "mcap",
    sim_time: Annotated[bool, Option("--use-sim-time", help="Use the time of /clock.")] = False,
) -> None:
    """Record a robot's observations, actions and status into a rosbag2.

    With --episodes, each has its bag: OUT/episode_000000 and so on, after those that are there. Keys:
    s or Enter starts and saves, d discards (deletes) the running episode, i types the instruction of the
    next one. q and Ctrl-C save the running episode and end. The right and left arrow are s and d, as in
    lerobot-record. Without a terminal there are the services start_episode, save_episode and
    discard_episode of the node bag_recorder.
    """
    from adahi_ros.bags.bag_writer import STORAGES
    from adahi_ros.bags.definitions import BagError
    from adahi_ros.bags.episodes import Episodes
    from adahi_ros.contract.parsing import load_contract

    load_contract(contract)
    if storage not in STORAGES:
        raise ValueError(f"storage: {storage!r}, must be one of {', '.join(STORAGES)}")
    if episodes:
        Episodes(out)  # refuse a bag
    elif out.exists():
        raise BagError(f"{out}: is there already, expected the name of a new bag")
    parameters = {
        "contract": contract,
        "out": str(out),
        "storage": storage,
        "duration_s": duration_s,
        "episodes": episodes,
        "instruction": instruction,
        "use_sim_time": sim_time,
    }
    arguments = [
        part
        for name, value in parameters.items()
        for part in ("-p", f"{name}:={json.dumps(value, ensure_ascii=False)}")
    ]
    if verifier_namespace.strip("/"):
        arguments += ["-r", f"assignments:=/{verifier_namespace.strip('/')}/assignments"]
    become(RECORDER, "--ros-args", *arguments, namespace=namespace)


def recover_bag(
    bag: Annotated[Path, Argument(help="Bag: a folder, or a single .mcap or .db3 file.")],
    out: Annotated[Path, Option(help="Bag to write: a new folder.")],
) -> None:
    """Write a whole bag from the readable part of a damaged one."""
    from adahi_ros.bags.recovery import recover

    with console.status("reading"):
        found = recover(bag, out)
    for fault in found.faults:
        say(f"{bag}: the rest is lost: {fault}")
    for topic, count in found.others.items():
        say(f"{bag}: {topic}: left out, {count} messages that are not CDR")
    say(f"{out}: {sum(found.counts.values())} messages of {len(found.counts)} topics")


def show_bag(
    bag: Annotated[Path, Argument(help="Bag: a folder, or a single .mcap or .db3 file.")],
    out: Annotated[str, Option(help="File to write, .rrd; 'viewer' opens Rerun.")] = "viewer",
    namespace: options.Namespace = "",
) -> None:
    """Show a bag in Rerun: observations, actions, plans and status."""
    from adahi_ros.bags.bag_reader import read_bag, topics_in
    from adahi_ros.bags.rerun_recording import RerunRecording

    found = topics_in(bag)
    with closing(RerunRecording(out, namespace)) as recording:
        kinds = {topic: kind for topic, kind in found.items() if recording.shows(topic, kind)}
        for received in read_bag(bag, {}, kinds):
            recording.add(received.topic, received.message, received.received_ns)
    say(f"{bag}: {len(kinds)} topics in {out}")
