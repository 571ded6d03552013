# SPDX-License-Identifier: Apache-2.0
"""`adahi train corrector`: a corrector and a draft, trained on a target's plans for recorded observations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from adahi_lab.cli import learning, options
from adahi_lab.cli.output import fit_bar, job_bar, write_json, write_yaml
from adahi_ros.cli.options import ContractName, Incomplete, Namespace, Overwrite, number, replaceable
from adahi_ros.cli.terminal import command_line, console, say
from adahi_ros.core.assets import asset, shipped
from adahi_ros.core.parameter_sections import PARAMETERS

if TYPE_CHECKING:
    import numpy as np

    from adahi_lab.calibration.target_inputs import Query
    from adahi_lab.calibration.target_plans import Planned
    from adahi_lab.datasets.bag_dataset import BagDataset
    from adahi_lab.figures import Figures
    from adahi_lab.training.recipes import CorrectorRecipe, IntentRecipe, PupilRecipes
    from adahi_ros.policies.interface import Policy

DEFAULT_RECIPE = "config/recipes/distill/default.yaml"


def distill(
    bags: options.Recordings,
    contract: ContractName,
    out: Annotated[Path, Option(help="Folder to write: corrector, draft, and the plans.")],
    target: Annotated[
        Path | None,
        Option(
            help="Planning target: DIRECTORY/NAME, or a YAML file of another policy. Default: the target in "
            "--out, or else in checkpoints/ROBOT_TYPE/plans."
        ),
    ] = None,
    with_draft: Annotated[
        bool, Option("--draft", help="Also train a draft, for steps without a plan.")
    ] = False,
    with_intent: Annotated[
        bool,
        Option("--intent", help="Also train intents, by which a robot acts long after a plan is over."),
    ] = False,
    instruction: options.Instruction = "",
    person_weight: learning.PersonWeight = 4,
    recipe: Annotated[
        Path | None,
        Option(
            help="With 'corrector', optionally 'distilled' and intents. Default: "
            f"config/recipes/ROBOT_TYPE-plans.yaml, where there is none {DEFAULT_RECIPE}."
        ),
    ] = None,
    held_out: Annotated[
        float, number("Share of the episodes held out to measure the error.", 0.0, 1.0)
    ] = 0.2,
    batch: Annotated[int, Option(min=1, help="Observations per call of the target.")] = 16,
    jpeg_quality: Annotated[
        int, Option(min=1, max=95, help="JPEG quality of images, as the robot's verification.jpeg_quality.")
    ] = 80,
    params: Annotated[Path | None, Option(help="Parameter file for robot and verifier to write.")] = None,
    namespace: Namespace = "",
    incomplete: Incomplete = False,
    backend: options.Backend = "onnxruntime",
    seed: Annotated[int | None, Option(min=0, help="Replaces the recipe's.")] = None,
    overwrite: Overwrite = False,
    json_file: options.JsonFile = None,
) -> None:
    """Train a corrector, and a draft, from a robot's bags or a LeRobotDataset and a target's plans.

    The target plans once for every recorded observation. A stopped run continues where it stopped.
    Failed episodes are equally useful.

    A LeRobotDataset of format 3 is a folder with meta/info.json. Its fps and features must fit the contract.
    It needs 'pip install pyarrow', and 'pip install av' if the target reads its videos.
    """
    from adahi_lab.calibration.bag_corrections import driven_steps
    from adahi_lab.calibration.parameter_file import ROBOT, VERIFIER
    from adahi_lab.calibration.recordings import bags_first, read_recordings
    from adahi_lab.calibration.replayed_targets import instruction_for, query_of
    from adahi_lab.calibration.target_inputs import Jpeg
    from adahi_lab.calibration.target_replies import GATE, ask_by_expected_error
    from adahi_lab.tasks import goal_is_for_target
    from adahi_lab.training.recipes import CORRECTOR, INTENT, load_pupils
    from adahi_lab.training.train_corrector import DRAFT, check_held_out, check_plans, split
    from adahi_ros.contract.parsing import contract_path, load_contract
    from adahi_ros.policies.backends import load_policy
    from adahi_ros.policies.corrector.corrector import Corrector
    from adahi_ros.policies.corrector.corrector_checkpoint import load_corrector
    from adahi_ros.safety.named_limits import limits_of_task

    read = load_contract(contract)
    how = load_pupils(_recipe_of(read.robot_type, recipe))
    if params is not None:
        options.tried("--params", replaceable("--params", params, overwrite))
    check_held_out(held_out)
    where = _target_of(read.robot_type, out, target)
    policy = load_policy(where, backend)
    check_plans(policy)
    intents = _intents_for(policy, how) if with_intent else {}
    for name in (CORRECTOR, *[DRAFT] * with_draft, *intents):
        options.tried("--out", replaceable("--out", out / f"{name}.json", overwrite))
    say(f"target: {where}")
    sources = bags_first(bags)
    with console.status("reading") as status:
        dataset = read_recordings(
            sources,
            read,
            namespace,
            instruction_for(instruction, policy.signature),
            on_path=lambda path: status.update(f"reading {path}"),
            on_loss=say if incomplete else None,
            on_warning=say,
        )
    chosen = how.corrector.seed if seed is None else seed
    query = query_of(
        *(sources, read, contract_path(contract), namespace, where, policy, backend),
        samples=how.corrector.samples,
        seed=chosen,
        jpeg=Jpeg(jpeg_quality),
        batch=batch,
    )
    driven, _ = driven_steps(sources, dataset, namespace, say if incomplete else None)
    if driven.any():
        say(f"a person drove {driven.sum()} of {len(driven)} steps; each counts {person_weight} times")
    planned = _planned(policy, dataset, query, out, driven)
    note = {"command": command_line(), "target": policy.digest, "person_weight": person_weight}
    how_made = note, held_out, not goal_is_for_target(read.robot_type)
    found = {CORRECTOR: _trained(planned, how.corrector, out, chosen, *how_made, CORRECTOR, person_weight)}
    if with_draft:
        its_seed = how.distilled.seed if seed is None else seed
        found[DRAFT] = _trained(planned, how.distilled, out, its_seed, *how_made, DRAFT, person_weight)
    for name, intent in intents.items():
        seen = planned.as_read_by(policy.signature)
        found[name] = _intent(seen, intent, out, intent.seed if seed is None else seed, note, held_out, name)
    _tell(found, out)
    figures: dict[str, object] = {"left_out": planned.left_out, **found}
    if params is not None:
        corrector = Corrector(load_corrector(out / CORRECTOR))
        unseen = split(planned.data, chosen, held_out)[1]
        asking = ask_by_expected_error(planned, corrector, policy.digest, unseen, chosen)
        limits = limits_of_task(read.robot_type)
        # A request with images is many packets: DDS repeats lost ones.
        sent = {"reliability": "reliable"} if read.images_for_target else {}
        robot = {
            "checkpoint": str((out / DRAFT).resolve()) if with_draft else "",
            "contract": str(contract_path(contract).resolve()),
            **({"safety": {"limits": limits}} if limits else {}),
            "proposer": {"name": CORRECTOR, "file": str((out / CORRECTOR).resolve())},
            "execution_horizon": planned.horizon,
            "wait_policy": "ahead",
            "gate": {"name": GATE, "threshold": asking.threshold},
            "verification": {"jpeg_quality": jpeg_quality, **sent},
            "instruction": instruction,
        }
        verifier = {"checkpoint": str(where.resolve()), "rule": {"name": "replace"}}
        verifier |= {"verification": sent} if sent else {}
        for name in list(intents)[:1]:
            file = str((out / name).resolve())
            verifier |= {"intent": file} if name == INTENT else {}
            say(f"to act by intents, set proposer: {{name: {name}, file: {file}}}")
        nodes = {ROBOT: robot, VERIFIER: verifier}
        write_yaml(params, {node: {PARAMETERS: values} for node, values in nodes.items()})
        figures["asking"] = asking._asdict()
        say(
            f"requests a plan where the expected error exceeds {asking.threshold:.3g} action scales: at "
            f"{asking.rate:.3f} of the steps held out; parameters: {params}, with safety.limits: "
            f"{limits or 'none'}, the arm's whole speed"
        )
    write_json(json_file, {"task": read.robot_type, "seed": chosen, **figures})


def _trained(planned: Planned, recipe: CorrectorRecipe, out: Path, seed: int, *how: Any) -> Figures:
    from adahi_lab.training.fitting import Run
    from adahi_lab.training.train_corrector import train_on_recordings

    with fit_bar("fit", recipe.fit.steps) as on_step:
        return train_on_recordings(planned, recipe, out, Run(seed, on_step=on_step), *how).figures


def _intent(
    planned: Planned,
    recipe: IntentRecipe,
    out: Path,
    seed: int,
    note: Mapping[str, Any],
    held_out: float,
    name: str,
) -> Figures:
    from adahi_lab.training.fitting import Run
    from adahi_lab.training.intent_training import train_intent_on_recordings

    with fit_bar(name, recipe.fit.steps) as on_step:
        run = Run(seed, on_step=on_step)
        return train_intent_on_recordings(planned, recipe, out, run, note, held_out, name)


def _intents_for(policy: Policy, how: PupilRecipes) -> dict[str, IntentRecipe]:
    """Return the recipe's intents that can be trained for a target; say which one cannot.

    Raises:
        ValueError: there is none.
    """
    from adahi_lab.calibration.replayed_targets import why_no_encoder
    from adahi_lab.training.recipes import INTENT, INTENT_OF_PLAN

    found, why = dict(how.intents), why_no_encoder(policy.signature)
    if why and found.pop(INTENT, None) is not None:
        if not found:
            raise ValueError(f"--recipe: {INTENT}: {why}; must have {INTENT_OF_PLAN}")
        say(f"{INTENT} is left out: {why}")
    if not found:
        raise ValueError(f"--recipe: must have {INTENT_OF_PLAN} or {INTENT} with --intent")
    return found


def _planned(policy: Policy, dataset: BagDataset, query: Query, out: Path, driven: np.ndarray) -> Planned:
    from adahi_lab.calibration.bag_plans import plan_bags
    from adahi_ros.policies.interface import TargetUnavailableError

    total, done = len(dataset.stamps_ns), 0
    with job_bar("steps planned for", total) as update:

        def on_steps(more: int) -> None:
            nonlocal done
            done += more
            update(advance=more)

        try:
            planned = plan_bags(policy, dataset, query, out, on_steps, driven if driven.any() else None)
        except TargetUnavailableError as error:
            raise TargetUnavailableError(
                f"{error}; {done} of {total} steps are planned; repeat the command to continue"
            ) from error
    if planned.left_out:
        say(f"{planned.left_out} of {total} steps left out: the target's plans for them are not valid")
    return planned


def _tell(found: Mapping[str, Figures], out: Path) -> None:
    for name, figures in found.items():
        held = figures["held_out"]
        say(f"{out / name}: {figures['examples']:,} examples of {figures['episodes']} episodes")
        if "plan_error" in held:
            say(
                f"{held['episodes']} episodes held out: plans are {held['plan_error']:.3f} action scales "
                f"from fresh ones, corrected {held['error']:.3f}; it learnt to expect "
                f"{held['learnt_to_expect']:.3f}, and now expects {held['expected_error']:.3f}"
            )
            if held["error"] >= held["plan_error"]:
                say(f"{out / name}: corrected is no better than plain plans here: use proposer.name: plan")
        else:
            say(
                f"{held['episodes']} episodes held out: it is {held['error']:.3f} action scales from the "
                f"target, the mean action {held['mean_error']:.3f}"
            )


def _recipe_of(robot_type: str, recipe: Path | None) -> Path:
    if recipe is not None:
        return options.existing("--recipe", recipe)
    name = f"config/recipes/{robot_type}-plans.yaml"
    return asset(name if shipped(name) else DEFAULT_RECIPE)


def _target_of(robot_type: str, out: Path, target: Path | None) -> Path:
    from adahi_ros.policies.backends import is_policy

    if target is not None:
        return target
    if is_policy(out / "target"):
        return out / "target"
    name = f"checkpoints/{robot_type}/plans"
    if not shipped(name):
        raise ValueError(f"--target: none, must be given: none that plans for {robot_type!r} is shipped")
    return asset(name) / "target"
