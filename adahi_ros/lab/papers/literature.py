# SPDX-License-Identifier: Apache-2.0
"""Which papers' methods are here: where each is, how it is run, when to use it, and what it costs.

`adahi methods` prints it, and `adahi table --literature` measures it. What each did on our worlds, and why,
is in docs/research/methods.md and docs/research/methods/.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from adahi_ros.core.registry import Registry


@dataclass(frozen=True)
class Line:
    """A line of the table: a method, and of which policies.

    Attributes:
        name: in the table.
        method: as `parse_methods` takes it, with what `for_task` puts in the place of a task.
        backend: of its policies; empty for that of all others.
        checkpoints: their folder, below the package's files, likewise; empty for the task's.
    """

    name: str
    method: str
    backend: str = ""
    checkpoints: str = ""

    @property
    def key(self) -> str:
        """What is different from line to line: the method, and the options that it takes beside it."""
        backend = f" --backend {self.backend}" if self.backend else ""
        return f"{self.method}{backend}" + (f" --checkpoints {self.checkpoints}" if self.checkpoints else "")


@dataclass(frozen=True)
class PaperMethod:
    """A method of a paper.

    Attributes:
        name: that the paper gives it, or what people call it.
        paper: who, and where it is found.
        file: of the package, that has it.
        idea: in a line.
        use: when, by our figures.
        cost: of a step on the robot; three figures are those of ball, Meta-World and kitchen, by
            benchmarks/method_cost.py.
        lines: of the table; none where it does not change what is done in a world without a link or a camera.
        option: by which it is used, where there are no lines.
        why: there are no lines.
    """

    name: str
    paper: str
    file: str
    idea: str
    use: str
    cost: str
    lines: tuple[Line, ...] = ()
    option: str = ""
    why: str = ""

    @property
    def run(self) -> str:
        """The options of `adahi evaluate TASK`, or what it is instead, by which it is run."""
        ways = ", ".join(f"--methods {line.key}" for line in self.lines)
        return self.option or ways.replace("switched/{task}", "switched/TASK")


LITERATURE = (
    PaperMethod(
        "ADAHI",
        "Action Deviation-Aware Inference for Low-Latency Wireless Robots",
        "gates/gate_config.py",
        "ask the target where the action deviates from the robot's recent ones",
        "where the target makes single actions; where it plans, a corrected plan asks far less often",
        "0.24, 0.27, 0.31 ms",
        (Line("ADAHI", "adahi"),),
    ),
    PaperMethod(
        "speculative sampling",
        "Leviathan et al., 2023",
        "acceptance/speculative.py",
        "keep a drafted code with min(1, q/p), else draw from what the target has more of",
        "where a call costs nothing; as the rule under a gate, what is verified is as the target would do it",
        "0.24, 0.27, 0.30 ms, the draft's",
        (Line("speculative sampling", "hybrid"),),
    ),
    PaperMethod(
        "Spec-VLA",
        "arXiv 2507.22424",
        "acceptance/distance.py",
        "a draft within a distance of the target's action stands",
        "where more of a draft is to stand; it saves no request here",
        "0.24, 0.27, 0.31 ms",
        (Line("Spec-VLA", "always:distance"),),
    ),
    PaperMethod(
        "A2C2",
        "arXiv 2509.23224",
        "policies/corrector/corrector_network.py",
        "a small network on the robot corrects the target's plan at every step",
        "where the target plans and a corrector can be trained: the first to try",
        "0.19, 0.22, 0.25 ms",
        (Line("A2C2", "corrector_8"),),
    ),
    PaperMethod(
        "SV-VLA",
        "arXiv 2604.02965",
        "proposers/interface.py",
        "ask for a new plan where a light policy disagrees with the present one",
        "where no corrector can be trained, and the draft is near to the target, as in the kitchen",
        "0.25, 0.28, 0.26 ms",
        (Line("SV-VLA", "draft_checks_plan:expected_error@0.5"),),
    ),
    PaperMethod(
        "temporal ensembling (ACT)",
        "arXiv 2304.13705",
        "core/plan.py",
        "weigh plans that overlap",
        "not here: Plan/4 asks as often and succeeds more",
        "0.08, 0.09, 0.10 ms",
        (Line("temporal ensembling", "temporal_ensemble_4"),),
    ),
    PaperMethod(
        "bidirectional decoding",
        "arXiv 2408.17355",
        "server/nearest_sample.py",
        "of several plans take the one that agrees with what the robot is doing",
        "not here: where replies are late, plans that agree succeed no more than others",
        "0.08, 0.08, 0.10 ms",
        (Line("bidirectional decoding", "plan_8+1:choose"),),
    ),
    PaperMethod(
        "PipeInfer",
        "arXiv 2407.11798",
        "robot/prefetch.py",
        "nobody waits for a reply, and what is overtaken is dropped before it costs compute",
        "where the robot must not wait for the network; with a corrector, as `best` has it",
        "0.07, 0.08, 0.10 ms, as Plan/8",
        (Line("PipeInfer", "plan_8+1"),),
    ),
    PaperMethod(
        "DSI",
        "Timor et al., arXiv 2405.14105",
        "robot/hedged_transport.py",
        "several instances of the target, of which the first good reply wins; the second asked when late",
        "where there are two verifiers, and replies are sometimes very late",
        "a second copy of what is late",
        option="verification.backups, verification.hedge",
        why="it changes when a reply is there, not what it says: docs/research/link.md",
    ),
    PaperMethod(
        "CoSine",
        "arXiv 2503.10325",
        "proposers/committee.py",
        "several specialised drafts; replies tell the robot which fits, confidence fuses them",
        "where the target is told what the robot is not, and is asked seldom",
        "Meta-World: 0.51 ms with two drafts, 0.59 with three, 0.29 with one",
        option="adahi committee",
        why="its drafts are trained first: docs/research/several_drafts.md",
    ),
    PaperMethod(
        "SpotTune",
        "Li et al., arXiv 2012.03576",
        "lab/tuning/trend.py",
        "search on machines that may vanish; what its curve's trend does not promise is stopped",
        "to search recipes, methods and thresholds on machines that may vanish",
        "nothing",
        option="adahi tune",
        why="nothing of it runs on a robot: docs/research/tuning.md",
    ),
    PaperMethod(
        "U-HLM",
        "arXiv 2412.12687",
        "gates/sampled.py",
        "ask the target where the draft, at other temperatures, draws other codes",
        "`uncertainty` as ADAHI; sampled, where a policy can be drawn from and no more",
        "sampled 0.29, 0.33, 0.37 ms; 1 - p 0.25, 0.28, 0.33 ms",
        (Line("U-HLM, sampled", "sampled_uncertainty:speculative"), Line("U-HLM, 1 - p", "uncertainty")),
    ),
    PaperMethod(
        "WISV",
        "arXiv 2604.17701",
        "acceptance/semantic.py",
        "a mismatch stands where a head on the target says that it does not matter; more on a slow link",
        "only where a rejection costs a round trip of its own",
        "0.25, 0.28, 0.31 ms",
        (Line("WISV", "always:semantic:file={checkpoints}/semantic.safetensors:tolerance=0.1"),),
    ),
    PaperMethod(
        "HeiSD",
        "arXiv 2603.17573",
        "proposers/retrieval.py",
        "do unasked what was demonstrated where neighbours agree; by how it moves, draft instead",
        "where there are demonstrations and nothing is to be trained; without drafts",
        "0.69, 0.77, 1.18 ms; without drafts 0.37, 0.42, 0.76 ms",
        (
            Line("HeiSD", "heisd"),
            Line("HeiSD, no drafts", "retrieval_8:expected_error@0.4"),
            Line("HeiSD, no verify-skip", "mixture_8:age@7"),
        ),
    ),
    PaperMethod(
        "KERV",
        "arXiv 2603.01581",
        "proposers/kalman.py",
        "go on by a Kalman filter where a draft is rejected, not by another request",
        "where actions are smooth and single; not with contacts",
        "0.34, 0.37, 0.42 ms; the filter alone 0.31, 0.34, 0.39 ms",
        (Line("KERV", "kerv"), Line("KERV, the filter alone", "kalman:age@1")),
    ),
    PaperMethod(
        "DyQ-VLA",
        "Zheng et al., arXiv 2603.07904",
        "policies/switched.py",
        "eight bits while what is observed moves coarsely, all of them where it moves finely",
        "`int8` for a target where memory counts; the switch wins nothing here",
        "the draft's",
        (
            Line("DyQ-VLA, switched", "target", checkpoints="config/switched/{task}"),
            Line("DyQ-VLA, 8 bits", "target", backend="int8"),
            Line("8 bits, Plan/8", "plan_8", backend="int8"),
        ),
    ),
    PaperMethod(
        "VLN-Cache",
        "Zheng et al., arXiv 2603.07080",
        "vision/visual_cache.py",
        "features of image patches that did not change are kept, and moved with the view",
        "a camera that stands and sees little move, an encoder of milliseconds",
        "3.8 and 1.7 times the encoder's, here",
        option="encoder_cache",
        why="these worlds have no camera: benchmarks/visual_cache.py",
    ),
    PaperMethod(
        "E2CL",
        "Wang et al., arXiv 2409.03256",
        "lab/training/learn.py",
        "draft and corrector learn between episodes, from demonstrations and what the target corrected",
        "a draft that is far from its target, and bags of runs; look at success before it is taken",
        "the draft's, which stays as large",
        option="adahi learn, adahi train --from-corrections",
        why="it goes by rounds: adahi learn",
    ),
)
"""In the order of the docs. Those of plans need a task that has a target that plans."""

BESIDE = (
    Line("Target only", "target"),
    Line("Draft only", "draft"),
    Line("Random", "random"),
    Line("Plan/1", "plan_1"),
    Line("Plan/4", "plan_4"),
    Line("Plan/8", "plan_8"),
    Line("Best", "best"),
)
"""What the methods of papers are held against, in the same table."""


ADDED: Registry[PaperMethod] = Registry("adahi_ros.literature", {})
"""Methods that other packages add."""


def known_methods() -> tuple[PaperMethod, ...]:
    """Return the methods of papers, those of other packages last.

    Raises:
        RegistryError: one of another package cannot be imported.
    """
    return (*LITERATURE, *ADDED.values())


def lines(methods: Iterable[PaperMethod] = LITERATURE) -> tuple[Line, ...]:
    """Return the lines of the table."""
    return (*BESIDE, *(line for each in methods for line in each.lines))
