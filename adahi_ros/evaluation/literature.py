"""Which papers' methods are here: where each is, and how it is run; `adahi methods` prints it.

What each did on our worlds, and when to use it, is in docs/methods.md.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Neighbour:
    """A method of a paper.

    Attributes:
        name: that the paper gives it, or what people call it.
        paper: who, and where it is found.
        file: of the package, that has it.
        run: the option or method by which it is run.
        idea: in a line.
    """

    name: str
    paper: str
    file: str
    run: str
    idea: str


LITERATURE = (
    Neighbour(
        "ADAHI",
        "Action Deviation-Aware Inference for Low-Latency Wireless Robots",
        "gates/deviation.py",
        "--methods adahi",
        "ask the target where the action deviates from the robot's recent ones",
    ),
    Neighbour(
        "speculative sampling",
        "Leviathan et al., 2023",
        "acceptance/speculative.py",
        "--methods hybrid",
        "keep a drafted code with min(1, q/p), else draw from what the target has more of",
    ),
    Neighbour(
        "Spec-VLA",
        "arXiv 2507.22424",
        "acceptance/distance.py",
        "--methods always:distance",
        "a draft within a distance of the target's action stands",
    ),
    Neighbour(
        "A2C2",
        "arXiv 2509.23224",
        "policy/corrector/network.py",
        "--methods corrector_8",
        "a small network on the robot corrects the target's plan at every step",
    ),
    Neighbour(
        "SV-VLA",
        "arXiv 2604.02965",
        "robot/proposers.py",
        "--methods draft_checks_plan:expected_error@0.5",
        "ask for a new plan where a light policy disagrees with the present one",
    ),
    Neighbour(
        "temporal ensembling (ACT)",
        "arXiv 2304.13705",
        "robot/blends.py",
        "--methods temporal_ensemble_4",
        "weigh plans that overlap",
    ),
    Neighbour(
        "bidirectional decoding",
        "arXiv 2408.17355",
        "server/choice.py",
        "--methods plan_8+1:choose",
        "of several plans take the one that agrees with what the robot is doing",
    ),
    Neighbour(
        "PipeInfer",
        "arXiv 2407.11798",
        "robot/ahead.py",
        "--methods plan_8+1",
        "nobody waits for a reply, and what is overtaken is dropped before it costs compute",
    ),
    Neighbour(
        "DSI",
        "Timor et al., arXiv 2405.14105",
        "robot/hedged_transport.py",
        "verification.backups, verification.hedge",
        "several instances of the target, of which the first good reply wins; the second asked when late",
    ),
    Neighbour(
        "CoSine",
        "arXiv 2503.10325",
        "robot/committee_proposer.py",
        "adahi committee",
        "several specialised drafts; replies tell the robot which fits, confidence fuses them",
    ),
    Neighbour(
        "SpotTune",
        "Li et al., arXiv 2012.03576",
        "tuning/trend.py",
        "adahi tune",
        "search on machines that may vanish; what its curve's trend does not promise is stopped",
    ),
    Neighbour(
        "U-HLM",
        "arXiv 2412.12687",
        "gates/sampled.py",
        "--methods sampled_uncertainty:speculative",
        "ask the target where the draft, at other temperatures, draws other codes",
    ),
    Neighbour(
        "WISV",
        "arXiv 2604.17701",
        "acceptance/semantic.py",
        "--methods always:semantic:file=checkpoints/ball/semantic.safetensors:tolerance=0.1",
        "a mismatch stands where a head on the target says that it does not matter; more on a slow link",
    ),
    Neighbour(
        "HeiSD",
        "arXiv 2603.17573",
        "robot/retrieval.py",
        "--methods heisd",
        "do unasked what was demonstrated where neighbours agree; by how it moves, draft instead",
    ),
    Neighbour(
        "KERV",
        "arXiv 2603.01581",
        "robot/kalman.py",
        "--methods kerv",
        "go on by a Kalman filter where a draft is rejected, not by another request",
    ),
    Neighbour(
        "DyQ-VLA",
        "Zheng et al., arXiv 2603.07904",
        "policy/switched.py",
        "--checkpoints config/switched/TASK",
        "eight bits while what is observed moves coarsely, all of them where it moves finely",
    ),
    Neighbour(
        "VLN-Cache",
        "Zheng et al., arXiv 2603.07080",
        "vision/visual_cache.py",
        "encoder_cache",
        "features of image patches that did not change are kept, and moved with the view",
    ),
)
"""In the order of the docs. Those of plans need a task that has a target that plans."""
