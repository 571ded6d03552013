# SPDX-License-Identifier: Apache-2.0
"""`adahi bag evaluate`: what methods would have done at the observations of a bag, and at what cost."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from adahi_lab.cli import options
from adahi_lab.cli.output import planned, write_json
from adahi_ros.cli.options import Incomplete, Namespace
from adahi_ros.cli.terminal import console, say
from adahi_ros.core.assets import ENCODERS, asset, named, shipped

if TYPE_CHECKING:
    from adahi_lab.calibration.parameter_file import Calibration
    from adahi_lab.calibration.robot_file import RobotFile
    from adahi_lab.evaluation.loaded_policies import PlanFiles
    from adahi_ros.contract.contract import Contract

METHODS = "adahi,hybrid,draft,target,random,uncertainty"
WITHOUT_THRESHOLDS = "hybrid,draft,target"
WITHOUT_CODES = "deviation:replace,never:replace,target,random:replace"
WITHOUT_EITHER = "never:replace,target"
WITHOUT_DRAFT = "plan_8,plan_1"  # of shorter plans, as long as one


def replay(
    bags: options.Bags,
    contract: Annotated[
        str | None, Option(help="A shipped contract's name, or a YAML file. Default: that of --params.")
    ] = None,
    params: Annotated[
        Path | None,
        Option(
            help="Parameter file of the robot, such as that of 'adahi thresholds' or one of config/best. "
            "Default: config/ROBOT_TYPE.yaml; not needed with --contract and --target, without a draft."
        ),
    ] = None,
    calibration: options.CalibrationFile = None,
    draft: Annotated[Path | None, Option(help="Draft policy. Default: that of --params.")] = None,
    target: Annotated[
        Path | None, Option(help="Target policy. Default: the one beside the draft, else that of --params.")
    ] = None,
    methods: Annotated[
        str | None,
        Option(
            help="Separated by commas; best, plan_K, corrector_K and intent need a target that plans. "
            f"Default: {METHODS}, where policies share no codes {WITHOUT_CODES}, without a draft "
            f"{WITHOUT_DRAFT}, and best, where --params uses plans."
        ),
    ] = None,
    plans: Annotated[
        Path | None,
        Option(
            help="Folder of a target that plans, its corrector and its intents. Default: those of --params, "
            "else the folder plans beside the draft."
        ),
    ] = None,
    profile: Annotated[
        str, Option(help="Link that latency is modelled on: a name of 'adahi lab link list', or a file.")
    ] = "wifi_ac",
    instruction: options.Instruction = "",
    namespace: Namespace = "",
    keep_failures: options.KeepFailures = False,
    incomplete: Incomplete = False,
    picture: Annotated[
        Path | None,
        Option("--picture", "--figure", help="Picture to write. Default: results/replay-BAG.png."),
    ] = None,
    backend: options.Backend = "onnxruntime",
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Show what each method would have done, and its cost, at recorded observations."""
    from adahi_lab.calibration.replay import calibration_of, load_pair
    from adahi_lab.calibration.replay import replay as run
    from adahi_lab.calibration.robot_file import RobotFile
    from adahi_lab.evaluation.loaded_policies import PlanFiles
    from adahi_lab.link.link_profile import profile_named
    from adahi_lab.methods.methods import METHODS as NAMED
    from adahi_lab.methods.methods import parse_methods
    from adahi_lab.methods.recommended import BEST
    from adahi_lab.reporting.bag_tables import replay_table
    from adahi_lab.reporting.replay_figure import draw_replay
    from adahi_ros.bags.bag_files import closed, files_of
    from adahi_ros.contract.parsing import load_contract

    # Report everything that is missing before loading any of it.
    link = profile_named(profile)
    names = None if methods is None else parse_methods(methods, own=True)
    picture = options.picture_or_default(picture, f"replay-{bags[0].stem}")
    read = None if contract is None else load_contract(contract)
    alone = None not in (read, target) and params is None and draft is None
    robot_file = RobotFile.absent() if alone else RobotFile.read(_parameter_file(params, read), namespace)
    robot = robot_file.with_options(contract, draft, target, instruction)
    read = robot.contract
    if read.encoder:
        options.policy_there("contract: encoder", named(read.encoder, ENCODERS))
    best, (draft_there, target_there) = robot_file.by_plans, robot.policies
    options.policy_there(
        f"{robot_file.path}: checkpoint" if draft is None else "--draft", draft or draft_there
    )
    options.policy_there("--target", target or target_there)
    by_plans = PlanFiles()
    usual_plans = best is not None or robot.draftless
    if usual_plans if names is None else any(NAMED[name].by_plans for name in names):
        by_plans = _plans(robot_file, draft_there, plans)
        if robot.draftless:
            by_plans = by_plans._replace(plans=target_there)
    thresholds = _thresholds(calibration, robot_file, robot.robot_type)
    for bag in bags:
        files_of(bag) if incomplete else closed(bag)

    pair = load_pair(draft_there, target_there, backend, read if robot.draftless else None)
    if names is None:
        usual = _usual(pair.share_codes, thresholds is not None)
        if robot.draftless:
            usual = WITHOUT_DRAFT.replace("8", str(min(8, pair.target.signature.horizon)))
        names = parse_methods(usual if best is None else f"best,{usual}")
    needed = {kind for name in names for kind in NAMED[name].needs}
    if best is not None and BEST.name in names:
        needed.add(best.proposer)
    calibrated = calibration_of(thresholds, robot.robot_type, pair, names)
    with console.status("reading") as status:
        seen = robot.observed(
            *(pair, bags, namespace, backend, seed, by_plans.without_intents(needed), plans, keep_failures),
            say if incomplete else None,
            planned(status),
        )
        recorded = seen.recorded
        found = run(
            recorded,
            seen.policies,
            calibrated,
            link,
            seed,
            lambda name: status.update(f"replaying: {name}"),
            names,
            best,
            seen.costs_of,
        )
    title = f"{', '.join(bag.name for bag in bags)}: {len(recorded)} episodes, link {profile}"
    console.print(replay_table(found, title))
    write_json(
        json_file,
        {
            "bags": list(map(str, bags)),
            "cut_off": [each["cut_off"] for each in seen.bags if "cut_off" in each],
            "robot_type": robot.robot_type,
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


def _usual(share_codes: bool, thresholds: bool) -> str:
    """Return the methods that are replayed by default."""
    if share_codes:
        return METHODS if thresholds else WITHOUT_THRESHOLDS
    return WITHOUT_CODES if thresholds else WITHOUT_EITHER


def _parameter_file(params: Path | None, read: Contract | None) -> Path:
    """Return the file of --params, or the shipped one for a contract's robot."""
    if params is not None:
        return options.existing("--params", params)
    if read is None:
        raise ValueError("contract: none, must be given, or be in the file of --params")
    relative = f"config/{read.robot_type}.yaml"
    if not shipped(relative):
        raise ValueError(f"--params: none, must be given: none for {read.robot_type!r} is shipped")
    return asset(relative)


def _plans(robot_file: RobotFile, draft: Path, folder: Path | None) -> PlanFiles:
    """Return the target that plans, and what acts by its replies."""
    from adahi_lab.evaluation.loaded_policies import PLANS, PlanFiles, plans_in

    if folder is not None:
        found = plans_in(folder)
        if found.plans is None:
            raise ValueError(f"--plans: {folder}, has no target; must be a folder with a target that plans")
        return found
    beside, named_there = plans_in(draft.parent / PLANS), robot_file.plans
    for part, path in named_there._asdict().items():
        if path is not None:
            parameter = "checkpoint" if part == PLANS else "proposer.file"
            options.policy_there(f"{robot_file.path}: {parameter}", path)
    return PlanFiles(*(given or there for given, there in zip(named_there, beside, strict=True)))


def _thresholds(given: Path | None, robot_file: RobotFile, robot_type: str) -> Calibration | None:
    """Return the calibration of a file, else of the robot's, else the shipped one; None without one."""
    from adahi_lab.calibration.parameter_file import load_calibration

    by_itself = given is None and robot_file.calibrated
    file = robot_file.path if by_itself else options.calibration_file(given, robot_type)
    return load_calibration(file) if file else None
