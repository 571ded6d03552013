# SPDX-License-Identifier: Apache-2.0
"""A corrector that learns in rounds, see `learn_rounds`: from differences of new and old plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.evaluation.episodes import lesson_episodes
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.loaded_policies import PLANS, Bench, PolicyFiles
from adahi_lab.evaluation.rollout import rollout
from adahi_lab.methods.actors import CORRECTOR
from adahi_lab.methods.method import Method
from adahi_lab.methods.methods import METHODS
from adahi_lab.tasks import make
from adahi_lab.training.corrector_data import Examples, Teacher
from adahi_lab.training.corrector_training import learn_on, running, save_with_export
from adahi_lab.training.fitting import Run
from adahi_lab.training.learn import LearningConfig, learned_within
from adahi_lab.training.learn_rounds import Learner, Rounds
from adahi_lab.training.recipes import CorrectorRecipe
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import Proposal
from adahi_ros.policies.corrector.corrector import Corrector
from adahi_ros.policies.corrector.corrector_checkpoint import load_corrector
from adahi_ros.policies.corrector.corrector_features import features
from adahi_ros.policies.corrector.corrector_network import CorrectorNetwork
from adahi_ros.policies.corrector.corrector_torch import load_network
from adahi_ros.policies.interface import Policy
from adahi_ros.proposers.corrector import CorrectorProposer, plan_view
from adahi_ros.proposers.interface import ProposerContext
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

HELD_OUT_EPISODE = 680_000  # of the lessons
OLD_EPISODES = 20  # of the corrector's earlier lessons, at each request rate; half as many are held out


class NotingCorrector(CorrectorProposer):
    """Corrects plans, and records its inputs and the replies at the same step.

    Args:
        corrector: of the plans.
    """

    def __init__(self, corrector: Corrector) -> None:
        super().__init__(corrector)
        self.read: list[np.ndarray] = []
        self.planned: list[np.ndarray] = []
        self.replied: list[np.ndarray] = []

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`."""
        signature = self.actor.signature
        goal = signature.condition(context.observations)
        view = plan_view(context.memory, context.plan, context.step, goal, signature.horizon)
        known = context.plan.left(context.step) > 0
        planned = np.where(known[:, None], view.ahead[:, 0], np.nan)
        self.read.append(features(view, self.actor.scales))
        self.planned.append(planned)
        self.replied.append(np.full_like(planned, np.nan))
        return super().propose(context)

    def observe_reply(self, requested_at: int, verdict: Verdict, rows: np.ndarray) -> None:
        """See `Proposer`: a waiting robot is still at the step of its request."""
        self.replied[requested_at][rows] = verdict.actions[:, 0]


def corrected_plans(bench: Bench, method: Method, seed: int, episodes: Sequence[int]) -> Examples:
    """Run episodes of a task with corrected plans; return an example of each step that replaced a plan.

    The wanted correction is the new plan's action less the old plan's. If the target knows two ways, the new
    plan may take the other one: a single reply does not show that.
    """
    assert bench.policies.corrector is not None
    assert bench.policies.plans is not None
    noting = NotingCorrector(bench.policies.corrector)
    config = method.config(bench.calibration)
    controller = Controller(bench.policies.corrector, config, CORRECTOR, made=noting)
    verifier = TargetVerifier(bench.policies.plans, "replace")
    log = rollout(make(bench.task), controller, verifier, seed, episodes)
    scale = bench.policies.corrector.scales.action_scale
    wanted = (np.stack(noting.replied) - np.stack(noting.planned)) / scale
    known = log.active & np.isfinite(wanted).all(axis=-1)
    return Examples(np.stack(noting.read)[known], wanted[known].astype(np.float32))


def old_examples(
    task: str, target: Policy, corrector: Corrector, recipe: CorrectorRecipe, count: int, before: int
) -> Examples:
    """Return examples of every step of rollouts, as in a corrector's training, with the current corrector.

    Args:
        task: what `make` takes.
        target: makes the plans.
        corrector: the current one.
        recipe: of the corrector.
        count: of episodes, at each request rate.
        before: number of the first lesson.
    """
    teacher = Teacher(target, corrector.scales, recipe.samples)
    return Examples.joined(
        [
            teacher.lesson(
                make(task),
                recipe.seed,
                lesson_episodes(count, before + place * count),
                rate,
                corrector.correct,
                0.0,
            )
            for place, rate in enumerate(recipe.asking_rates)
        ]
    )


class CorrectorLearner(Learner[CorrectorNetwork, Examples]):
    """Learns from the plans that came back.

    Args:
        task: what `make` takes.
        begin: folder of draft and target, with the target that plans and the corrector in `plans`.
        recipe: of the corrector.
        calibration: of the draft, for the gates of the methods.
        how: number of rounds, and when to request.
        config: how it learns; the error on held-out steps measures forgetting.
        workers: processes that run episodes.
        old_episodes: at each rate of asking, to rehearse.

    Raises:
        ValueError: the method does not correct plans, a checkpoint is missing, or parts do not match.
    """

    def __init__(
        self,
        task: str,
        begin: Path,
        recipe: CorrectorRecipe,
        calibration: Calibration,
        how: Rounds,
        config: LearningConfig,
        workers: int = 1,
        old_episodes: int = OLD_EPISODES,
    ) -> None:
        method = METHODS[how.ask]
        if method.proposer != CORRECTOR or method.delay:
            raise ValueError(
                f"ask: {how.ask!r}, must be of corrected plans that are waited for, as corrector_8"
            )
        for name, value in (("explore", how.explore), ("rate", how.rate)):
            if value:
                raise ValueError(f"{name}: {value}, must be left out where plans are corrected")
        policies = PolicyFiles(begin, "onnxruntime").load()
        method.threshold(Bench(task, policies, calibration))  # raises if something is missing
        assert policies.plans is not None
        assert policies.corrector is not None
        self._method, self._recipe = method, recipe
        self._checkpoint = load_corrector(begin / PLANS / CORRECTOR)
        super().__init__(task, calibration, how, config, workers, load_network(self._checkpoint), Examples)
        taught = task, policies.plans, policies.corrector, recipe
        self._rehearsed = old_examples(*taught, old_episodes, 0)
        self._held_out = old_examples(*taught, max(1, old_episodes // 2), HELD_OUT_EPISODE)
        self.best = self._error(self._network)

    def _error(self, network: CorrectorNetwork) -> float:
        """Return the error of a corrector on held-out data, root mean square, in action scales."""
        correction, _ = running(network)(self._held_out.features)
        return float(np.sqrt(np.mean((self._held_out.wanted - correction) ** 2)))

    @property
    def begin(self) -> dict[str, Any]:
        """See `Learner`."""
        return {
            "corrector": self._checkpoint.digest(),
            "lessons": len(self._rehearsed),
            "recipe": asdict(self._recipe),
        }

    def write(self, folder: Path, command: str) -> None:
        """See `Learner`."""
        old = self._checkpoint
        acted = old.action_low, old.action_high
        training = {**old.training, "learned": command}
        save_with_export(folder / PLANS, CORRECTOR, self._network, old.sizes, old.scales, acted, training)

    def current_figures(self, files: PolicyFiles) -> dict[str, Any]:
        """See `Learner`."""
        if not self._how.evaluated:
            return {}
        return {self._how.ask: self.outcome(files, self._calibration, self._how.ask)}

    def learn(self, files: PolicyFiles, number: int) -> dict[str, Any]:
        """See `Learner`."""
        seed, config = self._how.seed, self._config
        bench = Comparison(self._task, files, self._calibration, seed).bench()
        new = corrected_plans(bench, self._method, seed, self._how.lessons(number))
        kept = self._reservoir.add(new)
        learned, old = None, self._rehearsed
        if len(kept):
            learned, _ = learn_on(
                self._network,
                (old.features, old.wanted),
                (kept.features, kept.wanted),
                config.rehearsal,
                config.fit(self._recipe.fit),
                Run(seed + number),
                self._recipe.beta,
            )
        self._network, taken = learned_within(self._network, learned, self._error, config.worse, self.best)
        self.best = taken["held_out"]["best"]
        return {"new": len(new), "corrections": len(kept), **taken}
